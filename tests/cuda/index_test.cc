// Reading and writing at positions on a device against the CPU: dtypes, layouts, repeated positions, no positions;
// transposes of views; errors of indices, which are thrown when the device is waited for.
#include <random>

#include "cuda/on_host/scheduler.h"
#include "ops/embedding.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/scatter_reduce.h"
#include "ops/view_scatter.h"
#include "tests/cuda/device_on_host.h"
#include "tests/errors.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(3);

Tensor numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values)
    v = is_integral(dtype, true) ? static_cast<double>(random_bits() % 3)
                                 : std::uniform_real_distribution<double>(-2, 2)(random_bits);
  return tensor(values, size, dtype);
}

Tensor positions(const IntArray& size, int64_t below) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = static_cast<double>(random_bits() % static_cast<unsigned>(below));
  return tensor(values, size, kInt64);
}

const ScalarType kAll[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};

// f of the operands on the CPU and on the device.
template <class F>
void compare(const Tensors& operands, const F& f) {
  NoGradGuard no_grad;
  Tensors there;
  for (const Tensor& x : operands) there.push_back(with_layout_on_device(x));
  expect_same(f(operands), f(there), 4);
}

// The same for x in several layouts.
template <class F>
void compare_layouts(const Tensor& x, Tensors others, const F& f) {
  others.insert(others.begin(), x);
  compare(others, f);
  others[0] = clone(x.transpose(0, x.dim() - 1)).transpose(0, x.dim() - 1);
  compare(others, f);
}

}  // namespace

TEST_CASE("gather and index_select") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (int64_t dim : {0, 1, 2}) {
      INFO(name(dtype) << " dim " << dim);
      const Tensor x = numbers({5, 4, 8}, dtype);
      compare_layouts(x, {positions({4, 3, 7}, x.size(dim))},
                      [&](const Tensors& t) { return gather(t[0], dim, t[1]); });
      compare_layouts(x, {positions({7, 3, 4}, x.size(dim)).transpose(0, 2)},
                      [&](const Tensors& t) { return gather(t[0], dim, t[1]); });
      compare_layouts(x, {positions({9}, x.size(dim))},
                      [&](const Tensors& t) { return index_select(t[0], dim, t[1]); });
    }
  const Tensor x = numbers({3, 4}, kFloat32);
  compare({x, positions({0}, 3)}, [](const Tensors& t) { return index_select(t[0], 0, t[1]); });
  compare({x, positions({0, 4}, 3)}, [](const Tensors& t) { return gather(t[0], 0, t[1]); });
  compare({numbers({}, kFloat32), positions({}, 1)}, [](const Tensors& t) { return gather(t[0], 0, t[1]); });
  // Whole rows of 16 bytes, and rows that begin between them.
  compare({numbers({6, 16}, kFloat16), positions({5}, 6)},
          [](const Tensors& t) { return index_select(t[0], 0, t[1]); });
  compare({numbers({6, 16}, kFloat16).narrow(1, 3, 8), positions({5}, 6)},
          [](const Tensors& t) { return index_select(t[0], 0, t[1]); });
}

TEST_CASE("scatter: of writes to one place the last one stays") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (int64_t dim : {0, 1, 2}) {
      INFO(name(dtype) << " dim " << dim);
      const Tensor x = numbers({5, 4, 6}, dtype), index = positions({4, 3, 5}, x.size(dim));
      compare_layouts(x, {index, numbers({4, 4, 6}, dtype)},
                      [&](const Tensors& t) { return scatter(t[0], dim, t[1], t[2]); });
      compare_layouts(x, {index}, [&](const Tensors& t) { return scatter(t[0], dim, t[1], Scalar(1)); });
      compare_layouts(x, {index, numbers({4, 4, 6}, dtype)},
                      [&](const Tensors& t) { return scatter_add(t[0], dim, t[1], t[2]); });
    }
  compare({numbers({4, 9}, kFloat32), positions({4, 1}, 9), numbers({4, 1}, kFloat32)},
          [](const Tensors& t) { return scatter_add(t[0], 1, t[1], t[2]); });
  compare({numbers({4, 9}, kFloat32), positions({0, 9}, 4), numbers({2, 9}, kFloat32)},
          [](const Tensors& t) { return scatter_add(t[0], 0, t[1], t[2]); });
}

