#!/usr/bin/env bash
# falling_test.sh PROGRAM BOUND ARGUMENT...: a short run ends with a training loss of at most BOUND, which is below that
# of the first step.
#
# Not tested here: how good a long run gets (learning_test.sh).
set -euo pipefail

program=$1 bound=$2
shift 2
losses=$("$program" --log-every 10 "$@" | awk '$1 == "step" { print $4 }')
first=$(head -1 <<<"$losses") last=$(tail -1 <<<"$losses")
echo "loss $first, then $last"
awk -v first="$first" -v last="$last" -v bound="$bound" 'BEGIN { exit !(last <= bound && last < first) }' ||
  { echo "FAILED: the bound is $bound"; exit 1; }
