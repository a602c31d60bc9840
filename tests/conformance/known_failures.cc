// Reading the list.
#include "tests/conformance/known_failures.h"

#include <fstream>
#include <sstream>

#include "tests/conformance/outcome.h"

namespace retrograd::conformance {
namespace {

Mode parse_mode(const std::string& text, const std::string& line) {
  for (Mode mode : kModes)
    if (to_string(mode) == text) return mode;
  throw BadManifest("no mode is \"" + text + "\": " + line);
}

}  // namespace

KnownFailures::KnownFailures(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw BadManifest(path + ": cannot be read");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, mode;
    if (line.starts_with('#') || !(words >> name)) continue;
    const size_t before = listed_.size();
    size_t modes = 0;
    for (; words >> mode; ++modes) listed_.insert({parse_mode(mode, line), name});
    if (modes == 0 || listed_.size() != before + modes)
      throw BadManifest(path + ": no mode, or one that stands twice: " + line);
  }
}

std::vector<std::string> KnownFailures::not_run(Mode mode, const std::set<std::string>& run) const {
  std::vector<std::string> names;
  for (const auto& [when, name] : listed_)
    if (when == mode && !run.contains(name)) names.push_back(name);
  return names;
}

}  // namespace retrograd::conformance
