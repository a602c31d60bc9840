#!/usr/bin/env bash
# Builds programs from the package alone, as users do: with CMake, and with make and pkg-config; with GCC 12 and the newest
# Clang that is installed; with the static and the shared library. Runs each, and looks at its size.
set -euo pipefail

fail() {
  echo "consumers_test: $*" >&2
  exit 1
}

here=$PWD/tests/package
plugin_test=$here/plugin_test
work=$(mktemp -d -p "${TEST_TMPDIR:?}")
tools/package/make_package.sh "$work/package" || fail "no package"
cd "$work"
mkdir source
cp "$here"/consumer/* "$here/plugin.cc" source
export PKG_CONFIG_PATH=$PWD/package/lib/pkgconfig

gcc=g++-12
clang=$(compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort --version-sort | tail -n 1)
[[ -n $clang ]] || fail "no Clang is installed"

# runs BUILD: the program works, and is at most 16 MB without its symbols.
runs() {
  local bytes
  strip --strip-all "$1/train"
  bytes=$(stat --format=%s "$1/train")
  echo "$1: $bytes bytes, built in $SECONDS s"
  ((bytes <= 16 << 20)) || fail "$1/train has $bytes bytes"
  (cd "$1" && ./train)
}

for compiler in "$gcc" "$clang"; do
  for shared in OFF ON; do
    build=cmake-$compiler-$shared
    SECONDS=0
    cmake -S source -B "$build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -DBUILD_SHARED_LIBS="$shared" \
      -DCMAKE_PREFIX_PATH="$PWD/package" >"$build.log" 2>&1 || fail "$(<"$build.log")"
    cmake --build "$build" --target train >"$build.log" 2>&1 || fail "$(<"$build.log")"
    runs "$build"
    cmake --build "$build" --target plugin >"$build.log" 2>&1 || fail "$(<"$build.log")"
    RG_PLUGIN=$build/libplugin.so "$plugin_test" || fail "the plug-in of $build"
  done
  for package in retrograd-static retrograd; do
    build=make-$compiler-$package
    SECONDS=0
    cp -r source "$build"
    make -C "$build" CXX="$compiler" PACKAGE="$package" LDFLAGS="-Wl,-rpath,$PWD/package/lib" \
      >"$build.log" 2>&1 || fail "$(<"$build.log")"
    runs "$build"
  done
done
