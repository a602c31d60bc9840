// Matrix products of given shapes and layouts, and the time that they take on their own.
//
// A product is written as the step computes it: (m, k) times (k, n), `batch` of them; an operand that is read
// transposed is stored as its transpose. The time is the least of several runs, and each shape is measured once.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "benchmarks/common/place.h"

namespace bench {

struct Product {
  int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  int64_t batch = 1;
  auto operator<=>(const Product&) const = default;
};

/// Appends the products of a linear layer over `rows` rows: forward, gradient of the weight, and gradient of the input
/// if wanted.
void add_linear(std::vector<Product>& list, int64_t rows, int64_t in, int64_t out,
                bool input_gradient = true);

/// Those of attention between `length` positions, with `width` numbers per head, over `heads` heads in all.
void add_attention(std::vector<Product>& list, int64_t heads, int64_t length, int64_t width);

/// Multiplications and additions of all of them.
double flops_of(const std::vector<Product>& list);

/// The seconds of all of them in sequence, each at its best rate, in a dtype.
double best_seconds(const std::vector<Product>& list, const Place& place, rg::ScalarType dtype);
/// Multiplications and additions per second of a product that is large enough for the machine: an upper bound for every
/// step.
double peak_flops(const Place& place, rg::ScalarType dtype);

}  // namespace bench
