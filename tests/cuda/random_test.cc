// Draws on a device: the CPU's numbers for the same position in the random stream, in any dtype and layout.
#include "cuda/on_host/scheduler.h"
#include "ops/dropout.h"
#include "ops/sampling.h"
#include "tests/cuda/against_cpu.h"
#include "tests/errors.h"

using namespace retrograd;

namespace {

const ops::Draw kDraw{int64_t{1234567890123}, int64_t{42}};

template <class Op>
Tensor drawn(typename Op::Attrs attrs, Device device) {
  attrs.device = device;
  return results_of<Op>({}, attrs, 1)[0];
}

template <class Op>
void try_draw(const typename Op::Attrs& attrs, double scale) {
  device_on_host();
  INFO(Op::name << " " << name(attrs.dtype) << " " << to_string(attrs.size));
  expect_same(drawn<Op>(attrs, kCPU), drawn<Op>(attrs, kCUDA), scale);
}

}  // namespace

TEST_CASE("draws: uniform, normal, exponential") {
  for (const Shape& size : {Shape{0}, Shape{}, Shape{1}, Shape{7}, Shape{33, 41}, Shape{64, 100}})
    for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      try_draw<ops::Uniform>({size, -1.5, 2.5, dtype, kDraw}, 0);
      try_draw<ops::Normal>({size, 1.0, 2.0, dtype, kDraw}, 10);
      try_draw<ops::Exponential>({size, 2.0, dtype, kDraw}, 10);
    }
}

TEST_CASE("draws: integers and choices in every dtype") {
  for (const Shape& size : {Shape{5}, Shape{33, 41}}) {
    for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kInt64, kInt32, kUInt8})
      try_draw<ops::RandInt>({size, 3, 117, dtype, kDraw}, 0);
    try_draw<ops::RandInt>({size, INT64_MIN, INT64_MAX, kInt64, kDraw}, 0);
    for (ScalarType dtype : {kFloat32, kFloat64, kInt64, kBool})
      for (double p : {0.0, 0.3, 1.0}) try_draw<ops::BernoulliNumber>({size, p, dtype, kDraw}, 0);
  }
}

TEST_CASE("draws: parameters that are tensors") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16}) {
    const Tensor p = rand({30, 7}, {dtype});
    against_cpu<ops::Bernoulli>({p}, {kDraw}, 1, 0);
    if (p.dtype() == kFloat32) against_cpu<ops::StochasticRound>({p}, {kDraw}, 1, 0);
    if (p.dtype() == kFloat32) against_cpu<ops::StochasticRound>({p.transpose(0, 1)}, {kDraw}, 1, 0);
    against_cpu<ops::Bernoulli>({p.transpose(0, 1)}, {kDraw}, 1, 0);
    against_cpu<ops::NormalAround>({p, p.narrow(0, 3, 1)}, {0.0, 0.0, kDraw}, 1, 20);
    against_cpu<ops::NormalAround>({{}, p}, {1.0, 0.0, kDraw}, 1, 20);
    against_cpu<ops::NormalAround>({p, {}}, {0.0, 2.0, kDraw}, 1, 20);
  }
}

TEST_CASE("draws: parameters out of range") {
  device_on_host();
  const auto told = [](const Tensor& drawn, const std::string& text) {
    CHECK_THROWS_WITH(drawn.to_vector(), Catch::Contains(text));
    CHECK_NOTHROW(cuda::gpu_of(0).synchronize());  // once
  };
  told(bernoulli(tensor({0.5, 1.5}).to(kCUDA)), "bernoulli: the value 1.5 is not between 0 and 1");
  told(normal(0.0, tensor({0.5, -1.0}).to(kCUDA)), "the value -1 is not between 0 and inf");
  told(bernoulli(tensor({NAN}).to(kCUDA)), "the value nan is not between 0 and 1");
  CHECK(category_of([] { bernoulli(tensor({2.0}).to(kCUDA)).item(); }) == Category::bad_argument);
}

TEST_CASE("dropout: the same elements in every dtype and layout, the same way back") {
  device_on_host();
  for (double p : {0.1, 0.5, 1.0})
    for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      const Tensor x = random_numbers({40, 1000}, dtype);
      for (const Tensor& y : {x, x.transpose(0, 1), x.narrow(1, 1, 997), x.narrow(1, 0, 0)})
        against_cpu<ops::Dropout>({y}, {p, kDraw}, 1, 0);
    }
  // A chance whose 16 upper bits never settle it.
  against_cpu<ops::Dropout>({random_numbers({50'000}, kFloat32)}, {0x1p-17, kDraw}, 1, 0);
}

TEST_CASE("draws: public functions on the device") {
  device_on_host();
  const auto both = [](auto f) {
    manual_seed(7);
    const Tensor expected = f(Device(kCPU));
    manual_seed(7);
    expect_same(expected, f(Device(kCUDA)), 10);
  };
  both([](Device d) { return rand({3, 5}, {kFloat32, d}); });
  both([](Device d) { return randn({3, 5}, {kFloat64, d}); });
  both([](Device d) { return randint(10, {3, 5}, {kInt64, d}); });
  both([](Device d) { return randperm(20, {kInt64, d}); });
  both([](Device d) { return bernoulli(zeros({40}, {kFloat32, d}), 0.5); });
  both([](Device d) { return dropout(ones({3, 50}, {kFloat32, d})); });
  both([](Device d) { return alpha_dropout(ones({3, 50}, {kFloat32, d})); });
  both([](Device d) { return feature_dropout(ones({3, 50, 2}, {kFloat32, d})); });
  both([](Device d) {
    const Tensor x = zeros({4, 6}, {kFloat32, d}).transpose(0, 1);
    fill_uniform(x, 0, 1);
    fill_normal(x.narrow(0, 0, 3), 0, 1);
    return x;
  });
  both([](Device d) { return rand_like(zeros({3}, {kFloat32, d})); });
}

TEST_CASE("multinomial: the CPU's places") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16}) {
    const Tensor row = tensor({0, 3, 1, 0, 2.5, 0.25, 0}, {dtype}), rows = rand({5, 1000}, {dtype}) + 0.125;
    for (const Tensor& x : {row, rows, rows.transpose(0, 1), rows.narrow(0, 0, 0), row.narrow(0, 1, 1)}) {
      const int64_t most = x.is_same(row) ? 4 : std::min<int64_t>(x.size(-1), 200);
      against_cpu<ops::Multinomial>({x}, {50, true, kDraw}, 1, 0);
      against_cpu<ops::Multinomial>({x}, {most, false, kDraw}, 1, 0);
      against_cpu<ops::Multinomial>({x}, {1, false, kDraw}, 1, 0);
    }
  }
}

TEST_CASE("multinomial: weights that cannot be drawn by") {
  device_on_host();
  const auto text_of = [](std::vector<double> weights, int64_t samples, bool replacement) -> std::string {
    try {
      multinomial(tensor(weights, {static_cast<int64_t>(weights.size())}).to(kCUDA), samples, replacement);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK_THAT(text_of({1, -2}, 1, true), Catch::Contains("the weight -2 is negative"));
  CHECK_THAT(text_of({1, INFINITY}, 1, true), Catch::Contains("the weight inf is negative"));
  CHECK_THAT(text_of({0, 0}, 1, true), Catch::Contains("sum to zero"));
  CHECK_THAT(text_of({0, 1, 2}, 3, false), Catch::Contains("3 samples without replacement of 2 weights"));
}
