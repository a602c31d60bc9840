// normalize and normalize_backward on a device against the CPU, and the functions made of them.
#include "ops/norms.h"

#include "cuda/on_host/scheduler.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

struct Case {
  IntArray size;
  IntList dim, affine_dim;
};

IntArray affine_size(const Case& c) {
  IntArray size;
  for (int64_t d : c.affine_dim) size.push_back(c.size[static_cast<size_t>(d)]);
  return size;
}

// Forward and backward, with and without weights; `x` and `g` of the case's size.
void try_case(const Case& c, const Tensor& x, const Tensor& g, bool center, ScalarType weights) {
  device_on_host();
  ops::NormalizeAttrs attrs;
  attrs.dim = c.dim;
  attrs.affine_dim = c.affine_dim;
  attrs.center = center;
  const Tensor weight = random_numbers(affine_size(c), weights),
               bias = random_numbers(affine_size(c), weights);
  const Tensors y = against_cpu<ops::Normalize>({x, weight, bias}, attrs, 3, 30);
  against_cpu<ops::Normalize>({x, {}, bias}, attrs, 3, 30);
  attrs.eps = 1e-2;
  against_cpu<ops::Normalize>({x, {}, {}}, attrs, 3, 30);

  ops::NormalizeBackward::Attrs backward;
  static_cast<ops::NormalizeAttrs&>(backward) = attrs;
  against_cpu<ops::NormalizeBackward>({g, x, y[1], y[2], {}}, backward, 1, 100);
  against_cpu<ops::NormalizeBackward>({g, x, y[1], y[2], weight}, backward, 1, 100);
  backward.affine = true;
  against_cpu<ops::NormalizeBackward>({g, x, y[1], y[2], weight}, backward, 3, 100);
  against_cpu<ops::NormalizeBackward>({g, x, y[1], y[2], {}}, backward, 3, 100);
}

void try_dtypes(const Case& c) {
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16})
    for (bool center : {true, false})
      try_case(c, random_numbers(c.size, dtype), random_numbers(c.size, dtype), center, dtype);
}

}  // namespace

TEST_CASE("normalize: the last dims (layer_norm)") {
  try_dtypes({{3, 5, 6}, {2}, {2}});
  try_dtypes({{5, 3, 8}, {1, 2}, {1, 2}});
  try_dtypes({{40, 1030}, {1}, {1}});
}

TEST_CASE("normalize: channels (batch_norm, instance_norm, group_norm)") {
  try_dtypes({{4, 3, 5, 7}, {0, 2, 3}, {1}});
  try_dtypes({{4, 3, 5, 7}, {2, 3}, {1}});
  try_dtypes({{2, 3, 4, 9}, {2, 3}, {1, 2}});
  try_dtypes({{60, 7}, {0}, {1}});
}

TEST_CASE("normalize: rows that are split") { try_dtypes({{2, 9000}, {1}, {0}}); }

TEST_CASE("normalize: strided operands") {
  const Case c{{6, 5, 10}, {0, 2}, {1}};
  const Tensor x = random_numbers({10, 5, 6}, kFloat16).transpose(0, 2),
               g = expand(random_numbers({6, 1, 10}, kFloat16), {6, 5, 10});
  try_case(c, x, g, true, kFloat16);
}

TEST_CASE("normalize: no elements") {
  try_dtypes({{0, 5}, {1}, {1}});
  try_dtypes({{5, 0}, {1}, {1}});
}

TEST_CASE("normalize: rows of one value, and far from 0") {
  device_on_host();
  ops::NormalizeAttrs attrs;
  attrs.dim = {1};
  against_cpu<ops::Normalize>({full({3, 50}, 1.7), {}, {}}, attrs, 3);
  against_cpu<ops::Normalize>({random_numbers({3, 50}, kFloat64) + 1e6, {}, {}}, attrs, 3, 1e5);
  against_cpu<ops::Normalize>({random_numbers({3, 50}, kFloat32) + 1000, {}, {}}, attrs, 3, 100);
}

TEST_CASE("normalize: bits do not depend on the order of blocks and threads") {
  device_on_host();
  const Tensor x = random_numbers({2, 9000}, kFloat32).to(kCUDA);
  const auto value = [&] { return layer_norm(x, {9000}).to_vector(); };
  const std::vector<double> first = value();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(value() == first);
  }
  on_host::set_seed(0);
}

TEST_CASE("normalize: layers and their gradients on the device") {
  device_on_host();
  const Tensor x = random_numbers({4, 6, 5}, kFloat64), w = random_numbers({6}, kFloat64),
               b = random_numbers({6}, kFloat64);
  const auto gradients = [](Tensor v, Tensor weight, Tensor bias) {
    for (Tensor* t : {&v, &weight, &bias}) (*t = t->detach()).requires_grad_();
    const Tensor y = batch_norm(v, weight, bias, {}, {}, true) * group_norm(v, 3, weight, bias);
    sum(y * y).backward();
    return Tensors{v.grad(), weight.grad(), bias.grad()};
  };
  const Tensors expected = gradients(x, w, b), found = gradients(x.to(kCUDA), w.to(kCUDA), b.to(kCUDA));
  for (size_t i = 0; i < 3; ++i) expect_same(expected[i], found[i], 1000);
}
