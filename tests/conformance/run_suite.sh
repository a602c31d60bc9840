#!/usr/bin/env bash
# run_suite.sh RUNNER SUITE.json [FLAG...]: the suite in modes eager, traced, compiled and dynamic, that of optimizers also
# in mode step; fails when one of them does. In mode dynamic a twin of each recording that serves a case is compared with it (docs/compile.md).
set -uo pipefail

status=0
for mode in eager traced compiled; do
  "$1" "$2" --mode "$mode" "${@:3}" || status=1
done
RETROGRAD_CHECK=twin "$1" "$2" --mode dynamic "${@:3}" || status=1
[[ $2 != *optim.json ]] || RETROGRAD_CHECK=twin "$1" "$2" --mode step "${@:3}" || status=1
exit "$status"
