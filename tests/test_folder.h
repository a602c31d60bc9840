// A folder for the files that a test writes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace retrograd::testing {

/// The path of `name` in the folder that Bazel gives a test for itself; outside of Bazel, in that for temporary files.
inline std::string in_test_folder(const std::string& name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return (folder ? std::filesystem::path(folder) : std::filesystem::temp_directory_path()) / name;
}

}  // namespace retrograd::testing
