// Extreme numbers (tests/ops/extreme_sizes.h) as indices, dims, numbers of classes, and in windows.
#include "tests/ops/extreme_sizes.h"

#include "ops/arithmetic.h"
#include "ops/contraction.h"
#include "ops/convolution.h"
#include "ops/embedding.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/interpolate.h"
#include "ops/join.h"
#include "ops/linalg.h"
#include "ops/losses.h"
#include "ops/norms.h"
#include "ops/pooling.h"
#include "ops/sampling.h"
#include "ops/scan.h"
#include "ops/scatter_reduce.h"
#include "ops/softmax.h"
#include "ops/sort.h"
#include "ops/views.h"

namespace retrograd {
namespace {

using namespace extreme;

TEST_CASE("indices and numbers of classes") {
  const MemoryLimit limit;
  const Tensor x = leaf({3, 4});
  const auto index = [](int64_t a, const Shape& shape = {1}) { return full(shape, a, {kInt64}); };
  using indexing::Slice;
  each_pair("x[a, b]", [&](int64_t a, int64_t b) { return getitem(x, {a, b}); });
  each_pair("x[a:b]", [&](int64_t a, int64_t b) { return getitem(x, {Slice{a, b, 2}}); });
  each_pair("x[:, a::b]", [&](int64_t a, int64_t b) { return getitem(x, {Slice{}, Slice{a, {}, b}}); });
  each_pair("x[tensor, tensor]", [&](int64_t a, int64_t b) { return getitem(x, {index(a), index(b)}); });
  each("take", [&](int64_t a) { return take(x, index(a)); });
  each_pair("gather", [&](int64_t a, int64_t b) { return gather(x, b, index(a, {1, 1})); });
  each_pair("scatter", [&](int64_t a, int64_t b) { return scatter(x, b, index(a, {1, 1}), leaf({1, 1})); });
  each_pair("scatter_add", [&](int64_t a, int64_t b) {
    return scatter_add(x, b, index(a, {1, 1}), leaf({1, 1}));
  });
  each_pair("index_select", [&](int64_t a, int64_t b) { return index_select(x, b, index(a)); });
  each_pair("index_add", [&](int64_t a, int64_t b) { return index_add(x, b, index(a), leaf({1, 4})); });
  each_pair("index_copy", [&](int64_t a, int64_t b) { return index_copy(x, b, index(a), leaf({1, 4})); });
  each_pair("scatter_reduce", [&](int64_t a, int64_t b) {
    return scatter_reduce(x, b, index(a, {1, 1}), leaf({1, 1}), "amax");
  });
  each_pair("index_reduce", [&](int64_t a, int64_t b) {
    return index_reduce(x, b, index(a), leaf({1, 4}), "prod");
  });
  each_pair("index_fill", [&](int64_t a, int64_t b) { return index_fill(x, b, index(a), 2); });
  each("put", [&](int64_t a) { return put(x, index(a), leaf({1})); });
  each("index_put", [&](int64_t a) { return index_put(x, {index(a)}, leaf({4})); });
  each_pair("embedding", [&](int64_t a, int64_t b) { return embedding(x, index(a), b); });
  each_pair("cross_entropy", [&](int64_t a, int64_t b) { return cross_entropy(x, index(a, {3}), {}, "mean", b); });
  each_pair("nll_loss", [&](int64_t a, int64_t b) { return nll_loss(x, index(a, {3}), {}, "mean", b); });
  each_pair("topk", [&](int64_t a, int64_t b) { return topk(x, a, b).values; });
  each("multinomial", [&](int64_t a) { return multinomial(x, a); });
  each("multinomial with replacement", [&](int64_t a) { return multinomial(x, a, true); });
}

TEST_CASE("dims and counts of reductions, norms, joins") {
  const MemoryLimit limit;
  const Tensor x = leaf({3, 4});
  each_pair("sum", [&](int64_t a, int64_t b) { return sum(x, {a, b}); });
  each_pair("var", [&](int64_t a, int64_t b) { return var(x, {a}, b); });
  each("amax", [&](int64_t a) { return amax(x, {a}); });
  each("prod", [&](int64_t a) { return prod(x, a); });
  each("argmax", [&](int64_t a) { return argmax(x, a); });
  each("logsumexp", [&](int64_t a) { return logsumexp(x, {a}); });
  each("vector_norm", [&](int64_t a) { return vector_norm(x, 2, {a}); });
  each("cumsum", [&](int64_t a) { return cumsum(x, a); });
  each("sort", [&](int64_t a) { return sort(x, a).values; });
  each("softmax", [&](int64_t a) { return softmax(x, a); });
  each("cat", [&](int64_t a) { return cat({x, x}, a); });
  each("stack", [&](int64_t a) { return stack({x, x}, a); });
  each("cat of what is large", [&](int64_t a) {
    return cat({expand(leaf({1}), {a}), expand(leaf({1}), {a})});
  });
  each_pair("layer_norm", [&](int64_t a, int64_t b) { return layer_norm(x, {a, b}); });
  each("group_norm", [&](int64_t a) { return group_norm(x, a); });
  each("cosine_similarity", [&](int64_t a) { return cosine_similarity(x, x, a); });
  each("matrix_power", [&](int64_t a) { return matrix_power(eye(3) * 0.5, a); });
  each("tensordot", [&](int64_t a) { return tensordot(x, x, a); });
}

TEST_CASE("windows") {
  const MemoryLimit limit;
  const Tensor line = leaf({1, 2, 5}), grid = leaf({1, 2, 5, 4}), w = leaf({2, 2, 3});
  each_pair("conv1d", [&](int64_t a, int64_t b) { return conv1d(line, w, {}, a, b); });
  each_pair("conv1d's dilation and groups",
            [&](int64_t a, int64_t b) { return conv1d(line, w, {}, 1, 1, a, b); });
  each_pair("conv1d's padding and dilation",
            [&](int64_t a, int64_t b) { return conv1d(line, w, {}, 1, a, b); });
  each("conv1d, same", [&](int64_t a) { return conv1d(line, w, {}, 1, "same", a); });
  each_pair("conv2d", [&](int64_t a, int64_t b) {
    return conv2d(grid, leaf({1, 2, 2, 2}), {}, {a, 1}, {0, b});
  });
  each_pair("conv_transpose1d", [&](int64_t a, int64_t b) { return conv_transpose1d(line, w, {}, a, b); });
  each_pair("conv_transpose1d's output_padding and dilation",
            [&](int64_t a, int64_t b) { return conv_transpose1d(line, w, {}, 2, 0, a, 1, b); });
  each_pair("conv_transpose1d's stride and dilation",
            [&](int64_t a, int64_t b) { return conv_transpose1d(line, w, {}, a, 0, 0, 1, b); });
  for (const bool ceil_mode : {false, true}) {
    each_pair("max_pool1d", [&](int64_t a, int64_t b) { return max_pool1d(line, a, b, 0, 1, ceil_mode); });
    each_pair("max_pool1d's padding and dilation",
              [&](int64_t a, int64_t b) { return max_pool1d(line, 2, 1, a, b, ceil_mode); });
    each_pair("max_pool1d's kernel and padding",
              [&](int64_t a, int64_t b) { return max_pool1d(line, a, 1, b, 1, ceil_mode); });
    each_pair("avg_pool2d", [&](int64_t a, int64_t b) {
      return avg_pool2d(grid, {a, 2}, {b, 1}, 0, ceil_mode);
    });
    each_pair("avg_pool2d's kernel and padding", [&](int64_t a, int64_t b) {
      return avg_pool2d(grid, {2, a}, 1, {0, b}, ceil_mode);
    });
  }
  each("avg_pool2d's divisor", [&](int64_t a) { return avg_pool2d(grid, 2, 1, 0, false, true, a); });
  each_pair("adaptive_avg_pool2d", [&](int64_t a, int64_t b) { return adaptive_avg_pool2d(grid, {a, b}); });
  each_pair("adaptive_max_pool2d", [&](int64_t a, int64_t b) { return adaptive_max_pool2d(grid, {a, b}); });
  for (const char* mode : {"nearest", "nearest-exact", "bilinear", "bicubic", "area"}) {
    each_pair(std::string("interpolate, ") + mode, [&](int64_t a, int64_t b) {
      return interpolate(grid, {.size = {a, b}, .mode = mode});
    });
    for (const double factor : {1e300, 1e18, 1e-300, -1.0, 0.0, std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()})
      check("interpolate by " + std::to_string(factor),
            [&] { return Tensors{interpolate(grid, {.scale_factor = factor, .mode = mode})}; });
  }
}

}  // namespace
}  // namespace retrograd
