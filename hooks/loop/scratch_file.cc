// See hooks/loop/scratch_file.h. The file is unlinked as soon as it is open: not all file systems have O_TMPFILE.
#include "hooks/loop/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "engine/grad_mode.h"
#include "hooks/file_bytes.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

ScratchFile::ScratchFile(const std::string& folder) : folder_(folder), process_(::getpid()) {
  std::string path = folder + "/scratch-XXXXXX";
  fd_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd_ < 0) fail("create");
  ::unlink(path.c_str());
}

ScratchFile::~ScratchFile() { ::close(fd_); }

void ScratchFile::fail(const char* action) const {
  throw FileError(fmt::format("{}: cannot {} a scratch file: {}", folder_, action, std::strerror(errno)));
}

void ScratchFile::check_process() const {
  if (::getpid() != process_)
    throw FileError(
        folder_ +
        ": a scratch file belongs to the process that made it. Hint: begin the loop after the fork");
}

void ScratchFile::write(int64_t at, const Tensor& tensor) const {
  check_process();
  NoGradGuard no_grad;
  const Tensor dense = contiguous(tensor.cpu());
  if (!write_bytes(fd_, at, dense.raw_data(), static_cast<size_t>(dense.nbytes()))) fail("write to");
}

Tensor ScratchFile::read(int64_t at, const TensorType& type) const {
  check_process();
  const Tensor result = empty(type.shape, {type.dtype});
  const int64_t count = read_bytes(fd_, at, result.raw_data(), static_cast<size_t>(result.nbytes()));
  if (count < 0) fail("read");
  if (count < result.nbytes())
    throw FileError(folder_ + ": a scratch file is shorter than what was written to it");
  return result.to(type.device);
}

}  // namespace retrograd
