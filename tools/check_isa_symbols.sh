#!/usr/bin/env bash
# check_isa_symbols.sh ARCHIVE...: lists functions in the archives of an instruction-set level that another object may
# define with the same name (weak symbols whose name does not contain the level), and formulas of pairs of registers
# (cpu/kernels/levels/span_pairs.h) that are not inlined into a loop: a call takes three times as long. Exits with 1 if
# there are any. tools/isa.bzl explains why the first matters. An archive is named lib<name>_<level>.a.
set -euo pipefail

(($#)) || { echo "no archive given" >&2; exit 2; }

bad=0
for archive in "$@"; do
  level=${archive%.a}
  level=${level##*_}
  # In a mangled name a namespace is written as its length and text: 4avx2, 13Eigen_avx512.
  shared=$(nm --defined-only "$archive" | awk '$2 == "W" { print $3 }' | sort -u |
    grep -v -E "${#level}${level}|$((${#level} + 6))Eigen_${level}" || true)
  called=$(nm --defined-only "$archive" | awk '{ print $3 }' | grep 4PairI | grep -v span_in_pairs | sort -u || true)
  if [[ -n $called ]]; then
    bad=1
    echo "${archive##*/} calls formulas of pairs of registers:"
    c++filt <<<"$called" | sed 's/^/  /'
  fi
  [[ -z $shared ]] && continue
  bad=1
  echo "${archive##*/} defines functions that baseline code may end up calling:"
  c++filt <<<"$shared" | sed 's/^/  /'
done
exit "$bad"
