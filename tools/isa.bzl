"""isa_cc_library: the same sources compiled once per instruction-set level, for dispatch at run time.

Each level defines RG_ISA as its name (baseline, avx2, avx512). A source, in a folder cpu/*/levels, puts all that
it defines into a namespace of that name:

    namespace retrograd::cpu::RG_ISA { void add(const float* a, const float* b, float* out, int64_t n) { ... } }

Its header declares the function for every level, and a function of ordinary code that picks the level by the CPU's
feature flags (cpu/levels.h):

    RG_EACH_LEVEL(void add(const float* a, const float* b, float* out, int64_t n);)
    inline void add(const float* a, const float* b, float* out, int64_t n) {
      RG_RETURN_BEST_LEVEL(add(a, b, out, n));
    }

The trap: an inline function or template from elsewhere (std::, a shared header) that the compiler does not
inline is a symbol of the same name in every level. The linker keeps any one of them, and then AVX-512 code
may run on a machine without it. Eigen escapes by being renamed per level. For the rest, the test
NAME_symbols_test lists such symbols and fails. Sources here are thus loops over plain pointers, without
containers, strings or exceptions.
"""

def _levels_impl(ctx):
    value = ctx.build_setting_value
    if value != "all" and value not in _LEVELS:
        fail("--//tools:levels is all, or one of " + " ".join(_LEVELS))
    return []

# --//tools:levels=all, or the one level that a program is built for. The code that picks a level then picks that one,
# and is compiled with RG_ONLY_LEVEL (cpu/levels.h).
built_levels = rule(
    implementation = _levels_impl,
    build_setting = config.string(flag = True),
)

def only_level_defines():
    """The macro for the sources that pick a level."""
    defines = {"//tools:only_" + level: ["RG_ONLY_LEVEL=" + level] for level in _LEVELS}
    defines["//conditions:default"] = []
    return select(defines)

_COPTS = ["-O3", "-ffp-contract=off", "-fno-math-errno"]

# x86-64-v3 has AVX2 and FMA, x86-64-v4 has AVX-512 F, BW, CD, DQ and VL. Prefetching a line for writing (prefetchw) is
# in neither; on the oldest of these processors it does nothing. GCC 12 mistakes its own AVX-512 intrinsics for uses of
# uninitialised variables (GCC bug 105593).
_LEVELS = {
    "baseline": [],
    "avx2": [
        "-march=x86-64-v3",
        "-mprfchw",
    ],
    "avx512": [
        "-march=x86-64-v4",
        "-mprfchw",
        "-mprefer-vector-width=512",
        "-Wno-uninitialized",
        "-Wno-maybe-uninitialized",
    ],
}

# Beyond avx512, for the few files that benefit from it.
_MORE_LEVELS = {
    "avx512bf16": _LEVELS["avx512"] + ["-mavx512bf16"],
    "amx": _LEVELS["avx512"] + ["-mavx512bf16", "-mamx-tile", "-mamx-bf16"],
}

# The baseline of x86-64 is for machines from before 2013: a small program matters more there than its speed.
def _small(level):
    return select({
        "//tools:x86_64": ["-Os"] if level == "baseline" else [],
        "//conditions:default": [],
    })

def isa_cc_library(name, srcs, hdrs = [], deps = [], copts = [], more = [], visibility = None, **kwargs):
    """A cc_library that holds `srcs` at every level that the target CPU has: three on x86-64, else baseline.

    Args:
      name: of the library, which depends on one library per level, NAME_avx2 and so on.
      srcs: compiled once per level; headers among them are private.
      hdrs: compiled never, given to each level and to dependents.
      deps: of each level and of dependents.
      copts: added for each level.
      more: names of further levels; with these, `srcs` are compiled for them alone.
      visibility: of NAME; the levels are private.
      **kwargs: other attributes of the levels' cc_library.
    """
    levels = {level: _MORE_LEVELS[level] for level in more} or _LEVELS
    for level, flags in levels.items():
        native.cc_library(
            name = name + "_" + level,
            srcs = srcs,
            hdrs = hdrs,
            copts = _COPTS + copts + flags + ["-DRG_ISA=" + level, "-DEigen=Eigen_" + level] + _small(level),
            tags = ["manual"],
            visibility = ["//visibility:private"],
            deps = deps,
            **kwargs
        )
    beyond_baseline = [":{}_{}".format(name, level) for level in levels if level != "baseline"]
    built = {
        "//tools:x86_64": [":{}_{}".format(name, level) for level in levels],
        "//conditions:default": [":{}_baseline".format(name)] if "baseline" in levels else [],
    }
    if not more:
        for level in levels:
            built["//tools:only_" + level] = [":{}_{}".format(name, level)]
    native.cc_library(
        name = name,
        hdrs = hdrs,
        visibility = visibility,
        deps = deps + select(built),
    )
    native.filegroup(
        name = name + "_archives",
        srcs = beyond_baseline,
        output_group = "archive",
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    native.sh_test(
        name = name + "_symbols_test",
        size = "small",
        srcs = ["//tools:check_isa_symbols.sh"],
        args = ["$(rootpaths {}_archives)".format(name)],
        data = [name + "_archives"],
        target_compatible_with = select({
            "//tools:x86_64": [],
            "//conditions:default": ["//tools:nowhere"],
        }),
    )
