"""library_files: a library for a test that compiles and links on its own: headers, archives, flags."""

def _is_ours(file):
    return not file.short_path.startswith("../")

def _write(ctx, suffix, arguments):
    file = ctx.actions.declare_file(ctx.label.name + suffix)
    ctx.actions.write(file, "\n".join(arguments) + "\n")
    return file

def _library_files_impl(ctx):
    info = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    whole, archives, flags = [], [], list(ctx.fragments.cpp.linkopts)
    for linker_input in info.linking_context.linker_inputs.to_list():
        flags += linker_input.user_link_flags
        for library in linker_input.libraries:
            archive = library.static_library or library.pic_static_library
            (whole if library.alwayslink else archives).append(archive)
    arguments = ["-Wl,--whole-archive"] + [f.short_path for f in whole] + ["-Wl,--no-whole-archive"]
    arguments += ["-Wl,--start-group"] + [f.short_path for f in archives] + ["-Wl,--end-group"] + flags
    files = [
        _write(ctx, ".compile", ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts),
        _write(ctx, ".link", arguments),
    ]
    headers = [f for f in info.compilation_context.headers.to_list() if _is_ours(f)]
    return [DefaultInfo(
        files = depset(files),
        runfiles = ctx.runfiles(files = files + headers + whole + archives),
    )]

library_files = rule(
    doc = """Arguments for g++, for the folder where a test starts, and the files that they name.

NAME.compile has the flags of this build, NAME.link the archives of `deps` and their dependencies;
headers and archives are in the runfiles.""",
    implementation = _library_files_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
    fragments = ["cpp"],
)
