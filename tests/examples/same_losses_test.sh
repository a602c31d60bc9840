#!/usr/bin/env bash
# same_losses_test.sh PROGRAM STEPS PEAK [SAVED...]: trains for STEPS steps under each choice of --saved. The losses of every step and of the
# validation must be the same, as text with full precision, in all four modes and for --threads 1 and 2; one capture in each mode that
# captures; each plan takes the bytes that it said before, what hooks hold aside, and neither a traced backward nor, without hooks, a
# compiled function or a step peaks higher than an eager one. With PEAK "lower", every other choice peaks lower than keep, which comes first
# ("any" for a model whose activations are small beside its parameters). A step on one thread is run for keep alone. Peaks are not compared
# with offload: where the model is on the CPU it keeps as much as before, and what is brought back ahead lies beside its copy.
#
# Not tested here: that the losses are good (learning_test.sh), the graph itself (tests/tracer).
set -euo pipefail

program=$1 steps=$2 peak=$3
shift 3
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
    "$program" --steps "$steps" --log-every 1 --saved "$saved" --mode "$mode" --threads "$threads" >"$out"
    losses "$out" >"$out.losses"
    [[ $(grep -c '^step' "$out.losses") == "$steps" ]] || fail "$saved $run: not $steps lines of losses"
    grep -q '^val' "$out.losses" || fail "$saved $run: no validation loss"
    cmp "$out.losses" "$folder/$saved.eager.2.losses" || fail "$saved: other losses with $run than with eager 2"
    [[ $mode != eager ]] || continue
    grep -q -E '^ +captures +1$' "$out" || fail "$saved $run: not one capture"
    planned=$(value_of "$out" "planned peak") met=$(value_of "$out" met)
    [[ $planned == [1-9]* && $planned == "$met" ]] || fail "$saved $run: planned peak $planned, met: $met"
    in_hooks=$(value_of "$out" "in hooks")
    [[ $saved == keep && $in_hooks == 0 || $saved != keep && $in_hooks == [1-9]* ]] || fail "$saved $run: in hooks: $in_hooks"
    eager=$(value_of "$folder/$saved.eager.2" "peak bytes") here=$(value_of "$out" "peak bytes")
    echo "$saved $run: peak bytes $here, eager $eager; of the plans $planned"
    [[ $saved == offload || ($mode != traced && $saved != keep) ]] || ((here <= eager)) || fail "$saved $run: peaks higher than eager"
  done
  traced=$(value_of "$folder/$saved.traced.2" "peak bytes")
  if [[ $saved == keep ]]; then keep_peak=$traced
  elif [[ $peak == lower && $saved != offload ]]; then ((traced < keep_peak)) || fail "$saved: peaks no lower than keep"
  fi
done
