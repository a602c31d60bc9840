#!/usr/bin/env bash
# profile_test.sh PROGRAM OP: --profile prints a table that has OP and the update, and writes it, a Chrome trace and a
# chart to the folder, in every mode; losses are those of a run without it. In mode step the update is adamw_step, a
# part of the plan.
#
# Not tested here: the contents of table, trace and chart (tests/tracer), a missing folder (bad_input_test.sh).
set -uo pipefail

program=$1 op=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
losses() { grep -oE '^step [0-9]+ loss [^ ]+' "$1"; }

"$program" --steps 4 --log-every 1 >"$folder/plain"
for mode in eager traced compiled step; do
  out=$folder/$mode
  mkdir "$out.d"
  "$program" --steps 4 --log-every 1 --mode "$mode" --profile "$out.d" >"$out" || fail "$mode: exit code $?"
  cmp <(losses "$folder/plain") <(losses "$out") || fail "$mode: other losses"
  update=update
  [[ $mode != step ]] || update=adamw_step
  for kind in "$op" "$update" all; do
    grep -qE "^$kind +[0-9]+ +[0-9.]+ ms +[0-9.]+ %" "$out" || fail "$mode: no row $kind"
    grep -qE "^$kind +[0-9]+" "$out.d/profile.txt" || fail "$mode: no row $kind in profile.txt"
  done
  [[ $(head -c 4 "$out.d/memory.svg") == "<svg" && $(tail -1 "$out.d/memory.svg") == "</svg>" ]] || fail "$mode: memory.svg"
  grep -q '"traceEvents"' "$out.d/trace.json" || fail "$mode: trace.json"
  grep -q "\"name\":\"$op\"" "$out.d/trace.json" || fail "$mode: no $op in trace.json"
done
exit "$failed"
