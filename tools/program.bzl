"""rg_program: a program whose source is compiled once, for its binary and for the bundle of tools/gpu_bundle."""

def rg_program(name, deps, hdrs = [], linked = [], data = []):
    """A binary of NAME.cc, and NAME_part, a library in which its main() is NAME_main().

    Args:
      name: of the binary.
      deps: what the source includes.
      hdrs: headers beside it.
      linked: what only the binary links; the bundle has its own.
      data: that it needs when it runs.
    """
    native.cc_library(
        name = name + "_part",
        srcs = [name + ".cc"] + hdrs,
        local_defines = ["main={}_main".format(name)],
        deps = deps,
    )
    native.cc_binary(
        name = name,
        srcs = ["//tools:main.cc"],
        data = data,
        local_defines = ["PROGRAM={}_main".format(name)],
        deps = [":{}_part".format(name)] + linked,
    )
