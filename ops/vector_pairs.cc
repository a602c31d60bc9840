// See ops/vector_pairs.h.
#include "ops/vector_pairs.h"

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/family_parts.h"
#include "ops/loss_operands.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/widened.h"

namespace retrograd::inline v0 {
namespace {

void check_bilinear(Operand x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
  const auto refuse = [&](Category category, std::string_view text) {
    fail(category, "bilinear", text, x1.where());
  };
  const Shape &a = shape_of(x1), &b = x2.impl().shape(), &w = weight.impl().shape();
  if (w.rank() != 3)
    refuse(Category::bad_dim, fmt::format("the weight {} is not of 3 dims", describe(weight)));
  if (a.rank() != b.rank() || a.rank() < 1)
    refuse(Category::bad_dim, fmt::format("{} and {} differ in the number of dims, or have none",
                                          describe(x1.tensor()), describe(x2)));
  if (!(ops::without_last(a) == ops::without_last(b)))
    refuse(Category::shape_mismatch,
           fmt::format("{} and {} have other leading dims", describe(x1.tensor()), describe(x2)));
  if (!(a.back() == w[1]) || !(b.back() == w[2]))
    refuse(Category::shape_mismatch, fmt::format("{} and {} do not fit the weight {}", describe(x1.tensor()),
                                                 describe(x2), describe(weight)));
  if (bias.defined() && !(bias.impl().shape() == Shape{w[0]}))
    refuse(Category::shape_mismatch,
           fmt::format("the bias {} does not fit {}", describe(bias), describe(weight)));
  const auto differs = [&](const Tensor& t) { return t.defined() && t.dtype() != x1.tensor().dtype(); };
  if (differs(x2) || differs(weight) || differs(bias))
    refuse(Category::dtype_mismatch, "the operands have different dtypes");
}

}  // namespace

Tensor bilinear(Operand input1, const Tensor& input2, const Tensor& given_weight, const Tensor& given_bias) {
  const NamedCall call("bilinear", input1.where());
  const ops::AutocastFunction cast(CastPolicy::promote,
                                   {&input1.tensor(), &input2, &given_weight, &given_bias});
  const Tensor first = cast(input1), second = cast(input2), given = cast(given_weight),
               bias = given_bias.defined() ? cast(given_bias) : Tensor();
  const Operand x1(first, input1.where());
  check_bilinear(x1, second, given, bias);
  const ops::Widened wide(first);
  const Tensor a = wide(first), b = wide(second), weight = wide(given);
  const Shape &w = weight.impl().shape(), batch = ops::without_last(a.impl().shape());
  Dim rows = 1;
  for (Dim d : batch) rows = rows * d;
  // One product of matrices gives x1^T weight[o] for all rows and o, a second one multiplies by x2.
  const Tensor matrix = reshape_to(permute(weight, {1, 0, 2}), {w[1], w[0] * w[2]});
  const Tensor left = mm(Operand(reshape_to(a, {rows, w[1]}), x1.where()), matrix);
  Tensor y = bmm(reshape_to(left, {rows, w[0], w[2]}), reshape_to(b, {rows, w[2], 1}));
  y = reshape_to(y, {rows, w[0]});
  if (bias.defined()) y = add(y, wide(bias));
  Shape shape = batch;
  shape.push_back(w[0]);
  return wide.back(reshape_to(y, shape));
}

Tensor pairwise_distance(Operand x1, const Tensor& x2, Scalar p, Scalar eps, bool keepdim) {
  const NamedCall call("pairwise_distance", x1.where());
  const ops::LossOperands wide({&x1.tensor(), &x2});
  const Tensor difference = add(sub(wide(x1), wide(Operand(x2, x1.where()))), eps);
  const bool has_dims = difference.impl().rank() > 0;
  return wide.reduce(
      vector_norm(Operand(difference, x1.where()), p, has_dims ? IntList(-1) : IntList(), keepdim),
      ops::Averaging::none);
}

}  // namespace retrograd
