#!/usr/bin/env bash
# gpu_bundle_test.sh PACK PROGRAMS PROGRAMS_ON_HOST: the bundle is packed and runs where there is no device.
#
#   - it is smaller than 40 MiB and its programs need no library but glibc (otherwise pack.sh refuses)
#   - without a device every part reports that, and fails
#   - with the host in place of a device smoke passes, and each line it wrote is JSON
#   - a program that fails, hangs or crashes is reported as a step, and the next one runs; steps beyond the time of a
#     part are skipped, and the run fails
#   - a family that fails is run case by case; a suite continues after a case that loses the device or crashes
#   - figures are available while their step runs
#   - the report contains everything that was run
#
# Not tested here: a device; compute-sanitizer and PyTorch next to one.
set -uo pipefail

# The bundle does not contain the libraries that sanitizers need.
[[ -z ${ASAN_OPTIONS:-}${TSAN_OPTIONS:-} ]] || { echo "SKIPPED: a bundle of a sanitizer's build"; exit 0; }

pack=$1 programs=$2 on_host=$PWD/$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }

"$pack" "$programs" "$folder/bundle" || { fail "packing"; exit 1; }
run=$folder/bundle/run.sh
objdump -T "$programs" | grep 'UND.*arc4random' && fail "the programs want glibc 2.36"

# run_part NAME PART [VARIABLE=VALUE...]: its output and files are below $folder/NAME; the exit code.
run_part() {
  mkdir -p "$folder/$1"
  env "OUT=$folder/$1" PYTHON=no-python "${@:3}" "$run" "$2" >"$folder/$1/stdout" 2>&1
}

# has NAME TEXT...: gpu.jsonl has a line with all of them.
has() {
  local lines text name=$1
  shift
  lines=$(cat "$folder/$name/gpu.jsonl")
  for text in "$@"; do lines=$(grep -F -- "$text" <<<"$lines"); done
  [[ -n $lines ]] || { fail "$name: no line with $*"; cat "$folder/$name/gpu.jsonl"; }
}

run_part wrong sideways
[[ $? == 2 ]] || fail "a part that is none"

if [[ ! -e /dev/nvidia0 ]]; then
  run_part none parity && fail "parity passes without a device"
  has none '"step":"device"' '"status":"fail"' '"code":2' "no CUDA device"
  grep -qx "SUMMARY parity pass=0 fail=1 timeout=0 skip=0" "$folder/none/stdout" || fail "no summary without a device"
fi

run_part host smoke "PROGRAMS=$on_host" || { fail "smoke on the host"; cat "$folder/host/stdout"; }
has host '"machine":' '"commit":' '"glibc":'
has host '"step":"device"' "\"device\":\"the host in a device's place\""
has host '"convolutions_by":"own kernels: the host has none"' '"factorisations_by":"own kernels: the host has none"'
has host '"step":"train_step mlp step"' '"tokens_per_s":' '"share":'
has host '"step":"parity of elementwise ops"' '"status":"pass"' "test cases"
has host '"step":"parity of elementwise ops"' '"parity_of":"float32"' '"tolerance":0.000004' '"worst":'
has host '"step":"train_digits"' '"status":"pass"' "losses apart from the CPU's"
flat='^\{("[a-z0-9_]+":("([^"\\]|\\.)*"|-?[0-9.]+|null),?)+\}$'
grep -vE "$flat" "$folder/host/gpu.jsonl" && fail "these lines are no flat objects"
grep -q "^SUMMARY smoke pass=8 fail=0 timeout=0 skip=0$" "$folder/host/stdout" || fail "smoke: no summary"

# Programs that fail.
cat >"$folder/wrong.sh" <<'WRONG'
#!/usr/bin/env bash
case "$*" in
  *list-test-names-only*b_fails*) printf '  one\n  two, three\n' ;;
  *list-test-names-only*) ;;
  *" -f "*) [[ $(cat "${@: -1}") != two* ]] || { echo 'Failed 1 test case.'; exit 1; }; echo 'Passed 1 test case.' ;;
  conformance*) exec "${0%/*}/suites.sh" "$@" ;;
  device) echo '{"device":"none","multiprocessors":0}' ;;
  "parity -# -t"*) printf '  1  [#%s]\n' a_passes b_fails c_hangs d_crashes e_passes ;;
  *a_passes*) echo 'Passed all 3 test cases with 5 assertions.' ;;
  *b_fails*) echo 'x.cc:7: failed: "a \ b"'; echo 'Failed 1 test case, failed 2 assertions.'; exit 2 ;;
  *c_hangs*) echo '{"figure":1}'; printf '{"figure":2,"begun'; sleep 1000 ;;
  *d_crashes*) kill -SEGV $$ ;;
  *e_passes*) echo 'Passed all 1 test case with 1 assertion.' ;;
