// Helpers of gradcheck besides its comparisons: random numbers, unit vectors, copies of inputs that keep their strides,
// texts.
#pragma once

#include <string>
#include <vector>

#include "engine/tensor.h"

namespace retrograd::inline v0::autograd::check {

/// A fixed sequence (SplitMix64: Steele, Lea, Flood 2014), so that a failing check fails again.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  /// With either sign, between 0.5 and 1.5 in size, with many bits set.
  double next();
  /// Contiguous float64.
  Tensor like(const Shape& shape, Device device);

 private:
  uint64_t state_;
};

/// Float64: 1 at one position in row-major order, 0 elsewhere.
Tensor unit(const Shape& shape, size_t at, Device device);
/// "[1,2]": the index of an element that is given by its position in row-major order.
std::string index_text(const Tensor& t, size_t element);
/// The numbers of a derivative; zeros where it is undefined.
std::vector<double> values_of(const Tensor& t, const Tensor& like);
/// Same type, same bytes; or both undefined.
bool same_bits(const Tensor& a, const Tensor& b);
/// Offset in memory, from the first element, of each element in row-major order.
std::vector<int64_t> places_of(const Tensor& t);
/// A float64 leaf with the values, strides and device of `input`, on memory of its own.
Tensor strided_leaf(const Tensor& input);

}  // namespace retrograd::autograd::check
