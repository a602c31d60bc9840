#!/usr/bin/env bash
# What is in a package, and what happens where none can be made.
set -uo pipefail

failures=0
fail() {
  echo "package_test: $*" >&2
  failures=$((failures + 1))
}

root=$PWD
make_package() { (cd "$root" && tools/package/make_package.sh "$@") >"$TEST_TMPDIR/log" 2>&1; }
cd "$(mktemp -d -p "${TEST_TMPDIR:?}")" || exit 1

make_package "$PWD/package" || { cat "$TEST_TMPDIR/log"; exit 1; }

# A package has what build systems look for.
for file in include/retrograd/retrograd.h include/retrograd/engine/tensor.h lib/libretrograd.a lib/libretrograd.so \
  lib/libretrograd.so.0 lib/pkgconfig/retrograd.pc lib/cmake/retrograd/retrograd-config.cmake \
  share/doc/retrograd/LICENSE share/doc/retrograd/libeigen3-dev/copyright; do
  [[ -s package/$file ]] || fail "no file $file"
done
[[ $(stat --format=%a package) == 755 ]] || fail "the package cannot be read by all"
dpkg-deb --contents package/retrograd_*.deb | grep >/dev/null ' ./usr/lib/libretrograd.so.0 ->' || fail "the .deb has no library"
[[ -z $(find package -name '*cuda*') ]] || fail "a package for the CPU has a part of CUDA's"

# A header needs no other library, and is in the inline namespace that version.h names.
abi=$(sed -n 's/^#define RETROGRAD_ABI_VERSION //p' package/include/retrograd/version.h)
grep -rhE '^#include' package/include | grep -vE '<retrograd/|<sys/single_threaded.h>|<[a-z_]+>' && fail "a header includes another library's"
grep -rhE '^namespace retrograd' package/include | grep -v "^namespace retrograd::inline v$abi\b" && fail "a header is not of version $abi"

# What a header declares can be called in the shared library, except where all is inline and also for other compilers.
grep -rL '^#pragma GCC visibility push(default)' package/include |
  grep -vE '/(retrograd|data|torch|version|cpu/division|engine/method_list|ops/(host_device|math|integers|scatter_reduction|special_formulas|bessel_formulas)|torch/(arg|nn|nn/(functional|modules|names|pimpl)))\.h$' && fail "a header exports nothing"

# The shared library has its versioned name, exports the interface alone, and needs the system's libraries alone.
shared=package/lib/libretrograd.so
readelf --dynamic "$shared" | grep >/dev/null "SONAME.*\[libretrograd.so.$abi\]" || fail "the shared library has another name"
readelf --dynamic "$shared" | grep NEEDED | grep -vE '\[(libstdc\+\+|libm|libgcc_s|libc|ld-linux-x86-64)\.so\.[0-9]+\]' &&
  fail "the shared library needs another one"
nm --dynamic --defined-only "$shared" | cut -d' ' -f3 >exported
grep -q "^_ZN9retrograd2v${abi}6matmulE" exported || fail "matmul is not exported"
grep -vE "^_Z(T[IHSVW]|GV|Z)*N[KOR]*(9retrograd2v$abi|5torch)" exported && fail "the shared library exports what is not the interface"
grep -E "9retrograd2v$abi(8rewrites|3cpu(8baseline|4avx2|6avx512)|4cuda)" exported |
  grep -vE "4cuda(12device_count|18unavailable_reason)" && fail "the shared library exports internal functions"

# Nothing runs when a program starts, or when a plug-in is loaded.
objdump --section-headers package/lib/libretrograd.a 2>/dev/null | grep -E '\.(init_array|ctors)' && fail "a static constructor"

# Another package takes the place of an earlier one; no other folder is touched.
make_package "$PWD/package" || fail "an earlier package is not replaced"
mkdir other empty && touch other/file
make_package "$PWD/other" && fail "a folder with files is overwritten"
grep -q "is not empty" "$TEST_TMPDIR/log" || fail "an unclear message: $(<"$TEST_TMPDIR/log")"
[[ $(ls -A other) == file ]] || fail "files of others are gone"
make_package "$PWD/empty" || fail "an empty folder is not accepted"
make_package "$PWD/no/such" && fail "a folder is made in a folder that does not exist"
make_package && fail "no argument is accepted"

# A full disk, here a limit for the size of a file, leaves all as it was.
before=$(find . | sort)
(ulimit -f 1000; trap '' XFSZ; make_package "$PWD/package") && fail "a file was written beyond the limit"
grep -q "is what it was" "$TEST_TMPDIR/log" || fail "an unclear message: $(<"$TEST_TMPDIR/log")"
(ulimit -f 1000; trap '' XFSZ; make_package "$PWD/new") && fail "a file was written beyond the limit"
[[ $(find . | sort) == "$before" ]] || fail "something half made was left"

# So does a folder that may not be written to. (Root may write to all.)
mkdir locked && chmod 555 locked
if [[ ! -w locked ]]; then
  make_package "$PWD/locked/package" && fail "a package in a locked folder"
  grep -q "no right to write" "$TEST_TMPDIR/log" || fail "an unclear message: $(<"$TEST_TMPDIR/log")"
fi

exit $((failures > 0))
