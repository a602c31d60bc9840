// Makes the operands of a row from their description (row.h). Sizes: n elements are r rows of c columns, with
// c = 1000, or 100 where n is at most 1000.
#include <sstream>
#include <stdexcept>
#include <string>

#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

int64_t columns_of(int64_t n) { return n <= 1'000 ? 100 : 1'000; }

int64_t size_of(const std::string& word, int64_t n) {
  if (word == "n") return n;
  if (word == "c") return columns_of(n);
  if (word == "r") return n / columns_of(n);
  return std::stoll(word);
}

rg::Shape shape_of(const std::string& dims, int64_t n) {
  rg::IntArray sizes;
  std::istringstream words(dims);
  for (std::string word; std::getline(words, word, ',');) sizes.push_back(size_of(word, n));
  return rg::Shape(sizes);
}

// A A^T / size + 1 for each matrix.
rg::Tensor positive_definite(const rg::Shape& shape) {
  const rg::Tensor a = rg::randn(shape);
  const double size = static_cast<double>(shape[shape.rank() - 1].raw());
  return rg::matmul(a, rg::transpose(a, -2, -1)) / size + rg::eye(shape[shape.rank() - 1]);
}

rg::Tensor values(const std::string& kind, const rg::Shape& shape, int64_t n) {
  switch (kind[0]) {
    case 'x': return rg::randn(shape);
    case 'u': return rg::rand(shape) * 0.9 + 0.05;
    case 'g': return rg::rand(shape) + 1;
    case 's': return positive_definite(shape);
    case 'h': return rg::randn(shape).to(rg::kBFloat16);
    case 'd': return rg::randn(shape, {rg::kFloat64});
    case 'l': return rg::randint(-100, 100, shape);
    case 'b': return rg::gt(rg::randn(shape), 0);
    case 'i': return rg::randint(0, size_of(kind.substr(1), n), shape);
    default: throw std::invalid_argument("unknown kind of operand: " + kind);
  }
}

}  // namespace

bool is_scaled(const Row& row) { return row.inputs.find_first_of("nrc") != std::string_view::npos; }

Operands make_operands(const Row& row, int64_t n, bool gradients, rg::Device device, rg::ScalarType dtype) {
  Operands operands;
  operands.n = n;
  operands.device = device;
  std::istringstream words{std::string(row.inputs)};
  for (std::string word; words >> word;) {
    if (word == "n") continue;
    const bool constant = word[0] == '~';
    const size_t begin = constant ? 1 : 0, colon = word.find(':');
    rg::Tensor x =
        values(word.substr(begin, colon - begin), shape_of(word.substr(colon + 1), n), n).to(device);
    if (x.dtype() == rg::kFloat32) x = x.to(dtype);
    if (gradients && !constant && rg::is_floating(x.dtype())) x.requires_grad_();
    operands.push_back(x);
  }
  return operands;
}

}  // namespace bench
