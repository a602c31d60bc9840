// A file that appears whole or not at all.
//
// The bytes go to a file without a name in the same directory; commit() flushes it to the disk, gives it its path, over a file that is there
// by way of a temporary name, and flushes the directory. Until then the old file is untouched, and of a process that is killed nothing stays.
// Where the file system has no files without a name, they go to a temporary one, .retrograd-PID-N, which whatever fails removes; it stays only
// where the process is killed.
//
// The permissions are those of the file that is replaced; of a new one those that the process gives to its files (umask).
// A path that is a symbolic link keeps being one: its target is replaced. Anything else than a regular file
// (a device, a directory, a pipe) is refused, and so is a path with a NUL. All failures throw FileError with the path and the system's
// reason.
#pragma once

#include <cstddef>
#include <string>

namespace retrograd {

class AtomicFile {
 public:
  /// Opens a file beside `path`.
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
  void name();
  [[noreturn]] void fail(const char* action) const;

  std::string path_;       // final, with symbolic links resolved
  std::string temporary_;  // empty: it has no name yet, or has its path
  int fd_ = -1;
};

}  // namespace retrograd
