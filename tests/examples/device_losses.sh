#!/usr/bin/env bash
# device_losses.sh STEPS TOLERANCE MODE:SAVED,... PROGRAM [ARGUMENT...]: trains for STEPS steps with --device cuda in
# each mode and choice of --saved, and eagerly on the CPU with the same choice. The losses of every step and of the
# validation must agree within TOLERANCE, relative to the CPU's (ten times that if the choice rounds saved values), and
# have the same bits in all modes of a choice on the device; the summary names the device, and there is one capture in
# modes that capture. The last line reports the largest difference.
#
# Not tested here: that the losses are good (learning_test.sh), results of single ops (tests/cuda).
set -uo pipefail

steps=$1 tolerance=$2 runs=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0 worst=0
fail() { echo "FAILED: $*"; failed=1; }

# losses DEVICE MODE SAVED COMMAND...: one per line, in a file that it names.
losses() {
  local file=$folder/$1.$2.$3
  "${@:4}" --steps "$steps" --log-every 1 --device "$1" --mode "$2" --saved "$3" >"$file" 2>"$file.err" || {
    fail "--device $1 --mode $2 --saved $3: exit code $?: $(tail -1 "$file.err")"
    return 1
  }
  grep -oE '^(step [0-9]+|val) loss [^ ]+' "$file" | awk '{ print $NF }' >"$file.losses"
  [[ $(wc -l <"$file.losses") == $((steps + 1)) ]] || { fail "$1 $2 $3: not $((steps + 1)) losses"; return 1; }
}

for run in ${runs//,/ }; do
  mode=${run%:*} saved=${run#*:}
  [[ -e $folder/cpu.eager.$saved ]] || losses cpu eager "$saved" "$@" || continue
  losses cuda "$mode" "$saved" "$@" || continue
  here=$folder/cuda.$mode.$saved
  grep -qE '^  device +cuda:0$' "$here" || fail "$run: the summary does not name cuda:0"
  [[ $mode == eager ]] || grep -qE '^  captures +1$' "$here" || fail "$run: not one capture"
  first=$folder/first.$saved
  [[ -e $first ]] || cp "$here.losses" "$first"
  cmp -s "$here.losses" "$first" || fail "$run: other losses than in another mode on the device"
  apart=$(paste "$folder/cpu.eager.$saved.losses" "$here.losses" |
    awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (!(d <= most)) most = d } END { print most + 0 }')
  allowed=$tolerance
  [[ $saved == keep || $saved == offload* ]] || allowed=$(awk -v t="$tolerance" 'BEGIN { print 10 * t }')
  awk -v d="$apart" -v t="$allowed" 'BEGIN { exit !(d <= t) }' || fail "$run: the losses are $apart apart"
  worst=$(awk -v a="$worst" -v b="$apart" 'BEGIN { print (a + 0 > b + 0 ? a : b) }')
done
echo "losses apart from the CPU's: at most $worst"
exit "$failed"
