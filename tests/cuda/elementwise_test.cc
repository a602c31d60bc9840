// Every elementwise op on a device against the CPU: all dtypes that it is defined for, odd sizes, strided, repeated and
// misaligned operands, numbers as operands, special values. The kernels are those of nvcc's, compiled for the host.
#include <random>

#include "engine/each_field.h"
#include "ops/bitwise.h"
#include "ops/elementwise_list.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(7);

double uniform(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random_bits);
}

// Numbers of all kinds: mostly moderate, now and then an end of the range.
double any_number(ScalarType dtype, bool nonzero) {
  if (is_integral(dtype, true)) {
    const double v = std::floor(dtype == kUInt8 ? uniform(0, 20) : uniform(-20, 20));
    return nonzero && (v == 0 || dtype == kBool) ? 3 : v;
  }
  constexpr double kSpecial[] = {0., -0., 1, -1, 0.5, -2, 1e-3, 20, -20, INFINITY, -INFINITY, NAN};
  if (random_bits() % 5 == 0) return kSpecial[random_bits() % std::size(kSpecial)];
  return random_bits() % 2 ? uniform(-1, 1) : uniform(-6, 6);
}

Tensor dense(const IntArray& size, ScalarType dtype, bool nonzero) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = any_number(dtype, nonzero);
  return tensor(values, size, dtype);
}

/// Operand k of a call that gives `size`, in a layout.
enum class Layout { dense, transposed, repeated, offset, column, zero_dim };
constexpr Layout kLayouts[] = {Layout::dense,  Layout::transposed, Layout::repeated,
                               Layout::offset, Layout::column,     Layout::zero_dim};

Tensor operand(const IntArray& size, Layout layout, ScalarType dtype, bool nonzero) {
  NoGradGuard no_grad;
  switch (layout) {
    case Layout::dense: return dense(size, dtype, nonzero);
    case Layout::transposed: return dense({size[1], size[0]}, dtype, nonzero).t();
    case Layout::repeated: return expand(dense({1, size[1]}, dtype, nonzero), size);
    case Layout::offset: return dense({size[0] + 1, size[1]}, dtype, nonzero).narrow(0, 1, size[0]);
    case Layout::column: return dense({size[0], 1}, dtype, nonzero);
    case Layout::zero_dim: return dense({}, dtype, nonzero);
  }
  return {};
}

struct Case {
  const OpInfo& op;
  int arity;
  bool integers, booleans, divides;
  bool is_where;
};

// What an op's numbers are in these tests.
std::vector<std::byte> attributes(const OpInfo& op) {
  std::vector<std::byte> attrs(op.attrs_size);
  double next = 0.75;
  ir::for_each_field(op, attrs.data(),
                     ir::Fields{[&](auto, Scalar& number) { number = std::exchange(next, next * 2); },
                                [&](auto, int64_t& n) { n = 2; }});
  return attrs;
}

ScalarType operand_dtype(const Case& c, int k, ScalarType dtype) {
  return c.is_where && k == 0 ? kBool : dtype;
}

void compare(const Case& c, const Tensors& operands, void* attrs) {
  Tensors there;
  for (const Tensor& x : operands) there.push_back(with_layout_on_device(x));
  // Where terms cancel, results differ by the errors of the terms.
  expect_same(emit(c.op, operands, attrs), emit(c.op, there, attrs), c.arity == 1 ? 4 : 16);
}

void try_dtype(const Case& c, ScalarType dtype) {
  std::vector<std::byte> attrs = attributes(c.op);
  const auto made = [&](const IntArray& size, Layout layout, int k) {
    return operand(size, layout, operand_dtype(c, k, dtype), c.divides && k == 1);
  };
  for (const IntArray& size : {IntArray{1, 1}, IntArray{3, 5}, IntArray{7, 151}, IntArray{0, 3}}) {
    for (Layout layout : kLayouts) {
      INFO("size " << size[0] << "x" << size[1] << ", layout " << static_cast<int>(layout));
      Tensors operands;
      for (int k = 0; k < c.arity; ++k)
        operands.push_back(made(size, k == c.arity - 1 ? layout : Layout::dense, k));
      compare(c, operands, attrs.data());
      if (c.arity == 1) continue;
      std::swap(operands[0], operands[0] = made(size, layout, 0));
      compare(c, operands, attrs.data());
    }
    if (!c.op.has_scalar_operand) continue;
    for (int k = 0; k < c.arity; ++k) {
      if (!(c.op.optional >> k & 1)) continue;
      Tensors operands;
      for (int j = 0; j < c.arity; ++j) operands.push_back(j == k ? Tensor() : made(size, Layout::dense, j));
      ir::for_each_field(c.op, attrs.data(), [&](auto name, Scalar& number) {
        if (name == "scalar") number = is_integral(dtype, true) ? Scalar(3) : Scalar(1.25);
      });
      compare(c, operands, attrs.data());
    }
  }
}

template <class Op>
void try_op() {
  const Case c{ops::info<Op>, Op::arity, Op::integers, Op::booleans, requires {Op::divides;
}
, std::is_same_v<Op, ops::Where>
};  // namespace
INFO(c.op.name);
if constexpr (!requires { Op::integers_only; })
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) try_dtype(c, dtype);
if (c.integers)
  for (ScalarType dtype : {kInt64, kInt32, kUInt8}) try_dtype(c, dtype);
if (c.integers && c.booleans) try_dtype(c, kBool);
}

template <class List>
void try_family() {
  device_on_host();
  List::for_each([]<class Op>() { try_op<Op>(); });
}

}  // namespace

TEST_CASE("arithmetic") { try_family<ops::ArithmeticOps>(); }
TEST_CASE("functions of one operand") { try_family<ops::UnaryOps>(); }
TEST_CASE("activations") { try_family<ops::ActivationOps>(); }
TEST_CASE("functions of two operands") { try_family<ops::BinaryOps>(); }
TEST_CASE("comparisons") { try_family<ops::ComparisonOps>(); }
TEST_CASE("functions of three operands") { try_family<ops::TernaryOps>(); }
TEST_CASE("losses") { try_family<ops::LossOps>(); }
TEST_CASE("special functions") { try_family<ops::SpecialOps>(); }
TEST_CASE("functions of the float format") { try_family<ops::FloatOps>(); }
TEST_CASE("functions of integers") { try_family<ops::BitwiseOps>(); }
TEST_CASE("shrinkage") { try_family<ops::ShrinkageOps>(); }

TEST_CASE("an integer divided by the number 0 is refused") {
  device_on_host();
  CHECK_THROWS_AS(retrograd::remainder(arange(5).to(kCUDA), 0), Error);
}

TEST_CASE("more elements than blocks of one dim have threads, in dims that do not merge") {
  device_on_host();
  const Tensor a = dense({31, 3, 17}, kFloat32, false), b = dense({31, 1, 17}, kFloat32, false);
  expect_same(a + b, a.to(kCUDA) + b.to(kCUDA));
}
