// See hooks/stock.h and hooks/file_offload.h.
//
//   OnDisk        a payload: the tensor's file; and, from begin() to unpack, the memory that it is read into.
//   FileOffload   the pair, with the thread that reads ahead.
//
// Reading ahead is SavedFile::read() in two halves: memory is taken where the plan has room for it, on the
// thread that runs the backward; the file is read, and its hash looked at, on the reader's. An error is
// thrown by the unpack, where it would be without. The file stays, so an unpack that comes later reads it
// again.
#include "hooks/file_offload.h"

#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "hooks/file_reader.h"
#include "hooks/kept_memory.h"
#include "hooks/saved_file.h"
#include "hooks/stock.h"

namespace retrograd {
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

class FileOffload final : public SavedTensorHooks, private Prefetcher {
 public:
  FileOffload(std::string folder, const Tensors& keep, PrefetchOptions prefetch)
      : folder_(std::move(folder)), kept_(keep), options_(prefetch) {}

  std::any pack(const Tensor& tensor) override {
    if (!is_worth_packing(tensor) || kept_.holds(tensor)) return std::any(tensor);
    return std::any(std::make_shared<OnDisk>(folder_, tensor));
  }
  Tensor unpack(const std::any& payload) override {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    return on_disk(payload)->take();
  }
  Prefetcher* prefetcher() override { return this; }

 private:
  static OnDisk* on_disk(const std::any& payload) {
    const auto* found = std::any_cast<std::shared_ptr<OnDisk>>(&payload);
    return found ? found->get() : nullptr;
  }
  PrefetchOptions options() const override { return options_; }
  int64_t bytes(const std::any& payload) const override {
    const OnDisk* found = on_disk(payload);
    return found ? found->bytes() : 0;
  }
  void begin(const std::any& payload) override {
    if (OnDisk* found = on_disk(payload)) found->begin(reader_);
  }
  void drop(const std::any& payload) noexcept override {
    if (OnDisk* found = on_disk(payload)) found->drop();
  }

  const std::string folder_;
  const KeptMemory kept_;
  const PrefetchOptions options_;
  FileReader reader_;
};

}  // namespace

bool is_worth_packing(const Tensor& x) {
  const bool is_expanded = x.nbytes() > x.impl().storage()->nbytes();
  return x.is_floating_point() && x.numel() >= kSmallestPacked && !is_expanded;
}

RefPtr<SavedTensorHooks> make_file_offload(std::string folder, const Tensors& keep,
                                           PrefetchOptions prefetch) {
  return RefPtr<SavedTensorHooks>::adopt(new FileOffload(std::move(folder), keep, prefetch));
}

}  // namespace retrograd
