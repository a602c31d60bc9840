#!/usr/bin/env bash
# gemm_test.sh GEMM: the benchmark of matrix products prints a line for each shape, dtype and number of threads, with a
# rate for each side that has a kernel, and equal results; its processes end with it, even if they are stopped; unknown
# names are refused with a list of the known ones.
#
# Not tested here: the rates, which vary on a shared machine; OpenBLAS and oneDNN if the machine lacks them.
set -uo pipefail

# No threads may be started there after a fork.
[[ -z ${TSAN_OPTIONS:-} ]] || { echo "SKIPPED: processes of sides under ThreadSanitizer"; exit 0; }

gemm=$1
failed=0
fail() { echo "FAILED: $*"; failed=1; }

lines=$("$gemm" --shapes squares --largest 128 --seconds 0.001 --threads 1 2) || fail "exit code $?"
[[ $(grep -c . <<<"$lines") == 8 ]] || fail "not 8 lines: $lines"
number='[0-9]+\.[0-9]+'
while read -r line; do
  for key in shapes m n k layout dtype threads device retrograd eigen to_best; do
    grep -qE "^\{.*\"$key\":[^,]+[,}].*$" <<<"$line" || fail "no $key: $line"
  done
  if [[ $line == *float32* ]]; then
    grep -qE "\"retrograd\":$number,.*\"eigen\":$number,.*\"to_best\":$number" <<<"$line" || fail "$line"
  else
    grep -qE "\"retrograd\":$number,.*\"eigen\":null," <<<"$line" || fail "$line"
  fi
done <<<"$lines"

lines=$("$gemm" --shapes mlp --dtype float32 --threads 2 --seconds 0.001) || fail "mlp: exit code $?"
for layout in nn nt tn; do
  grep -qF "\"layout\":\"$layout\"" <<<"$lines" || fail "no $layout among the products of mlp: $lines"
done

for wrong in "--shapes circles" "--dtype int8" "--threads 0" "--seconds 0"; do
  # shellcheck disable=SC2086
  error=$("$gemm" $wrong 2>&1) && fail "$wrong is taken"
  [[ $error == *"${wrong%% *}"* ]] || fail "$wrong: $error"
done
[[ $("$gemm" --shapes circles 2>&1) == *squares*mlp*gpt-char*gpt-124m* ]] || fail "the shapes are not listed"

# Killed immediately, it leaves none of its processes.
"$gemm" --shapes squares --largest 64 --seconds 1000 >/dev/null &
parent=$!
children=""
for ((i = 0; i < 200; ++i)); do
  children=$(cat "/proc/$parent/task/$parent/children")
  [[ $(wc -w <<<"$children") -lt 2 ]] || break
  sleep 0.05
done
[[ -n $children ]] || fail "no processes of sides"
kill -KILL "$parent"
wait "$parent" 2>/dev/null
for child in $children; do
  for ((i = 0; i < 200; ++i)); do
    [[ -d /proc/$child && $(cut -d' ' -f3 "/proc/$child/stat" 2>/dev/null) != [ZX] ]] || break
    sleep 0.05
  done
  ((i < 200)) || fail "process $child has stayed"
done
exit "$failed"
