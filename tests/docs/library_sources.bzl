"""library_sources: the sources and headers of some libraries and of all that they depend on, for a test that reads them."""

_Sources = provider(doc = "Source files of a target and its dependencies.", fields = ["files"])

_ATTRIBUTES = ["actual", "deps", "hdrs", "implementation_deps", "srcs"]

def _targets(value):
    values = value if type(value) == "list" else [value]
    return [v for v in values if type(v) == "Target"]

def _is_ours(file):
    return file.is_source and not file.short_path.startswith("../") and file.extension in ["cc", "cu", "cuh", "h"]

def _collect_impl(_target, ctx):
    files, below = [], []
    for name in _ATTRIBUTES:
        for target in _targets(getattr(ctx.rule.attr, name, [])):
            if _Sources in target:
                below.append(target[_Sources].files)
            else:
                files += [f for f in target.files.to_list() if _is_ours(f)]
    return [_Sources(files = depset(files, transitive = below))]

_collect = aspect(implementation = _collect_impl, attr_aspects = _ATTRIBUTES)

def _library_sources_impl(ctx):
    files = depset(transitive = [dep[_Sources].files for dep in ctx.attr.deps])
    return [DefaultInfo(runfiles = ctx.runfiles(transitive_files = files))]

library_sources = rule(
    doc = "The files are in the runfiles, in their folders.",
    implementation = _library_sources_impl,
    attrs = {"deps": attr.label_list(aspects = [_collect])},
)
