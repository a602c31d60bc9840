// See nn/layer.h.
#include "nn/layer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace retrograd::inline v0::nn::detail {

Tensor sharing(const Tensor& given) { return given.defined() ? given.detach() : Tensor(); }

std::string list_text(const IntList& list, int dims) {
  const IntArray all = list.size() == 1 ? IntArray(static_cast<size_t>(dims), list[0])
                                        : IntArray(list.begin(), list.end());
  return fmt::format("[{}]", fmt::join(all, ", "));
}

}  // namespace retrograd::nn::detail
