"""Repository rule: the CUDA toolkit at $CUDA_PATH or /usr/local/cuda, or empty libraries where there is none.

@cuda_toolkit//:found.bzl            CUDA_FOUND, CUDA_PATH
@cuda_toolkit//:toolkit_version.txt  changes with the toolkit: an input of every nvcc action
@cuda_toolkit//:headers              for host code (without CCCL; nvcc finds its own headers)
@cuda_toolkit//:cudart               the runtime, linked statically; it looks for the driver at its first call
"""

# The version file is not named `version`: on an include path that would hide C++'s <version>.
_BUILD = """
package(default_visibility = ["//visibility:public"])

exports_files(["toolkit_version.txt"])

cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]),
    includes = ["include"],
)

cc_library(
    name = "cudart",
    srcs = glob(["lib64/libcudart_static.a"]),
    linkopts = {cudart_linkopts},
    deps = [":headers"],
)
"""

def _impl(ctx):
    path = ctx.os.environ.get("CUDA_PATH", "") or "/usr/local/cuda"
    nvcc = ctx.path(path).get_child("bin").get_child("nvcc")
    found = nvcc.exists
    version = "none"
    if found:
        ctx.symlink(path + "/include", "include")
        ctx.symlink(path + "/lib64", "lib64")
        version = path + "\n" + ctx.execute([nvcc, "--version"]).stdout
    ctx.file("toolkit_version.txt", version)
    ctx.file("found.bzl", "CUDA_FOUND = {}\nCUDA_PATH = {}\n".format(found, repr(path if found else "")))
    cudart_linkopts = ["-ldl", "-lrt", "-lpthread"] if found else []
    ctx.file("BUILD.bazel", _BUILD.format(cudart_linkopts = cudart_linkopts))

cuda_toolkit = repository_rule(implementation = _impl, environ = ["CUDA_PATH"], local = True)
