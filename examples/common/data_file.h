// Finding and reading the data that comes with the examples.
#pragma once

#include <string>

namespace examples {

/// The path to read: `given` if it is not empty, else examples/data/`name`, searched for among Bazel's runfiles of this
/// program, then in the current folder and above. Throws FileError when it is not found.
std::string find_data(const std::string& given, const std::string& name);

/// The bytes of a regular file that is not empty. Throws FileError.
std::string read_file(const std::string& path);

}  // namespace examples
