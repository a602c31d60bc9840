// Attention on a device against the CPU, forward and backward: sizes around those of a tile, layouts, the causal mask,
// nothing to attend to; gradients through the public function.
//
// Tensor cores use weights and gradients of scores rounded to the 16 bits of the operands, as factors of the next
// product; the CPU has them in float32. So a term of a sum differs by at most kRounding of itself, and both results are
// rounded by as much: the tolerance is kTerms roundings of the largest result. Log sum exp, a sum of unrounded weights,
// is compared as float32.
#include <random>

#include "cuda/kernels/attention_call.h"
#include "cuda/on_host/scheduler.h"
#include "ops/attention.h"
#include "tests/cuda/device_on_host.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(7);

Tensor numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = std::uniform_real_distribution<double>(-1, 1)(random_bits);
  return tensor(values, size, dtype);
}

Tensors results(const OpInfo& op, const Tensors& operands, ops::AttentionAttrs attrs, int outputs) {
  std::vector<TensorImpl*> cells;
  for (const Tensor& x : operands) cells.push_back(x.get());
  Tensors all(static_cast<size_t>(outputs));
  eager_runner().emit({&op, cells, &attrs, {}, static_cast<int8_t>(outputs)}, all.data());
  return all;
}

Tensors there(const Tensors& operands) {
  Tensors moved;
  for (const Tensor& x : operands) moved.push_back(with_layout_on_device(x));
  return moved;
}

bool is_small(ScalarType dtype) { return dtype == kFloat16 || dtype == kBFloat16; }

// The largest difference, in roundings of the largest number.
double roundings(const Tensor& expected, const Tensor& found) {
  REQUIRE(found.dtype() == expected.dtype());
  REQUIRE(found.sizes() == expected.sizes());
  const double rounding = expected.dtype() == kBFloat16 ? 0x1p-8 : 0x1p-11;
  const std::vector<double> a = expected.to_vector(), b = found.to_vector();
  double largest = 0, worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    worst = std::isnan(b[i]) ? INFINITY : std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst == 0 ? 0 : worst / (rounding * largest);
}
constexpr double kTerms = 3;

void expect_near(const Tensor& expected, const Tensor& found, double scale) {
  if (is_small(expected.dtype()))
    CHECK(roundings(expected, found) <= kTerms);
  else
    expect_same(expected, found, scale);
}

void compare(const OpInfo& op, const Tensors& operands, const ops::AttentionAttrs& attrs, int outputs) {
  const Tensors expected = results(op, operands, attrs, outputs),
                found = results(op, there(operands), attrs, outputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(op.name << ", result " << i);
    expect_near(expected[i], found[i], 100);
  }
}

void try_both(Tensors operands, bool is_causal) {
  NoGradGuard no_grad;
  device_on_host();
  ops::AttentionAttrs attrs;
  attrs.is_causal = is_causal;
  attrs.scale = 0.7;
  compare(ops::info<ops::Attention>, operands, attrs, 2);
  const Tensors out = results(ops::info<ops::Attention>, operands, attrs, 2);
  for (const Tensor& x : out) operands.push_back(x);
  const auto size = out[0].sizes();
  operands.push_back(numbers(IntArray(size.begin(), size.end()), out[0].dtype()));
  compare(ops::info<ops::AttentionBackward>, operands, attrs, 3);
}

void try_sizes(ScalarType dtype, int64_t queries, int64_t keys, int64_t depth, int64_t width) {
  for (bool is_causal : {false, true}) {
    INFO(name(dtype) << " " << queries << ", " << keys << ", " << depth << ", " << width << " causal "
                     << is_causal);
    try_both({numbers({2, queries, depth}, dtype), numbers({2, keys, depth}, dtype),
              numbers({2, keys, width}, dtype)},
             is_causal);
  }
}

alignas(16) char aligned_memory[32];

// A forward call of one query and one key that tensor cores take.
cuda::AttentionCall for_tensor_cores() {
  cuda::AttentionCall c;
  for (cuda::BatchMatrix& m : c.side) m.data = aligned_memory, m.row = 8, m.column = 1;
  c.queries = c.keys = 1;
  c.depth = c.width = 8;
  CHECK(c.takes_tensor_cores());
  return c;
}

}  // namespace

TEST_CASE("attention of all sizes") {
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    try_sizes(dtype, 1, 1, 1, 1);
    try_sizes(dtype, 5, 7, 3, 4);
    try_sizes(dtype, 70, 65, 16, 20);
    try_sizes(dtype, 64, 130, 17, 64);
    try_sizes(dtype, 3, 9, 70, 67);
    try_sizes(dtype, 130, 5, 4, 4);
  }
}

TEST_CASE("rows whose distance in bytes is no int are not for tensor cores") {
  cuda::AttentionCall c = for_tensor_cores();
  c.side[cuda::AttentionCall::kKey].row = int64_t{1} << 30;
  CHECK_FALSE(c.takes_tensor_cores());
}

TEST_CASE("what does not lie at a multiple of 16 bytes is not for tensor cores, gradients as well") {
  cuda::AttentionCall c = for_tensor_cores();
  c.query_gradient = c.key_gradient = c.value_gradient = aligned_memory + 16;
  CHECK(c.takes_tensor_cores());
  for (void** gradient : {&c.query_gradient, &c.key_gradient, &c.value_gradient}) {
    *gradient = aligned_memory + 2;
    CHECK_FALSE(c.takes_tensor_cores());
    *gradient = aligned_memory;
  }
  c.side[cuda::AttentionCall::kValue].data = aligned_memory + 8;
  CHECK_FALSE(c.takes_tensor_cores());
}

