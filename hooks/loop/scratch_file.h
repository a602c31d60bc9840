// ScratchFile: tensors in a file without a name, at places that the caller chooses. The file goes with the object, and
// also when the process is killed. Raw bytes, row-major. For the process that made it: a child that was forked has the
// same file, and is refused.
#pragma once

#include <string>

#include "engine/tensor.h"

namespace retrograd::inline v0 {

class ScratchFile {
 public:
  /// An empty file in `folder`. Throws FileError.
  explicit ScratchFile(const std::string& folder);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;

  /// Writes the bytes of `tensor` from offset `at`, in bytes. Throws FileError, also when the disk is full.
  void write(int64_t at, const Tensor& tensor) const;
  /// The tensor of this type that was written there, in new memory. Throws FileError.
  Tensor read(int64_t at, const TensorType& type) const;

 private:
  [[noreturn]] void fail(const char* action) const;
  void check_process() const;

  const std::string folder_;
  const int process_;
  int fd_;
};

}  // namespace retrograd
