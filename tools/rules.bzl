"""rg_cc_test: a Catch2 test. rg_test_library: a library of tests. rg_fuzz_test: the two tests of a fuzzer. written_source:
a source file that a program of this build writes.

without_sanitizers(): for target_compatible_with of what makes no sense in a build with a sanitizer.
"""

load("//tools:precompiled.bzl", "precompiled")

# What tests include is mostly the same.
_PRELUDE = "//tests:prelude"

def without_sanitizers():
    return select({
        "//tools:asan": ["//tools:nowhere"],
        "//tools:tsan": ["//tools:nowhere"],
        "//conditions:default": [],
    })

def rg_cc_test(name, srcs, deps = [], size = "small", copts = [], **kwargs):
    """A cc_test with Catch2's main, which is compiled once, in //tests:catch_main.

    Args:
      name: of the test.
      srcs: files that include <catch2/catch.hpp> and hold TEST_CASEs.
      deps: what they test.
      copts: further options of the compiler.
      size: Bazel's: small is at most a minute. A longer test gets another size, and tags = ["long"] if it is
        not to run by default.
      **kwargs: other attributes of cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        copts = precompiled(_PRELUDE) + copts,
        deps = deps + [_PRELUDE, "//tests:catch_main", "//tests:errors", "//tests:test_folder"],
        **kwargs
    )

def rg_test_library(name, deps = [], **kwargs):
    """A cc_library of tests with sources of its own.

    Args:
      name: of the library.
      deps: what it uses.
      **kwargs: other attributes of cc_library.
    """
    native.cc_library(
        name = name,
        testonly = True,
        copts = precompiled(_PRELUDE),
        deps = deps + [_PRELUDE],
        **kwargs
    )

def rg_fuzz_test(name, srcs, variable, long_count, long_size = "large", deps = [], **kwargs):
    """Two tests of one fuzzer: NAME_test tries as many inputs as its source says, NAME_long_test more, with --config=long.

    Args:
      name: of both.
      srcs: as of rg_cc_test.
      variable: the environment variable with the number of inputs to try.
      long_count: how many the long test tries.
      long_size: of the long test; the other is medium.
      deps: what they test.
      **kwargs: other attributes of rg_cc_test.
    """
    rg_test_library(
        name = name + "_cases",
        srcs = srcs,
        alwayslink = True,
        deps = deps + ["//tests:errors", "//tests:test_folder", "@system//:catch2"],
    )
    rg_cc_test(name = name + "_test", size = "medium", srcs = [], deps = [":{}_cases".format(name)], **kwargs)
    rg_cc_test(
        name = name + "_long_test",
        size = long_size,
        srcs = [],
        env = {variable: str(long_count)},
        tags = ["long"],
        deps = [":{}_cases".format(name)],
        **kwargs
    )

def _written_source_impl(ctx):
    ctx.actions.run_shell(
        tools = [ctx.executable.tool],
        outputs = [ctx.outputs.out],
        command = "{0} > {1} 2> {1}.log || {{ cat {1}.log >&2; exit 1; }}; rm -f {1}.log".format(
            ctx.executable.tool.path,
            ctx.outputs.out.path,
        ),
        env = {"ASAN_OPTIONS": "detect_leaks=0"},
        progress_message = "Writing {}".format(ctx.outputs.out.short_path),
    )

# Like a genrule, but the tool is built in the target configuration: a genrule would build the library a second time.
written_source = rule(
    implementation = _written_source_impl,
    attrs = {
        "tool": attr.label(executable = True, cfg = "target", mandatory = True),
        "out": attr.output(mandatory = True),
    },
)