// Heads of 8 to 128 numbers, in eights, are for tensor cores: 64 keys and 128 rows at a time.
TEST_CASE("attention of 16 bits, of all sizes") {
  for (ScalarType dtype : {kFloat16, kBFloat16}) {
    try_sizes(dtype, 1, 1, 8, 8);
    try_sizes(dtype, 70, 65, 16, 24);
    try_sizes(dtype, 130, 200, 64, 64);
    try_sizes(dtype, 20, 150, 72, 128);  // keys that the causal mask hides from all queries
    try_sizes(dtype, 130, 70, 128, 8);
    try_sizes(dtype, 5, 7, 3, 4);
    try_sizes(dtype, 20, 9, 136, 16);
  }
}

TEST_CASE("attention with nothing to sum over or to give") {
  for (ScalarType dtype : {kFloat32, kBFloat16}) {
    try_sizes(dtype, 3, 0, 8, 16);
    try_sizes(dtype, 0, 3, 8, 16);
    try_sizes(dtype, 3, 4, 0, 8);
    try_sizes(dtype, 3, 4, 8, 0);
  }
}

TEST_CASE("attention of any layout") {
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16}) {
    const Tensor heads = numbers({2, 9, 3, 8}, dtype).transpose(1, 2);  // (2, 3, 9, 8)
    const Tensor turned = numbers({2, 3, 8, 9}, dtype).transpose(2, 3);
    try_both({heads, turned, heads}, false);
    try_both({turned, heads, turned}, true);
    try_both({expand(heads.narrow(0, 0, 1), {2, 3, 9, 8}), heads, heads.narrow(3, 2, 5)}, true);
  }
}

// Heads inside rows, as one product makes them: (batch, place, 3, head, number); a stride of 0; beginnings that are no
// multiple of 16 bytes.
TEST_CASE("heads of 16 bits in rows of a larger matrix") {
  const Tensor rows = numbers({2, 70, 3 * 2 * 32}, kBFloat16);
  const auto part = [&](int64_t which) {
    return rows.narrow(2, which * 64, 64).view({2, 70, 2, 32}).transpose(1, 2);
  };
  try_both({part(0), part(1), part(2)}, true);
  try_both({part(0), expand(part(1).narrow(0, 0, 1), {2, 2, 70, 32}), part(2)}, false);
  try_both({part(0).narrow(3, 4, 16), part(1).narrow(3, 4, 16), part(2).narrow(3, 8, 16)}, true);
  try_both({part(0).narrow(3, 16, 16), part(1).narrow(3, 0, 16), part(2).narrow(3, 8, 16)}, true);
}

// Scores fall when products grow, or are all the same: not for tensor cores.
TEST_CASE("attention of 16 bits with a scale of 0 or less") {
  NoGradGuard no_grad;
  device_on_host();
  const Tensor q = numbers({2, 9, 16}, kBFloat16);
  for (double scale : {0.0, -0.5}) {
    ops::AttentionAttrs attrs;
    attrs.scale = scale;
    compare(ops::info<ops::Attention>, {q, q, q}, attrs, 2);
  }
}

// Forward only: where one weight is all, gradients are what rounding leaves.
TEST_CASE("attention with large scores") {
  NoGradGuard no_grad;
  device_on_host();
  ops::AttentionAttrs attrs;
  attrs.scale = 1.0;
  for (const Tensor& q : {numbers({1, 70, 4}, kFloat32) * 60, numbers({1, 140, 16}, kBFloat16) * 30})
    compare(ops::info<ops::Attention>, {q, q, q}, attrs, 2);
}

TEST_CASE("gradients of attention on a device") {
  device_on_host();
  const auto run = [](Device device, ScalarType dtype, bool is_causal) {
    random_bits.seed(5);
    Tensors x;
    for (int i = 0; i < 3; ++i) x.push_back(numbers({2, 6, 8}, dtype).to(device).requires_grad_(true));
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, is_causal);
    sum(y * y).backward();
    return Tensors{y.detach(), x[0].grad(), x[1].grad(), x[2].grad()};
  };
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16})
    for (bool is_causal : {false, true}) {
      const Tensors expected = run(kCPU, dtype, is_causal), found = run(kCUDA, dtype, is_causal);
      for (size_t i = 0; i < expected.size(); ++i) expect_near(expected[i], found[i], 200);
    }
}

TEST_CASE("bits of attention do not depend on the order of blocks and threads") {
  device_on_host();
  const auto bits = [](ScalarType dtype) {
    random_bits.seed(6);
    const Tensor q = numbers({2, 70, 8}, dtype).to(kCUDA).requires_grad_(true);
    const Tensor y = scaled_dot_product_attention(q, q, q, {}, 0.0, true);
    sum(y * y).backward();
    return std::pair(y.detach().to_vector(), q.grad().to_vector());
  };
  for (ScalarType dtype : {kFloat32, kBFloat16}) {
    const auto first = bits(dtype);
    for (unsigned seed : {1u, 2u}) {
      on_host::set_seed(seed);
      CHECK(bits(dtype) == first);
    }
    on_host::set_seed(0);
  }
}
