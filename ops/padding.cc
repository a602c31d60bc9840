// Padding (ops/rearrange.h). The borders of mode constant are separate tensors, joined dim by dim; the other modes are
// one op for all dims together.
#include <algorithm>

#include <fmt/format.h>

#include "ops/creation.h"

#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/family_parts.h"
#include "ops/join.h"
#include "ops/rearrange.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// The shape of `size` padded. Error(bad_argument) if there are too few elements to pad with.
Shape padded_shape(const Call& call, const Shape& size, const PadAttrs& a) {
  if (a.mode < PadAttrs::reflect || a.mode > PadAttrs::circular)
    fail_call(call, Category::bad_argument, fmt::format("there is no mode {}", a.mode));
  if (a.before.size() != size.rank() || a.after.size() != size.rank())
    fail_call(call, Category::bad_argument, "there are not two amounts for each dim");
  Shape shape = size;
  for (int d = 0; d < size.rank(); ++d) {
    const Dim n = size[d], least = std::max(a.before[d], a.after[d]);
    if (a.before[d] == 0 && a.after[d] == 0) continue;
    if (n == 0 || (a.mode == PadAttrs::reflect && n <= least) || (a.mode == PadAttrs::circular && n < least))
      fail_call(call, Category::bad_argument,
                fmt::format("padding of {} and {} is too wide for a dim of {}", a.before[d], a.after[d],
                            to_string(n)));
    const Dim kept = n + std::min<int64_t>(a.before[d], 0) + std::min<int64_t>(a.after[d], 0);
    shape[d] = n + a.before[d] + a.after[d];
    if (!(shape[d] >= 0) || (a.mode == PadAttrs::circular && kept <= 0 && shape[d] > 0))
      fail_call(call, Category::bad_argument, fmt::format("padding cuts more than dim {} has", d));
  }
  check_sizes(call, shape);
  return shape;
}

}  // namespace

void Pad::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  outputs[0]->set_type(x.dtype(), x.device(), padded_shape(call, x.shape(), call.attrs_as<Attrs>()));
}

Tensor Pad::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<PadBackward>({g.get()}, {c.attrs<Attrs>(), c.type(0).shape}, c.where());
}

void PadBackward::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& g = *call.operands[0];
  const Attrs& a = call.attrs_as<Attrs>();
  check_sizes(call, a.size);
  if (!(g.shape() == padded_shape(call, a.size, a)))
    fail_call(call, Category::shape_mismatch, "the gradient does not have the padded shape");
  outputs[0]->set_type(g.dtype(), g.device(), a.size);
}

Tensor PadBackward::transpose(RuleContext& c, int, const Tensor& g) {
  return emit<Pad>({g.get()}, c.attrs<Attrs>(), c.where());
}

}  // namespace ops

namespace {

// One dim padded by a number.
Tensor pad_dim(Operand x, int d, int64_t before, int64_t after, Scalar value) {
  Tensor y = x.tensor();
  if (before < 0 || after < 0) {
    const Dim cut = before < 0 ? Dim(0) - before : Dim(0), cut_end = after < 0 ? Dim(0) - after : Dim(0);
    y = narrow(x, d, cut, shape_of(x)[d] - cut - cut_end);
  }
  auto border = [&](int64_t n) {
    Shape shape = y.impl().shape();
    shape[d] = n;
    return full(shape, value, {y.dtype(), y.device()}, x.where());
  };
  Tensors parts;
  if (before > 0) parts.push_back(border(before));
  parts.push_back(y);
  if (after > 0) parts.push_back(border(after));
  return parts.size() > 1 ? cat(parts, d, x.where()) : y;
}

Tensor pad_constant(Operand x, const ops::PadAttrs& a, Scalar value) {
  Tensor y = x.tensor();
  for (int d = shape_of(x).rank() - 1; d >= 0; --d) {
    if (a.before[d] == 0 && a.after[d] == 0) continue;
    if (!(shape_of(x)[d] + a.before[d] + a.after[d] >= 0))
      fail(Category::bad_argument, "pad", fmt::format("padding cuts more than dim {} has", d), x.where());
    y = pad_dim(Operand(y, x.where()), d, a.before[d], a.after[d], value);
  }
  return y.impl().storage() == x.tensor().impl().storage() ? clone(Operand(y, x.where())) : y;
}

}  // namespace

Tensor pad(Operand x, const IntArray& pad, std::string_view mode, std::optional<Scalar> value) {
  const NamedCall call("pad", x.where());
  const int rank = shape_of(x).rank();
  constexpr std::string_view modes[] = {"reflect", "replicate", "circular"};
  const auto* found = std::find(std::begin(modes), std::end(modes), mode);
  const bool constant = mode == "constant";
  if (!constant && found == std::end(modes))
    fail(Category::bad_argument, "pad", fmt::format("there is no mode \"{}\"", mode), x.where());
  if (pad.size() % 2 != 0 || static_cast<int>(pad.size() / 2) > rank)
    fail(Category::bad_argument, "pad",
         fmt::format("{} amounts for a tensor of {} dimensions", pad.size(), rank), x.where());
  if (value && !constant)
    fail(Category::bad_argument, "pad", fmt::format("mode {} takes no value", mode), x.where());
  IntArray before(static_cast<size_t>(rank), 0), after = before;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    before[static_cast<size_t>(rank) - 1 - i] = pad[2 * i];
    after[static_cast<size_t>(rank) - 1 - i] = pad[2 * i + 1];
  }
  const ops::PadAttrs attrs{before, after, found - std::begin(modes)};
  return constant ? pad_constant(x, attrs, value.value_or(0))
                  : ops::emit<ops::Pad>({x.tensor().get()}, attrs, x.where());
}

}  // namespace retrograd
