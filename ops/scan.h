// Scans along one dim: cumulative sums and products, the linear recurrence that their derivatives use, and the shift.
//
// The family is closed under differentiation without ever dividing, so zeros need no special case. With
//   recurrence(a, b):  y[i] = b[i] + a[i] * y[i-1]     (in reverse: y[i] = b[i] + a[i+1] * y[i+1])
// where a[0] is never used, the two directions are each other's transposes in b, and the derivative of cumprod is
//   dx = recurrence(x, g) in reverse, times the product of all elements before.
#pragma once

#include <optional>

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct ScanAttrs {
  int64_t dim = 0;
  bool reverse = false;    // from the last element to the first
  bool exclusive = false;  // element i is computed only from those before i
  void visit(AttrVisitor& v) {
    v.field("dim", dim);
    v.field("reverse", reverse);
    v.field("exclusive", exclusive);
  }
};

struct Scan {
  using Attrs = ScanAttrs;
  static constexpr int8_t arity = 1;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static constexpr auto batch = batch_dims;
};

struct CumSum : Scan {
  static constexpr std::string_view name = "cumsum", doc = "cumulative sum along a dim";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[4,3] {dim=0, reverse=false, exclusive=false} : f32[4,3]";
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

struct CumProd : Scan {
  static constexpr std::string_view name = "cumprod", doc = "cumulative product along a dim";
  static constexpr auto cast_policy = CastPolicy::float32;
  static constexpr std::string_view example = "f32[4,3] {dim=0, reverse=false, exclusive=false} : f32[4,3]";
  static constexpr Saves saves = Saves::operands;
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// Operands (a, b); attribute exclusive is false.
struct Recurrence : Scan {
  static constexpr std::string_view name = "recurrence", doc = "y[i] = b[i] + a[i] * y[i-1] along a dim";
  static constexpr std::string_view operands = "a, b";
  static constexpr std::string_view example =
      "f32[4,3], f32[4,3] {dim=0, reverse=false, exclusive=false} : f32[4,3]";
  static constexpr int8_t arity = 2;
  static SaveSet saves_for(const Call&, uint64_t wants) { return {1, wants & 1}; }
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
};

/// y[i] = x[i-1] with a 0 in front; in reverse y[i] = x[i+1] with a 0 at the end.
struct Shift : Scan {
  static constexpr std::string_view name = "shift", doc = "moved by one along a dim";
  static constexpr std::string_view example = "f32[4,3] {dim=0, reverse=false, exclusive=false} : f32[4,3]";
  static Tensor transpose(RuleContext& c, int, const Tensor& g);
};

using ScanOps = OpList<CumSum, CumProd, Recurrence, Shift>;

/// The product of all elements before (in reverse: after) each one along a wrapped dim.
Tensor exclusive_cumprod(Operand x, int64_t dim, bool reverse);

}  // namespace ops

/// y[i] = x[0] + ... + x[i] along `dim`, and the same for products, of the elements converted to `dtype` if
/// that is given. Integers give int64. Error(bad_dim).
Tensor cumsum(Operand input, int64_t dim, std::optional<ScalarType> dtype = {});
Tensor cumprod(Operand input, int64_t dim, std::optional<ScalarType> dtype = {});

}  // namespace retrograd
#pragma GCC visibility pop
