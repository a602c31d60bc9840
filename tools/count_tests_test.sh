#!/usr/bin/env bash
# Tests count_tests.sh on events and logs in the form that Bazel 4.2, Catch2 2.13 and the conformance runner
# write. Not tested here: that those programs still write this form; .ci/run's closing line shows it on every
# run.
set -euo pipefail

count_tests=$PWD/tools/count_tests.sh
cd "$TEST_TMPDIR"
events=events.json

# summary STATUS LOG_TEXT...: one event of a target with a log for each text.
summary() {
  local status=$1 uris="" text folder event
  shift
  for text in "$@"; do
    folder=$(mktemp -d "$PWD/log of XXXXXX")
    printf 'Executing tests\n%s\n' "$text" >"$folder/test.log"
    uris+="${uris:+,}{\"uri\":\"file://${folder// /%20}/test.log\"}"
  done
  event='{"id":{"testSummary":{"label":"//a:b"}},"testSummary":{"passed":[%s],"overallStatus":"%s"}}\n'
  printf "$event" "$uris" "$status" >>"$events"
}

completed() {
  printf '{"id":{"targetCompleted":{"label":"//a:b"}},"children":[{"testSummary":{}}],%s}\n' "$1" >>"$events"
}

# expect COUNTS: compares, and begins a new list of events.
expect() {
  local got
  got=$("$count_tests" "$events")
  if [[ $got != "$1" ]]; then
    echo "line ${BASH_LINENO[0]}: expected '$1', got '$got' for:"
    cat "$events"
    exit 1
  fi
  : >"$events"
}

: >"$events"
expect "0 0"

summary PASSED "All tests passed (7 assertions in 3 test cases)"
summary PASSED "All tests passed (1 assertion in 1 test case)"
expect "4 0"

summary FAILED "test cases: 3 | 1 passed | 2 failed
assertions: 9 | 7 passed | 2 failed"
summary FAILED "test cases: 2 | 2 failed"
summary PASSED "test cases: 4 | 3 passed | 1 failed as expected"
expect "5 4"

# Exits with an error after the last case, as with a leak; crashes before the closing line; never ran.
summary FAILED "All tests passed (7 assertions in 3 test cases)"
summary FAILED "Segmentation fault"
summary NO_STATUS
expect "3 3"

summary PASSED "SUMMARY ops eager pass=1650 fail=0 unsupported=3
SUMMARY ops traced pass=2 fail=0 unsupported=1651"
summary FAILED "SUMMARY hooks eager pass=10 fail=2 unsupported=0"
expect "1662 2"

# Two shards; no counts at all; a runner's output inside a Catch2 test.
summary PASSED "All tests passed (1 assertion in 1 test case)" \
  "All tests passed (2 assertions in 2 test cases)"
summary PASSED "nothing to count"
summary PASSED "SUMMARY ops eager pass=1650 fail=0 unsupported=3
All tests passed (1 assertion in 1 test case)"
expect "5 0"

# The log of a repeated attempt does not count, and neither does a target that is not for this machine.
attempt='{"uri":"file:///x/test_attempts/attempt_1.log"}'
echo '{"id":{"testSummary":{}},"testSummary":{"failed":['"$attempt"'],"overallStatus":"FLAKY"}}' >>"$events"
completed '"completed":{"success":true}'
completed '"completed":{"failureDetail":{"message":"gcc failed"}}'
completed '"aborted":{"reason":"SKIPPED"}'
completed '"aborted":{"reason":"ANALYSIS_FAILURE"}'
expect "1 2"
