// Write, fsync, rename, fsync the directory: each step checked, in this order.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/error.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

std::string directory_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// The file that `path` stands for, so that a rename replaces it and not a link to it.
std::string resolve(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::is_symlink(status)) return path;
  const fs::path target = fs::canonical(path, error);
  if (error) throw FileError(path + ": cannot follow the symbolic link: " + error.message());
  return target.string();
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(resolve(path)) {
  struct stat existing;
  if (::stat(path_.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    throw FileError(path_ + ": cannot write: there is something else than a regular file");
  }
  std::string name = directory_of(path_) + "/.retrograd-XXXXXX";
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) fail("create a temporary file beside it");
  temporary_ = std::move(name);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd_, next, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    next += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("flush to the disk");
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace");
  temporary_.clear();

  const int directory = ::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail("open its directory");
  const int flushed = ::fsync(directory);
  const int reason = errno;
  ::close(directory);
  errno = reason;
  // EINVAL: a file system that cannot flush a directory on its own.
  if (flushed != 0 && errno != EINVAL) fail("flush its directory");
}

void AtomicFile::fail(const char* action) const {
  throw FileError(path_ + ": cannot " + action + ": " + std::strerror(errno));
}

}  // namespace retrograd
