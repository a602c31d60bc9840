// Every reduction on a device against the CPU: dtypes, dims, layouts, no elements, rows that are split, NaN and
// infinities, any order of blocks.
#include <random>

#include "cuda/on_host/scheduler.h"
#include "ops/reduce.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(11);

Tensor numbers(const IntArray& size, ScalarType dtype, bool special = false) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) {
    v = std::uniform_real_distribution<double>(-2, 2)(random_bits);
    if (is_integral(dtype, true))
      v = static_cast<double>(random_bits() % 4) - (dtype == kInt64 || dtype == kInt32);
    if (special && random_bits() % 40 == 0) v = random_bits() % 2 ? INFINITY : NAN;
  }
  return tensor(values, size, dtype);
}

// Both results of an op that has two.
template <class Op>
Tensors reduced(const Tensor& x, typename Op::Attrs attrs) {
  TensorImpl* cell = x.get();
  constexpr int outputs = [] {
    if constexpr (requires { Op::outputs; }) return int{Op::outputs};
    return 1;
  }();
  Tensors results(outputs);
  eager_runner().emit({&ops::info<Op>, {&cell, 1}, &attrs, {}, outputs}, results.data());
  return results;
}

// What a sum has rounded away is that of its partial sums, in whatever order, and these are as large as a random walk
// is long.
template <class Op>
void compare(const Tensor& x, typename Op::Attrs attrs) {
  const Tensors expected = reduced<Op>(x, attrs), found = reduced<Op>(with_layout_on_device(x), attrs);
  double least = 0.05;
  if (std::is_same_v<Op, ops::Sum> && element_size(x.dtype()) >= 4 && expected[0].numel() > 0)
    least = std::max(least, std::sqrt(static_cast<double>(x.numel() / expected[0].numel())) / 4);
  for (size_t i = 0; i < expected.size(); ++i) expect_same(expected[i], found[i], 4, least);
}

template <class Op>
constexpr bool is_extreme = requires {
  requires std::is_base_of_v<ops::Extreme, Op> || std::is_base_of_v<ops::ExtremeAlong, Op> ||
      std::is_base_of_v<ops::ExtremeIndex, Op>;
};

template <class Op>
void try_layouts(ScalarType dtype, typename Op::Attrs attrs) {
  const auto along = [&](const Tensor& x, const IntList& dims) {
    if (is_extreme<Op>)
      for (int64_t d : dims)
        if (x.size(d) == 0) return;
    attrs.dim = dims;
    INFO("size " << to_string(x.impl().shape()) << ", " << dims.size() << " dims from " << dims[0]);
    compare<Op>(x, attrs);
  };
  NoGradGuard no_grad;
  const Tensor x = numbers({5, 37, 6}, dtype);
  for (const Tensor& y :
       {x, x.transpose(0, 2), x.narrow(1, 1, 33), x.narrow(1, 0, 0), expand(x.narrow(1, 0, 1), {5, 4, 6})})
    for (const IntList& dims : {IntList{0}, IntList{1}, IntList{2}, IntList{0, 2}, IntList{0, 1, 2}})
      if (!is_extreme<Op> || dims.size() == 1) along(y, dims);
  along(numbers({3, 5000}, dtype), {1});  // rows that are split
  along(numbers({700, 40}, dtype), {0});  // neighbouring rows first
  along(numbers({1, 1}, dtype), {0});
  along(numbers({2, 0}, dtype), {0});  // no rows
}

template <class Op>
void try_op(std::initializer_list<ScalarType> dtypes, typename Op::Attrs attrs = {}) {
  device_on_host();
  INFO(Op::name);
  for (ScalarType dtype : dtypes) {
    INFO(name(dtype));
    try_layouts<Op>(dtype, attrs);
    if (is_floating(dtype)) {
      attrs.dim = {1};
      compare<Op>(numbers({30, 50}, dtype, true), attrs);
    }
  }
}

#define FLOATS kFloat32, kFloat64, kFloat16, kBFloat16

}  // namespace

TEST_CASE("sums, means, products") {
  try_op<ops::Sum>({FLOATS, kInt64, kInt32, kBool});
  try_op<ops::Mean>({FLOATS});
  try_op<ops::Prod>({FLOATS, kInt64});
}

TEST_CASE("extremes and their places") {
  try_op<ops::Amax>({FLOATS, kInt64, kUInt8, kBool});
  try_op<ops::Amin>({FLOATS, kInt32});
  try_op<ops::MaxAlong>({FLOATS, kInt64});
  try_op<ops::MinAlong>({kFloat32, kInt32});
  try_op<ops::Argmax>({FLOATS, kInt64});
  try_op<ops::Argmin>({kFloat32, kInt64});
}

TEST_CASE("variance and deviation") {
  for (double correction : {0.0, 1.0, 2.5}) {
    ops::VarianceAttrs attrs;
    attrs.correction = correction;
    try_op<ops::Var>({FLOATS}, attrs);
    try_op<ops::Std>({kFloat32, kFloat64}, attrs);
  }
}

TEST_CASE("logsumexp") { try_op<ops::LogSumExp>({FLOATS}); }

TEST_CASE("norms of every order") {
  for (double ord :
       {0.0, 1.0, 2.0, 3.0, 0.5, static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
    ops::NormAttrs attrs;
    attrs.ord = ord;
    device_on_host();
    for (ScalarType dtype : {FLOATS}) {
      INFO(ord << " " << name(dtype));
      attrs.dim = {1};
      compare<ops::VectorNorm>(numbers({7, 130}, dtype), attrs);
      attrs.dim = {0, 1};
      compare<ops::VectorNorm>(numbers({7, 130}, dtype), attrs);
    }
  }
}

TEST_CASE("counts and truths") {
  try_op<ops::All>({kFloat32, kInt64, kBool});
  try_op<ops::Any>({kFloat32, kInt64, kBool});
  try_op<ops::CountNonzero>({kFloat32, kInt32, kBool});
}

TEST_CASE("bits of reductions do not depend on the order of blocks and threads") {
  device_on_host();
  const Tensor x = numbers({3, 20000}, kFloat32).to(kCUDA);
  const std::vector<double> first = sum(x, {1}).to_vector();
  for (unsigned seed : {1u, 2u, 3u}) {
    on_host::set_seed(seed);
    CHECK(sum(x, {1}).to_vector() == first);
  }
  on_host::set_seed(0);
}

TEST_CASE("the temporary memory of a split row is given back") {
  device_on_host();
  cuda::Allocator& memory = cuda::gpu_of(0).memory();
  const Tensor x = numbers({100'000}, kFloat32).to(kCUDA);
  const int64_t live = memory.stats().live_bytes;
  const Tensor y = sum(x);
  CHECK(memory.stats().live_bytes == live + 4);
}
