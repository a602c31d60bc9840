// Losses over classes on a device against the CPU; targets that are no class are errors there, too.
#include "cuda/on_host/scheduler.h"
#include "ops/losses.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

Tensor targets(const IntArray& size, int64_t classes, int64_t ignored) {
  static std::mt19937 random_bits(3);
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values)
    v = static_cast<double>(random_bits() % 5 == 0 ? ignored : static_cast<int64_t>(random_bits()) % classes);
  return tensor(values, size, kInt64);
}

// All four ops; the classes are dim `dim` of x.
void try_all(const Tensor& x, int64_t dim, int64_t ignored) {
  device_on_host();
  IntArray size;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim) size.push_back(x.size(d));
  const Tensor t = targets(size, std::max<int64_t>(1, x.size(dim)), ignored),
               g = random_numbers(size, x.dtype());
  const ops::ClassLossAttrs attrs{dim, ignored};
  against_cpu<ops::Nll>({x, t}, attrs);
  ops::NllBackward::Attrs backward;
  static_cast<ops::ClassLossAttrs&>(backward) = attrs;
  backward.classes = x.size(dim);
  against_cpu<ops::NllBackward>({g, t}, backward);
  const Tensor stats = against_cpu<ops::CrossEntropy>({x, t}, attrs, 2)[1];
  against_cpu<ops::CrossEntropyBackward>({g, x, t, stats}, attrs);
}

}  // namespace

TEST_CASE("class losses: dims, layouts, dtypes") {
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    const Tensor x = random_numbers({5, 37, 6}, dtype);
    for (const Tensor& y : {x, x.transpose(0, 2), x.narrow(1, 1, 33)})
      for (int64_t dim : {0, 1, 2}) try_all(y, dim, -100);
    try_all(random_numbers({3, 1300}, dtype), 1, 2);
    try_all(random_numbers({7}, dtype), 0, -1);
    try_all(random_numbers({0, 7}, dtype), 1, -1);
  }
}

TEST_CASE("class losses: a target that is no class is reported when the device is waited for") {
  device_on_host();
  const Tensor x = random_numbers({3, 5}, kFloat32).to(kCUDA);
  for (int64_t bad : {int64_t{5}, int64_t{-1}}) {
    const Tensor t = tensor({0.0, static_cast<double>(bad), 2.0}, {3}, kInt64).to(kCUDA);
    const std::string text = "index " + std::to_string(bad) + " is out of range for 5 entries";
    CHECK_THROWS_WITH(cross_entropy(x, t).item(), Catch::Contains(text));
    CHECK_THROWS_WITH(nll_loss(x, t).item(), Catch::Contains(text));
    CHECK_NOTHROW(cross_entropy(x, t, {}, "mean", bad).item());
  }
}

TEST_CASE("class losses: the loss and its gradient on the device") {
  device_on_host();
  const Tensor x = random_numbers({6, 4, 3}, kFloat64), t = targets({6, 3}, 4, -100);
  const auto gradient = [](Tensor v, const Tensor& target) {
    v = v.detach();
    v.requires_grad_();
    cross_entropy(v, target).backward();
    return v.grad();
  };
  expect_same(gradient(x, t), gradient(x.to(kCUDA), t.to(kCUDA)), 10);
}
