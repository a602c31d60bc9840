// The three ops of convolutions: values against loops in double for many strides, paddings, dilations,
// groups, sizes, layouts and dtypes, and for any number of threads.
//
// The reference visits every pair of a result and a place of the kernel, so it serves all three. Not tested
// here: the public functions and derivatives (convolution_functions_test.cc), results against PyTorch
// (tests/conformance).
#include "ops/convolution.h"

#include "cpu/parallel.h"
#include "ops/rearrange.h"
#include "ops/views.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;
using testing::worst_difference;

Tensor fixed(const Shape& shape, int seed, ScalarType dtype = kFloat64) {
  return to(input(shape, -1, 1, seed).detach(), dtype);
}

struct Geometry {
  int64_t batch, groups, in, out;  // channels per group
  IntArray size, kernel, stride, padding, dilation;

  int rank() const { return static_cast<int>(size.size()); }
  int64_t small(int d) const {
    const size_t i = static_cast<size_t>(d);
    return (size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
  }
  IntArray small() const {
    IntArray sizes;
    for (int d = 0; d < rank(); ++d) sizes.push_back(small(d));
    return sizes;
  }
  static IntArray shape(int64_t first, int64_t second, const IntArray& rest) {
    IntArray all{first, second};
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }
  Shape large_shape() const { return shape(batch, groups * in, size); }
  Shape weight_shape() const { return shape(groups * out, in, kernel); }
  Shape small_shape() const { return shape(batch, groups * out, small()); }
  std::string text() const {
    std::string all = std::to_string(batch) + " x " + std::to_string(groups) + " groups " +
                      std::to_string(in) + " -> " + std::to_string(out);
    const auto add = [&](const char* name, const IntArray& list) {
      all += std::string(", ") + name;
      for (int64_t v : list) all += " " + std::to_string(v);
    };
    add("size", size), add("kernel", kernel), add("stride", stride), add("padding", padding),
        add("dilation", dilation);
    return all;
  }
};

int64_t product(const IntArray& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// Calls f(large, weight, small) with the elements of every term of the form in ops/convolution.h.
template <class F>
void for_terms(const Geometry& g, F&& f) {
  const IntArray sizes = g.small();
  const int64_t places = product(sizes), taps = product(g.kernel), plane = product(g.size);
  for (int64_t o = 0; o < places; ++o)
    for (int64_t t = 0; t < taps; ++t) {
      int64_t i = 0, step = 1, left = o, tap = t;
      bool inside = true;
      for (int d = g.rank() - 1; d >= 0; --d) {
        const size_t k = static_cast<size_t>(d);
        const int64_t at = left % sizes[k] * g.stride[k] + tap % g.kernel[k] * g.dilation[k] - g.padding[k];
        inside &= at >= 0 && at < g.size[k];
        i += at * step;
        step *= g.size[k];
        left /= sizes[k];
        tap /= g.kernel[k];
      }
      if (!inside) continue;
      for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t group = 0; group < g.groups; ++group)
          for (int64_t k = group * g.out; k < (group + 1) * g.out; ++k)
            for (int64_t c = 0; c < g.in; ++c)
              f(static_cast<size_t>((n * g.groups * g.in + group * g.in + c) * plane + i),
                static_cast<size_t>((k * g.in + c) * taps + t),
                static_cast<size_t>((n * g.groups * g.out + k) * places + o));
    }
}

// The three derivatives of the form.
struct Reference {
  Tensor convolution, transpose, weight;

