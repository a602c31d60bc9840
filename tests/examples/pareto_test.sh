#!/usr/bin/env bash
# pareto_test.sh PROGRAM: --pareto writes the plans that a memory budget chooses from, as a chart or as JSON, and does
# not change losses. Wrong paths are in bad_input_test.sh, the contents in tests/tracer/memory_report_test.cc.
set -uo pipefail

program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
losses() { grep -oE '^step [0-9]+ loss [^ ]+' "$1"; }

common=(--mode step --memory-budget 1 --steps 3 --log-every 1)
"$program" "${common[@]}" >"$folder/plain" || fail "exit code $?"
for name in plans.svg plans.json; do
  "$program" "${common[@]}" --pareto "$folder/$name" >"$folder/out" || fail "$name: exit code $?"
  cmp <(losses "$folder/plain") <(losses "$folder/out") || fail "$name: other losses"
done
[[ $(head -c 4 "$folder/plans.svg") == "<svg" && $(tail -1 "$folder/plans.svg") == "</svg>" ]] || fail "plans.svg"
[[ $(head -c 1 "$folder/plans.json") == "{" && $(tail -1 "$folder/plans.json") == "}" ]] || fail "plans.json"
planned=$(sed -n 's/.*memory budget *\([0-9]*\) of.*/\1/p' "$folder/out")
grep -q "\"planned_bytes\": $planned," "$folder/plans.json" || fail "other bytes than the summary's $planned"
exit "$failed"
