// See autograd/jacobian_shape.h.
#include "autograd/jacobian_shape.h"

#include <fmt/format.h>

#include "engine/error.h"

namespace retrograd::inline v0::autograd {

Shape jacobian_shape(const Shape& y, const Shape& x, SourceLocation where) {
  if (y.rank() + x.rank() > kMaxRank)
    fail(Category::bad_argument, "jacobian",
         fmt::format("an output {} by an input {} has more than {} dims", to_string(y), to_string(x),
                     kMaxRank),
         where);
  Shape shape = y;
  for (const Dim d : x) shape.push_back(d);
  return shape;
}

}  // namespace retrograd::autograd
