#!/usr/bin/env bash
# What the defaults learn in a given time on one dataset: see bench/README.md.
# usage: bench/budgets.sh ewt|trec|sst2|gpt|ngram|lstm|LANGUAGE [more options of `regard train`]
# LANGUAGE: bul fre hin hun kor (SIGMORPHON 2020 G2P) or english finnish german (2017 inflection)
set -euo pipefail
cd "$(dirname "$0")/.."
data=${REGARD_DATA:-../shared/data}
regard=${REGARD:-$(ls .venv/bin/regard 2>/dev/null || echo regard)}
name=${1:?name one of ewt trec sst2 gpt ngram lstm, or a language}
shift

text=$data/small_texts/tinyshakespeare
train=$text.train.txt.gz dev=$text.valid.txt.gz columns=()
case $name in
  ewt)
    train=$data/ud_english_ewt/en_ewt-ud-train.conllu.gz dev=${train/train/dev}
    options=(--task tag --budget "${BUDGET:-10m}") ;;
  trec)
    train=$data/trec/train.tsv.gz dev=$data/trec/dev.tsv.gz columns=(--source-column 3 --target-column 1)
    options=(--task classify --budget "${BUDGET:-3m}") ;;
  sst2)
    train=$data/sst2/train.tsv.gz dev=$data/sst2/dev.tsv.gz columns=(--source-column 2 --target-column 1)
    options=(--task classify --budget "${BUDGET:-3m}") ;;
  gpt)  # nanoGPT's size for a CPU, with the same number of tokens: 2,000 steps of 12 x 64
    options=(--task language-model --steps 2000 --set training.batch_tokens=768 --set task.context_length=64
      --set model.decoder.kind=transformer --set model.decoder.layers=4
      --set model.decoder.width=128 --set model.decoder.heads=4) ;;
  ngram) options=(--task language-model --set model.kind=ngram --set model.order=5) ;;
  lstm) options=(--task language-model --set model.decoder.kind=recurrent --budget "${BUDGET:-10m}") ;;
  bul|fre|hin|hun|kor)
    train=$data/sigmorphon2020_g2p/${name}_train.tsv.gz dev=${train/train/dev}
    options=(--budget "${BUDGET:-3m}") ;;
  english|finnish|german)
    train=$data/sigmorphon2017_inflection/$name-train-high.tsv.gz dev=${train/train-high/dev}
    columns=(--source-column 1,3 --target-column 2) options=(--budget "${BUDGET:-5m}") ;;
  *) echo "$name: expected ewt, trec, sst2, gpt, ngram, lstm or a language"; exit 2 ;;
esac

command -v ${regard%% *} >/dev/null || { echo "no command $regard: run make setup, or set REGARD"; exit 1; }
for file in "$train" "$dev"; do
  [ -r "$file" ] || { echo "no file $file: set REGARD_DATA to the folder of the data"; exit 1; }
done
mkdir -p bench/results
$regard train "$train" --dev "$dev" "${columns[@]}" "${options[@]}" \
  --out "runs/bench-$name" --force "$@"
$regard evaluate "runs/bench-$name" "$dev" "${columns[@]}" --json | tee "bench/results/$name.json"
