// Machine code of fused kernels, kept in a folder from one process to the next: cuda/fusion/fusion.h says in which
// folder.
//
// An entry is a file named by the hash of its question: the text of the kernel, a hash of the headers that it includes,
// options (including the architecture) and the compiler's version. Folder and files are private to this user, and their
// content is not trusted: see io/private_folder.h and io/cache_entry.h. An invalid entry is skipped with a note, and
// replaced. At most kEntries are kept.
#pragma once

#include "cuda/fusion/compiler.h"

namespace retrograd::inline v0::cuda::fusion {

class CodeCache {
 public:
  static constexpr size_t kEntries = 4096;

  /// "": keeps nothing.
  explicit CodeCache(std::string folder) : folder_(std::move(folder)) {}
  /// The folder named by the environment.
  static std::string folder_of_environment();

  bool is_on() const { return !folder_.empty(); }
  struct Found {
    std::string code, note;
  };
  /// The code for a text; empty when there is none. `note`: why an entry is invalid.
  Found find(const std::string& question) const;
  /// Why it could not be written; empty when it was.
  std::string keep(const std::string& question, std::string_view code) const;

 private:
  const std::string folder_;
};

std::string question_of(const Source& source, const std::vector<std::string>& options,
                        const Compiler& compiler);

}  // namespace retrograd::cuda::fusion
