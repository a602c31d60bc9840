// SavedFile: a tensor's bytes in a file of its own. The process that made the object removes the file with it; a child
// that was forked in between may read it. For one run of one process: raw bytes in this machine's byte order, checked
// on reading by length and hash, readable by the owner only.
#pragma once

#include <string>

#include "engine/tensor.h"

namespace retrograd::inline v0 {

class SavedFile {
 public:
  /// Writes `tensor`, row-major, to a new file in `folder`. Throws FileError; then no file is left.
  SavedFile(const std::string& folder, const Tensor& tensor);
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  /// The tensor, in new memory. Throws FileError when the file is gone, short, or not what was written.
  Tensor read() const;
  /// The same in three steps: memory on the CPU; its bytes, which any thread may read; and the copy to the tensor's
  /// device.
  Tensor memory() const;
  void read_into(void* memory) const;
  Tensor placed(const Tensor& memory) const { return memory.to(type_.device); }
  int64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  int process_;
  TensorType type_;
  int64_t bytes_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace retrograd