TEST_CASE("index_add and index_copy") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (int64_t dim : {0, 1, 2}) {
      INFO(name(dtype) << " dim " << dim);
      IntArray size = {5, 4, 6};
      const Tensor x = numbers(size, dtype), index = positions({11}, x.size(dim));
      size[static_cast<size_t>(dim)] = 11;
      const Tensor source = numbers(size, dtype);
      compare_layouts(x, {index, source}, [&](const Tensors& t) { return index_add(t[0], dim, t[1], t[2]); });
      compare_layouts(x, {index, source},
                      [&](const Tensors& t) { return index_copy(t[0], dim, t[1], t[2]); });
    }
  // More positions than a block sorts, most of them for few places.
  compare({numbers({3, 2}, kFloat32), positions({5000}, 3), numbers({5000, 2}, kFloat32)},
          [](const Tensors& t) { return index_add(t[0], 0, t[1], t[2]); });
}

TEST_CASE("reductions at positions") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
      for (bool self : {true, false}) {
        INFO(name(dtype) << " " << how << " " << self);
        if (dtype == kBool && std::string_view(how) == "mean") continue;
        const Tensor x = numbers({5, 6}, dtype), index = positions({9, 4}, 5), src = numbers({9, 6}, dtype);
        compare_layouts(x, {index, src},
                        [&](const Tensors& t) { return scatter_reduce(t[0], 0, t[1], t[2], how, self); });
        if (std::string_view(how) == "sum") continue;
        compare_layouts(x, {positions({9}, 6), numbers({5, 9}, dtype)},
                        [&](const Tensors& t) { return index_reduce(t[0], 1, t[1], t[2], how, self); });
      }
  compare({numbers({4, 3}, kFloat32), positions({1, 3}, 4), numbers({1, 3}, kFloat32)},
          [](const Tensors& t) { return scatter_reduce(t[0], 0, t[1], t[2], "prod", false); });
  const Tensor x = tensor({1.0, NAN}, {2}, kFloat32), src = tensor({NAN, 2.0}, {2}, kFloat32);
  compare({x, positions({2}, 2), src},
          [](const Tensors& t) { return scatter_reduce(t[0], 0, t[1], t[2], "amax"); });
}

TEST_CASE("elements among the values of another tensor") {
  device_on_host();
  for (ScalarType dtype : kAll)
    for (int64_t count : {0, 1, 2, 7, 100}) {
      compare_layouts(numbers({9, 7}, dtype), {numbers({count}, dtype)},
                      [](const Tensors& t) { return isin(t[0], t[1]); });
      compare({positions({40}, 50), positions({count}, 50)},
              [](const Tensors& t) { return isin(t[0], t[1], false, true); });
    }
  compare({tensor({NAN, 1.0}, {2}, kFloat32), tensor({1.0, NAN}, {2}, kFloat32)},
          [](const Tensors& t) { return isin(t[0], t[1]); });
}

TEST_CASE("copies with a view replaced") {
  device_on_host();
  for (ScalarType dtype : kAll) {
    const Tensor x = numbers({5, 6}, dtype);
    compare_layouts(x, {numbers({5, 2}, dtype)},
                    [](const Tensors& t) { return slice_scatter(t[0], t[1], 1, 1, 5, 2); });
    compare_layouts(x, {numbers({6}, dtype)},
                    [](const Tensors& t) { return select_scatter(t[0], t[1], 0, 3); });
    compare_layouts(x, {numbers({4}, dtype)},
                    [](const Tensors& t) { return diagonal_scatter(t[0], t[1], -1); });
    compare_layouts(x, {positions({3}, 5)},
                    [](const Tensors& t) { return index_fill(t[0], 0, t[1], Scalar(1)); });
  }
}

