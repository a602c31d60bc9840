#!/usr/bin/env bash
# bad_input_test.sh PROGRAM: wrong flags, files and folders end with one line on stderr that describes the error, and
# exit code 2.
#
# Not tested here: running out of memory, disks that are really full: the file size limit of the process simulates one
# (a write fails at the same place), and /dev/full does so for output. If those are missing the case is skipped, with a
# message.
set -uo pipefail

program=$1
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
failed=0

# wrong WANTED ARGUMENT...: the program must refuse the arguments with a line that contains WANTED.
wrong() {
  local wanted=$1
  shift
  "$program" "$@" >"$folder/out" 2>"$folder/err"
  local code=$?
  if [[ $code != 2 || $(wc -l <"$folder/err") != 1 ]] || ! grep -qF -- "$wanted" "$folder/err"; then
    echo "FAILED: '$*': exit code $code, wanted 2 and one line with \"$wanted\", got:"
    cat "$folder/err"
    failed=1
  fi
}

wrong "--nonsense" --nonsense
wrong "--steps" --steps 0
wrong "--steps" --steps -5
wrong "--steps" --steps many
wrong "--threads" --threads 0
wrong "--threads" --threads 100000
wrong "--log-every" --log-every 0
wrong "--checkpoint-every" --save "$folder/model" --checkpoint-every 0
for seed in -x -1 18446744073709551616 "" 1.5 "1 "; do wrong "--seed" --seed "$seed"; done
for flag in --save --resume --dot --data --profile --pareto; do wrong "$flag" "$flag" ""; done
wrong "--mode" --mode sideways
wrong "--memory-budget" --mode step --memory-budget 0
wrong "it needs --mode step" --memory-budget 0.5
wrong "it needs --memory-budget" --mode step --pareto "$folder/plans.json"
wrong "--mode" --backward sideways
wrong "--saved" --saved nothing
wrong "--device" --device gpu
wrong "--device" --device cuda:x
wrong "--device" --device cuda:-1
wrong "--device" --device cuda:1x
wrong "--device" --device cuda:99 # a machine with so many would be new
if [[ ! -e /dev/nvidia0 ]]; then
  wrong "no CUDA device" --device cuda
else
  echo "SKIPPED: --device cuda where there is no device"
fi
wrong "--print-graph" --mode eager --print-graph
wrong "--offload-dir" --offload-dir "$folder"
wrong "$folder/none: not a folder" --profile "$folder/none"
wrong "$folder/none: not a folder" --saved offload-file --offload-dir "$folder/none"

: >"$folder/empty"
echo "1,2" >"$folder/short"
wrong "$folder/missing" --data "$folder/missing"
wrong "$folder/empty" --data "$folder/empty"
wrong "$folder/short" --data "$folder/short"
wrong "$folder: not a regular file" --data "$folder"
if [[ $(id -u) != 0 ]]; then
  echo "1,2" >"$folder/secret"
  chmod 0 "$folder/secret"
  wrong "$folder/secret" --data "$folder/secret"
else
  echo "SKIPPED: an unreadable file, since root reads everything"
fi

# Files to write: refused before the training, and existing files stay.
wrong "$folder/none/model" --save "$folder/none/model" --steps 1
wrong "$folder" --save "$folder" --steps 1
wrong "$folder/none/graph" --dot "$folder/none/graph" --steps 1
wrong "$folder/none/plans.svg" --mode step --memory-budget 1 --pareto "$folder/none/plans.svg" --steps 1
wrong "$folder: " --mode step --memory-budget 1 --pareto "$folder" --steps 1
if [[ -z ${TSAN_OPTIONS:-} ]]; then
  echo old >"$folder/model"
  ulimit -S -f 4 # blocks of 512 or 1024 bytes: less than any model
  trap '' XFSZ
  wrong "$folder/model" --save "$folder/model" --steps 1
  [[ $(cat "$folder/model") == old ]] || { echo "FAILED: a save that failed changed the old file"; failed=1; }
  ulimit -S -f 1 # less than any chart
  echo old >"$folder/plans.svg"
  wrong "$folder/plans.svg" --mode step --memory-budget 1 --pareto "$folder/plans.svg" --steps 1
  [[ $(cat "$folder/plans.svg") == old ]] || { echo "FAILED: plans that could not be written changed the old file"; failed=1; }
  ulimit -S -f 4
  wrong "saved-" --saved offload-file --offload-dir "$folder" --steps 1
  ulimit -S -f unlimited
  [[ -z $(find "$folder" -name 'saved-*' -o -name '.retrograd-*') ]] || { echo "FAILED: files were left behind"; failed=1; }
else
  echo "SKIPPED: a limit on the size of files, since ThreadSanitizer writes a file of its own when a program begins"
fi

if [[ -e /dev/full ]]; then
  for flags in "--steps 1" --help; do
    # shellcheck disable=SC2086
    "$program" $flags >/dev/full 2>"$folder/err"
    code=$?
    [[ $code == 2 && $(wc -l <"$folder/err") == 1 ]] || { echo "FAILED: output of $flags to a full disk: exit code $code"; cat "$folder/err"; failed=1; }
  done
else
  echo "SKIPPED: output to a full disk, since there is no /dev/full"
fi

"$program" --help >"$folder/out" || { echo "FAILED: --help"; failed=1; }
grep -q -- --mode "$folder/out" || { echo "FAILED: --help does not tell of --mode"; failed=1; }
exit "$failed"
