#!/usr/bin/env bash
# run_suite.sh RUNNER SUITE.json [FLAG...]: the suite in modes eager, traced, compiled and dynamic; fails when one of them does.
set -uo pipefail

status=0
for mode in eager traced compiled dynamic; do
  "$1" "$2" --mode "$mode" "${@:3}" || status=1
done
exit "$status"
