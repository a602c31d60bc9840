// Methods by the other names of ops/synonyms.h (engine/method_list.h), and what these need.
#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/define_methods.h"
#include "ops/reduce.h"
#include "ops/reshaping.h"
#include "ops/synonyms.h"

namespace retrograd::inline v0 {

RG_SYNONYM_METHODS(RG_METHOD, RG_BOTH, RG_GEOMETRY)

Tensor sum_to_size(Operand input, const Shape& size) {
  const NamedCall call("sum_to_size", input.where());
  const Tensor& x = input.tensor("sum_to_size");
  const Shape& from = x.impl().shape();
  if (!(broadcast_shapes(from, size, "sum_to_size", input.where()) == from))
    fail(Category::shape_mismatch, "sum_to_size",
         fmt::format("{} cannot be summed to {}", describe(x), to_string(size)), input.where());
  return sum_to(x, size, input.where());
}

}  // namespace retrograd
