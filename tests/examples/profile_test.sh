#!/usr/bin/env bash
# profile_test.sh PROGRAM OP: --profile prints a table that has OP and the update, and writes it, a Chrome trace and a chart into the folder,
# with eager and traced backwards; losses are those of a run without it.
#
# Not tested here: the contents of table, trace and chart (tests/tracer), a folder that is not there (bad_input_test.sh).
set -uo pipefail

program=$1 op=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
losses() { grep -oE '^step [0-9]+ loss [^ ]+' "$1"; }

"$program" --steps 4 --log-every 1 >"$folder/plain"
for backward in eager traced; do
  out=$folder/$backward
  mkdir "$out.d"
  "$program" --steps 4 --log-every 1 --backward "$backward" --profile "$out.d" >"$out" || fail "$backward: exit code $?"
  cmp <(losses "$folder/plain") <(losses "$out") || fail "$backward: other losses"
  for kind in "$op" update all; do
    grep -qE "^$kind +[0-9]+ +[0-9.]+ ms +[0-9.]+ %" "$out" || fail "$backward: no row $kind"
    grep -qE "^$kind +[0-9]+" "$out.d/profile.txt" || fail "$backward: no row $kind in profile.txt"
  done
  [[ $(head -c 4 "$out.d/memory.svg") == "<svg" && $(tail -1 "$out.d/memory.svg") == "</svg>" ]] || fail "$backward: memory.svg"
  grep -q '"traceEvents"' "$out.d/trace.json" || fail "$backward: trace.json"
  grep -q "\"name\":\"$op\"" "$out.d/trace.json" || fail "$backward: no $op in trace.json"
done
exit "$failed"
