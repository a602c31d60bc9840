"""rg_cc_test: a Catch2 test."""

def rg_cc_test(name, srcs, deps = [], size = "small", **kwargs):
    """A cc_test with Catch2's main, which is compiled once, in //tests:catch_main.

    Args:
      name: of the test.
      srcs: files that include <catch2/catch.hpp> and hold TEST_CASEs.
      deps: what they test.
      size: Bazel's: small is at most a minute. A longer test gets another size, and tags = ["long"] where it is
        not to run by default.
      **kwargs: other attributes of cc_test.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        deps = deps + ["//tests:catch_main", "//tests:errors"],
        **kwargs
    )
