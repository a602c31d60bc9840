#!/usr/bin/env bash
# run.sh PART...: runs parts of the bundle on this machine, each in at most 8 minutes, and reports the results.
#
#   smoke        the properties of the machine; whether the device computes; one step of each kind
#   parity       every op and dtype on the device compared with the CPU
#   conformance  the suites with PyTorch's numbers, in all modes, on the device
#   examples     losses of the examples on the device compared with those on the CPU; a whole training
#   benchmarks   training steps, copies and fused chains, matrix products, replay, single ops
#   torch        training steps compared with PyTorch's, in turns, if this machine has PyTorch
#   sanitizer    compute-sanitizer over parity, if this machine has it
#
# A part is a list of steps. Each runs with its own time limit. A step that fails, crashes or takes too long is
# reported, and the next one follows. If a step is a list of cases and a broken device or a crash stops it, further
# steps run the remaining cases. All results are written immediately, appended to two files in $OUT (default ./out):
#   gpu.jsonl  a line of JSON for each step: {"part","step","status","code","seconds","detail"}, status pass, fail,
#              timeout or skip; for each figure that a step prints: {"part","step",...}; and one for the machine at the
#              beginning of each part: {"part","machine",...}
#   gpu.log    the output of the steps, its beginning and end; while a step runs, running.out and running.err
# report.awk makes a page from gpu.jsonl. Exit code: 0 when no step failed, timed out or was skipped for lack of time,
# else 1; 2 for wrong arguments.
#
# Environment: OUT; BUDGET, seconds for a part (480); TOTAL, seconds for all parts; PROGRAMS, another binary than the
# bundle's; CUDA_PATH; PYTHON (python3). It needs only bash, coreutils, awk, tar and gzip.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
parts=(smoke parity conformance examples benchmarks torch sanitizer)
budget=${BUDGET:-480}
total=${TOTAL:-86400}
python=${PYTHON:-python3}

