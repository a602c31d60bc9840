"""precompiled_header: a header that the compiler reads in its own form, which is quicker than parsing its text.

A target gets it by `copts = precompiled("//tests:prelude")` and a dependency on that label. The precompiled form serves
sources that are compiled with the same flags; for others the compiler reads the header's text, which stands beside it.
gcc's list of the headers that a source depends on has neither the precompiled form nor the headers in it, and by that
list Bazel decides what to compile again. So each source also gets a header with the checksum of that form.
Under --config=separate no source is given the header, which finds those that rely on it for an #include.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def precompiled(label):
    """The copts that include a precompiled_header, an absolute label, before a source."""
    return select({
        "//tools:separate": [],
        "//conditions:default": [
            flag
            for suffix in [".h", "_checksum.h"]
            for flag in ["-include", "$(BINDIR)/{}{}".format(label[2:].replace(":", "/"), suffix)]
        ],
    })

def _precompiled_header_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    compiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    ctx.actions.symlink(output = header, target_file = ctx.file.header)
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = compiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
    )
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = ["-x", "c++-header"] + flags,
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [compiled],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling {}".format(header.short_path),
    )
    checksum = ctx.actions.declare_file(ctx.label.name + "_checksum.h")
    ctx.actions.run_shell(
        command = "sum=$(sha256sum <\"$1\") && echo \"// $sum\" >\"$2\"",
        arguments = [compiled.path, checksum.path],
        inputs = [compiled],
        outputs = [checksum],
    )
    files = depset([header, compiled, checksum])
    own = cc_common.create_compilation_context(headers = files)
    return [
        DefaultInfo(files = files),
        cc_common.merge_cc_infos(
            direct_cc_infos = [CcInfo(compilation_context = own)],
            cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
        ),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "copts": attr.string_list(doc = "what its sources are compiled with, beyond the flags of the build"),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
