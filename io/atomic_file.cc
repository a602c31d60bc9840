// Write, fsync, link, rename, fsync the directory: each step checked, in this order.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "engine/error.h"

namespace retrograd::inline v0 {
namespace {

namespace fs = std::filesystem;

std::string directory_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

constexpr char kOpenFiles[] = "/proc/self/fd/";

// A name in the directory of `path`, different at each call.
std::string temporary_name(const std::string& path) {
  static constinit std::atomic<uint64_t> next{0};
  return directory_of(path) + "/.retrograd-" + std::to_string(::getpid()) + "-" +
         std::to_string(next.fetch_add(1));
}

// The file that `path` refers to, so that a rename replaces it and not a link to it.
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
  if (path.find('\0') != std::string::npos) throw FileError("cannot write: the path has a NUL byte");
  struct stat existing;
  const bool replaces = ::stat(path_.c_str(), &existing) == 0;
  if (replaces && !S_ISREG(existing.st_mode)) {
    throw FileError(path_ + ": cannot write: it exists and is not a regular file");
  }
  constexpr mode_t kMode = 0666;  // less the umask
  if (::access(kOpenFiles, F_OK) == 0)
    fd_ = ::open(directory_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
  while (fd_ < 0) {
    std::string name = temporary_name(path_);
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    if (fd_ >= 0)
      temporary_ = std::move(name);
    else if (errno != EEXIST)
      fail("create a temporary file in its folder");
  }
  if (replaces && ::fchmod(fd_, existing.st_mode & 0777) != 0) fail("give the new file its permissions");
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

// Gives a name to a file without one.
void AtomicFile::name() {
  const std::string open_file = kOpenFiles + std::to_string(fd_);
  while (temporary_.empty()) {
    std::string name = temporary_name(path_);
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      temporary_ = std::move(name);
    else if (errno != EEXIST)
      fail("name the new file in its folder");
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("flush to the disk");
  name();
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
  // EINVAL: a file system that cannot flush a directory separately.
  if (flushed != 0 && errno != EINVAL) fail("flush its directory");
}

void AtomicFile::fail(const char* action) const {
  throw FileError(path_ + ": cannot " + action + ": " + std::strerror(errno));
}

}  // namespace retrograd