TEST_CASE("embedding and its transpose") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16})
    for (bool scaled : {false, true})
      for (int64_t padding : {-1, 2}) {
        const Tensor weight = numbers({7, 8}, dtype), index = positions({3, 5}, 7);
        ops::EmbeddingBackward::Attrs attrs{{padding, scaled, padding >= 0}, 7};
        compare({index, weight},
                [&](const Tensors& t) { return emit(ops::info<ops::Embedding>, t, &attrs.embedding); });
        compare({index.transpose(0, 1), weight.narrow(1, 1, 5)},
                [&](const Tensors& t) { return emit(ops::info<ops::Embedding>, t, &attrs.embedding); });
        compare({index, numbers({3, 5, 8}, dtype)},
                [&](const Tensors& t) { return emit(ops::info<ops::EmbeddingBackward>, t, &attrs); });
        attrs.embedding.without_padding = false;
        compare_layouts(weight, {index, numbers({3, 5, 8}, dtype)}, [&](const Tensors& t) {
          return emit(ops::info<ops::EmbeddingAdd>, t, &attrs.embedding);
        });
      }
  compare({positions({3, 4}, 5)}, [](const Tensors& t) { return one_hot(t[0], 5); });
  compare({positions({3, 4}, 5)}, [](const Tensors& t) { return one_hot(t[0]); });
}

TEST_CASE("places of what is not zero, and masks as indices") {
  device_on_host();
  for (const IntArray& size : {IntArray{}, IntArray{1}, IntArray{0}, IntArray{70}, IntArray{3000},
                               IntArray{9, 7}, IntArray{3, 4, 5}, IntArray{2, 1, 3, 2}, IntArray{3, 0, 2}})
    for (ScalarType dtype : kAll) {
      const Tensor x = numbers(size, dtype);
      compare({x}, [](const Tensors& t) { return nonzero(t[0]); });
      compare({zeros(size, {dtype})}, [](const Tensors& t) { return nonzero(t[0]); });
      compare({ones(size, {dtype})}, [](const Tensors& t) { return nonzero(t[0]); });
    }
  compare({tensor({NAN, 0.0, -0.0, INFINITY}, {4}, kFloat32)},
          [](const Tensors& t) { return nonzero(t[0]); });
  const Tensor x = numbers({5, 6, 2}, kFloat32), mask = numbers({5, 6}, kBool), rows = numbers({5}, kBool);
  compare({x, mask}, [](const Tensors& t) { return getitem(t[0], {t[1]}); });
  compare({x, rows}, [](const Tensors& t) { return getitem(t[0], {t[1]}); });
  compare({x, mask}, [](const Tensors& t) {
    const Tensor y = clone(t[0]);
    setitem_(y, {t[1]}, 7.0);
    return y;
  });
}

TEST_CASE("for places of what is not zero the host waits once, and reads one number", "[host]") {
  cuda::HostDriver& driver = device_on_host();
  const Tensor x = numbers({40, 50}, kFloat32).to(kCUDA);
  driver.log.clear();
  const int waits = driver.synchronizations;
  const Tensor places = nonzero(x);
  CHECK(driver.synchronizations == waits + 1);
  CHECK(driver.log.substr(0, driver.log.find(" on")) == "copy 8");
  CHECK(driver.log.find("copy", driver.log.find(" on")) == std::string::npos);
  CHECK(places.device() == Device(kCUDA));
}

TEST_CASE("places of what is not zero take no memory of a sort") {
  device_on_host();
  constexpr int64_t n = 100'000;
  const Tensor x = numbers({n}, kBool).to(kCUDA);
  nonzero(x);  // the first time may take memory that is kept
  cuda::Allocator& memory = cuda::gpu_of(0).memory();
  memory.reset_peak();
  const int64_t before = memory.stats().live_bytes;
  const int64_t count = nonzero(x).size(0);
  CHECK(count > n / 2);
  CHECK(memory.stats().peak_bytes - before <= std::max(4 * n + 9 * count, 18 * count) + n / 8);
}

TEST_CASE("more elements than places are found of are refused, by the name of what was asked for") {
  device_on_host();
  const Tensor x = expand(ones({1}, {kBool}).to(kCUDA), {int64_t{1} << 32});
  const auto nonzero_of = [](const Tensor& t) { nonzero(t); };
  CHECK_THROWS_WITH(nonzero_of(x), Catch::Contains("nonzero") && Catch::Contains("4294967294"));
  CHECK(category_of([&] { nonzero(x); }) == Category::unsupported);
}

