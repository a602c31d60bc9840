"""plugin: a shared library NAME with all of its dependencies inside, also where the build links others as shared libraries,
as with a sanitizer."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _plugin_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    outputs = cc_common.link(
        name = ctx.label.name,
        actions = ctx.actions,
        cc_toolchain = toolchain,
        feature_configuration = cc_common.configure_features(
            ctx = ctx,
            cc_toolchain = toolchain,
            requested_features = ctx.features,
            unsupported_features = ctx.disabled_features,
        ),
        linking_contexts = [dep[CcInfo].linking_context for dep in ctx.attr.deps],
        link_deps_statically = True,
        output_type = "dynamic_library",
    )
    library = outputs.library_to_link.resolved_symlink_dynamic_library
    return [DefaultInfo(files = depset([library]), runfiles = ctx.runfiles(files = [library]))]

plugin = rule(
    implementation = _plugin_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