usage() {
  echo "usage: run.sh PART..., PART one of: ${parts[*]}" >&2
  exit 2
}
(($#)) || usage
for part in "$@"; do
  [[ " ${parts[*]} " == *" $part "* ]] || usage
done

mkdir -p "${OUT:=out}" || exit 2
out=$(cd "$OUT" && pwd -P)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
tar -xzf "$here/files.tar.gz" -C "$work" || { echo "run.sh: files.tar.gz cannot be unpacked" >&2; exit 2; }
programs=${PROGRAMS:-$work/programs}
[[ $programs == /* ]] || programs=$PWD/$programs
cases=("$programs" parity -w NoTests -r compact)
cd "$work" || exit 2

# Text as a JSON string, on one line, at most 400 characters of it.
quoted() {
  local text
  text=$(tr '\n\t\r' '   ' <<<"$1" | tr -d '\000-\037' | cut -c1-400)
  text=${text%"${text##*[! ]}"}
  text=${text//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

write() { printf '%s\n' "$1" >>"$out/gpu.jsonl"; }

# record STEP STATUS CODE SECONDS DETAIL
record() {
  write "{\"part\":\"$part\",\"step\":$(quoted "$1"),\"status\":\"$2\",\"code\":$3,\"seconds\":$4,\"detail\":$(quoted "$5")}"
  printf '%-12s %-48s %-8s %5s s  %s\n' "$part" "$1" "$2" "$4" "$(cut -c1-100 <<<"$5")"
  results+=("$2")
  [[ $2 != fail && $2 != timeout ]] || { failures+=("$2: $part: $1: $5"); exit_code=1; }
}

count() { printf '%s\n' "${results[@]}" | grep -cx "$1"; }

skip() { record "$1" skip 0 0 "$2"; }

# relay BEGINNING: copies stdin to running.out. Lines that begin with { are figures; they are written immediately, after
# the text that identifies their step. An incomplete line is no figure.
relay() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    [[ $line != "{"*"}" ]] || write "$1${line#"{"}"
  done 3>"$out/running.out"
  [[ -z $line ]] || printf '%s\n' "$line" >>"$out/running.out"
}

# The beginning and the end of a file.
excerpt() {
  if (($(stat -c %s "$1") <= 200000)); then cat "$1"; else head -c 100000 "$1"; printf '\n...\n'; tail -c 100000 "$1"; fi
}

last_of() { grep -v '^{' "$1" | grep -v '^[[:space:]]*$' | tail -1; }

# step NAME LIMIT COMMAND...: the detail is the last line of its output that is no figure. Its exit code is in `code`.
step() {
  local name=$1 limit=$2 begin=$SECONDS left status detail
  shift 2
  left=$((deadline - SECONDS)) code=0
  ((left >= 5)) || { skip "$name" "no time was left in this part"; exit_code=1; return 1; }
  ((limit <= left)) || limit=$left
  printf '\n== %s: %s\n$ %s\n' "$part" "$name" "$*" >>"$out/gpu.log"
  timeout -k 5 "$limit" "$@" 2>"$out/running.err" </dev/null | relay "{\"part\":\"$part\",\"step\":$(quoted "$name"),"
  code=${PIPESTATUS[0]}
  { excerpt "$out/running.out"; excerpt "$out/running.err"; } >>"$out/gpu.log"
  case $code in
    0) status=pass ;;
    124 | 137) status=timeout ;;
    *) status=fail ;;
  esac
  detail=$(last_of "$out/running.out")
  [[ -n $detail ]] || detail=$(last_of "$out/running.err")
  ((code <= 128 || code == 137)) || detail="ended by SIG$(kill -l $((code - 128))); $detail"
  [[ $status != timeout ]] || detail="stopped after $limit s; last: $detail"
  [[ $status != fail ]] || detail+="; first: $(cat "$out/running.out" "$out/running.err" | grep -m1 -iE 'fail|error|unsupported')"
  rm -f "$out/running.out" "$out/running.err"
  record "$name" "$status" "$code" $((SECONDS - begin)) "$detail"
  [[ $status == pass ]]
}

# The file of a CUDA library, wherever it is installed: in the toolkit, in the loader's cache, or among Python's
# packages.
library() {
  local name=$1 folder paths=${LD_LIBRARY_PATH:-} toolkit=${CUDA_PATH:-/usr/local/cuda}
  for folder in ${paths//:/ } "$toolkit/lib64" "$toolkit/targets/x86_64-linux/lib"; do
    [[ ! -e $folder/$name ]] || { echo "$folder/$name"; return; }
  done
  { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | awk -v name="$name" '$1 == name && !found { print $NF; found = 1 } END { exit !found }' && return  # all is read: no SIGPIPE
  for folder in "${packages[@]}"; do find "$folder/nvidia" -name "$name" 2>/dev/null; done | head -1
}

find_sanitizer() {
  command -v compute-sanitizer && return
  local tool
  for tool in /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda/compute-sanitizer/compute-sanitizer; do
    [[ ! -x $tool ]] || { echo "$tool"; return; }
  done
}

of_gpu() { timeout -k 5 30 nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -1; }

# Finds the libraries of the machine, once, and makes them available to the programs. PyTorch still uses its own.
look_around() {
  local file
  own_paths=${LD_LIBRARY_PATH:-}
  mapfile -t packages < <(timeout 30 "$python" -c 'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\n")' 2>/dev/null)
  blas=$(library libcublasLt.so.13) nvrtc=$(library libnvrtc.so.13) cudnn=$(library libcudnn.so.9) cusolver=$(library libcusolver.so.12)
  for file in "$blas" "$nvrtc" "$cudnn" "$cusolver"; do
    [[ -z $file ]] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$file")
  done
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
  checker=$(find_sanitizer)
  torch=$(timeout 30 "$python" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null)  # importing it takes long
  device=$(of_gpu name) driver=$(of_gpu driver_version) clocks=$(of_gpu clocks.sm,clocks.mem,temperature.gpu,power.draw)
}

about() { sed -n "s/^$1=//p" "$here/about" 2>/dev/null; }

write_machine() {
  local line="{\"part\":\"$part\",\"machine\":$(quoted "$(uname -srm)")"
  line+=",\"date\":\"$(date -u +%Y-%m-%dT%H:%MZ)\",\"commit\":$(quoted "$(about commit)"),\"packed\":$(quoted "$(about date)")"
  line+=",\"gpu\":$(quoted "$device"),\"driver\":$(quoted "$driver"),\"clocks\":$(quoted "$clocks"),\"processors\":$(nproc)"
  line+=",\"glibc\":$(quoted "$(getconf GNU_LIBC_VERSION 2>/dev/null)"),\"cublaslt\":$(quoted "$blas"),\"nvrtc\":$(quoted "$nvrtc")"
  line+=",\"cudnn\":$(quoted "$cudnn"),\"cusolver\":$(quoted "$cusolver"),\"sanitizer\":$(quoted "$checker"),\"torch\":$(quoted "$torch")}"
  write "$line"
}

# Nothing else is possible without a device: reports why there is none.
need_device() { step device 60 "$programs" device; }

smoke() {
  step "programs start" 30 "$programs" || return
  need_device || return
  step "parity of elementwise ops" 120 "${cases[@]}" -# '[#elementwise_test]~[host]'
  step "factors have the same bits each time" 60 "${cases[@]}" 'factors of one matrix have the same bits each time'
  step "conformance of matmul, eager" 60 "$programs" conformance ops.json --filter matmul --device cuda
  step "conformance of matmul, compiled" 60 "$programs" conformance ops.json --filter matmul --device cuda --mode compiled
  step "train_digits" 60 bash tests/examples/device_losses.sh 5 1e-3 "step:keep" "$programs" train_digits
  step "train_step mlp step" 60 "$programs" train_step mlp step --device cuda --batch 8 --steps 3
}

# One family at a time: if one breaks the device, the next is not affected.
families() { timeout 30 "$programs" parity -# -t '~[host]' | grep -oE '\[#[a-z0-9_]+\]' | sort -u; }

# Runs the cases of a family in separate processes, to find the one that fails.
one_by_one() {
  local name
  while IFS= read -r name; do
    printf '%s\n' "$name" >"$work/name"
    step "$1 alone: $name" 60 "${cases[@]}" -f "$work/name"
  done < <(timeout 30 "$programs" parity -# --list-test-names-only "$1~[host]" | sed 's/^ *//; /^$/d')
}

parity() {
  need_device || return
  local name all broken=()
  all=$(families)
  [[ -n $all ]] || { record "families" fail 1 0 "the programs list none"; return; }
  for name in $all; do step "$name" 150 "${cases[@]}" -# "$name~[host]" || broken+=("$name"); done
  for name in "${broken[@]}"; do one_by_one "$name"; done
}

# suite NAME LIMIT ARGUMENT...: if a case loses the device, crashes or hangs, another process continues after it.
suite() {
  local name=$1 limit=$2 from=0 more="" number case
  shift 2
  while rm -f "$work/case"; do
    ! step "$name$more" "$limit" "$programs" conformance "$@" --device cuda --from "$from" --progress "$work/case" || return 0
    ((code == 3 || code > 100)) && [[ -s $work/case ]] || return 1
    read -r number case <"$work/case"
    from=$((number + 1)) more=", after $case"
  done
}

conformance() {
  need_device || return
  local name mode
  for name in optim ops programs views_inplace hooks errors views_random checkpoint; do
    for mode in eager traced compiled; do suite "$name $mode" 120 "$name.json" --mode "$mode"; done
  done
  suite "optim step" 120 optim.json --mode step
  # In the runs above each launch is waited for, and groups run before their kernels are compiled. In these runs graphs
  # and fused kernels are used as by a user.
  local -x RETROGRAD_CUDA_FUSION=wait
  for mode in traced compiled; do
    suite "programs $mode, as used" 150 programs.json --mode "$mode" --as-used --every 3
    suite "ops $mode, as used" 150 ops.json --mode "$mode" --as-used --every 10
  done
}

examples() {
  need_device || return
  local example all=eager:keep,traced:keep,compiled:keep,step:keep,traced:half,traced:fp8,traced:offload,step:offload,traced:offload-file
  for example in train_digits train_cnn train_gpt train_rnn; do
    step "$example" 150 bash tests/examples/device_losses.sh 10 1e-2 "$all" "$programs" "$example"
  done
  step "train_gpt, all of it" 200 bash -c '"$1" train_gpt --device cuda --mode step --log-every 500 >"$2" || { cat "$2"; exit 1; }
    cat "$2"; grep "^val loss" "$2" | tail -1 | awk "{ print; exit !(\$3 <= 1.92) }"' - "$programs" "$work/gpt"
}

gpt() { echo train_step gpt-124m "$1" --device cuda --batch 16 --block 1024 --dtype bf16 --steps 20; }

# Computed by the vendor's library wherever possible, and by our kernels, to see where the library is faster.
convolutions() {
  local dtype all="ops --device cuda --json --filter conv --size 0 --seconds 0.02"
  for dtype in float32 bfloat16; do
    # shellcheck disable=SC2086
    step "convolutions by the library, $dtype" 30 env RETROGRAD_CUDA_DNN=all "$programs" $all --dtype "$dtype"
    # shellcheck disable=SC2086
    step "convolutions by our kernels, $dtype" 30 env RETROGRAD_CUDA_DNN=0 "$programs" $all --dtype "$dtype"
  done
  # shellcheck disable=SC2086
  step "convolutions by the library, TF32" 30 env RETROGRAD_CUDA_DNN=all RETROGRAD_CUDA_TF32=1 "$programs" $all
}

# The same for matrices: by order and number.
factorisations() {
  local dtype all="ops --device cuda --json --factorisations --seconds 0.02"
  for dtype in float32 float64; do
    # shellcheck disable=SC2086
    step "factorisations by the library, $dtype" 60 env RETROGRAD_CUDA_SOLVER=all "$programs" $all --dtype "$dtype"
    # shellcheck disable=SC2086
    step "factorisations by our kernels, $dtype" 60 env RETROGRAD_CUDA_SOLVER=0 "$programs" $all --dtype "$dtype"
  done
}

benchmarks() {
  need_device || return
  local mode model
  for mode in step compiled eager; do
    # shellcheck disable=SC2046
    step "gpt-124m $mode, bf16, 16 x 1024" 120 "$programs" $(gpt "$mode")
  done
  step "fusion" 90 "$programs" fusion --device cuda
  step "gemm, squares" 90 "$programs" gemm --device cuda --shapes squares --seconds 0.1
  step "gemm, gpt-124m" 90 "$programs" gemm --device cuda --shapes gpt-124m --batch 16 --block 1024 --seconds 0.1
  step "engine_overhead" 60 "$programs" engine_overhead --device cuda
  for model in mlp gpt-char; do
    for mode in eager traced compiled step; do
      step "$model $mode" 30 "$programs" train_step "$model" "$mode" --device cuda --steps 50
    done
  done
  convolutions
  factorisations
  step "ops" 200 "$programs" ops --device cuda --json --seconds 0.01 --size 10000000
  step "ops of their own sizes" 100 "$programs" ops --device cuda --json --seconds 0.01 --size 0
}

torch() {
  need_device || return
  [[ -n $torch ]] || { skip "train_steps.py" "this machine has no PyTorch"; return; }
  local round mode peer=(env "LD_LIBRARY_PATH=$own_paths" "$python") common="--device cuda --batch 16 --block 1024 --dtype bf16 --steps 20"
  for round in 1 2; do
    # shellcheck disable=SC2046
    step "ours, gpt-124m step, round $round" 100 "$programs" $(gpt step)
    for mode in eager compile; do
      # shellcheck disable=SC2086
      step "torch, gpt-124m $mode, round $round" 150 "${peer[@]}" benchmarks/peers/train_steps.py gpt-124m "$mode" $common
    done
  done
  step "torch, fusion" 100 "${peer[@]}" benchmarks/peers/fusion.py --device cuda
  for mode in eager compile graphs; do
    step "torch, gpt-char $mode" 60 "${peer[@]}" benchmarks/peers/train_steps.py gpt-char "$mode" --device cuda
    step "torch, mlp $mode" 60 "${peer[@]}" benchmarks/peers/train_steps.py mlp "$mode" --device cuda
  done
}

sanitizer() {
  need_device || return
  [[ -n $checker ]] || { skip "compute-sanitizer" "this machine has none"; return; }
  local tool name sharing=" [#reduce_test] [#scan_test] [#softmax_test] [#matmul_test] [#attention_test] [#linalg_test] [#sort_test] "
  for name in $sharing; do  # memory within a block
    for tool in memcheck racecheck synccheck; do check "$tool" "$name"; done
  done
  for name in $(families); do
    [[ $sharing == *" $name "* ]] || check memcheck "$name"
  done
}

check() { step "$1 $2" 60 "$checker" --tool "$1" --error-exitcode 86 "${cases[@]}" -# "$2~[host]"; }

exit_code=0
look_around  # in the time of the first part
failures=() begun=0 code=0
for part in "$@"; do
  results=() deadline=$((begun + budget < total ? begun + budget : total))
  write_machine
  "$part"
  begun=$SECONDS
  echo "SUMMARY $part pass=$(count pass) fail=$(count fail) timeout=$(count timeout) skip=$(count skip)"
done
printf '%s\n' "${failures[@]}" | cut -c1-300
echo "written: $out/gpu.jsonl, $out/gpu.log"
exit "$exit_code"
