#!/usr/bin/env bash
# count_tests.sh EVENTS: prints "PASSED FAILED", the number of test cases of one `bazel test` run, from the
# file that Bazel's --build_event_json_file made. That file names the run's own logs, so results of earlier
# runs are never counted, and cached results are.
#
# A test target counts as many cases as its log says: Catch2's closing line, else the conformance runner's
# SUMMARY lines, else one. A target that failed counts at least one failed case, and one that was not built
# exactly one. Needs only bash, grep, sed and awk. Each event is one line of JSON.
set -euo pipefail

events=$1

# The cases that a log reports, as "PASSED FAILED"; nothing if it reports none. A case that Catch2 knows to be allowed
# to fail ("failed as expected") has passed.
cases_in_log() {
  awk '
    /^All tests passed \([0-9]+ assertions? in [0-9]+ test/ { catch2 = 1; passed = $(NF - 2); failed = 0 }
    /^No tests ran/ { catch2 = 1; passed = failed = 0 }
    /^test cases: / {
      catch2 = 1; passed = failed = 0
      columns = split($0, column, "|")
      for (i = 2; i <= columns; i++) {
        split(column[i], word, " ")
        if (column[i] ~ / failed *$/) failed += word[1]; else passed += word[1]
      }
    }
    /^SUMMARY .* pass=[0-9]+ fail=[0-9]+/ {
      runner = 1
      for (i = 1; i <= NF; i++) {
        if ($i ~ /^pass=/) runner_passed += substr($i, 6)
        if ($i ~ /^fail=/) runner_failed += substr($i, 6)
      }
    }
    END {
      if (catch2) print passed + 0, failed + 0
      else if (runner) print runner_passed + 0, runner_failed + 0
    }' "$1"
}

# The logs named by a testSummary event, one for each shard; logs of repeated attempts are omitted.
logs_of() {
  grep -o '"uri":"file://[^"]*/test\.log"' <<<"$1" | sed -e 's|^"uri":"file://||' -e 's|"$||' -e 's|%|\\x|g'
}

passed=0
failed=0
while IFS= read -r event; do
  status=$(sed 's/.*"overallStatus":"\([A-Z_]*\)".*/\1/' <<<"$event")
  target_passed=0
  target_failed=0
  found=0
  while IFS= read -r log; do
    printf -v log '%b' "$log"
    read -r log_passed log_failed < <(cases_in_log "$log") || continue
    found=1
    target_passed=$((target_passed + log_passed))
    target_failed=$((target_failed + log_failed))
  done < <(logs_of "$event")
  case $status in
    PASSED | FLAKY) ((found)) || target_passed=1 ;;
    *) ((target_failed)) || target_failed=1 ;;
  esac
  passed=$((passed + target_passed))
  failed=$((failed + target_failed))
done < <(grep '^{"id":{"testSummary":' "$events")

unbuilt=$(grep '^{"id":{"targetCompleted":' "$events" |
  grep -v -c -e '"completed":{"success":true' -e '"reason":"SKIPPED"' || true)
echo "$passed $((failed + unbuilt))"
