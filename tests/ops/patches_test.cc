// Windows of pictures (ops/patches.h), channels (ops/channels.h) and bags of rows (ops/embedding_bag.h) by their
// definitions, and what they refuse. Derivatives: tests/ops/derivatives. PyTorch's values: tests/conformance.
#include "ops/patches.h"

#include "engine/autograd.h"
#include "nn/functional.h"
#include "ops/channels.h"
#include "ops/embedding_bag.h"
#include "ops/rearrange.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;
using testing::worst_difference;

Tensor whole(std::initializer_list<double> values) {
  return tensor(std::vector<double>(values), {static_cast<int64_t>(values.size())}, {kInt64});
}

TEST_CASE("im2col has the windows of each channel as columns") {
  const Tensor x = input({2, 2, 4, 5}).detach();
  const Tensor columns = im2col(x, {2, 3}, {2, 1}, {1, 0}, {1, 2});
  REQUIRE(columns.sizes() == IntArray{2, 12, 8});
  const Tensor padded = pad(x, {0, 0, 1, 1});
  double worst = 0;
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j)
        for (int64_t h = 0; h < 4; ++h)
          for (int64_t w = 0; w < 2; ++w) {
            const Tensor got = select(select(columns, 1, (c * 2 + i) * 3 + j), 1, h * 2 + w);
            const Tensor want = select(select(select(padded, 1, c), 1, h + 2 * i), 1, 2 * w + j);
            worst = std::max(worst, worst_difference(got, want));
          }
  CHECK(worst == 0);
}

TEST_CASE("fold adds the windows of unfold back where they came from") {
  const Tensor x = input({1, 3, 6, 4}).detach();
  const auto back = [&](int64_t kernel, int64_t stride) {
    return nn::functional::fold(nn::functional::unfold(x, kernel, 1, 0, stride), {6, 4}, kernel, 1, 0,
                                stride);
  };
  CHECK(worst_difference(back(2, 2), x) == 0);  // windows that do not overlap
  const Tensor counts =
      nn::functional::fold(nn::functional::unfold(ones({1, 3, 6, 4}, {kFloat64}), 3), {6, 4}, 3);
  CHECK(worst_difference(back(3, 1), x * counts) < 1e-14);
  CHECK(col2im(ones({4, 4}), {3, 3}, 2).sizes() == IntArray{1, 3, 3});
  CHECK(im2col(ones({0, 2, 3, 3}), 2).sizes() == IntArray{0, 8, 4});
}

TEST_CASE("col2im in 16 bits adds in float32") {
  const Tensor x = to(input({1, 9, 16}, 1, 2).detach(), kBFloat16);
  const Tensor want = to(col2im(to(x, kFloat32), {6, 6}, 3), kBFloat16);
  CHECK(col2im(x, {6, 6}, 3).to_vector() == want.to_vector());
}

TEST_CASE("lp_pool2d: norms, infinite ones, and the gradient at 0") {
  const Tensor x = tensor({3., -4, 0, 0}, {1, 1, 1, 4}, {kFloat64, kCPU, true});
  const Tensor y = lp_pool2d(x, 2, {1, 2});
  CHECK(y.to_vector() == std::vector<double>{5, 0});
  CHECK(worst_difference(autograd::grad({sum(y)}, {x})[0],
                         tensor({0.6, -0.8, 0, 0}, {1, 1, 1, 4}, {kFloat64})) < 1e-15);
  CHECK(lp_pool2d(x, std::numeric_limits<double>::infinity(), {1, 2}).to_vector() ==
        std::vector<double>{4, 0});
  CHECK(lp_pool2d(x, -std::numeric_limits<double>::infinity(), {1, 2}).to_vector() ==
        std::vector<double>{3, 0});
  CHECK(category_of([&] { lp_pool2d(x, 0, 1); }) == Category::bad_argument);
  CHECK(category_of([&] { lp_pool2d(x, 2, 2); }) == Category::bad_argument);
}

