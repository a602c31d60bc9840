// A folder of small private files that several processes write at the same time: used by the plan cache and the cache
// of compiled kernels.
//
// It must be a folder of this user that no one else may read or write (mode 0700), and each file must be private, too
// (0600). After it is opened, all access is by its descriptor, and links are not followed: later changes of its path
// have no effect. A file is written under another name and renamed, so it is complete or absent; nothing is flushed to
// the disk, since readers check what they read. No function throws except for a lack of memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace retrograd::inline v0::io {

class PrivateFolder {
 public:
  /// Opens it; makes it when only the last part of its path is missing.
  explicit PrivateFolder(const std::string& path);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;

  /// Why it cannot be used; empty when it can.
  std::string problem() const;
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  /// The bytes of a file, which counts as used now; none when it does not exist. `problem`: why it may not be used.
  std::optional<std::string> read(const std::string& name, std::string& problem) const;
  /// Makes a file, or replaces it. False when it cannot be written: then nothing was changed, and errno says
  /// why.
  bool write(const std::string& name, std::string_view text) const;
  /// Removes all but the `most` last used files whose names end in `ending`, and files that other processes left
  /// unfinished.
  void tidy(std::string_view ending, size_t most) const;

 private:
  const std::string path_;
  int fd_, error_;
};

}  // namespace retrograd::io
