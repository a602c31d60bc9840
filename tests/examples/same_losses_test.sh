#!/usr/bin/env bash
# same_losses_test.sh PROGRAM ROUND_TRIP STEPS PEAK [SAVED...]: trains for STEPS steps with each choice of --saved. The
# losses of every step and of the validation must be the same, as text with full precision, in all four modes and for
# --threads 1 and 2. There is one capture in each mode that captures. Each plan takes the bytes that it predicted, apart
# from those held by opaque hooks. Neither a traced backward nor, without hooks, a compiled function or a step has a higher
# peak than an eager one. With PEAK "lower", every other choice has a lower peak than keep, which comes first ("any" for
# a model whose activations are small compared with its parameters). A step on one thread is only run for keep. Peaks
# are not compared with offload: if the model is on the CPU it keeps as much as before, and a prefetched value exists in
# addition to its copy.
# An example that has --checkpoint has the same losses with each choice of it, and with PEAK "lower" lower peaks.
# Every captured graph is written to a file, whose text parses and prints again (ROUND_TRIP FILE...).
#
# Not tested here: that the losses are good (learning_test.sh), the graph itself (tests/tracer).
set -euo pipefail

program=$1 round_trip=$2 steps=$3 peak=$4
shift 4
# With ThreadSanitizer all choices take hours: the first and the last.
[[ -z ${TSAN_OPTIONS:-} || $# -lt 3 ]] || set -- "$1" "${@: -1}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
keep_peak=0

fail() { echo "FAILED: $*" >&2; exit 1; }
losses() { grep -o -E '^(step [0-9]+|val) loss [^ ]+' "$1"; }
value_of() { sed -n -E "s/^  $2 +([^ ]+).*/\\1/p" "$1"; }

for saved in "${@:-keep}"; do
  runs=("eager 2" "traced 2" "traced 1" "compiled 2" "step 2")
  [[ $saved != keep ]] || runs+=("step 1")
  for run in "${runs[@]}"; do
    read -r mode threads <<<"$run"
    out=$folder/$saved.$mode.$threads
    RETROGRAD_DUMP=$out.graphs "$program" --steps "$steps" --log-every 1 --saved "$saved" --mode "$mode" --threads "$threads" >"$out"
    losses "$out" >"$out.losses"
    [[ $(grep -c '^step' "$out.losses") == "$steps" ]] || fail "$saved $run: not $steps lines of losses"
    grep -q '^val' "$out.losses" || fail "$saved $run: no validation loss"
    cmp "$out.losses" "$folder/$saved.eager.2.losses" || fail "$saved: other losses with $run than with eager 2"
    [[ $mode != eager ]] || continue
    "$round_trip" "$out".graphs/*.txt || fail "$saved $run: the text of a graph does not make the graph"
    grep -q -E '^ +captures +1$' "$out" || fail "$saved $run: not one capture"
    planned=$(value_of "$out" "planned peak") met=$(value_of "$out" met)
    [[ $planned == [1-9]* && $planned == "$met" ]] || fail "$saved $run: planned peak $planned, met: $met"
    in_hooks=$(value_of "$out" "in hooks")
    [[ $saved == offload* && $in_hooks == [1-9]* || $saved != offload* && $in_hooks == 0 ]] ||
      fail "$saved $run: in hooks: $in_hooks"
    eager=$(value_of "$folder/$saved.eager.2" "peak bytes") here=$(value_of "$out" "peak bytes")
    echo "$saved $run: peak bytes $here, eager $eager; of the plans $planned"
    [[ $saved == offload || ($mode != traced && $saved != keep) ]] || ((here <= eager)) || fail "$saved $run: peaks higher than eager"
  done
  traced=$(value_of "$folder/$saved.traced.2" "peak bytes")
  if [[ $saved == keep ]]; then keep_peak=$traced
  elif [[ $peak == lower && $saved != offload ]]; then ((traced < keep_peak)) || fail "$saved: peaks no lower than keep"
  fi
done

"$program" --help | grep -q -- '--checkpoint ' || exit 0
choices=(block policy=products policy=all policy=names)
((steps >= 20)) || choices=("${choices[@]:0:2}")  # the short form of a slow example
for choice in "${choices[@]}"; do
  for mode in eager traced compiled step; do
    out=$folder/$choice.$mode
    "$program" --steps "$steps" --log-every 1 --checkpoint "$choice" --mode "$mode" --threads 2 >"$out"
    losses "$out" >"$out.losses"
    cmp "$out.losses" "$folder/keep.eager.2.losses" || fail "--checkpoint $choice, $mode: other losses"
    here=$(value_of "$out" "peak bytes") without=$(value_of "$folder/keep.$mode.2" "peak bytes")
    echo "--checkpoint $choice, $mode: peak bytes $here, without $without; $(grep recomputed "$out" || true)"
    [[ $peak != lower ]] || ((here < without)) || fail "--checkpoint $choice, $mode: peaks no lower than without"
    [[ $mode != eager ]] || continue
    grep -q -E '^ +captures +1$' "$out" || fail "--checkpoint $choice, $mode: not one capture"
    planned=$(value_of "$out" "planned peak") met=$(value_of "$out" met)
    [[ $planned == [1-9]* && $planned == "$met" ]] || fail "--checkpoint $choice, $mode: planned peak $planned, met: $met"
  done
done