  Reference(const Geometry& g, const Tensor& x, const Tensor& w, const Tensor& y) {
    const std::vector<double> large = x.to_vector(), kernel = w.to_vector(), small = y.to_vector();
    std::vector<double> by_small(small.size()), by_large(large.size()), by_kernel(kernel.size());
    for_terms(g, [&](size_t i, size_t t, size_t o) {
      by_small[o] += large[i] * kernel[t];
      by_large[i] += small[o] * kernel[t];
      by_kernel[t] += small[o] * large[i];
    });
    convolution = tensor(by_small, g.small_shape(), {kFloat64});
    transpose = tensor(by_large, g.large_shape(), {kFloat64});
    weight = tensor(by_kernel, g.weight_shape(), {kFloat64});
  }
};

struct Results {
  Tensor convolution, transpose, weight;
};

Results run(const Geometry& g, const Tensor& x, const Tensor& w, const Tensor& y) {
  ops::ConvolutionAttrs attrs{g.stride, g.padding, g.dilation, g.groups, {}};
  const auto sized = [&](const IntArray& size) {
    attrs.size = size;
    return attrs;
  };
  Results r;
  r.convolution = ops::emit<ops::Convolution>({x.get(), w.get(), nullptr}, sized(g.small()), {});
  r.transpose = ops::emit<ops::ConvolutionTranspose>({y.get(), w.get(), nullptr}, sized(g.size), {});
  if (is_floating(x.dtype()))
    r.weight = ops::emit<ops::ConvolutionWeight>({x.get(), y.get()}, sized(g.kernel), {});
  return r;
}

void check(const Geometry& g, ScalarType dtype = kFloat64, double tolerance = 1e-12) {
  INFO(g.text());
  const Tensor x = fixed(g.large_shape(), 1, dtype), w = fixed(g.weight_shape(), 2, dtype),
               y = fixed(g.small_shape(), 3, dtype);
  const Reference want(g, x, w, y);
  const Results got = run(g, x, w, y);
  CHECK(got.convolution.dtype() == dtype);
  CHECK(worst_difference(got.convolution, want.convolution) < tolerance);
  CHECK(worst_difference(got.transpose, want.transpose) < tolerance);
  CHECK(worst_difference(got.weight, want.weight) < tolerance);
}

TEST_CASE("every stride, padding, dilation and kernel of a line") {
  for (int64_t stride : {1, 2, 3, 5})
    for (int64_t padding : {0, 1, 4})
      for (int64_t dilation : {1, 2, 3, 4})
        for (int64_t kernel : {1, 2, 3, 5})
          for (int64_t out : {2, 6})  // by lines, by tiles
            if (37 + 2 * padding > dilation * (kernel - 1))
              check({2, 1, 3, out, {37}, {kernel}, {stride}, {padding}, {dilation}});
}

TEST_CASE("planes: sizes, strides, paddings and dilations differ by dim") {
  for (int64_t out : {1, 5, 17}) {
    check({2, 1, 3, out, {9, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}});
    check({1, 1, 2, out, {9, 14}, {3, 2}, {2, 3}, {2, 0}, {1, 2}});
    check({3, 1, 4, out, {5, 7}, {1, 3}, {3, 1}, {0, 3}, {2, 3}});
    check({1, 1, 3, out, {8, 40}, {3, 1}, {1, 1}, {1, 0}, {1, 1}});  // the last dim is passed through
    check({2, 1, 3, out, {6, 5}, {1, 1}, {1, 1}, {0, 0}, {1, 1}});   // a plain product
    check({2, 1, 3, out, {6, 5}, {1, 1}, {2, 2}, {0, 0}, {1, 1}});
    check({2, 1, 3, out, {6, 5}, {1, 1}, {1, 1}, {1, 2}, {1, 1}});  // results outside the input
    check({1, 1, 2, out, {4, 4}, {4, 4}, {1, 1}, {0, 0}, {1, 1}});  // one result
    check({2, 1, 2, out, {4, 5}, {3, 3}, {1, 1}, {5, 6}, {1, 1}});  // windows outside the input
    check({1, 1, 2, out, {7, 9}, {2, 2}, {4, 5}, {0, 0}, {1, 1}});  // places that no window reads
  }
}

TEST_CASE("three dims") {
  for (int64_t out : {2, 7}) {
    check({2, 1, 2, out, {4, 5, 6}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
    check({1, 1, 3, out, {5, 6, 7}, {3, 2, 1}, {2, 1, 3}, {1, 0, 2}, {1, 2, 1}});
    check({1, 1, 3, out, {5, 4, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}});
  }
}

TEST_CASE("groups, depthwise among them") {
  for (int64_t in : {1, 2, 5})
    for (int64_t out : {1, 2, 5, 20})
      for (int64_t stride : {1, 2}) {
        check({2, 3, in, out, {7, 9}, {3, 3}, {stride, stride}, {1, 1}, {1, 2}});
        check({2, 3, in, out, {11}, {4}, {stride}, {2}, {2}});
      }
}

TEST_CASE("sizes beyond one tile, strip, panel and block") {
  check({1, 1, 70, 33, {20, 19}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, kFloat64, 1e-10);
  check({2, 1, 3, 70, {40, 33}, {7, 7}, {2, 2}, {3, 3}, {1, 1}}, kFloat64, 1e-10);
  check({9, 1, 20, 24, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, kFloat64, 1e-10);
  check({1, 1, 2, 6, {3000}, {700}, {1}, {0}, {2}}, kFloat64, 1e-10);  // a kernel longer than a strip is high
  check({2, 2, 1, 1, {130, 150}, {5, 5}, {1, 1}, {2, 2}, {1, 1}}, kFloat64, 1e-10);  // bands
  check({1, 1, 300, 2, {12, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, kFloat64, 1e-10);
}

TEST_CASE("dtypes: 16-bit floats are summed in float32 and rounded once") {
  const Geometry tiles{2, 1, 40, 8, {9, 9}, {3, 3}, {2, 1}, {1, 1}, {1, 1}},
      lines{2, 4, 1, 1, {9, 9}, {3, 3}, {2, 1}, {1, 1}, {1, 1}};
  for (const Geometry& g : {tiles, lines}) {
    check(g, kFloat32, 2e-5);
    for (ScalarType small : {kBFloat16, kHalf}) {
      const Tensor x = fixed(g.large_shape(), 1, small), w = fixed(g.weight_shape(), 2, small),
                   y = fixed(g.small_shape(), 3, small);
      const Results got = run(g, x, w, y), once = run(g, to(x, kFloat32), to(w, kFloat32), to(y, kFloat32));
      CHECK(got.convolution.dtype() == small);
      CHECK(worst_difference(got.convolution, to(once.convolution, small)) == 0);
      CHECK(worst_difference(got.transpose, to(once.transpose, small)) == 0);
      CHECK(worst_difference(got.weight, to(once.weight, small)) == 0);
    }
  }
}

TEST_CASE("integers are convolved, and have no gradient") {
  const Geometry g{2, 2, 3, 5, {6, 7}, {3, 2}, {2, 1}, {1, 0}, {1, 2}};
  for (ScalarType dtype : {kInt64, kInt32}) {
    const auto whole = [&](const Shape& shape, int seed) {
      return to(input(shape, -9, 9, seed).detach(), dtype);
    };
    const Tensor x = whole(g.large_shape(), 1), w = whole(g.weight_shape(), 2), y = whole(g.small_shape(), 3);
    const Results got = run(g, x, w, y);
    const Reference want(g, x, w, y);
    CHECK(got.convolution.dtype() == dtype);
    CHECK(worst_difference(got.convolution, want.convolution) == 0);
    CHECK(worst_difference(got.transpose, want.transpose) == 0);
  }
  const Tensor big = full({1, 1, 2}, int64_t{1} << 62, kInt64);
  CHECK(conv1d(big, full({1, 1, 2}, 2, kInt64)).item<int64_t>() == 0);  // wraps around
}

TEST_CASE("operands of any layout") {
  const Tensor x = fixed({2, 6, 7, 3}, 1), w = fixed({3, 3, 5, 4}, 2);  // channels last, and turned
  const Tensor last = permute(x, {0, 3, 1, 2}), turned = permute(w, {3, 0, 1, 2}),
               wide = slice(fixed({2, 3, 12, 7}, 4), 2, 0, 12, 2);
  const Tensor bias = slice(fixed({8}, 3), 0, 0, 8, 2);
  CHECK(worst_difference(conv2d(last, turned, bias), conv2d(contiguous(last), contiguous(turned), bias)) ==
        0);
  CHECK(worst_difference(conv2d(wide, turned), conv2d(contiguous(wide), contiguous(turned))) == 0);
  CHECK(worst_difference(conv2d(expand(narrow(last, 0, 0, 1), {2, 3, 6, 7}), turned),
                         conv2d(repeat(narrow(last, 0, 0, 1), {2, 1, 1, 1}), turned)) == 0);
  CHECK(worst_difference(conv_transpose2d(last, w), conv_transpose2d(contiguous(last), w)) == 0);
}

TEST_CASE("what no window reads does not matter, and an infinity stays where it is read") {
  for (int64_t out : {1, 8}) {
    Tensor x = ones({1, 1, 10}), w = ones({out, 1, 3}), y = ones({1, out, 3});
    x.data_ptr<float>()[9] = INFINITY;  // stride 3: windows end at place 8
    const Results r = run({1, 1, 1, out, {10}, {3}, {3}, {0}, {1}}, x, w, y);
    CHECK(r.convolution.to_vector() == std::vector<double>(static_cast<size_t>(3 * out), 3.0));
    CHECK(r.weight.to_vector() == std::vector<double>(static_cast<size_t>(3 * out), 3.0));
    x = ones({1, 1, 3});
    x.data_ptr<float>()[2] = INFINITY;
    const Tensor got =
        run({1, 1, 1, out, {3}, {2}, {1}, {0}, {1}}, x, ones({out, 1, 2}), ones({1, out, 2})).weight;
    CHECK(got.to_vector()[0] == 2);
    CHECK(got.to_vector()[1] == INFINITY);
  }
}

TEST_CASE("the number of threads does not change a bit") {
  const Geometry shapes[] = {{3, 1, 24, 40, {17, 19}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
                             {2, 1, 3, 20, {41, 37}, {5, 5}, {2, 2}, {2, 2}, {1, 1}},
                             {5, 30, 1, 1, {23, 20}, {3, 3}, {2, 1}, {1, 1}, {1, 1}}};
  const int before = cpu::get_num_threads();
  for (const Geometry& g : shapes) {
    const Tensor x = fixed(g.large_shape(), 1, kFloat32), w = fixed(g.weight_shape(), 2, kFloat32),
                 y = fixed(g.small_shape(), 3, kFloat32);
    cpu::set_num_threads(1);
    const Results alone = run(g, x, w, y);
    cpu::set_num_threads(5);
    const Results together = run(g, x, w, y);
    CHECK(worst_difference(alone.convolution, together.convolution) == 0);
    CHECK(worst_difference(alone.transpose, together.transpose) == 0);
    CHECK(worst_difference(alone.weight, together.weight) == 0);
  }
  cpu::set_num_threads(before);
}

}  // namespace
}  // namespace retrograd
