#!/usr/bin/env bash
# offload_test.sh PROGRAM: --saved offload-file leaves no files when it ends, when it is interrupted, and when its files
# vanish while it runs; the last is an error of one line and exit code 2.
#
# Not tested here: a full disk (bad_input_test.sh), the hooks themselves (tests/hooks/stock_test.cc), a process killed
# by SIGKILL, which does leave its folder.
set -uo pipefail

program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TMPDIR=$folder/tmp
mkdir "$TMPDIR" "$folder/offload"
failed=0
fail() { echo "FAILED: $*"; failed=1; }
private_folder_is_gone() { [[ -z $(ls -A "$TMPDIR") ]] || fail "$1: the private folder is still there"; }
# Starts a run that would take very long, and waits for its first line.
start() {
  "$program" --saved offload-file --steps 100000000 --log-every 1 "$@" >"$folder/out" 2>"$folder/err" &
  pid=$!
  for _ in $(seq 600); do
    [[ -s $folder/out ]] && return
    sleep 0.05
  done
  fail "no first step after 30 s"
}

"$program" --saved offload-file --steps 2 >/dev/null || fail "a plain run"
private_folder_is_gone "at the end"

start
kill -INT "$pid"
wait "$pid"
code=$?
[[ $code == 130 ]] || fail "interrupted: exit code $code, wanted 130"
private_folder_is_gone "interrupted"

start --offload-dir "$folder/offload"
for _ in $(seq 5000); do
  rm -f "$folder/offload/saved-"*
  kill -0 "$pid" 2>/dev/null || break
done
kill "$pid" 2>/dev/null
wait "$pid"
code=$?
[[ $code == 2 && $(wc -l <"$folder/err") == 1 ]] || { fail "vanished file: exit code $code"; cat "$folder/err"; }
grep -q "$folder/offload/saved-" "$folder/err" || { fail "vanished file: its path is not named"; cat "$folder/err"; }
[[ -z $(ls -A "$folder/offload") ]] || fail "vanished file: the other files are still there"
exit "$failed"
