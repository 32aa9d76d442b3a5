#!/usr/bin/env bash
# Twelve minutes on Multi30k English to German, then the scores of test_2016_flickr with beam 5 as
# JSON: see bench/README.md.
# usage: bench/multi30k.sh [more options of `regard train`]
set -euo pipefail
cd "$(dirname "$0")/.."
data=${REGARD_DATA:-../shared/data}/multi30k
regard=${REGARD:-$(ls .venv/bin/regard 2>/dev/null || echo regard)}

command -v ${regard%% *} >/dev/null || { echo "no command $regard: run make setup, or set REGARD"; exit 1; }
for file in "$data"/{train,val,test_2016_flickr}.{en,de}.gz; do
  [ -r "$file" ] || { echo "no file $file: set REGARD_DATA to the folder of the data"; exit 1; }
done
mkdir -p bench/results

SECONDS=0
$regard train --source "$data/train.en.gz" --target "$data/train.de.gz" \
  --dev-source "$data/val.en.gz" --dev-target "$data/val.de.gz" --budget "${BUDGET:-12m}" \
  --out runs/bench-multi30k --force "$@"
echo "regard train took $SECONDS s, start-up and end included" >&2
$regard evaluate runs/bench-multi30k --source "$data/test_2016_flickr.en.gz" \
  --target "$data/test_2016_flickr.de.gz" --beam 5 --json | tee bench/results/multi30k.json
