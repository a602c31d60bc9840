// See hooks/saved_file.h. The file is opened again for reading, so that no descriptor stays open per saved tensor.
#include "hooks/saved_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/emitter.h"
#include "hooks/file_bytes.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

// A descriptor that is closed on every exit path.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

void SavedFile::fail(const char* action) const {
  throw FileError(fmt::format("{}: cannot {} a saved tensor: {}", path_, action, std::strerror(errno)));
}

SavedFile::SavedFile(const std::string& folder, const Tensor& tensor)
    : path_(folder + "/saved-XXXXXX"), process_(::getpid()), type_(tensor.impl().type()) {
  NoGradGuard no_grad;
  const Tensor dense = contiguous(tensor.cpu());
  Descriptor file{::mkostemp(path_.data(), O_CLOEXEC)};
  if (file.fd < 0) fail("create a file for");
  try {
    if (!write_bytes(file.fd, 0, dense.raw_data(), static_cast<size_t>(dense.nbytes()))) fail("write");
    const int fd = file.fd;
    file.fd = -1;
    if (::close(fd) != 0) fail("write");  // some file systems report a full disk here
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
  bytes_ = dense.nbytes();
  hash_ = XXH3_64bits(dense.raw_data(), static_cast<size_t>(bytes_));
}

SavedFile::~SavedFile() {
  if (::getpid() == process_) ::unlink(path_.c_str());
}

Tensor SavedFile::memory() const { return empty(type_.shape, {type_.dtype}); }

Tensor SavedFile::read() const {
  const Tensor result = memory();
  read_into(result.raw_data());
  return placed(result);
}

void SavedFile::read_into(void* memory) const {
  const Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) fail("read back");
  struct stat status;
  if (::fstat(file.fd, &status) != 0) fail("read back");
  if (!S_ISREG(status.st_mode) || status.st_size != bytes_)
    throw FileError(
        fmt::format("{}: a saved tensor of {} bytes was changed: it has {}", path_, bytes_, status.st_size));
  const int64_t count = read_bytes(file.fd, 0, memory, static_cast<size_t>(bytes_));
  if (count < 0) fail("read back");
  if (count < bytes_) throw FileError(path_ + ": a saved tensor was cut short while it was read");
  if (XXH3_64bits(memory, static_cast<size_t>(bytes_)) != hash_)
    throw FileError(path_ + ": a saved tensor was changed: its hash differs");
}

}  // namespace retrograd
