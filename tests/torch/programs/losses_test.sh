#!/usr/bin/env bash
# losses_test.sh PROGRAM EXPECTED [ARGUMENT...]: what a program prints is what it printed with libtorch.
#
# EXPECTED is the output with libtorch 2.15; only the names of nodes and the layout of printed tensors are this library's.
# Each line must have the same text around its numbers, and the same numbers up to 1e-4, absolute or relative.
set -euo pipefail

program=$1 expected=$2
shift 2
out=$TEST_TMPDIR/out
"$program" "$@" >"$out" || { echo "FAILED: $program exits with $?"; cat "$out"; exit 1; }

awk '
  function fail(text) { print "FAILED: line " FNR ": " text "\n  here     " $0 "\n  libtorch " wanted[FNR]; failed = 1 }
  # Whether two lines differ; takes them apart number by number.
  function differ(a, b,    number, x, y) {
    number = "[-+]?[0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?"
    while (match(a, number)) {
      x = substr(a, RSTART, RLENGTH) + 0; before = substr(a, 1, RSTART - 1); a = substr(a, RSTART + RLENGTH)
      if (!match(b, number)) return 1
      y = substr(b, RSTART, RLENGTH) + 0
      if (before != substr(b, 1, RSTART - 1)) return 1
      b = substr(b, RSTART + RLENGTH)
      if ((x - y) ^ 2 > (1e-4 * (1 + (y < 0 ? -y : y))) ^ 2) return 1
      ++numbers
    }
    return a != b
  }
  NR == FNR { wanted[FNR] = $0; ++lines; next }
  differ($0, wanted[FNR]) { fail("differs") }
  END {
    if (FNR != lines) { print "FAILED: " FNR " lines, libtorch printed " lines; failed = 1 }
    if (numbers < 5) { print "FAILED: " numbers + 0 " numbers"; failed = 1 }
    exit failed
  }
' "$expected" "$out"
