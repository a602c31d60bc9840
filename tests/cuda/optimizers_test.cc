// Steps of optimizers for lists of parameters on a device against the CPU: the same bits, in place, in one
// launch; and the norm of many tensors.
#include <random>

#include "ops/optimizer_steps.h"
#include "ops/total_norm.h"
#include "tests/cuda/device_on_host.h"
#include "tests/errors.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(13);

Tensor numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = std::uniform_real_distribution<double>(0.01, 2)(random_bits);
  return tensor(values, size, dtype);
}

// Operand lists of several parameters: sizes around a block's, and none.
template <class Op>
std::vector<Tensors> lists(ScalarType dtype, bool has_optional) {
  std::vector<Tensors> all;
  for (const IntArray& size : {IntArray{3}, {0}, {4096}, {2, 4097}, {1}, {33, 7}}) {
    Tensors operands;
    for (int k = 0; k < Op::arity; ++k)
      operands.push_back(Op::optional >> k & 1 && !has_optional ? Tensor() : numbers(size, dtype));
    all.push_back(operands);
  }
  return all;
}

template <class Op>
void compare(typename Op::Attrs attrs) {
  device_on_host();
  NoGradGuard no_grad;
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16})
    for (bool has_optional : {false, true}) {
      const std::vector<Tensors> here = lists<Op>(dtype, has_optional);
      std::vector<Tensors> there = here;
      for (Tensors& operands : there)
        for (Tensor& x : operands)
          if (x.defined()) x = x.to(kCUDA);
      for (const std::vector<Tensors>& all : {here, there}) {  // copies of names, not of values
        ops::UpdateList<Op> list(SourceLocation::current());
        for (const Tensors& operands : all) list.add(operands, attrs);
        list.run();
      }
      for (size_t i = 0; i < here.size(); ++i)
        for (size_t k = 0; k < here[i].size(); ++k)
          if (here[i][k].defined()) CHECK(here[i][k].to_vector() == there[i][k].to_vector());
    }
}

}  // namespace

TEST_CASE("steps of AdamW have the bits of the CPU's") {
  compare<ops::AdamWStep>({0.1, 0.9, 0.999, 1e-8, 0.01, 1, false});
  compare<ops::AdamWStep>({0.1, 0.9, 0.999, 1e-8, 0.01, 7, true});
}

TEST_CASE("steps of SGD have the bits of the CPU's") {
  compare<ops::SGDStep>({0.1, 0.01, 0.9, 0.9, 1, false, false});
  compare<ops::SGDStep>({0.1, 0.01, 0.9, 0.9, 1, true, true});
}

TEST_CASE("the norm of many tensors") {
  device_on_host();
  const Tensors here = {numbers({3}, kFloat32),     numbers({2, 17000}, kFloat64), numbers({0}, kFloat32),
                        numbers({40000}, kFloat32), numbers({700}, kBFloat16),     numbers({1031}, kFloat16)};
  Tensors there;
  for (const Tensor& x : here) there.push_back(x.to(kCUDA));
  for (double p : {1.0, 2.0, 3.5, static_cast<double>(INFINITY)})
    expect_same(total_norm(here, p), total_norm(there, p));
  expect_same(total_norm({here[2]}), total_norm({there[2]}));

  const Tensor bad = tensor({1.0, NAN, 2.0}, {3}, kFloat32).to(kCUDA);
  for (double p : {2.0, static_cast<double>(INFINITY)}) {
    CHECK(std::isnan(total_norm({there[0], bad}, p).item<double>()));
    CHECK(category_of([&] { total_norm({bad}, p, true); }) == Category::bad_argument);
  }
}
