#!/usr/bin/env bash
# resume_test.sh PROGRAM STEPS STOPS: a training that was stopped and resumed prints the remaining losses of one that
# was not, and ends with the same bytes of state.
#
# In each of the modes eager, traced and step a training is stopped at a step. Then trainings are killed by SIGKILL,
# STOPS times in all, at any moment from the start of the program to its end. After each the file of --save is absent or
# whole, and the next run, in another mode and with other --threads, goes on from it. The moments come from a fixed list
# of seeds and are shown if a run fails.
# Also: a training at its end can be made longer; a file that does not exist or does not fit is an error of one line.
#
# Not tested here: what is in the file, damaged files (tests/io/training_state_test.cc).
set -uo pipefail

program=$1 steps=$2 stops=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
losses() { grep -oE '^(step [0-9]+|val) loss [^ ]+' "$1"; }
run() { "$program" --log-every 1 "$@"; }

reference=$folder/reference
begin=${EPOCHREALTIME/./}
run --steps "$steps" --mode eager --save "$reference.file" --checkpoint-every 1 >"$reference.out" ||
  fail "an uninterrupted run: exit code $?"
duration=$(((${EPOCHREALTIME/./} - begin) / 1000)) # milliseconds
losses "$reference.out" >"$reference"
[[ $(grep -c '^step' "$reference") == "$steps" ]] || fail "an uninterrupted run: not $steps lines of losses"

# is_tail NAME OUT: the losses that were printed are the last ones of the uninterrupted run.
is_tail() {
  losses "$2" >"$2.losses"
  [[ -s $2.losses ]] || fail "$1: no losses"
  cmp -s "$2.losses" <(tail -n "$(wc -l <"$2.losses")" "$reference") || { fail "$1: other losses"; cat "$2"; }
}
# is_part NAME OUT: the losses that were printed are those of the uninterrupted run, from some step on. The last line
# may be cut off.
is_part() {
  losses "$2" | sed '$d' >"$2.losses"
  [[ -s $2.losses ]] || return
  local from
  from=$(grep -n -x -F -m 1 "$(head -1 "$2.losses")" "$reference" | cut -d: -f1)
  [[ -n $from ]] && cmp -s "$2.losses" <(tail -n "+$from" "$reference" | head -n "$(wc -l <"$2.losses")") ||
    { fail "$1: other losses before the stop"; cat "$2"; }
}
ends_alike() { cmp "$1" "$reference.file" || fail "$2: other state at the end"; }

modes=(eager traced step)
for mode in "${modes[@]}"; do
  file=$folder/$mode.file out=$folder/$mode.out
  RANDOM=$((steps + ${#mode}))
  # Stopped at a step: its standard output is closed.
  run --steps "$steps" --mode "$mode" --save "$file" --checkpoint-every 1 2>"$out.err" |
    head -n $((1 + RANDOM % (steps - 1))) >"$out"
  is_part "$mode, up to a step" "$out"
  run --steps "$steps" --mode "$mode" --save "$file" --resume "$file" >"$out" || fail "$mode, resumed: exit code $?"
  grep -q '^resumed after step [1-9]' "$out" || fail "$mode: not resumed"
  is_tail "$mode, resumed" "$out"
  ends_alike "$file" "$mode, resumed"
done

[[ -z $(find "$folder" -name '.retrograd-*') ]] || fail "a temporary file was left behind by a run that was not killed"

# Killed: one command again and again, until it ends by itself.
killed=0 resumed=0 round=0
while ((killed < stops && round < 20 * stops && failed == 0)); do
  RANDOM=$((++round))
  file=$folder/killed.file
  rm -f "$file"
  for attempt in {1..100}; do
    mode=${modes[RANDOM % 3]} threads=$((1 + RANDOM % 2)) every=$((1 + RANDOM % 2)) after=$((RANDOM % (duration + 1)))
    name="round $round, attempt $attempt, --mode $mode --threads $threads --checkpoint-every $every, after $after ms"
    out=$folder/killed.$attempt
    # Not by run(): that would be a shell, which would be killed in place of the program.
    "$program" --log-every 1 --steps "$steps" --mode "$mode" --threads "$threads" \
      --save "$file" --checkpoint-every "$every" --auto-resume >"$out" 2>"$out.err" &
    pid=$!
    if ((killed < stops)); then
      sleep "$((after / 1000)).$(printf '%03d' $((after % 1000)))"
      kill -KILL "$pid" 2>"$folder/err"
    fi
    wait "$pid" 2>"$folder/err"
    code=$?
    if grep -q '^resumed after step [1-9]' "$out"; then ((++resumed)); fi
    if [[ $code == 137 ]]; then
      ((++killed))
      is_part "$name" "$out"
      continue
    fi
    [[ $code == 0 ]] || { fail "$name: exit code $code: $(cat "$out.err")"; break; }
    is_tail "$name" "$out"
    ends_alike "$file" "$name"
    break
  done
done
echo "killed $killed times in $round trainings of $duration ms, resumed $resumed times after a step"
((killed == stops && resumed > 0)) || fail "not $stops stops, or none after the first file"

run --steps $((steps + 2)) --resume "$reference.file" >"$folder/longer" || fail "a longer training: exit code $?"
[[ $(grep -c '^step' "$folder/longer") == 2 ]] || { fail "a longer training: not two steps"; cat "$folder/longer"; }

# wrong TEXT ARGUMENT...: exit code 2, one line, with this text.
wrong() {
  run "${@:2}" >"$folder/out" 2>"$folder/err"
  local code=$?
  [[ $code == 2 && $(wc -l <"$folder/err") == 1 ]] && grep -qF -e "$1" "$folder/err" ||
    { fail "exit code $code for ${*:2}, wanted one line with: $1"; cat "$folder/err"; }
}
wrong "$folder/none" --steps "$steps" --resume "$folder/none"
wrong "they need --save" --checkpoint-every 1
wrong "they need --save" --auto-resume
wrong "only one of them" --save "$folder/new" --auto-resume --resume "$reference.file"
wrong "\"seed\" is '1', here it is '2'" --steps "$steps" --resume "$reference.file" --seed 2
wrong "at step $steps, --steps are 1" --steps 1 --resume "$reference.file"
head -c 1000 "$reference.file" >"$folder/short"
wrong "$folder/short" --steps "$steps" --resume "$folder/short"
exit "$failed"
