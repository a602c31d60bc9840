#!/usr/bin/env bash
# resources_test.sh LIMITS [NOTES...]: compares the notes of ptxas on every kernel (cuda/cuda_library.bzl) with limits.
#
# A line of LIMITS: the largest number of registers, spilled bytes and bytes of stack of kernels whose name (as c++filt
# writes it) matches a regular expression; a reason may follow. The first line that matches is used. A line that no
# kernel needs is an error, too.
set -euo pipefail

limits=$1
shift
if [[ $# -eq 0 ]]; then
  echo "skipped: the build has no CUDA toolkit"
  exit 0
fi

cat "$@" | c++filt | awk -v limits="$limits" '
  function check(what, found, most) {
    if (found <= most) return
    printf "%s: %d %s, at most %d are allowed\n", name, found, what, most
    failed = 1
  }
  function finish(  i) {
    if (name == "") return
    ++kernels
    if (registers > most_registers) { most_registers = registers; widest = name }
    for (i = 1; i <= count && name !~ pattern[i]; ++i) continue
    if (i > count) { print name ": no line of the limits matches"; failed = 1; return }
    used[i] = 1
    check("registers", registers, registers_of[i])
    check("bytes of spill stores and loads", spilled, spilled_of[i])
    check("bytes of stack", stack, stack_of[i])
  }
  BEGIN {
    while ((getline line < limits) > 0) {
      if (line ~ /^(#|$)/) continue
      ++count
      split(line, field, " ")
      registers_of[count] = field[1]; spilled_of[count] = field[2]; stack_of[count] = field[3]
      pattern[count] = field[4]
    }
  }
  /Compiling entry function/ {
    finish()
    name = $0
    sub(/^[^\047]*\047/, "", name)
    sub(/\047 for .*/, "", name)
    registers = spilled = stack = 0
  }
  # Of the kernel and of the functions it calls.
  /bytes stack frame/ { if ($1 > stack) stack = $1 + 0; spilled += $5 + $9 }
  /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5) + 0 }
  END {
    finish()
    for (i = 1; i <= count; ++i)
      if (!used[i]) { print pattern[i] ": no kernel needs this line of the limits"; failed = 1 }
    if (kernels == 0) { print "there are no notes of kernels"; failed = 1 }
    printf "%d kernels, at most %d registers: %s\n", kernels, most_registers, widest
    exit failed
  }'
