#!/usr/bin/env bash
# Ten minutes on CMUdict, then the scores on its dev part as JSON: see bench/README.md.
# usage: bench/g2p.sh [more options of `regard train`]
set -euo pipefail
cd "$(dirname "$0")/.."
data=${REGARD_DATA:-../shared/data}/cmudict_g2p
regard=${REGARD:-$(ls .venv/bin/regard 2>/dev/null || echo regard)}

command -v ${regard%% *} >/dev/null || { echo "no command $regard: run make setup, or set REGARD"; exit 1; }
for file in "$data"/{train,dev}.tsv.gz; do
  [ -r "$file" ] || { echo "no file $file: set REGARD_DATA to the folder of the data"; exit 1; }
done
mkdir -p bench/results

SECONDS=0
$regard train "$data/train.tsv.gz" --dev "$data/dev.tsv.gz" --budget "${BUDGET:-10m}" \
  --out runs/bench-g2p --force "$@"
echo "regard train took $SECONDS s, start-up and end included" >&2
$regard evaluate runs/bench-g2p "$data/dev.tsv.gz" --json | tee bench/results/g2p.json
