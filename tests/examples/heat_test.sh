#!/usr/bin/env bash
# heat_test.sh HEAT: fewer slots change the executed steps and the memory, not the losses; states in a file need less of
# both memories; bad input is an error.
set -euo pipefail

heat=$1
fail() {
  echo "FAILED: $1"
  exit 1
}
losses() { grep '^iteration' <<<"$1"; }
kib() { sed -n 's/.*at most \([0-9]*\) KiB.*/\1/p' <<<"$1"; }

all=$("$heat" 300 300) few=$("$heat" 300 8) file=$("$heat" 300 3 5)
echo "$all"; echo "$few"; echo "$file"
[[ $(losses "$all") == "$(losses "$few")" && $(losses "$all") == "$(losses "$file")" ]] || fail "losses differ"
[[ $(losses "$all" | wc -l) == 5 ]] || fail "five iterations"
(( $(kib "$few") * 4 < $(kib "$all") && $(kib "$file") < $(kib "$few") )) || fail "memory"
grep -q '300 executed for each gradient (1.00 times)' <<<"$all" || fail "executed steps"
grep -q '1050 executed' <<<"$few" || fail "executed steps with 8 slots"

for bad in "0" "ten" "10 0" "10 2 x"; do
  code=0
  text=$("$heat" $bad 2>&1 >/dev/null) || code=$?
  [[ $code == 2 && $text == heat:*"positive number"* ]] || fail "heat $bad: $code, $text"
done
