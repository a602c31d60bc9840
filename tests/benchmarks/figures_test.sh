#!/usr/bin/env bash
# figures_test.sh TRAIN_STEP ENGINE_OVERHEAD: each prints one line of JSON with the keys that comparisons read; the same
# steps are taken in every mode, so the loss is the same, whatever the number of threads; an unknown mode is refused
# with a list of the modes.
#
# Not tested here: the figures themselves, which vary on a shared machine; the benchmarks that run for long.
set -uo pipefail

train_step=$1 engine_overhead=$2
failed=0
fail() { echo "FAILED: $*"; failed=1; }

# has_keys LINE KEY...: it is one line, an object with a number or a text for each key.
has_keys() {
  local line=$1 key
  shift
  [[ $line == "{"*"}" && $(wc -l <<<"$line") == 1 ]] || fail "not one object: $line"
  for key in "$@"; do
    grep -qE "\"$key\":(\"[^\"]+\"|-?[0-9.]+)[,}]" <<<"$line" || fail "no $key: $line"
  done
}

for model in "mlp" "gpt-char --batch 2 --block 8"; do
  losses=""
  for run in "eager 2" "eager 1" "traced 2" "compiled 2" "step 2"; do
    read -r mode threads <<<"$run"
    # shellcheck disable=SC2086
    line=$("$train_step" ${model%% *} "$mode" --threads "$threads" --steps 2 $([[ $model == *" "* ]] && echo "${model#* }")) ||
      fail "$model $run"
    has_keys "$line" model mode threads dtype device step_ms min_ms first_s tokens_per_s peak_bytes planned_bytes loss gemm_ms \
      first_step_ms tflops peak_tflops share
    losses+=$(grep -oE '"loss":[0-9.]+' <<<"$line")$'\n'
  done
  [[ $(sort -u <<<"$losses" | grep -c .) == 1 ]] || fail "$model: other losses in another mode: $losses"
done

error=$("$train_step" mlp sideways 2>&1) && fail "sideways is taken for a mode"
[[ $error == *eager* && $error == *traced* && $error == *compiled* && $error == *step* ]] || fail "the modes are not listed: $error"

line=$("$train_step" mlp step --dtype bf16 --batch 32 --peak-tflops 0.5 --steps 2) || fail "bf16"
has_keys "$line" dtype loss share
[[ $line == *'"dtype":"bf16"'* && $line == *'"peak_tflops":0.500'* ]] || fail "bf16: $line"

for program in "$train_step mlp step" "$engine_overhead"; do
  # shellcheck disable=SC2086
  error=$($program --device cuda:99 2>&1)
  [[ $? == 2 && $error == *cuda:99* ]] || fail "$program: a device that is not there: $error"
done

has_keys "$("$engine_overhead")" device forward_ns record_ns backward_ns replay_ns replay_ns_per_node capture_us_per_node location_ns
exit "$failed"
