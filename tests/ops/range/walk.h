// The walk: evaluates each function at points 10^k over the range of a dtype, in float16, bfloat16 and float32, and in
// float64 at the same points.
//
// The value, the gradient, the tangent and the derivative of the gradient are compared; the gradient eagerly, by a
// captured backward and through compile(). float64 has enough precision and range at all points of the other dtypes, so
// it gives the exact value. Cotangents and directions are powers of 2 that bring the results near 1: a result that can
// be represented must be right, even if intermediate squares, reciprocals and exponentials cannot.
//
//   Walk{"atan", [](const Tensors& x) { return rg::atan(x[0]); }, {powers(-30, 30)}}
//
// If a derivative is not compared, excused_first or excused_second gives the reason.
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
  // Else the inputs are one vector each, and powers of 10 multiply them as `scales` says.
  bool elementwise = true;
  std::vector<int> scales = {};  // exponents of 10, where not elementwise
  double units = 4;              // the tolerance of a result near 1, in units in the last place of the dtype
  double float_units = 16;       // of float32, in which no formula is computed with more digits than it gives
  std::string excused_first = {}, excused_second = {};  // why no first, no second derivative is compared
  // One vector's derivatives are then not compared where the result is out of range.
  bool saves_result = false;
  std::vector<rg::ScalarType> dtypes = {rg::kFloat32, rg::kFloat16, rg::kBFloat16};
};

void check(const Walk& walk);

}  // namespace range
