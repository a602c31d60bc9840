#!/usr/bin/env bash
# device_figures_test.sh PROGRAMS_ON_HOST: with --device cuda, the host in place of a device, each benchmark prints
# its lines of JSON with the keys that the report of a GPU reads, and the device's name in each. A step's loss is
# near that of the same step on the CPU.
#
# Not tested here: the figures, which are not representative of a device; cuBLASLt, cuDNN.
set -uo pipefail

# A thousand times slower there, and kernels are checked in tests/cuda.
[[ -z ${TSAN_OPTIONS:-} ]] || { echo "SKIPPED: figures under ThreadSanitizer"; exit 0; }

programs=$1
failed=0
fail() { echo "FAILED: $*"; failed=1; }

# run COUNT "KEY..." PROGRAM ARGUMENT...: it prints COUNT lines, each an object with the device and these keys.
run() {
  local count=$1 keys=$2 line key
  shift 2
  lines=$("$programs" "$@" --device cuda) || fail "$*: exit code $?"
  [[ $(grep -c . <<<"$lines") == "$count" ]] || fail "$*: not $count lines: $lines"
  while read -r line; do
    [[ $line == "{"*"}" ]] || fail "$*: no object: $line"
    for key in 'device":"the host in a device'"'"'s place"' $keys; do
      [[ $key == *'"'* ]] || key+='":'
      [[ $line == *"\"$key"* ]] || fail "$*: no $key: $line"
    done
  done <<<"$lines"
}

losses=$("$programs" train_step mlp eager --batch 4 --steps 1 | grep -oE '"loss":[0-9.]+')
for mode in eager traced compiled step; do
  run 1 "step_ms tokens_per_s peak_bytes planned_bytes gemm_ms tflops peak_tflops share" \
    train_step mlp "$mode" --batch 4 --steps 1
  losses+=$'\n'$(grep -oE '"loss":[0-9.]+' <<<"$lines")
done
awk -F: 'NR == 1 { cpu = $2 } { d = $2 - cpu; if (d < 0) d = -d; if (d > 1e-3) exit 1 } END { exit NR != 5 }' <<<"$losses" ||
  fail "other losses than on the CPU: $losses"
run 1 'dtype":"bf16" share' train_step mlp step --batch 4 --steps 1 --dtype bf16 --peak-tflops 1

run 5 "bench elements copy_ms share step_ms" fusion --elements 4096
run 1 "shapes m n k layout dtype retrograd" gemm --shapes squares --largest 64 --dtype float32 --seconds 0.001
run 2 "op inputs pass dtype us rate share dnn" ops --json --filter logsigmoid --size 1000 --seconds 0.001
run 2 'dtype":"bfloat16" dnn":0' ops --json --filter conv2d_small --size 0 --dtype bfloat16 --seconds 0.001
run 3 "" engine_overhead --rounds 1 --batch 1
[[ $lines == *'"bench":"replay"'*mlp*launch_us*alone_us*stream_us*gpt-char*forward_ns*replay_ns* ]] || fail "engine_overhead: $lines"
exit "$failed"
