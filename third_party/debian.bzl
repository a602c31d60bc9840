"""Libraries from Debian packages. Licences are listed in THIRD_PARTY.md, package names in bazelw.

Their headers are in /usr/include, which the compiler searches anyway, so most targets here carry at most defines;
they exist so that a BUILD file says what it uses. Bazel does not watch those headers:
after an upgrade of such a package run `./bazelw clean`. Eigen's headers lie one folder deeper and are
ordinary inputs.
"""

_EIGEN = """
cc_library(
    name = "eigen",
    hdrs = glob(["Eigen/**"]),
    defines = ["EIGEN_MPL2_ONLY"],  # refuse the few LGPL headers
    includes = ["."],
    visibility = ["//visibility:public"],
)
"""

_SYSTEM = """
package(default_visibility = ["//visibility:public"])

alias(name = "fmt", actual = "@retrograd//third_party:fmt")

cc_library(name = "catch2")

cc_library(name = "xxhash", defines = ["XXH_INLINE_ALL"])  # header only, nothing to link

cc_library(name = "nlohmann_json")

cc_library(name = "cli11")
"""

def debian_libraries():
    """Declares @eigen and @system."""
    native.new_local_repository(name = "eigen", path = "/usr/include/eigen3", build_file_content = _EIGEN)
    native.new_local_repository(name = "system", path = "/usr/include", build_file_content = _SYSTEM)
