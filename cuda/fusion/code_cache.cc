// See cuda/fusion/code_cache.h.
#include "cuda/fusion/code_cache.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/cache_entry.h"
#include "io/private_folder.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

constexpr std::string_view kMagic = "retrograd kernel cache 1\n", kEnding = ".kernel";

std::string name_of(const std::string& question) { return io::digest(question) + std::string(kEnding); }

const std::string& digest_of_headers() {
  static const std::string digest = [] {
    std::string all;
    for (const Header& h : headers()) all += fmt::format("{}\n{}{}", h.name, std::strlen(h.text), h.text);
    return io::digest(all);
  }();
  return digest;
}

}  // namespace

std::string CodeCache::folder_of_environment() {
  for (const char* variable : {"RETROGRAD_KERNEL_CACHE", "RETROGRAD_PLAN_CACHE"})
    if (const char* folder = secure_getenv(variable)) return folder;
  return {};
}

CodeCache::Found CodeCache::find(const std::string& question) const {
  const io::PrivateFolder folder(folder_);
  if (const std::string problem = folder.problem(); !problem.empty())
    return {{}, fmt::format("{} is not used: {}", folder_, problem)};
  const std::string name = name_of(question);
  std::string problem;
  if (const std::optional<std::string> entry = folder.read(name, problem)) {
    const io::CachedAnswer answer = io::cached_answer(*entry, kMagic, question);
    if (answer.problem.empty()) return {std::string(answer.text), {}};
    problem = answer.problem;
  }
  if (problem.empty()) return {};
  return {{}, fmt::format("{} is not used: {}", folder.path_of(name), problem)};
}

std::string CodeCache::keep(const std::string& question, std::string_view code) const {
  const io::PrivateFolder folder(folder_);
  if (!folder.problem().empty()) return {};  // find() has reported it
  const std::string name = name_of(question);
  if (!folder.write(name, io::cache_entry(kMagic, question, code)))
    return fmt::format("{} cannot be written: {}", folder.path_of(name), std::strerror(errno));
  folder.tidy(kEnding, kEntries);
  return {};
}

std::string question_of(const Source& source, const std::vector<std::string>& options,
                        const Compiler& compiler) {
  return fmt::format("compiler: {}\noptions: {}\nheaders: {}\n{}", compiler.version(),
                     fmt::join(options, " "), digest_of_headers(), source.text);
}

}  // namespace retrograd::cuda::fusion
