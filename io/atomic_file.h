// A file that appears whole or not at all.
//
// The bytes go to a temporary file in the same directory (created exclusively, readable by the owner only);
// commit() flushes it to the disk, renames it over the final path, and flushes the directory. Until the
// rename the old file is untouched, and whatever fails removes the temporary file. Only a process killed in
// between leaves one behind, named .retrograd-XXXXXX.
//
// A path that is a symbolic link keeps being one: its target is replaced. Anything else than a regular file
// (a device, a directory, a pipe) is refused. All failures throw FileError with the path and the system's
// reason.
#pragma once

#include <cstddef>
#include <string>

namespace retrograd {

class AtomicFile {
 public:
  /// Opens a temporary file beside `path`.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary file unless commit() succeeded.
  ~AtomicFile();

  /// Appends `size` bytes.
  void write(const void* data, size_t size);

  /// Puts the file at its path. Nothing may be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::string path_;       // final, with symbolic links resolved
  std::string temporary_;  // empty once renamed
  int fd_ = -1;
};

}  // namespace retrograd