TEST_CASE("masks, take, and Python's indexing") {
  device_on_host();
  for (ScalarType dtype : kAll) {
    const Tensor x = numbers({5, 6}, dtype), mask = numbers({5, 6}, kBool), row = numbers({6}, kBool);
    compare_layouts(x, {mask}, [](const Tensors& t) { return masked_fill(t[0], t[1], Scalar(1)); });
    compare_layouts(x, {row}, [](const Tensors& t) { return masked_fill(t[0], t[1], Scalar(0)); });
    compare_layouts(x, {mask}, [](const Tensors& t) { return masked_select(t[0], t[1]); });
    compare_layouts(x, {mask, numbers({30}, dtype)},
                    [](const Tensors& t) { return masked_scatter(t[0], t[1], t[2]); });
    compare_layouts(x, {}, [](const Tensors& t) { return nonzero(t[0]); });
    compare_layouts(x, {positions({4}, 30)}, [](const Tensors& t) { return take(t[0], t[1]); });
    compare_layouts(x, {positions({4}, 5), positions({4}, 6)}, [](const Tensors& t) {
      return getitem(t[0], {t[1], t[2]});
    });
    compare_layouts(x, {positions({4}, 5), positions({4}, 6), numbers({4}, dtype)}, [](const Tensors& t) {
      return index_put(t[0], {t[1], t[2]}, t[3], true);
    });
  }
  const Tensor from_the_end = tensor({-1.0, 0.0, -5.0}, {3}, kInt64);
  compare({numbers({5, 6}, kFloat32), from_the_end}, [](const Tensors& t) { return getitem(t[0], {t[1]}); });
  compare({numbers({5, 6}, kFloat32), positions({5}, 3)},
          [](const Tensors& t) { return repeat_interleave(t[0], t[1], 0); });
}

TEST_CASE("transposes of views, which add where the view shows an element more than once") {
  device_on_host();
  for (ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64}) {
    ops::Transposed<ops::Slice>::Attrs sliced{{1, 1, 3, 2}, {4, 7}};
    compare({numbers({4, 3}, dtype)},
            [&](const Tensors& t) { return emit(ops::info<ops::Transposed<ops::Slice>>, t, &sliced); });
    ops::Transposed<ops::AsStrided>::Attrs strided{{{3, 4}, {2, 1}, 1, {}, true}, {12}};
    compare({numbers({4, 3}, dtype).transpose(0, 1)},
            [&](const Tensors& t) { return emit(ops::info<ops::Transposed<ops::AsStrided>>, t, &strided); });
    ops::Geometry place{{2, 2}, {1, 3}, 2, {1, 3}, false};
    compare({numbers({3, 3}, dtype), numbers({2, 2}, dtype)},
            [&](const Tensors& t) { return emit(ops::info<ops::AsStridedScatter>, t, &place); });
  }
}

TEST_CASE("an index out of range is reported when the device is waited for") {
  device_on_host();
  const Tensor x = numbers({3, 4}, kFloat32).to(kCUDA);
  const auto far = [](double at) { return tensor({0.0, at}, {2}, kInt64).to(kCUDA); };
  for (double at : {3.0, -1.0}) {
    const Tensor y = index_select(x, 0, far(at));
    CHECK(category_of([&] { y.to_vector(); }) == Category::index_out_of_range);
    CHECK(y.to_vector().size() == 8);  // reported once
  }
  const Tensor added = index_add(x, 0, far(7), numbers({2, 4}, kFloat32).to(kCUDA));
  CHECK(category_of([] { cuda::gpu_of(0).synchronize(); }) == Category::index_out_of_range);
  CHECK(category_of([&] { getitem(x, {far(-4)}).to_vector(); }) == Category::index_out_of_range);
  CHECK(category_of([&] { scatter(x, 0, unsqueeze(far(9), 1), Scalar(1)).to_vector(); }) ==
        Category::index_out_of_range);

  cuda::gpu_of(0).set_debug(true);
  CHECK(category_of([&] { index_select(x, 0, far(3)); }) == Category::index_out_of_range);
  cuda::gpu_of(0).set_debug(false);
}

TEST_CASE("bits of sums do not depend on the order of blocks and threads") {
  device_on_host();
  const Tensor x = numbers({5, 3}, kFloat32).to(kCUDA), index = positions({700}, 5).to(kCUDA),
               source = numbers({700, 3}, kFloat32).to(kCUDA);
  const auto added = index_add(x, 0, index, source).to_vector(),
             copied = index_copy(x, 0, index, source).to_vector();
  for (unsigned seed : {1u, 2u, 3u}) {
    on_host::set_seed(seed);
    CHECK(index_add(x, 0, index, source).to_vector() == added);
    CHECK(index_copy(x, 0, index, source).to_vector() == copied);
  }
  on_host::set_seed(0);
}
