// A file that is written completely or not at all.
//
// The bytes are written to an unnamed file in the same directory. commit() flushes it to the disk, links it to its
// path, replacing an existing file by way of a temporary name, .retrograd-PID-N, and flushes the directory. Until then
// the old file is untouched, and a killed process leaves nothing behind, unless it is killed in the moment between the
// two names. If the file system does not support unnamed files, the bytes are written to a file of that name, which
// every failure removes; it remains only if the process is killed.
//
// The permissions are those of the replaced file; a new file gets the process's default permissions (umask). A path
// that is a symbolic link stays one: its target is replaced. Anything but a regular file (a device, a directory, a
// pipe) is refused, and so is a path with a NUL. All failures throw FileError with the path and the system's reason.
#pragma once

#include <cstddef>
#include <string>

namespace retrograd::inline v0 {

class AtomicFile {
 public:
  /// Opens a file in the directory of `path`.
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
  std::string temporary_;  // empty: it has no name yet, or is at its path
  int fd_ = -1;
};

}  // namespace retrograd
