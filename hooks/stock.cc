// See hooks/stock.h: the Formats (hooks/stock_pair.h) of the pairs whose values stay in memory as they are. Those that
// prefetch values are in hooks/offload.cc and hooks/file_offload.cc.
#include "hooks/stock.h"

#include <cfloat>
#include <string_view>
#include <tuple>

#include "hooks/file_offload.h"
#include "hooks/memory_order.h"
#include "hooks/offload.h"
#include "hooks/stock_pair.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

// The dtype to compute in: holds what a dtype holds.
ScalarType wide(ScalarType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }
double least_normal(ScalarType wide) { return wide == kFloat64 ? DBL_MIN : FLT_MIN; }
// |x|, and 0 for what is not finite.
Tensor finite_size(const Tensor& x) { return where(isfinite(x), abs(x), 0.0); }

struct HalfFormat {
  struct Packed {
    Tensor half;
    ScalarType dtype;
    auto parts() { return std::tie(half, dtype); }
  };
  static constexpr std::string_view name = "save_as_half";
  bool takes(const Tensor& x) const { return is_worth_packing(x) && element_size(x.dtype()) > 2; }
  Packed pack(const Tensor& x) const { return {to(x, kFloat16), x.dtype()}; }
  Tensor unpack(const Packed& p) const { return to(p.half, p.dtype); }
};

struct Fp8Format {
  static constexpr double kLargest = 448;  // of float8_e4m3fn
  struct Packed {
    Tensor fp8, scale;
    ScalarType dtype;
    auto parts() { return std::tie(fp8, scale, dtype); }
  };
  static constexpr std::string_view name = "save_as_fp8";
  bool takes(const Tensor& x) const { return is_worth_packing(x) && element_size(x.dtype()) > 1; }
  Packed pack(const Tensor& x) const {
    const Tensor y = to(x, wide(x.dtype()));
    const Tensor scale = clamp(amax(finite_size(y)) / kLargest, least_normal(y.dtype()));
    return {to(y / scale, kFloat8_e4m3fn), scale, x.dtype()};
  }
  Tensor unpack(const Packed& p) const { return to(to(p.fp8, p.scale.dtype()) * p.scale, p.dtype); }
};

// Codes 1 to 255 mean -127 to 127 steps, 0 means nan.
struct Int8Format {
  struct Packed {
    Tensor codes, steps;  // like the tensor; [blocks, 1]
    ScalarType dtype;
    auto parts() { return std::tie(codes, steps, dtype); }
  };
  static constexpr std::string_view name = "save_as_int8";
  bool takes(const Tensor& x) const { return is_worth_packing(x) && element_size(x.dtype()) > 1; }
  Packed pack(const Tensor& x) const {
    const Tensor blocks = in_blocks(to(x, wide(x.dtype())));
    const Tensor steps = clamp(amax(finite_size(blocks), {1}, true) / 127.0, least_normal(blocks.dtype()));
    const Tensor middle = scalar_tensor(128.5, {blocks.dtype(), x.device()});
    const Tensor codes = to(where(isfinite(blocks), addcdiv(middle, blocks, steps), 0.0), kUInt8);
    return {out_of_blocks(codes, x.sym_sizes()), steps, x.dtype()};
  }
  Tensor unpack(const Packed& p) const {
    const Tensor codes = to(in_blocks(p.codes), p.steps.dtype());
    const Tensor zero = scalar_tensor(0.0, {codes.dtype(), codes.device()});
    return to(out_of_blocks(addcdiv((codes - 128.0) * p.steps, zero, codes), p.codes.sym_sizes()), p.dtype);
  }

 private:
  // [blocks, kInt8Block], the last block filled up with zeros. Without a write in place, which recorded backwards refuse.
  static Tensor in_blocks(const Tensor& x) {
    const Dim n = x.sym_numel(), blocks = (n + (kInt8Block - 1)) / kInt8Block;
    if (n % kInt8Block == Dim(0)) return reshape(x, Shape{blocks, kInt8Block});
    const Tensor rest = zeros(Shape{blocks * kInt8Block - n}, {x.dtype(), x.device()});
    return view(cat({reshape(x, Shape{n}), rest}, 0), Shape{blocks, kInt8Block});
  }
  static Tensor out_of_blocks(const Tensor& blocks, const Shape& sizes) {
    return view(narrow(view(blocks, Shape{-1}), 0, 0, sizes.numel()), sizes);
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
  Packed pack(const Tensor& x) const {
    const Tensor once = without_repeats(x);
    const MemoryOrder order(once);
    const Tensor block = order.flatten(once);
    return Packed{x.device() == kCPU ? clone(block) : to(block, kCPU), order, x.sizes(), x.device()};
  }
  Tensor unpack(const Packed& p) const { return expand(p.order.restore(to(p.block, p.device)), p.sizes); }
};

}  // namespace

bool is_worth_packing(const Tensor& x) {
  bool is_expanded = false;
  for (int d = 0; d < x.impl().rank(); ++d)
    is_expanded |= x.impl().stride(d).raw() == 0 && x.impl().shape()[d].raw() != 1;
  return x.is_floating_point() && !is_expanded && x.sym_numel() >= Dim(kSmallestPacked);
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
