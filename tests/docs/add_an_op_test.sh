#!/usr/bin/env bash
# add_an_op_test.sh COMPILE LINK DOCUMENT: adds an op as docs/add_an_op.md says, and checks it.
#
# Each numbered step of the section "An elementwise op" is a heading in bold and the indented block after it. The
# heading names the file (default: that of the previous step) and the place: above or below `the beginning of a line`,
# of which there must be one in the file. A block with "..." is a list with a further word at its end. All steps are
# applied to copies. The files that depend on them are compiled and linked before the archives of the library, so that
# the archives' own definitions are not used, together with the two tests that get a row, and new_op_check.cc.
#
# COMPILE and LINK are files of arguments for g++, made by library_files.bzl; sources and headers are found from the
# current folder. Not tested here: the rest of the document.
set -euo pipefail

compile=$PWD/$1 link=$PWD/$2 document=$PWD/$3
root=$PWD
work=${TEST_TMPDIR:?}/add_an_op
rm -rf "$work"
mkdir -p "$work/steps" "$work/tree"

fail() {
  echo "FAILED: $*"
  exit 1
}

# ---- the steps, in the document ----------------------------------------------------------------

# N.heading, N.block and N.indent for each step.
awk -v out="$work/steps" '
  /^## / { inside = ($0 == "## An elementwise op"); next }
  !inside { next }
  /^\*\*[0-9]+\. / {
    step = $0; gsub(/^\*\*|\..*/, "", step)
    heading = $0; in_heading = 1; in_block = 0; done = 0
    next
  }
  in_heading && /^$/ { print heading > (out "/" step ".heading"); in_heading = 0; in_block = 1; next }
  in_heading { heading = heading " " $0; next }
  in_block && /^    / { print substr($0, 5) > (out "/" step ".block"); next }
  in_block { in_block = 0 }
' "$document"

# The first text in backticks after WORD in a heading, or nothing.
quoted_after() {
  sed -n "s/.*\\b$1 \`\\([^\`]*\\)\`.*/\\1/p" <<<"$2"
}

# ---- applying them -----------------------------------------------------------------------------

# A further word at the end of a list: "..., Old, New>;" replaces "Old>;" by "Old, New>;".
extend_list() {
  local file=$1 block=$2 end old new
  end=$(sed -n 's/.*\.\.\., //p' "$block")
  new=${end##*, }
  old=${end%, "$new"}
  [[ -n $old && $(grep -cF "$old>;" "$file") == 1 ]] || fail "$file has not one list that ends with '$old'"
  sed -i "s/\\b$old>;/$end/" "$file"
}

insert() {
  local file=$1 block=$2 where=$3 anchor=$4
  anchor=$anchor where=$where block=$block awk '
    function put(   line) { while ((getline line < ENVIRON["block"]) > 0) print line }
    { text = $0; sub(/^ +/, "", text); here = index(text, ENVIRON["anchor"]) == 1; found += here }
    here && ENVIRON["where"] == "above" { put() }
    { print }
    here && ENVIRON["where"] == "below" { put() }
    END { exit found != 1 }
  ' "$file" >"$work/changed" || fail "$file has not one line that begins with '$anchor'"
  mv "$work/changed" "$file"
}

apply() {
  local step=$1 heading block=$work/steps/$1.block place where
  heading=$(cat "$work/steps/$step.heading")
  [[ -s $block ]] || fail "step $step has no block"
  place=$(quoted_after in "$heading")
  file=${place:-$file}
  [[ -n $file ]] || fail "step $step names no file: $heading"
  [[ -f $work/tree/$file ]] || cp --parents -L "$file" "$work/tree"
  touched[$file]=1
  if grep -qF '...' "$block"; then
    extend_list "$work/tree/$file" "$block"
    return
  fi
  for where in above below; do
    place=$(quoted_after "$where" "$heading")
    [[ -z $place ]] || break
  done
  [[ -n $place ]] || fail "step $step names no place: $heading"
  insert "$work/tree/$file" "$block" "$where" "$place"
}

declare -A touched
file=
steps=0
while [[ -f $work/steps/$((steps + 1)).heading ]]; do
  steps=$((steps + 1))
  apply "$steps"
done
tests=(tests/ops/elementwise_test.cc tests/ops/derivatives/unary_rows.cc)
wanted=$(printf '%s\n' ops/unary.h "${tests[@]}" | sort)
[[ $(printf '%s\n' "${!touched[@]}" | sort) == "$wanted" ]] || fail "the steps change: ${!touched[*]}"

# ---- compiling the files that depend on them -----------------------------------------------------

# Quoted includes are searched for in the folder of the including file, then here: the copies come first.
flags=(-std=c++20 -O0 -w -ffp-contract=off "@$compile" -iquote "$work/tree" -iquote "$root")
objects=()

# object FILE NAME [FLAG...]
object() {
  g++ "${flags[@]}" "${@:3}" -c "$1" -o "$work/$2.o" || fail "$1 does not compile"
  objects+=("$work/$2.o")
}

for source in ops/derivatives.cc ops/all_ops.cc cpu/kernels/elementwise_table.cc \
  tests/ops/derivatives/{inputs,check_row}.cc tests/docs/new_op_check.cc; do
  object "$source" "$(basename "$source" .cc)"
done
for source in "${tests[@]}"; do
  object "$work/tree/$source" "$(basename "$source" .cc)"
done
declare -A level=([baseline]=x86-64 [avx2]=x86-64-v3 [avx512]=x86-64-v4)
for isa in "${!level[@]}"; do
  object cpu/kernels/levels/spans_unary.cc "spans_$isa" -march="${level[$isa]}" -DRG_ISA="$isa"
done
g++ "${objects[@]}" -o "$work/check" -Wl,--allow-multiple-definition "@$compile" "@$link" -lpthread ||
  fail "the objects do not link"

# ---- and running it --------------------------------------------------------------------------

"$work/check" "the op of the document*,*functions of one operand*"
