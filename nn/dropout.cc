// See nn/dropout.h.
#include "nn/dropout.h"

#include <fmt/format.h>

#include "engine/inplace.h"

namespace retrograd::inline v0::nn {

template <class Self>
DropoutLayer<Self>::DropoutLayer(Module* parent, std::string name, double p, DropoutOptions options,
                                 SourceLocation where)
    : Layer<Self>(parent, std::move(name)), p(p), options(options) {
  if (!(p >= 0 && p <= 1))
    fail(Category::bad_argument, Self::type_name, fmt::format("the probability {} is outside [0, 1]", p),
         where);
}

template <class Self>
Tensor DropoutLayer<Self>::forward(Operand x) const {
  const bool training = this->is_training();
  if (!options.inplace || !training || p == 0) return Self::function(x, p, training);
  return apply_inplace(
      x.tensor(), [&](const Tensor& old) { return Self::function(Operand(old, x.where()), p, true); },
      Self::type_name, x.where());
}

template <class Self>
std::string DropoutLayer<Self>::extra_repr() const {
  return fmt::format("p={}, inplace={}", p, options.inplace);
}

template class DropoutLayer<Dropout>;
template class DropoutLayer<Dropout1d>;
template class DropoutLayer<Dropout2d>;
template class DropoutLayer<Dropout3d>;
template class DropoutLayer<AlphaDropout>;
template class DropoutLayer<FeatureAlphaDropout>;

}  // namespace retrograd::nn