esac
WRONG
# A suite with a case that loses the device, and one with a case that crashes.
cat >"$folder/suites.sh" <<'SUITES'
#!/usr/bin/env bash
for ((i = 1; i <= $#; ++i)); do [[ ${!i} != --from ]] || { ((j = i + 1)); from=${!j}; }; done
[[ "$*" != *as-used* ]] || { echo "SUMMARY $2 x pass=1 fail=0 unsupported=0"; exit; }
case "$2 $4 $from" in
  "ops.json eager 0") echo '4 a bad case' >"${@: -1}"; echo 'SUMMARY ops eager pass=4 fail=1 unsupported=0'; echo 'a note' >&2; exit 3 ;;
  "programs.json eager 0") echo '7 another' >"${@: -1}"; kill -SEGV $$ ;;
  "hooks.json eager 0") echo '9 last' >"${@: -1}"; echo 'SUMMARY hooks eager pass=8 fail=2 unsupported=0'; exit 1 ;;
  *) echo "SUMMARY $2 $4 pass=$from fail=0 unsupported=0" ;;
esac
SUITES
chmod +x "$folder/wrong.sh" "$folder/suites.sh"
run_part goes_wrong parity "PROGRAMS=$folder/wrong.sh" BUDGET=14 && fail "parity passes with programs that go wrong"
has goes_wrong '"step":"[#a_passes]"' '"status":"pass"' "Passed all 3 test cases"
has goes_wrong '"step":"[#b_fails]"' '"status":"fail"' '"code":2' 'failed: \"a \\ b\"'
has goes_wrong '"step":"[#c_hangs]"' '"status":"timeout"'
has goes_wrong '"part":"parity","step":"[#c_hangs]","figure":1}'
grep -vE "$flat" "$folder/goes_wrong/gpu.jsonl" && fail "these lines of a part that went wrong are no flat objects"
has goes_wrong '"step":"[#d_crashes]"' '"status":"skip"' "no time was left"
has goes_wrong '"step":"[#b_fails] alone: one"' '"status":"skip"'
grep -q "^SUMMARY parity pass=2 fail=1 timeout=1 skip=4$" "$folder/goes_wrong/stdout" || { fail "programs that go wrong: no summary"; cat "$folder/goes_wrong/stdout"; }
grep -q '^fail: parity: \[#b_fails\]: Failed 1 test case' "$folder/goes_wrong/stdout" || fail "the failure is not told at the end"

# Everything printed so far is available when the run is killed.
OUT=$folder/killed PYTHON=no-python PROGRAMS=$folder/wrong.sh setsid "$run" parity >/dev/null 2>&1 &
for _ in $(seq 100); do
  ! grep -q '"figure":1' "$folder/killed/gpu.jsonl" 2>/dev/null || break
  sleep 0.1
done
kill -KILL -- "-$!"
has killed '"step":"[#c_hangs]","figure":1}'

sed -i 's/ c_hangs//' "$folder/wrong.sh"
mkdir "$folder/bin"  # a loader that knows many libraries
{ echo '#!/bin/sh'; echo "echo '	libnvrtc.so.13 (libc6,x86-64) => /there/libnvrtc.so.13'; exec seq 100000"; } >"$folder/bin/ldconfig"
chmod +x "$folder/bin/ldconfig"
run_part crashes parity "PROGRAMS=$folder/wrong.sh" CUDA_PATH=/nowhere LD_LIBRARY_PATH= "PATH=$folder/bin:$PATH"
has crashes '"nvrtc":"/there/libnvrtc.so.13"' '"cublaslt":""'
has crashes '"step":"[#d_crashes]"' '"status":"fail"' '"code":139' "ended by SIGSEGV"
has crashes '"step":"[#e_passes]"' '"status":"pass"'
has crashes '"step":"[#b_fails] alone: one"' '"status":"pass"'
has crashes '"step":"[#b_fails] alone: two, three"' '"status":"fail"'

run_part suites conformance "PROGRAMS=$folder/wrong.sh" && fail "conformance passes with suites that go wrong"
has suites '"step":"ops eager"' '"status":"fail"' '"code":3' 'SUMMARY ops eager pass=4 fail=1'
has suites '"step":"ops eager, after a bad case"' '"status":"pass"' 'pass=5 fail=0'
has suites '"step":"programs eager"' '"status":"fail"' '"code":139'
has suites '"step":"programs eager, after another"' '"status":"pass"' 'pass=8 fail=0'
has suites '"step":"hooks eager"' '"status":"fail"' 'pass=8 fail=2'
grep -q "^SUMMARY conformance pass=29 fail=3 timeout=0 skip=0$" "$folder/suites/stdout" || { fail "suites: no summary"; cat "$folder/suites/stdout"; }

# A program without tests does not pass, and skipped steps for lack of time are no success.
printf '#!/bin/sh\n[ "$1" != device ] || exit 0\nexit 1\n' >"$folder/none.sh"
chmod +x "$folder/none.sh"
run_part no_tests parity "PROGRAMS=$folder/none.sh" && fail "parity passes without families"
run_part no_time parity "PROGRAMS=$folder/wrong.sh" TOTAL=2 && fail "parity passes without time"
has no_time '"status":"skip"' "no time was left"

