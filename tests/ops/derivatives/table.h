// The table of derivatives: for each op at least one row, a function and the inputs at which its derivatives
// are checked.
//
// A row's cases are those that the op's rule must handle: no dims, no elements, odd sizes, more dims, broadcasting,
// inputs that are transposed, that repeat memory, that have gaps, numbers in place of tensors. check_row() checks each
// case by gradcheck and gradgradcheck, and that the traced backward, first and second order, has the bits of the eager
// one, in each floating dtype, and that float32 agrees with float64. It notes every op whose record was differentiated.
//
// A new family is a file with a function that returns its rows, and a line in families.h.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor.h"
#include "ops/creation.h"

namespace derivatives {

using retrograd::Shape;
using retrograd::Tensor;
using retrograd::Tensors;

struct Row {
  std::string name;
  std::function<Tensors(const Tensors&)> f;
  std::vector<Tensors> cases;
  std::vector<retrograd::ScalarType> dtypes = {retrograd::kFloat32, retrograd::kFloat16,
                                               retrograd::kBFloat16};  // besides float64
  double eps = 1e-6, dot_rtol = 1e-12;  // of gradcheck; larger where numbers are rounded on the way
};
using Rows = std::vector<Row>;

/// A row of a function that gives one tensor.
inline Row row(std::string name, std::function<Tensor(const Tensors&)> f, std::vector<Tensors> cases) {
  return {std::move(name), [f = std::move(f)](const Tensors& x) { return Tensors{f(x)}; }, std::move(cases)};
}

/// The range of an input's numbers. The same range is never filled with the same numbers twice.
struct Range {
  double low = -1.5, high = 1.5;
};

// Inputs: float64 leaves that require a gradient, of numbers without pattern.
Tensor real(const Shape& shape, Range range = {});
/// The memory has the dims in reverse order.
Tensor transposed(const Shape& shape, Range range = {});
/// All entries of dim 0 are the same memory.
Tensor expanded(const Shape& shape, Range range = {});
/// Every second entry of the last dim of a larger tensor, not from its beginning.
Tensor strided(const Shape& shape, Range range = {});

// Inputs without a gradient.
Tensor ints(const std::vector<double>& values, const Shape& shape);
Tensor mask(const std::vector<double>& values, const Shape& shape);
inline Tensor fixed(const Tensor& t) { return t.detach(); }

/// All kinds of shape and layout for an op of one operand that takes any.
std::vector<Tensors> unary_cases(Range range = {});
/// The same for two operands that broadcast.
std::vector<Tensors> binary_cases(Range a = {}, Range b = {});
/// The same for three.
std::vector<Tensors> ternary_cases(Range a = {}, Range b = {}, Range c = {});

/// A row for an elementwise function object of one operand, and of two: also with a number on either side.
template <class F>
Row unary(std::string name, F f, Range range = {}) {
  return row(
      std::move(name), [f](const Tensors& x) { return f(x[0]); }, unary_cases(range));
}
template <class F>
void add_binary(Rows& rows, const std::string& name, F f, Range a = {}, Range b = {}) {
  const double left = (3 * a.low + a.high) / 4, right = (3 * b.high + b.low) / 4;
  rows.push_back(row(
      name, [f](const Tensors& x) { return f(x[0], x[1]); }, binary_cases(a, b)));
  rows.push_back(row(name + " with a number right", [f, right](const Tensors& x) { return f(x[0], right); },
                     {{real({2, 3}, a)}, {transposed({3, 2}, a)}, {real({}, a)}, {real({0}, a)}}));
  rows.push_back(row(name + " with a number left", [f, left](const Tensors& x) { return f(left, x[0]); },
                     {{real({2, 3}, b)}, {expanded({3, 2}, b)}, {real({}, b)}, {real({0}, b)}}));
}

/// Proves all cases of a row and adds the names of ops that were differentiated. Failures name row, case and
/// elements.
void check_row(const Row& row, std::set<std::string_view>& covered);

}  // namespace derivatives