TEST_CASE("pixel_unshuffle undoes pixel_shuffle; channel_shuffle transposes groups") {
  const Tensor x = arange(2 * 8 * 2 * 3);
  const Tensor picture = reshape(x, {2, 8, 2, 3});
  const Tensor large = pixel_shuffle(picture, 2);
  CHECK(large.sizes() == IntArray{2, 2, 4, 6});
  // Pixel (1, 0) of each square is the third of its four channels.
  CHECK(select(select(select(select(large, 0, 0), 0, 0), 0, 1), 0, 0).item<int64_t>() == 2 * 6);
  CHECK(pixel_unshuffle(large, 2).to_vector() == picture.to_vector());
  CHECK(channel_shuffle(reshape(arange(6), {1, 6, 1}), 2).to_vector() ==
        std::vector<double>{0, 3, 1, 4, 2, 5});
  const auto refused = [](const auto& f) { return category_of(f); };
  CHECK(refused([&] { pixel_shuffle(picture, 3); }) == Category::shape_mismatch);
  CHECK(refused([&] { pixel_shuffle(picture, 0); }) == Category::bad_argument);
  CHECK(refused([&] { pixel_shuffle(picture, int64_t{1} << 40); }) == Category::bad_argument);
  CHECK(refused([&] { pixel_shuffle(x, 2); }) == Category::bad_dim);
  CHECK(refused([&] { pixel_unshuffle(picture, 2); }) == Category::shape_mismatch);
  CHECK(refused([&] { channel_shuffle(picture, 3); }) == Category::shape_mismatch);
  CHECK(refused([&] { channel_shuffle(ones({2, 4}), 2); }) == Category::bad_dim);
}

TEST_CASE("local_response_norm: windows of an even and an odd number of channels") {
  const Tensor x = tensor({1., 2, 3, 4}, {1, 4, 1}, {kFloat64});
  const auto norm = [&](int64_t size) {
    return local_response_norm(x, size, static_cast<double>(size), 1.0, 1.0);
  };
  CHECK(worst_difference(norm(2), tensor({1. / 2, 2. / 6, 3. / 14, 4. / 26}, {1, 4, 1}, {kFloat64})) < 1e-15);
  CHECK(worst_difference(norm(3), tensor({1. / 6, 2. / 15, 3. / 30, 4. / 26}, {1, 4, 1}, {kFloat64})) <
        1e-15);
  CHECK(local_response_norm(ones({2, 0, 3}), 2).sizes() == IntArray{2, 0, 3});
  CHECK(category_of([&] { local_response_norm(x, 0); }) == Category::bad_argument);
  CHECK(category_of([&] { local_response_norm(ones({2, 3}), 2); }) == Category::bad_dim);
}

TEST_CASE("embedding_bag: empty bags, padding, entries behind the last offset") {
  const Tensor w = tensor({1., -1, 2, -2, 4, -4}, {3, 2}, {kFloat64}), index = whole({0, 1, 2, 2}),
               starts = whole({0, 2, 2});
  const auto bag = [&](std::string_view mode, std::optional<int64_t> padding = {}) {
    return embedding_bag(index, w, starts, false, mode, {}, false, padding).to_vector();
  };
  CHECK(bag("sum") == std::vector<double>{3, -3, 0, 0, 8, -8});
  CHECK(bag("mean") == std::vector<double>{1.5, -1.5, 0, 0, 4, -4});
  CHECK(bag("max") == std::vector<double>{2, -1, 0, 0, 4, -4});
  CHECK(bag("mean", 1) == std::vector<double>{1, -1, 0, 0, 4, -4});
  CHECK(bag("max", -1) == std::vector<double>{2, -1, 0, 0, 0, 0});
  const Tensor leaf = w.detach().requires_grad_();
  const Tensor first = embedding_bag(index, leaf, whole({0, 2}), false, "sum", {}, true);
  CHECK(first.to_vector() == std::vector<double>{3, -3});
  CHECK(autograd::grad({sum(first)}, {leaf})[0].to_vector() == std::vector<double>{1, 1, 1, 1, 0, 0});
  // Twice in the bags: each gradient counts half.
  const Tensor scaled = embedding_bag(index, leaf, starts, true, "sum");
  CHECK(autograd::grad({sum(scaled)}, {leaf})[0].to_vector() == std::vector<double>{1, 1, 1, 1, 1, 1});
}

