"""unity_cc_library: a cc_library whose sources are compiled several at a time.

Most of the time of a small source goes into headers: parsing them, and instantiating what they hold. One after the
other in one translation unit, ten sources take little longer than three. A unit is the text of its sources, each
after a #line directive, so that messages and debuggers name the file that was written.

What follows for sources: anonymous namespaces of one library must not define a name twice, and a macro is undefined
where its use ends. --config=separate compiles each source by itself, and so finds a missing #include.
"""

def _unit_impl(ctx):
    out = ctx.outputs.out
    ctx.actions.run_shell(
        inputs = ctx.files.srcs,
        outputs = [out],
        arguments = [out.path] + [f.path for f in ctx.files.srcs],
        command = 'out=$1; shift; for f in "$@"; do printf "#line 1 \\"%s\\"\\n" "$f"; cat "$f"; done > "$out"',
        mnemonic = "Unit",
        progress_message = "Joining sources of {}".format(out.short_path),
    )

_unit = rule(
    implementation = _unit_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "out": attr.output(mandatory = True),
    },
)

def _is_source(label):
    return label.endswith(".cc") and not label.startswith(":")

def unity_cc_library(name, srcs, units = 1, alone = [], more_srcs = [], **kwargs):
    """A cc_library whose .cc files become `units` translation units.

    Args:
      name: of the library.
      srcs: .cc files, joined in this order, neighbours together; other files and generated ones are left alone.
      units: how many; a unit should compile in about five seconds.
      more_srcs: further sources, which may come from a select(): compiled one by one.
      alone: .cc files that are translation units of their own.
      **kwargs: other attributes of cc_library.
    """
    sources = [s for s in srcs if _is_source(s) and s not in alone]
    others = [s for s in srcs if not _is_source(s)] + alone
    joined = []
    for i in range(units):
        members = sources[i * len(sources) // units:(i + 1) * len(sources) // units]
        unit = "{}_unit_{}".format(name, i + 1)
        _unit(name = unit, srcs = members, out = unit + ".cc", visibility = ["//visibility:private"])
        joined.append(":" + unit)

    # GCC takes a class of an anonymous namespace for one of a header, where #line names another file than the unit. And
    # it would inline less in a unit than in its sources, since it limits how much a large translation unit may grow.
    copts = kwargs.pop("copts", []) + [
        "--param=large-unit-insns=200000",
        "-Wno-subobject-linkage",
    ]
    native.cc_library(
        name = name,
        copts = copts,
        srcs = others + more_srcs + select({
            "//tools:separate": sources,
            "//conditions:default": joined,
        }),
        **kwargs
    )
