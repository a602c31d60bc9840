"""What a package is made of: package_library, the two libraries; package_headers, the headers that a user includes."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Arguments: ar, the new archive, archives whose objects it is to have.
_JOIN = """
ar=$1 out=$2
shift 2
{ echo "create $out"; printf 'addlib %s\\n' "$@"; echo save; echo end; } | "$ar" -M && strip --strip-debug "$out"
"""

# Arguments: the compiler, version.h, the shared library, the list of what it exports, an archive with all its objects,
# then libraries that it uses.
_LINK = """
compiler=$1 version=$2 out=$3 exported=$4 archive=$5
shift 5
abi=$(sed -n 's/^#define RETROGRAD_ABI_VERSION //p' "$version")
inner=v$abi
sed "s/@NAMESPACE@/9retrograd${#inner}$inner/" "$exported" > "$out.lds"
"$compiler" -shared -o "$out" -Wl,-soname,"libretrograd.so.$abi" -Wl,--version-script="$out.lds" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -Wl,--gc-sections -Wl,--no-undefined -Wl,--strip-all \
    -Wl,-Bsymbolic-functions -Wl,-z,relro,-z,now "$@" -lstdc++ -lm
"""

def _is_ours(file):
    return not file.short_path.startswith("../")

def _library_impl(ctx):
    cc = find_cpp_toolchain(ctx)
    archives, flags = [], []
    for inputs in ctx.attr.library[CcInfo].linking_context.linker_inputs.to_list():
        flags += [flag for flag in inputs.user_link_flags if flag not in flags]
        for library in inputs.libraries:
            archives.append(library.pic_static_library or library.static_library)
    ours = [a for a in archives if _is_ours(a)]
    others = [a for a in archives if not _is_ours(a)]

    static = ctx.actions.declare_file(ctx.label.name + "/libretrograd.a")
    ctx.actions.run_shell(
        inputs = ours,
        outputs = [static],
        tools = cc.all_files,
        command = _JOIN,
        use_default_shell_env = True,
        arguments = [cc.ar_executable, static.path] + [a.path for a in ours],
        progress_message = "Joining {}".format(static.short_path),
    )
    shared = ctx.actions.declare_file(ctx.label.name + "/libretrograd.so")
    ctx.actions.run_shell(
        inputs = [static, ctx.file.exported, ctx.file._version] + others,
        outputs = [shared],
        tools = cc.all_files,
        command = _LINK,
        use_default_shell_env = True,
        arguments = [cc.compiler_executable, ctx.file._version.path, shared.path, ctx.file.exported.path, static.path] +
                    [a.path for a in others] + flags,
        progress_message = "Linking {}".format(shared.short_path),
    )

    # The archives of others are given as they are: a program that links the static library needs them.
    given = [static, shared]
    for a in others:
        copy = ctx.actions.declare_file(ctx.label.name + "/" + a.basename)
        ctx.actions.symlink(output = copy, target_file = a)
        given.append(copy)
    return [DefaultInfo(files = depset(given), runfiles = ctx.runfiles(files = given))]

package_library = rule(
    doc = "libretrograd.a and libretrograd.so, with all that a cc_library and its dependencies have.",
    implementation = _library_impl,
    attrs = {
        "library": attr.label(providers = [CcInfo], mandatory = True),
        "exported": attr.label(allow_single_file = True, mandatory = True),
        "_version": attr.label(default = "//:include/retrograd/version.h", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

# Arguments: the compiler, the folder to fill, the headers to begin with. retrograd/retrograd.h stays where it is, and
# engine/tensor.h becomes retrograd/engine/tensor.h, which is included by that name. Derivatives of ops are left out.
_HEADERS = """
compiler=$1 out=$2
shift 2
mkdir -p "$out/retrograd"
all=$(for root; do "$compiler" -x c++ -std=c++20 -MM -I. -Iinclude "$root"; done | tr -s ' \\\\' '\\n' | grep '\\.h$' | sort -u)
for header in $all; do
  to=$out/retrograd/${header#include/retrograd/}
  mkdir -p "$(dirname "$to")"
  sed -E -e 's,^#include "(retrograd/)?([^"]+)",#include <retrograd/\\2>,' \\
      -e '/^#ifdef RG_DERIVATIVES/,/^#endif  \\/\\/ RG_DERIVATIVES/d' "$header" > "$to"
done
"""

def _headers_impl(ctx):
    cc = find_cpp_toolchain(ctx)
    out = ctx.actions.declare_directory(ctx.label.name + "/include")
    ctx.actions.run_shell(
        inputs = ctx.attr.library[CcInfo].compilation_context.headers,
        outputs = [out],
        tools = cc.all_files,
        command = "set -euo pipefail" + _HEADERS,
        use_default_shell_env = True,
        arguments = [cc.compiler_executable, out.path] + ctx.attr.roots,
        progress_message = "Collecting the public headers",
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles(files = [out]))]

package_headers = rule(
    doc = "The headers that `roots` include, and no others, under the folder include/retrograd.",
    implementation = _headers_impl,
    attrs = {
        "library": attr.label(providers = [CcInfo], mandatory = True),
        "roots": attr.string_list(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