TEST_CASE("embedding_bag in 16 bits adds in float32") {
  const Tensor w = to(input({40, 3}, 1, 2).detach(), kFloat16), index = reshape(arange(40), {1, 40});
  CHECK(embedding_bag(index, w).to_vector() ==
        to(embedding_bag(index, to(w, kFloat32)), kFloat16).to_vector());
}

TEST_CASE("what embedding_bag refuses") {
  const Tensor w = ones({3, 2}), index = whole({0, 1, 2}), starts = whole({0, 1});
  const auto refused = [&](const Tensor& i, const Tensor& offsets, std::string_view mode = "sum",
                           const Tensor& factors = {}, bool last = false, std::optional<int64_t> padding = {},
                           bool scale = false) {
    return category_of([&] { embedding_bag(i, w, offsets, scale, mode, factors, last, padding); });
  };
  CHECK(refused(whole({0, 3}), starts) == Category::index_out_of_range);
  CHECK(refused(whole({0, -1}), starts) == Category::index_out_of_range);
  CHECK(refused(index, whole({1, 2})) == Category::bad_argument);
  CHECK(refused(index, whole({0, 2, 1})) == Category::bad_argument);
  CHECK(refused(index, whole({0, 4})) == Category::index_out_of_range);
  CHECK(refused(index, {}) == Category::bad_argument);
  CHECK(refused(reshape(index, {1, 3}), starts) == Category::bad_argument);
  CHECK(refused(reshape(index, {1, 1, 3}), {}) == Category::bad_dim);
  CHECK(refused(index, starts, "median") == Category::bad_argument);
  CHECK(refused(index, starts, "mean", ones({3})) == Category::bad_argument);
  CHECK(refused(index, starts, "sum", ones({2})) == Category::shape_mismatch);
  CHECK(refused(index, starts, "sum", ones({3}, {kFloat64})) == Category::dtype_mismatch);
  CHECK(refused(index, whole({}), "sum", {}, true) == Category::bad_argument);
  CHECK(refused(index, starts, "sum", {}, false, 3) == Category::bad_argument);
  CHECK(refused(index, starts, "max", {}, false, {}, true) == Category::bad_argument);
  CHECK(refused(ones({3}), starts) == Category::dtype_mismatch);
}

TEST_CASE("what patches refuse") {
  const Tensor x = ones({1, 2, 3, 4});
  const auto refused = [](const auto& f) { return category_of(f); };
  CHECK(refused([&] { im2col(ones({3, 4}), 2); }) == Category::bad_dim);
  CHECK(refused([&] { im2col(x, 5); }) == Category::bad_argument);
  CHECK(refused([&] { im2col(x, 2, 1, -1); }) == Category::bad_argument);
  CHECK(refused([&] { im2col(x, 2, 1, 0, 0); }) == Category::bad_argument);
  CHECK(refused([&] { im2col(x, IntList{1, 2, 3}); }) == Category::bad_argument);
  CHECK(refused([&] { im2col(ones({1, 0, 3, 4}), 2); }) == Category::bad_argument);
  CHECK(refused([&] { im2col(x, int64_t{1} << 40); }) == Category::bad_argument);
  CHECK(refused([&] { col2im(ones({1, 4, 5}), {3, 3}, 2); }) == Category::shape_mismatch);
  CHECK(refused([&] { col2im(ones({1, 5, 4}), {3, 3}, 2); }) == Category::shape_mismatch);
  CHECK(refused([&] { col2im(ones({1, 1, 4, 4}), {3, 3}, 2); }) == Category::bad_dim);
  CHECK(refused([&] { col2im(ones({1, 4, 4}, {kInt64}), {3, 3}, 2); }) == Category::dtype_mismatch);
}

}  // namespace
}  // namespace retrograd
