// See hooks/stock.h: the Formats (hooks/stock_pair.h) of the pairs whose values stay in memory as they are. Those that
// prefetch values are in hooks/offload.cc and hooks/file_offload.cc.
#include "hooks/stock.h"

#include <cfloat>
#include <cmath>

#include "hooks/file_offload.h"
#include "hooks/memory_order.h"
#include "hooks/offload.h"
#include "hooks/stock_pair.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

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

// Codes 1 to 255 mean -127 to 127 steps.
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

}  // namespace

bool is_worth_packing(const Tensor& x) {
  const bool is_expanded = x.nbytes() > x.impl().storage()->nbytes();
  return x.is_floating_point() && x.numel() >= kSmallestPacked && !is_expanded;
}
bool is_worth_moving(const Tensor& x) {
  return x.device() == kCPU || without_repeats(x).nbytes() >= kSmallestOffloaded;
}

RefPtr<SavedTensorHooks> save_as_half(const Tensors& keep) { return make_stock(HalfFormat{}, keep); }
RefPtr<SavedTensorHooks> save_as_fp8(const Tensors& keep) { return make_stock(Fp8Format{}, keep); }
RefPtr<SavedTensorHooks> save_as_int8(const Tensors& keep) { return make_stock(Int8Format{}, keep); }
RefPtr<SavedTensorHooks> save_on_cpu(bool pinned, const Tensors& keep, PrefetchOptions prefetch) {
  return pinned ? make_offload(keep, prefetch) : make_stock(CpuFormat{}, keep);
}
RefPtr<SavedTensorHooks> save_to_file(std::string folder, const Tensors& keep, PrefetchOptions prefetch) {
  return make_file_offload(std::move(folder), keep, prefetch);
}

}  // namespace retrograd
