#!/usr/bin/env bash
# ops_md_test.sh PROGRAM DOCUMENT: docs/ops.md equals the output of tools/ops_table, which processes every op. This also
# tests that each op struct has an example that its type rule accepts, and that each rule can be recorded from it.
set -euo pipefail

"$1" >"${TEST_TMPDIR:?}/ops.md"
diff -u "$2" "$TEST_TMPDIR/ops.md" || {
  echo "FAILED: the ops have changed. Run: ./bazelw run //tools/ops_table >docs/ops.md"
  exit 1
}