# The report.
report=$folder/report.md
awk -f "$folder/bundle/report.awk" "$folder/host/gpu.jsonl" "$folder/goes_wrong/gpu.jsonl" >"$report" || fail "report.awk"
for line in "| smoke | 8 | 0 | 0 | 0 |" "| parity | 2 | 1 | 1 | 4 |" "| launching a replayed step, us | 15 | not measured |  |" \
  "- parity, [#b_fails]: fail, Failed 1 test case, failed 2 assertions.; first: x.cc:7: failed: \"a \\ b\""; do
  grep -qxF -- "$line" "$report" || { fail "the report has no line $line"; cat "$report"; }
done
grep -q '^| train_step mlp step | [0-9.]* | [0-9]* |' "$report" || fail "the report has no row of the training step"

# Convolutions and factorisations, by our kernels and by the library, are in one row.
figure() { echo "{\"part\":\"benchmarks\",\"step\":\"$1\",\"op\":\"$2\",\"inputs\":\"x:1\",\"pass\":\"forward\",\"dtype\":\"float32\",\"us\":$3,$4}"; }
{
  echo "{\"part\":\"benchmarks\",\"machine\":\"x\"}"
  figure "convolutions by the library, float32" conv1d 2.000 '"dnn":1,"solver":0'
  figure "convolutions by the library, float32" conv3d 7.000 '"dnn":0,"solver":0'
  figure "convolutions by our kernels, float32" conv1d 5.000 '"dnn":0,"solver":0'
  figure "convolutions by our kernels, float32" conv3d 6.000 '"dnn":0,"solver":0'
  figure "convolutions by the library, TF32" conv1d 1.000 '"dnn":1,"solver":0'
  figure "factorisations by the library, float32" lu_64 3.000 '"dnn":0,"solver":1'
  figure "factorisations by our kernels, float32" lu_64 1.500 '"dnn":0,"solver":0'
  echo '{"part":"benchmarks","step":"engine_overhead","bench":"replay","model":"mlp","launch_us":9.8}'
  echo '{"part":"benchmarks","step":"engine_overhead","bench":"replay","model":"gpt-char","launch_us":14.0}'
  echo '{"part":"benchmarks","step":"fusion","bench":"adamw","mode":"eager","share":0.95}'
  echo '{"part":"benchmarks","step":"fusion","bench":"chain","mode":"compiled","share":0.85}'
  for side in 900,1000,64 950,1000,1024 800,1000,128; do
    IFS=, read -r ours theirs n <<<"$side"
    echo "{\"part\":\"benchmarks\",\"step\":\"gemm\",\"m\":$n,\"n\":$n,\"k\":$n,\"layout\":\"nn\",\"dtype\":\"float32\",\"retrograd\":$ours.0,\"cublaslt\":$theirs.0}"
  done
  echo '{"part":"torch","step":"ours","model":"gpt-124m","tokens_per_s":300000}'
  echo '{"part":"torch","step":"torch, gpt-124m","model": "gpt-124m", "mode": "compile", "tokens_per_s": 200000, "peak_bytes": null}'
  for status in pass timeout; do
    echo "{\"part\":\"conformance\",\"step\":\"ops $status\",\"status\":\"$status\",\"code\":0,\"seconds\":1,\"detail\":\"SUMMARY ops eager pass=3 fail=0 unsupported=0\"}"
  done
} >"$folder/sides.jsonl"
awk -f "$folder/bundle/report.awk" "$folder/sides.jsonl" >"$report" || fail "report.awk of two sides"
for line in "| conv1d | x:1 | forward | float32 | 5.000 | 2.000 | 2.50 | 1.000 |" "| conv3d | x:1 | forward | float32 | 6.000 | declined |  | not measured |" \
  "| lu_64 | x:1 | forward | float32 | 1.500 | 3.000 | 0.50 |" "| launching a replayed step, us | 15 | 14.0 | yes |" \
  "| AdamW, of the copy's rate | 0.9 | 0.95 | yes |" "| a fused chain, of the copy's rate | 0.9 | 0.85 | **no** |" \
  "| products in float32, of cuBLASLt's rate, worst shape | 0.9 | 0.800 (128 128 128 nn) | **no** |" \
  "| products in float32, of cuBLASLt's rate, worst shape of 1024 and more | 0.9 | 0.950 (1024 1024 1024 nn) | yes |" \
  "| gpt-124m, bf16, 16 x 1024, tokens/s of PyTorch's best | above 1 | 1.500 (300000 of 200000) | yes |" \
  "| conformance, 1 of 2 runs of suites passed | all, with fail=0 unsupported=0 | pass=6 fail=0 unsupported=0 | **no** |"; do
  grep -qxF -- "$line" "$report" || { fail "the report has no line $line"; cat "$report"; }
done
exit "$failed"
