// See cuda/host_copy.h.
#include "cuda/host_copy.h"

#include "engine/tensor_impl.h"

namespace retrograd::inline v0::cuda {
namespace {

class PinnedCopy final : public HostCopy {
 public:
  PinnedCopy(Gpu& gpu, const TensorImpl& x, Allocator::Block& from)
      : gpu_(gpu),
        bytes_(static_cast<size_t>(x.numel().raw()) * element_size(x.dtype())),
        there_(gpu.driver(), gpu.health()),
        back_(gpu.driver(), gpu.health()),
        host_(gpu.pinned().take(bytes_)) {
    try {
      Stream& stream = gpu.to_host();
      stream.follow(gpu.compute());
      copy(host_.data, x.data(), stream, "copying to the host");
      stream.record(there_);
      gpu.memory().note_use(&from, stream);
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~PinnedCopy() override { give_back(); }

  void begin(TensorImpl& to) override {
    gpu_.begin();
    Stream& stream = gpu_.to_device();
    stream.wait(there_);
    stream.follow(gpu_.compute());
    comes_back_ = true;
    copy(to.data(), host_.data, stream, "copying to the device");
    stream.record(back_);
  }
  void wait() override {
    gpu_.begin();
    gpu_.compute().wait(back_);
  }

 private:
  void copy(void* to, const void* from, Stream& stream, std::string_view what) {
    gpu_.health().check(gpu_.driver().copy(to, from, bytes_, stream.handle()), what);
  }
  // After the last copy that uses the memory: a copy back comes after the copy to the host. On a lost device nothing
  // runs any more.
  void give_back() noexcept {
    try {
      gpu_.begin();
      gpu_.pinned().give(host_, comes_back_ ? gpu_.to_device() : gpu_.to_host());
    } catch (const Exception&) {
      gpu_.pinned().give(host_);
    }
  }

  Gpu& gpu_;
  const size_t bytes_;
  Event there_, back_;  // of the copies
  PinnedPool::Block host_;
  bool comes_back_ = false;
};

}  // namespace

std::unique_ptr<HostCopy> copy_to_host(Gpu& gpu, const TensorImpl& x, Allocator::Block& block) {
  RG_ASSERT(x.is_contiguous());
  gpu.begin();
  return std::make_unique<PinnedCopy>(gpu, x, block);
}

}  // namespace retrograd::cuda
