// See nn/layer.h.
#include "nn/layer.h"

#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace retrograd::inline v0::nn::detail {

Tensor sharing(const Tensor& given) { return given.defined() ? given.detach() : Tensor(); }

std::string list_text(const IntList& list, int dims) {
  const IntArray all =
      list.size() == 1 ? IntArray(static_cast<size_t>(dims), list[0]) : IntArray(list.begin(), list.end());
  return fmt::format("[{}]", fmt::join(all, ", "));
}

void print_layer(std::ostream& out, const Module& layer, std::string_view type,
                 const std::string& arguments) {
  out << type;
  if (layer.named_children().is_empty()) out << '(' << arguments << ')';
}

}  // namespace retrograd::nn::detail
