// See examples/common/data_file.h.
#include "examples/common/data_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "retrograd/retrograd.h"

namespace examples {

namespace fs = std::filesystem;
using retrograd::FileError;

std::string find_data(const std::string& given, const std::string& name) {
  if (!given.empty()) return given;
  const fs::path relative = fs::path("examples/data") / name;
  std::error_code error;
  std::vector<fs::path> roots;
  if (const char* runfiles = std::getenv("RUNFILES_DIR")) roots.push_back(fs::path(runfiles) / "retrograd");
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error)
    roots.push_back(self.string() + ".runfiles/retrograd");
  for (fs::path at = fs::current_path(error); !error; at = at.parent_path()) {
    roots.push_back(at);
    if (at == at.root_path()) break;
  }
  for (const fs::path& root : roots)
    if (fs::exists(root / relative, error)) return (root / relative).string();
  throw FileError(relative.string() + ": not found. Hint: --data FILE");
}

std::string read_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) throw FileError(path + ": not a regular file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw FileError(path + ": cannot open: " + std::strerror(errno));
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw FileError(path + ": cannot read: " + std::strerror(errno));
  if (bytes.empty()) throw FileError(path + ": the file is empty");
  return bytes;
}

}  // namespace examples
