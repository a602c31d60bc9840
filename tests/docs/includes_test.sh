#!/usr/bin/env bash
# includes_test.sh DESIGN: each folder of the library includes only what the table of folders in DESIGN allows.
#
# A row of the table is "| `folder/` | what it may include | what it holds |", in the order of the layers: a folder may
# include rows above its own alone. A file belongs to the row with the longest folder that it lies in. The sources are
# in the current folder (library_sources.bzl).
set -euo pipefail

design=$1
find -L . -type f \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -printf '%P\n' |
  grep -v -E '^(tests|tools|external)/' | sort >"$TEST_TMPDIR/files"
# 123: some file has no such line.
{ xargs grep -H -o -E '^ *# *include "[^"]+"' <"$TEST_TMPDIR/files" || [[ $? == 123 ]]; } |
  sed -E -e 's|^([^:]+):.*"(.*)"$|\1 \2|' -e 's| retrograd/| include/retrograd/|' >"$TEST_TMPDIR/includes"

awk '
  function fail(text) { print "FAILED: " text; failed = 1 }
  function row_of(path) {  # the longest folder of the table that the path lies in
    while (sub(/\/[^\/]*$/, "", path)) if (path in place) return path
    return ""
  }
  FILENAME == ARGV[1] {
    if (/^## /) inside = ($0 == "## Folders")
    if (!inside || split($0, column, "|") < 4 || column[2] !~ /`/) next
    row = column[2]; gsub(/[` ]|\/$/, "", row); sub(/\/$/, "", row)
    place[row] = ++rows
    n = split(column[3], words, /[`, ]+/)
    for (i = 1; i <= n; ++i) {
      word = words[i]; sub(/\/$/, "", word)
      if (word == "" || word == "nothing") continue
      if (word == "all") any[row] = 1
      else if (!(word in place)) fail("the row " row " names " word ", which is not a row above it")
      else may[row, word] = 1
    }
    next
  }
  FILENAME == ARGV[2] { ++files[row_of($0)]; next }
  {
    from = row_of($1); to = row_of($2)
    if (from == "") { fail($1 " is in no folder of the table"); next }
    if (to == "") { fail($1 " includes " $2 ", which is in no folder of the table"); next }
    if (from != to && !any[from] && !((from, to) in may)) fail($1 " includes " $2 ": " from " may not include " to)
    used[from, to] = 1
  }
  END {
    for (row in place) if (!files[row]) fail("the folder " row " has no files")
    for (pair in may) if (!(pair in used)) { split(pair, p, SUBSEP); fail(p[1] " does not include " p[2] ", though the table says so") }
    if (rows < 10) fail("the table has " rows + 0 " rows")
    exit failed
  }
' "$design" "$TEST_TMPDIR/files" "$TEST_TMPDIR/includes"
