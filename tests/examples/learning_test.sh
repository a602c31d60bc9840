#!/usr/bin/env bash
# learning_test.sh PROGRAM accuracy|loss BOUND: a run with the default settings ends with at least this accuracy on
# held-out data in percent, or with at most this validation loss. Two short runs with the same seed save the same bytes,
# for every --threads and --mode.
#
# Not tested here: how fast it learns (benchmarks), other seeds.
set -euo pipefail

program=$1 what=$2 bound=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$program" --save "$folder/model" >"$folder/out"
last=$(grep '^val loss' "$folder/out" | tail -1)
echo "$last"
case $what in
  accuracy) awk -v b="$bound" '{ exit !($5 >= b) }' <<<"$last" ;;
  loss) awk -v b="$bound" '{ exit !($3 <= b) }' <<<"$last" ;;
esac || { echo "FAILED: the bound is $bound"; exit 1; }
[[ -s $folder/model ]] || { echo "FAILED: nothing was saved"; exit 1; }

"$program" --steps 25 --save "$folder/a" >/dev/null
"$program" --steps 25 --save "$folder/b" --threads 1 --mode eager >/dev/null
cmp "$folder/a" "$folder/b" || { echo "FAILED: the same seed gave another model"; exit 1; }
