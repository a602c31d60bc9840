// The walk: each function at points 10^k over the range of a dtype, in float16, bfloat16 and float32, beside float64 at the same points.
//
// The value, the gradient, the tangent and the derivative of the gradient are compared; the gradient eagerly, by a captured backward and through
// compile(). float64 has digits and range to spare at all points of the other dtypes, so it serves as the exact value. Cotangents and directions are
// powers of 2 that bring the results near 1: what can be represented must be right, though squares, reciprocals and exponentials on the way cannot.
//
//   Walk{"atan", [](const Tensors& x) { return rg::atan(x[0]); }, {powers(-30, 30)}}
//
// What is excused says why, in the field of that name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/tensor.h"

namespace range {
namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using Function = std::function<Tensor(const Tensors&)>;

/// One input: numbers that are rounded to the dtype. Those beyond its range are left out, in all inputs.
using Numbers = std::vector<double>;

/// m * 10^k and -m * 10^k for k from `least` to `most`.
Numbers powers(int least, int most, double m = 1.7);
/// The positive half.
Numbers positive_powers(int least, int most, double m = 1.7);
Numbers each(const Numbers& x, const std::function<double(double)>& f);

struct Walk {
  std::string name;
  Function f;
  std::vector<Numbers> inputs;
  bool elementwise =
      true;  // else the inputs are one vector each, and powers of 10 multiply them as `scales` says
  std::vector<int> scales = {};  // exponents of 10, where not elementwise
  double units = 4;              // the tolerance of a result near 1, in units in the last place of the dtype
  double float_units = 16;       // of float32, in which no formula is computed with more digits than it gives
  std::string excused_first = {}, excused_second = {};  // why no first, no second derivative is compared
  bool saves_result =
      false;  // one vector's derivatives are then not compared where the result is out of range
  std::vector<rg::ScalarType> dtypes = {rg::kFloat32, rg::kFloat16, rg::kBFloat16};
};

void check(const Walk& walk);

}  // namespace range
