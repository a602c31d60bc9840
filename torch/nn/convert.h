// Options of libtorch as arguments of this library's functions and layers.
#pragma once

#include "ops/convolution.h"
#include "ops/pooling.h"
#include "torch/nn/options/conv.h"

namespace torch::nn {

template <size_t D>
retrograd::ConvPadding conv_padding(const detail::conv_padding_t<D>& padding) {
  if (const auto* sizes = std::get_if<ExpandingArray<D>>(&padding)) return retrograd::IntList(*sizes);
  return std::holds_alternative<enumtype::kSame>(padding) ? "same" : "valid";
}

template <size_t D>
retrograd::AdaptiveSize adaptive_size(const ExpandingArrayWithOptionalElem<D>& size) {
  return size.vec();
}
inline retrograd::AdaptiveSize adaptive_size(const ExpandingArray<1>& size) { return (*size)[0]; }

/// Empty where the option is absent.
template <class T>
retrograd::PerDim<T> per_dim(const std::optional<std::vector<T>>& values) {
  return values ? retrograd::PerDim<T>(*values) : retrograd::PerDim<T>();
}

/// Error(unsupported) if sparse gradients are asked for.
inline void refuse_sparse(bool sparse, std::string_view op) {
  if (sparse)
    retrograd::fail(retrograd::Category::unsupported, op,
                    "there are no sparse gradients. Hint: sparse(false)");
}

}  // namespace torch::nn
