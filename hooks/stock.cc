// See hooks/stock.h. One class, Stock, decides what is packed; the Formats say how. The pairs that bring
// values back ahead are in hooks/offload.cc and hooks/file_offload.cc.
#include "hooks/stock.h"

#include <cfloat>
#include <cmath>

#include "hooks/file_offload.h"
#include "hooks/kept_memory.h"
#include "hooks/memory_order.h"
#include "hooks/offload.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd {
namespace {

// Format: Packed (copyable); pack(tensor) -> std::optional<Packed>, none: leave it; unpack(packed) -> Tensor;
// takes(tensor).
template <class Format>
class Stock final : public SavedTensorHooks {
 public:
  Stock(Format format, const Tensors& keep) : format_(std::move(format)), kept_(keep) {}

  std::any pack(const Tensor& tensor) override {
    if (format_.takes(tensor) && !kept_.holds(tensor))
      if (auto packed = format_.pack(tensor)) return std::any(std::move(*packed));
    return std::any(tensor);
  }

  Tensor unpack(const std::any& payload) override {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    return format_.unpack(std::any_cast<const typename Format::Packed&>(payload));
  }

 private:
  Format format_;
  KeptMemory kept_;
};

struct HalfFormat {
  struct Packed {
    Tensor half;
    ScalarType dtype;
  };
  bool takes(const Tensor& x) const { return is_worth_packing(x) && element_size(x.dtype()) > 2; }
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
  bool takes(const Tensor& x) const { return is_worth_packing(x) && element_size(x.dtype()) > 1; }
  std::optional<Packed> pack(const Tensor& x) const {
    const double largest = amax(abs(x)).item<double>();
    const double scale = largest == 0 ? 1 : static_cast<double>(static_cast<float>(largest / kLargest));
    if (!std::isfinite(scale) || scale < FLT_MIN) return {};
    return Packed{to(to(x, kFloat32) / scale, kFloat8_e4m3fn), scale, x.dtype()};
  }
  Tensor unpack(const Packed& p) const { return to(to(p.fp8, kFloat32) * p.scale, p.dtype); }
};

// Codes 1 to 255 stand for -127 to 127 steps.
struct Int8Format {
  struct Packed {
    Tensor codes, steps;  // [blocks, kInt8Block], the last block filled up with zeros; [blocks, 1]
    TensorType type;
  };
  bool takes(const Tensor& x) const { return is_worth_packing(x) && element_size(x.dtype()) > 1; }
  std::optional<Packed> pack(const Tensor& x) const {
    const Tensor blocks = in_blocks(to(x, kFloat32));
    const Tensor largest = amax(abs(blocks), {1}, true);
    if (!std::isfinite(amax(largest).item<double>())) return {};
    const Tensor steps = clamp(largest / 127.0, FLT_MIN);
    return Packed{to(addcdiv(scalar_tensor(128.5, {kFloat32, x.device()}), blocks, steps), kUInt8), steps,
                  x.impl().type()};
  }
  Tensor unpack(const Packed& p) const {
    Tensor x = to(p.codes, kFloat32);
    x = x - 128.0;
    x = view(x * p.steps, {-1});
    return to(view(narrow(x, 0, 0, p.type.shape.numel()), p.type.shape.ints()), p.type.dtype);
  }

 private:
  static Tensor in_blocks(const Tensor& x) {
    const int64_t n = x.numel(), blocks = (n + kInt8Block - 1) / kInt8Block;
    if (n % kInt8Block == 0) return reshape(x, {blocks, kInt8Block});
    const Tensor filled = zeros({blocks, kInt8Block}, {kFloat32, x.device()});
    view(narrow(view(filled, {-1}), 0, 0, n), x.sizes()).copy_(x);
    return filled;
  }
};

struct CpuFormat {
  struct Packed {
    Tensor block;  // on the CPU
    MemoryOrder order;
    IntArray sizes;
    Device device;
  };
  bool takes(const Tensor& x) const { return is_worth_moving(x); }
  std::optional<Packed> pack(const Tensor& x) const {
    const Tensor once = without_repeats(x);
    const MemoryOrder order(once);
    const Tensor block = order.flatten(once);
    return Packed{x.device() == kCPU ? clone(block) : to(block, kCPU), order, x.sizes(), x.device()};
  }
  Tensor unpack(const Packed& p) const { return expand(p.order.restore(to(p.block, p.device)), p.sizes); }
};

template <class Format>
RefPtr<SavedTensorHooks> make(Format format, const Tensors& keep) {
  return RefPtr<SavedTensorHooks>::adopt(new Stock<Format>(std::move(format), keep));
}

}  // namespace

RefPtr<SavedTensorHooks> save_as_half(const Tensors& keep) { return make(HalfFormat{}, keep); }
RefPtr<SavedTensorHooks> save_as_fp8(const Tensors& keep) { return make(Fp8Format{}, keep); }
RefPtr<SavedTensorHooks> save_as_int8(const Tensors& keep) { return make(Int8Format{}, keep); }
RefPtr<SavedTensorHooks> save_on_cpu(bool pinned, const Tensors& keep, PrefetchOptions prefetch) {
  return pinned ? make_offload(keep, prefetch) : make(CpuFormat{}, keep);
}
RefPtr<SavedTensorHooks> save_to_file(std::string folder, const Tensors& keep, PrefetchOptions prefetch) {
  return make_file_offload(std::move(folder), keep, prefetch);
}

}  // namespace retrograd
