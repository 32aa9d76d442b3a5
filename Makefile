# Each target sets up .venv by itself. Start with: make demo

PYTHON ?= python3
BIN := .venv/bin
DEMO := runs/g2p-demo
# Number of workers that run the tests.
WORKERS ?= 2
# Tests and demo start many processes, which should not compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Ten words that are not in the CMU dictionary, so not in training either.
WORDS := chatbot deepfake doomscroll emoji frobnicate glamping smartwatch staycation tokenizer transformerly

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' Makefile

setup: .venv/ready ## create .venv with the command regard and everything that the tests use

# Each of the two files in .venv records an installation: what the demo needs, or all.
.venv/ready: EXTRAS := all,test
.venv/demo: EXTRAS := demo,serve
.venv/ready .venv/demo: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "regard needs Python 3.10 or newer: make setup PYTHON=python3.12"; exit 2; }
	@echo "Setting up .venv: downloads PyTorch and a few small packages, which may take a few minutes."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
	@echo "Ready: $(BIN)/regard --help"

# An installation for the tests is enough for the demo.
demo: $(if $(wildcard .venv/ready),.venv/ready,.venv/demo) ## train English pronunciation for three minutes, then predict new words
	$(BIN)/python -m regard train g2p --budget 3m --out $(DEMO) --force
	@echo
	@echo "Metrics on held-out words:"
	$(BIN)/python -m regard evaluate $(DEMO) g2p
	@echo
	@echo "Ten words that are not in the data:"
	@printf '%s\n' $(WORDS) > $(DEMO)-words.txt
	@$(BIN)/python -m regard predict $(DEMO) --input $(DEMO)-words.txt \
		--output $(DEMO)-predictions.txt --force
	@paste $(DEMO)-words.txt $(DEMO)-predictions.txt
	@echo
	@$(BIN)/python -m regard inspect $(DEMO) doomscroll --out $(DEMO)-inspect.html
	@echo "Report: $(CURDIR)/$(DEMO)/report.html"
	@echo "Inspection: $(CURDIR)/$(DEMO)-inspect.html"
	@echo "Web UI: $(BIN)/regard serve $(DEMO)"

test: lint ## lint, then all tests
	$(BIN)/python -m pytest -n $(WORKERS)

lint: .venv/ready ## format, lint, types, imports, spelling and wording
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@if [ -x $(BIN)/lint-imports ]; then $(BIN)/lint-imports; \
		else echo "imports are not checked: import-linter needs Python 3.11"; fi
	$(BIN)/codespell
	$(BIN)/python .ci/check_phrases.py

bench: .venv/ready ## list the benchmarks; make bench RUN=bench/NAME runs one
ifdef RUN
	PATH="$(CURDIR)/$(BIN):$$PATH" $(if $(filter %.py,$(RUN)),$(BIN)/python,bash) $(RUN)
else
	@ls bench/*.py bench/*.sh 2>/dev/null || echo "no benchmarks in bench/"
	@echo "Run one with: make bench RUN=bench/NAME"
endif
