// Attention on a device against the CPU, forward and backward: sizes around those of a tile, layouts, the causal mask, nothing to attend to;
// gradients through the public function.
#include <random>

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

void compare(const OpInfo& op, const Tensors& operands, const ops::AttentionAttrs& attrs, int outputs) {
  const Tensors expected = results(op, operands, attrs, outputs),
                found = results(op, there(operands), attrs, outputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(op.name << ", result " << i);
    expect_same(expected[i], found[i], 100);
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

TEST_CASE("attention with nothing to sum over or to give") {
  try_sizes(kFloat32, 3, 0, 4, 5);
  try_sizes(kFloat32, 0, 3, 4, 5);
  try_sizes(kFloat32, 3, 4, 0, 5);
  try_sizes(kFloat32, 3, 4, 5, 0);
}

TEST_CASE("attention of any layout") {
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    const Tensor heads = numbers({2, 9, 3, 8}, dtype).transpose(1, 2);  // (2, 3, 9, 8)
    const Tensor turned = numbers({2, 3, 8, 9}, dtype).transpose(2, 3);
    try_both({heads, turned, heads}, false);
    try_both({turned, heads, turned}, true);
    try_both({expand(heads.narrow(0, 0, 1), {2, 3, 9, 8}), heads, heads.narrow(3, 2, 5)}, true);
  }
}

// Forward only: where one weight is all, gradients are what rounding leaves.
TEST_CASE("attention with large scores") {
  NoGradGuard no_grad;
  device_on_host();
  const Tensor q = numbers({1, 70, 4}, kFloat32) * 60;
  ops::AttentionAttrs attrs;
  attrs.scale = 1.0;
  compare(ops::info<ops::Attention>, {q, q, q}, attrs, 2);
}

TEST_CASE("gradients of attention on a device") {
  device_on_host();
  const auto run = [](Device device, ScalarType dtype, bool is_causal) {
    random_bits.seed(5);
    Tensors x;
    for (int i = 0; i < 3; ++i) x.push_back(numbers({2, 6, 4}, dtype).to(device).requires_grad_(true));
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {}, is_causal);
    sum(y * y).backward();
    return Tensors{y.detach(), x[0].grad(), x[1].grad(), x[2].grad()};
  };
  for (ScalarType dtype : {kFloat32, kFloat64})
    for (bool is_causal : {false, true}) {
      const Tensors expected = run(kCPU, dtype, is_causal), found = run(kCUDA, dtype, is_causal);
      for (size_t i = 0; i < expected.size(); ++i) expect_same(expected[i], found[i], 200);
    }
}

TEST_CASE("bits of attention do not depend on the order of blocks and threads") {
  NoGradGuard no_grad;
  device_on_host();
  const Tensor q = numbers({2, 70, 8}, kFloat32).to(kCUDA);
  const std::vector<double> first = scaled_dot_product_attention(q, q, q, {}, true).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(scaled_dot_product_attention(q, q, q, {}, true).to_vector() == first);
  }
  on_host::set_seed(0);
}
