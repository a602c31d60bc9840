#!/usr/bin/env bash
# pack.sh PROGRAMS FOLDER: packs the bundle for a machine with a GPU into FOLDER (README.md): run.sh, report.awk,
# `about`, which describes its origin, and files.tar.gz with the stripped programs, the libraries that they need besides
# glibc, suites, data, and the peers' programs. Fails if it reaches 40 MiB.
#
# It runs in its runfiles (./bazelw run //tools/gpu_bundle -- FOLDER); a relative FOLDER is relative to the caller's.
set -euo pipefail

(($# == 2)) || { echo "usage: gpu_bundle FOLDER" >&2; exit 2; }
programs=$1 folder=$2
[[ $folder == /* ]] || folder=${BUILD_WORKING_DIRECTORY:-$PWD}/$folder
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Shared libraries that a binary needs directly; those of glibc are everywhere.
needed() { objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(lib(c|m|dl|rt|pthread|resolv)|ld-linux-x86-64)\.so\.'; }

mkdir "$work/files"
cp -L "$programs" "$work/files/programs"
chmod u+w "$work/files/programs"
strip "$work/files/programs"
if missing=$(needed "$work/files/programs"); then
  echo "gpu_bundle: the programs need what another machine may not have: $missing" >&2
  exit 1
fi
for file in tests/conformance/suites examples/data benchmarks/peers tests/examples/device_losses.sh; do
  mkdir -p "$work/files/$(dirname "$file")"
  cp -rL "$file" "$work/files/$file"
done
rm -f "$folder/files.tar.gz"
tar -C "$work/files" --sort=name --owner=0 --group=0 --mtime=@0 -c . | gzip -9n >"$folder/files.tar.gz"
cp -L tools/gpu_bundle/run.sh tools/gpu_bundle/report.awk "$folder/"
chmod u+wx "$folder/run.sh" "$folder/report.awk"
{
  echo "commit=$(git -C "${BUILD_WORKSPACE_DIRECTORY:-.}" describe --always --dirty 2>/dev/null || echo unknown)"
  echo "date=$(date -u +%Y-%m-%dT%H:%MZ)"
} >"$folder/about"

bytes=$(du -sb "$folder" | cut -f1)
echo "$folder: $((bytes / 1024)) KiB"
((bytes < 40 * 1024 * 1024)) || { echo "gpu_bundle: that is 40 MiB or more" >&2; exit 1; }
