// See hooks/stock.h. One class, Stock, decides what is packed; three Formats say how.
#include "hooks/stock.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <memory>
#include <vector>

#include "hooks/saved_file.h"
#include "ops/arithmetic.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"

namespace retrograd {
namespace {

// Format: Packed (copyable); pack(tensor) -> std::optional<Packed>, none: leave it; unpack(packed) -> Tensor; takes(dtype).
template <class Format>
class Stock final : public SavedTensorHooks {
 public:
  Stock(Format format, const Tensors& keep) : format_(std::move(format)) {
    for (const Tensor& t : keep) kept_.push_back(t.impl().storage());
    std::sort(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) { return a.get() < b.get(); });
  }

  std::any pack(const Tensor& tensor) override {
    if (format_.takes(tensor.dtype()) && tensor.numel() >= kSmallestPacked && !is_kept(tensor) && !is_expanded(tensor))
      if (auto packed = format_.pack(tensor)) return std::any(std::move(*packed));
    return std::any(tensor);
  }

  Tensor unpack(const std::any& payload) override {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    return format_.unpack(std::any_cast<const typename Format::Packed&>(payload));
  }

 private:
  bool is_kept(const Tensor& tensor) const {
    return std::binary_search(kept_.begin(), kept_.end(), tensor.impl().storage(), [](const auto& a, const auto& b) { return a.get() < b.get(); });
  }
  static bool is_expanded(const Tensor& tensor) { return tensor.nbytes() > tensor.impl().storage()->nbytes(); }

  Format format_;
  std::vector<RefPtr<Storage>> kept_;  // sorted; held, so that no other storage gets such an address
};

struct HalfFormat {
  struct Packed {
    Tensor half;
    ScalarType dtype;
  };
  bool takes(ScalarType dtype) const { return dtype == kFloat64 || dtype == kFloat32; }
  std::optional<Packed> pack(const Tensor& x) const { return Packed{to(x, kFloat16), x.dtype()}; }
  Tensor unpack(const Packed& p) const { return to(p.half, p.dtype); }
};

struct Fp8Format {
  static constexpr double kLargest = 448;  // of float8_e4m3fn
  struct Packed {
    Tensor fp8;
    double scale;
    ScalarType dtype;
  };
  bool takes(ScalarType dtype) const { return is_floating(dtype) && !is_float8(dtype); }
  std::optional<Packed> pack(const Tensor& x) const {
    const double largest = amax(abs(x)).item<double>();
    const double scale = largest == 0 ? 1 : static_cast<double>(static_cast<float>(largest / kLargest));
    if (!std::isfinite(scale) || scale < FLT_MIN) return {};
    return Packed{to(to(x, kFloat32) / scale, kFloat8_e4m3fn), scale, x.dtype()};
  }
  Tensor unpack(const Packed& p) const { return to(to(p.fp8, kFloat32) * p.scale, p.dtype); }
};

struct FileFormat {
  std::string folder;
  using Packed = std::shared_ptr<const SavedFile>;
  bool takes(ScalarType dtype) const { return is_floating(dtype); }
  std::optional<Packed> pack(const Tensor& x) const { return std::make_shared<const SavedFile>(folder, x); }
  Tensor unpack(const Packed& file) const { return file->read(); }
};

template <class Format>
RefPtr<SavedTensorHooks> make(Format format, const Tensors& keep) {
  return RefPtr<SavedTensorHooks>::adopt(new Stock<Format>(std::move(format), keep));
}

}  // namespace

RefPtr<SavedTensorHooks> save_as_half(const Tensors& keep) { return make(HalfFormat{}, keep); }
RefPtr<SavedTensorHooks> save_as_fp8(const Tensors& keep) { return make(Fp8Format{}, keep); }
RefPtr<SavedTensorHooks> save_to_file(std::string folder, const Tensors& keep) { return make(FileFormat{std::move(folder)}, keep); }

}  // namespace retrograd
