// See hooks/stock.h and hooks/file_offload.h.
//
// A payload is an OnDisk: the file of the tensor and, from begin() to unpack, the memory that it is read into.
// FileFormat owns the thread that reads in advance.
//
// Reading in advance is SavedFile::read() in two halves: the thread that runs the backward allocates memory where the
// plan has room for it; the reader's thread reads the file and checks its hash. An error is thrown by the unpack, as
// without reading in advance. The file stays, so a later unpack reads it again.
#include "hooks/file_offload.h"

#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "hooks/file_reader.h"
#include "hooks/saved_file.h"
#include "hooks/stock_pair.h"

namespace retrograd::inline v0 {
namespace {

class OnDisk {
 public:
  OnDisk(const std::string& folder, const Tensor& tensor) : file_(folder, tensor) {}
  ~OnDisk() { drop(); }
  OnDisk(const OnDisk&) = delete;

  int64_t bytes() const { return file_.bytes(); }
  void begin(FileReader& reader) {
    std::lock_guard lock(mutex_);
    if (coming_.defined()) return;
    const Tensor memory = file_.memory();
    try {
      is_read_ = reader.begin([this, to = memory.raw_data()] { file_.read_into(to); });
    } catch (const std::system_error&) {
      return;  // no thread: it is read at the unpack
    }
    coming_ = memory;
  }
  void drop() noexcept {
    std::lock_guard lock(mutex_);
    if (!coming_.defined()) return;
    is_read_.wait();
    coming_ = {};
  }
  Tensor take() {
    std::lock_guard lock(mutex_);
    if (!coming_.defined()) return file_.read();
    const Tensor read = std::exchange(coming_, Tensor());
    is_read_.get();
    return file_.placed(read);
  }

 private:
  const SavedFile file_;
  std::mutex mutex_;
  Tensor coming_;  // until is_read_
  std::future<void> is_read_;
};

struct FileFormat {
  using Packed = std::shared_ptr<OnDisk>;
  bool takes(const Tensor& x) const { return is_worth_packing(x); }
  Packed pack(const Tensor& x) const { return std::make_shared<OnDisk>(folder, x); }
  Tensor unpack(const Packed& p) const { return p->take(); }
  void begin(OnDisk& x) const { x.begin(*reader); }

  std::string folder;
  std::unique_ptr<FileReader> reader = std::make_unique<FileReader>();
};

}  // namespace

RefPtr<SavedTensorHooks> make_file_offload(std::string folder, const Tensors& keep,
                                           PrefetchOptions prefetch) {
  if (folder.empty()) throw FileError("save_to_file: the path of the folder is empty");
  // Resolved now: the program may change its working directory.
  return make_stock(FileFormat{std::filesystem::absolute(folder).string()}, keep, prefetch);
}

}  // namespace retrograd
