#!/usr/bin/env bash
# ./bazelw run //:package -- DIR: makes the folder DIR with the library for other build systems, and Debian packages of
# the same files. DIR is new, empty, or an earlier package, which is replaced. See docs/package.md.
#
# All is made in a temporary folder beside DIR, which takes DIR's place at the end: after an error DIR is what it was.
# The CPU's files come first. Those of the CUDA component, of a build with --config=cuda, have folders and names of their
# own: lib/retrograd-cuda, retrograd-cuda*.pc, retrograd-cuda.cmake.
set -euo pipefail

fail() {
  printf 'package: %s\n' "$@" >&2
  exit 1
}

# Bazel starts programs in a folder where the files of the build lie under their names in the source tree.
source_tree=$PWD
built=$source_tree/tools/package
version_number() {
  sed -En "s/^#define RETROGRAD_$1 \"?([0-9.]+)\"?\$/\1/p" "$built/headers/include/retrograd/version.h"
}
version=$(version_number VERSION)
abi=$(version_number ABI_VERSION)

# Sets `target`, the absolute path of DIR, which must be a place for a package, and `parent`, the folder that it is in.
check_arguments() {
  (($# == 1)) && [[ -n $1 && $1 != -* ]] || fail "usage: ./bazelw run //:package -- DIR"
  cd "${BUILD_WORKING_DIRECTORY:-.}"
  target=$(realpath --canonicalize-missing -- "$1")
  parent=$(dirname "$target")
  [[ -d $parent ]] || fail "there is no folder $parent"
  [[ -w $parent ]] || fail "no right to write to $parent"
  [[ -e $target ]] || return 0
  [[ -d $target ]] || fail "$target is a file"
  [[ -z $(ls -A "$target") || -f $target/lib/cmake/retrograd/retrograd-config.cmake ]] ||
    fail "$target is not empty, and no earlier package"
}

# put FOLDER FILE...: makes the folder and copies the files into it.
put() {
  mkdir -p "$1"
  cp --dereference --no-preserve=mode "${@:2}" "$1"
}

# put_libraries FOLDER BUILT: the static and the shared library, the latter with the names that loader and linker look for.
put_libraries() {
  put "$1" "$2"/*.a
  cp --dereference --no-preserve=mode "$2/libretrograd.so" "$1/libretrograd.so.$version"
  ln -s "libretrograd.so.$version" "$1/libretrograd.so.$abi"
  ln -s "libretrograd.so.$abi" "$1/libretrograd.so"
}

# put_pc FOLDER NAME LIBDIR LIBS: NAME.pc, for pkg-config, which finds the other folders from the place of that file.
put_pc() {
  mkdir -p "$1"
  cat >"$1/$2.pc" <<END
prefix=\${pcfiledir}/../..
libdir=\${prefix}/$3
includedir=\${prefix}/include

Name: $2
Description: tensors, automatic differentiation and recorded backward passes
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} $4
END
}

# Licences of the library, and of what is compiled into it.
put_licences() {
  put "$1" "$source_tree/LICENSE" "$source_tree/THIRD_PARTY.md"
  local package
  for package in libeigen3-dev libfmt-dev libxxhash-dev nlohmann-json3-dev; do
    put "$1/$package" "/usr/share/doc/$package/copyright"
  done
}

put_cpu() {
  cp --recursive --dereference --no-preserve=mode "$built/headers/include" "$1"
  put_libraries "$1/lib" "$built/cpu"
  put_pc "$1/lib/pkgconfig" retrograd lib "-lretrograd"
  put_pc "$1/lib/pkgconfig" retrograd-static lib "-Wl,--gc-sections -l:libretrograd.a -pthread"
  put "$1/lib/cmake/retrograd" "$built/retrograd-config.cmake"
  sed "s/@VERSION@/$version/" "$built/retrograd-config-version.cmake" \
    >"$1/lib/cmake/retrograd/retrograd-config-version.cmake"
  put_licences "$1/share/doc/retrograd"
}

put_cuda() {
  put_libraries "$1/lib/retrograd-cuda" "$built/cuda"
  put_pc "$1/lib/pkgconfig" retrograd-cuda lib/retrograd-cuda "-lretrograd"
  put_pc "$1/lib/pkgconfig" retrograd-cuda-static lib/retrograd-cuda \
    "-Wl,--gc-sections -l:libretrograd.a $([[ ! -e $built/cuda/libcudart_static.a ]] || echo -l:libcudart_static.a) -ldl -lrt -pthread"
  put "$1/lib/cmake/retrograd" "$built/retrograd-cuda.cmake"
  put "$1/share/doc/retrograd-cuda" "$source_tree/LICENSE" "$source_tree/THIRD_PARTY.md"
}

# put_deb FOLDER TREE NAME DEPENDS DESCRIPTION: a Debian package of the files in TREE, which it installs below /usr.
put_deb() {
  local staged=$work/$3
  mkdir -p "$staged/DEBIAN"
  cp --archive --link "$2" "$staged/usr"
  cp --no-preserve=mode "$source_tree/LICENSE" "$staged/usr/share/doc/$3/copyright"
  echo "activate-noawait ldconfig" >"$staged/DEBIAN/triggers"
  cat >"$staged/DEBIAN/control" <<END
Package: $3
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The retrograd developers <developers@retrograd.invalid>
Section: libdevel
Priority: optional
Depends: $4
Installed-Size: $(du -sk "$staged/usr" | cut -f1)
Description: $5
END
  dpkg-deb --root-owner-group -Zxz -z1 --build "$staged" "$1" >"$work/log" 2>&1 || fail "$(<"$work/log")"
}

make_package() {
  local cpu=$work/cpu cuda=$work/with-cuda
  mkdir "$cpu" "$cuda" "$work/package"
  put_cpu "$cpu"
  put_deb "$work/package" "$cpu" retrograd "libc6 (>= 2.36), libstdc++6 (>= 12)" \
    "tensors, automatic differentiation and recorded backward passes"
  cp --archive --link "$cpu/." "$work/package"
  [[ -d $built/cuda ]] || return 0
  put_cuda "$cuda"
  put_deb "$work/package" "$cuda" retrograd-cuda "retrograd (= $version)" "retrograd with its CUDA component"
  cp --archive --link "$cuda/." "$work/package"
}

# The package takes DIR's place; an earlier one is put back if that fails.
move_into_place() {
  if [[ ! -e $target ]]; then
    mv --no-target-directory "$work/package" "$target"
    return
  fi
  mv --no-target-directory "$target" "$work/earlier"
  mv --no-target-directory "$work/package" "$target" || {
    mv --no-target-directory "$work/earlier" "$target"
    return 1
  }
}

check_arguments "$@"
umask 022
work=$(mktemp --directory "$parent/.retrograd-package.XXXXXX") || fail "$target is what it was"
done=0
trap 'rm -rf "$work"; ((done)) || echo "package: $target is what it was" >&2' EXIT
trap 'exit 1' HUP INT TERM
make_package
move_into_place
done=1
echo "package: retrograd $version is in $target"
