"""cuda_library compiles .cu files with nvcc, or C++ stand-ins where CUDA is off. Its build settings:

--//cuda:enabled        do programs have the CUDA component? By default not.
--//cuda:toolkit        is it compiled with the toolkit? By default if that is found.
--//cuda:architectures  sm_N is machine code, compute_N is PTX for newer devices: sm_90,compute_80

nvcc is run by its absolute path, with Bazel's C++ compiler as its host compiler. It finds its own headers;
the version file represents all of them as an input. A .cu file has kernels and their launchers over plain
pointers and sizes: nvcc compiles neither Eigen nor fmt in C++20.
"""

load("@cuda_toolkit//:found.bzl", "CUDA_PATH")

_Architectures = provider(fields = ["names"])

def _architectures_impl(ctx):
    return _Architectures(names = ctx.build_setting_value)

def _switch_impl(ctx):
    return []

cuda_architectures = rule(
    implementation = _architectures_impl,
    build_setting = config.string_list(flag = True),
)

_switch = rule(
    implementation = _switch_impl,
    build_setting = config.bool(flag = True),
)

def switch(name, default):
    """A build setting that is true or false, and NAME_on, for the keys of a select().

    Args:
      name: of the setting.
      default: its value when none is given.
    """
    _switch(name = name, build_setting_default = default)
    native.config_setting(name = name + "_on", flag_values = {":" + name: "true"})

def _gencode(name):
    kind, number = name.split("_")
    return "-gencode=arch=compute_{},code={}_{}".format(number, kind, number)

def _host_flag(flag):
    return flag if flag.startswith("-std=") else "-Xcompiler=" + flag.replace(",", "\\,")

# Runs its arguments after the first, a file for the output: everything is shown but ptxas' notes on kernels.
_RUN_NVCC = """
log=$1
shift
"$@" 2>"$log"
status=$?
grep -vE '^ptxas info|bytes stack frame|^$' "$log" >&2
exit $status
"""

def _compile(ctx, cc, context, src):
    """One nvcc action; returns the object file, and ptxas' notes: registers and spilled bytes of each kernel."""
    obj = ctx.actions.declare_file("_objs/{}/{}.o".format(ctx.label.name, src.basename))
    notes = ctx.actions.declare_file("_objs/{}/{}.ptxas".format(ctx.label.name, src.basename))
    args = ctx.actions.args()
    args.add(notes)
    args.add(CUDA_PATH + "/bin/nvcc")
    args.add_all(["-c", src, "-o", obj, "-O3", "-Xcompiler=-fPIC", "-Xcudafe=--display_error_number"])
    args.add("--resource-usage")
    args.add("-ccbin", cc.compiler_executable)

    # In a sandbox every nvcc has the same process number, and so the same names for temporary files in /tmp.
    args.add("--objdir-as-tempdir")
    args.add_all(ctx.attr._architectures[_Architectures].names, map_each = _gencode)
    args.add_all(ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts, map_each = _host_flag)
    args.add_all(context.defines, format_each = "-D%s")
    own_roots = [".", ctx.bin_dir.path]  # written and generated headers
    includes = depset(own_roots, transitive = [context.quote_includes, context.includes])
    args.add_all(includes, before_each = "-I")
    args.add_all(context.system_includes, before_each = "-isystem")
    args.add_all(ctx.attr.copts)
    inputs = [src, ctx.file._version] + ctx.files.hdrs
    ctx.actions.run_shell(
        command = _RUN_NVCC,
        arguments = [args],
        inputs = depset(inputs, transitive = [context.headers, cc.all_files]),
        outputs = [obj, notes],
        env = {"PATH": "/usr/bin:/bin"},
        mnemonic = "Nvcc",
        progress_message = "Compiling {} with nvcc".format(src.short_path),
    )
    return struct(object = obj, notes = notes)

def _impl(ctx):
    if not CUDA_PATH:
        fail("CUDA is on, but there is no toolkit at $CUDA_PATH or /usr/local/cuda. " +
             "Set CUDA_PATH or build with --config=nocuda.")
    cc = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    dep_infos = [dep[CcInfo] for dep in ctx.attr.deps]
    context = cc_common.merge_cc_infos(cc_infos = dep_infos).compilation_context
    compiled = [_compile(ctx, cc, context, src) for src in ctx.files.srcs]
    objects = depset([c.object for c in compiled])
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc,
        name = ctx.label.name,
        compilation_outputs = cc_common.create_compilation_outputs(objects = objects, pic_objects = objects),
        linking_contexts = [info.linking_context for info in dep_infos],
        disallow_dynamic_library = True,
    )
    compilation_context = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs))
    own = CcInfo(compilation_context = compilation_context, linking_context = linking_context)
    merged = cc_common.merge_cc_infos(direct_cc_infos = [own], cc_infos = dep_infos)
    notes = OutputGroupInfo(ptxas = depset([c.notes for c in compiled]))
    return [DefaultInfo(files = objects), notes, merged]

_cuda_library = rule(
    implementation = _impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "_version": attr.label(default = "@cuda_toolkit//:toolkit_version.txt", allow_single_file = True),
        "_architectures": attr.label(default = "//cuda:architectures"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, srcs, absent, hdrs = [], deps = [], copts = [], visibility = None):
    """A library whose .cu files are compiled by nvcc; without CUDA, `absent` replaces them.

    Args:
      name: an alias of NAME_nvcc or NAME_absent, both tagged manual, so that //... works without a toolkit.
      srcs: .cu files.
      absent: C++ sources that define the same functions.
      hdrs: their common headers, plain C++ for both compilers.
      deps: of both.
      copts: for nvcc.
      visibility: of NAME.
    """
    _cuda_library(
        name = name + "_nvcc",
        srcs = srcs,
        hdrs = hdrs,
        copts = copts,
        tags = ["manual"],
        deps = deps + ["@cuda_toolkit//:cudart"],
    )
    native.cc_library(
        name = name + "_absent",
        srcs = absent,
        hdrs = hdrs,
        tags = ["manual"],
        deps = deps,
    )
    native.alias(
        name = name,
        actual = select({"//cuda:toolkit_on": name + "_nvcc", "//conditions:default": name + "_absent"}),
        visibility = visibility,
    )

def on_host_library(name, srcs, hdrs, deps, copts = [], testonly = False):
    """The same .cu files compiled by the host's compiler, with //cuda:on_host in place of a device.

    Args:
      name: of the cc_library.
      srcs: .cu files.
      hdrs: their common headers.
      deps: with //cuda:on_host among them.
      copts: for the compiler.
      testonly: as of any rule.
    """
    sources = []
    for src in srcs:
        out = "on_host_sources/" + src.replace(".cu", ".cc")
        native.genrule(
            name = name + "_" + src.replace("/", "_"),
            testonly = testonly,
            srcs = [src],
            outs = [out],
            cmd = "{ echo '#include \"cuda/on_host/device_on_host.h\"'; cat $<; } > $@",
        )
        sources.append(out)
    native.cc_library(
        name = name,
        testonly = testonly,
        srcs = sources,
        hdrs = hdrs,
        copts = copts + ["-Wno-unknown-pragmas"],
        deps = deps,
    )
