// See nn/padding.h.
#include "nn/padding.h"

#include <fmt/format.h>

#include "ops/rearrange.h"

namespace retrograd::inline v0::nn {
namespace {

IntList amount_per_side(int dims, const IntList& padding, std::string_view type, SourceLocation where) {
  if (padding.size() == 2 * dims) return padding;
  if (padding.size() != 1)
    fail(Category::bad_argument, type,
         fmt::format("padding has {} amounts, not 1 or {}", padding.size(), 2 * dims), where);
  return IntArray(static_cast<size_t>(2 * dims), padding[0]);
}

}  // namespace

PaddingLayer::PaddingLayer(Module* parent, std::string name, int dims, const IntList& padding,
                           std::string_view type, SourceLocation where)
    : Module(parent, std::move(name)), padding(amount_per_side(dims, padding, type, where)) {}

// pad() itself would take any number of dims.
Tensor PaddingLayer::padded(Operand x, std::string_view mode, std::optional<Scalar> value) const {
  const int64_t dims = padding.size() / 2, rank = x.defined_tensor("pad").dim();
  if (rank != dims + 1 && rank != dims + 2)
    fail(Category::bad_dim, "pad",
         fmt::format("{} or {} dims are needed, not {}", dims + 1, dims + 2, describe(x.tensor())),
         x.where());
  return pad(x, IntArray(padding.begin(), padding.end()), mode, value);
}

std::string PaddingLayer::padding_text() const {
  return "padding=" + detail::list_text(padding, padding.size());
}

template <int Dims>
std::string ConstantPad<Dims>::extra_repr() const {
  return fmt::format("{}, value={}", this->padding_text(), value);
}

template class ConstantPad<1>;
template class ConstantPad<2>;
template class ConstantPad<3>;

}  // namespace retrograd::nn
