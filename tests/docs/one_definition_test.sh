#!/usr/bin/env bash
# one_definition_test.sh: no two headers define a type of one name in one namespace. A program with both would be wrong
# without a message, and only where no optimizer has inlined the templates that use them.
# And no header declares, outside of "#pragma GCC visibility push(default)", a type that another header defines inside. The
# first declaration counts: a template of that type would be hidden, and a program would have one beside the library's.
#
# A type counts if its definition begins a line: that is how types of a namespace are written. Left out are alternatives,
# listed below, and ops/formulas.h, which takes the place of the engine in the code of devices. The sources are in the
# current folder (library_sources.bzl).
set -euo pipefail

alternatives='TeamSort|TeamScan'  # CUB's, and those of the stand-in for a device

find -L . -type f -name '*.h' -printf '%P\n' | grep -v -E '^(tests|tools|external)/|^ops/formulas\.h$' | sort >"$TEST_TMPDIR/headers"
xargs awk -v alternatives="^($alternatives)\$" '
  FNR == 1 { space = ""; depth = 0; public = 0 }
  /^#pragma GCC visibility push\(default\)/ { public = 1 }
  /^#pragma GCC visibility pop/ { public = 0 }
  /^(struct|class) [A-Za-z0-9]+;$/ && !public { sub(/;/, "", $2); declared[FILENAME, $2] }
  /^namespace [^{]*\{/ && !/}/ { outer[++depth] = space; space = space " " $2 " " $3 }
  /^}.*namespace/ { space = outer[depth--] }
  /^(struct|class) std::/ { next }  # a specialisation
  /^(struct|class|enum|union) / && /\{/ {
    ++types
    sub(/\{.*/, "")
    name = $0
    sub(/ final.*|:.*/, "", name); sub(/^(struct|class|enum class|enum|union) +/, "", name)
    sub(/^alignas\([^)]*\) */, "", name); sub(/ +$/, "", name)
    key = space " " name
    if (key in first && first[key] != FILENAME && name !~ alternatives) {
      print "FAILED: " name " is defined in " first[key] " and in " FILENAME; failed = 1
    }
    first[key] = FILENAME
    if (public) ++exported[name]
  }
  END {
    for (declaration in declared) {
      split(declaration, d, SUBSEP)
      if (d[2] in exported) { print "FAILED: " d[1] " declares " d[2] " as hidden; include its header"; failed = 1 }
    }
    if (exported["OpInfo"] != 1) { print "FAILED: no visible definition of OpInfo was found"; failed = 1 }
    if (types < 500) { print "FAILED: only " types " types were found"; failed = 1 }
    exit failed
  }' <"$TEST_TMPDIR/headers"
