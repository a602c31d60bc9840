// grid_sample against its definition at single points, affine_grid, and what they refuse. Derivatives:
// tests/ops/derivatives. PyTorch's values: tests/conformance.
#include "ops/grid_sample.h"

#include "engine/autograd.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/ops/gradcheck.h"

namespace retrograd {
namespace {

using testing::input;
using testing::worst_difference;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInfinity = std::numeric_limits<double>::infinity();

const Tensor kPicture = tensor({1., 2, 3, 4, 5, 6}, {1, 1, 2, 3}, {kFloat64});

// The picture above at one point.
double at(double x, double y, std::string_view mode = "bilinear", std::string_view padding = "zeros",
          bool align_corners = true) {
  return grid_sample(kPicture, tensor({x, y}, {1, 1, 1, 2}, {kFloat64}), mode, padding, align_corners)
      .item<double>();
}

TEST_CASE("the grid of the identity gives the picture") {
  const Tensor identity = tensor({1., 0, 0, 0, 1, 0}, {1, 2, 3}, {kFloat64});
  const Tensor x = input({1, 3, 4, 5}).detach();
  for (bool align : {false, true})
    for (const char* mode : {"bilinear", "nearest", "bicubic"})
      for (const char* padding : {"zeros", "border", "reflection"}) {
        INFO(mode << " " << padding << " " << align);
        const Tensor grid = affine_grid(identity, {1, 3, 4, 5}, align);
        CHECK(worst_difference(grid_sample(x, grid, mode, padding, align), x) < 1e-14);
      }
}

TEST_CASE("coordinates: x goes along the last dim, -1 and 1 are centres or edges") {
  CHECK(at(-1, -1) == 1);
  CHECK(at(1, -1) == 3);
  CHECK(at(0.5, 1) == 5.5);
  CHECK(at(-1, -1, "bilinear", "zeros", false) == 0.25);  // a corner: three neighbours are outside
  CHECK(at(-1, -1, "bilinear", "border", false) == 1);
  CHECK(at(0, 0, "nearest") == 2);  // between two rows the even one
}

TEST_CASE("points outside: zeros, the border, or the reflection") {
  CHECK(at(-3, 0) == 0);
  CHECK(at(-3, -1, "bilinear", "border") == 1);
  CHECK(at(1.5, -1, "bilinear", "reflection") == 2.5);
  CHECK(at(-3, -1, "bilinear", "reflection") == 3);
  CHECK(at(3, -1, "nearest", "reflection") == 1);
  CHECK(at(1e300, 0, "bicubic", "zeros") == 0);
}

TEST_CASE("infinite coordinates and nan read no memory outside") {
  for (const char* mode : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (bool align : {false, true})
        for (double c : {kNan, kInfinity, -kInfinity, 1e300, -1e300}) {
          const Tensor grid = tensor({c, 0.1, 0.1, c}, {1, 1, 2, 2}, {kFloat64, kCPU, true});
          const Tensor x = kPicture.detach().requires_grad_();
          const Tensor y = grid_sample(x, grid, mode, padding, align);
          CHECK_NOTHROW(sum(y).backward());
        }
  CHECK(std::isnan(at(kNan, 0)));
  CHECK(at(kNan, 0, "nearest") == 0);
}

TEST_CASE("16-bit pictures are sampled in float32 and rounded once") {
  const Tensor grid = to(input({1, 3, 3, 2}).detach(), kBFloat16),
               x = to(input({1, 2, 4, 4}).detach(), kBFloat16);
  const Tensor got = grid_sample(x, grid, "bicubic"),
               want = grid_sample(to(x, kFloat32), to(grid, kFloat32), "bicubic");
  CHECK(got.to_vector() == to(want, kBFloat16).to_vector());
}

TEST_CASE("empty batches and grids; a batch is independent of its company") {
  CHECK(grid_sample(ones({0, 1, 2, 2}), ones({0, 3, 2, 2})).sizes() == IntArray{0, 1, 3, 2});
  CHECK(grid_sample(ones({1, 0, 2, 2}), ones({1, 3, 2, 2})).sizes() == IntArray{1, 0, 3, 2});
  const Tensor x = input({3, 17, 9, 8}).detach(), grid = input({3, 11, 13, 2}).detach();
  const Tensor all = grid_sample(x, grid), one = grid_sample(narrow(x, 0, 1, 1), narrow(grid, 0, 1, 1));
  CHECK(narrow(all, 0, 1, 1).contiguous().to_vector() == one.to_vector());
}

TEST_CASE("affine_grid: sizes of 1 stand in the middle") {
  const Tensor theta = tensor({2., 0, 0.5, 0, 3, -0.5}, {1, 2, 3}, {kFloat64});
  for (bool align : {false, true})
    CHECK(affine_grid(theta, {1, 1, 1, 1}, align).to_vector() == std::vector<double>{0.5, -0.5});
  CHECK(affine_grid(theta, {1, 1, 1, 2}, true).to_vector() == std::vector<double>{-1.5, -0.5, 2.5, -0.5});
  CHECK(affine_grid(theta, {1, 1, 1, 2}).to_vector() == std::vector<double>{-0.5, -0.5, 1.5, -0.5});
}

TEST_CASE("what grid_sample and affine_grid refuse") {
  const Tensor x = ones({1, 1, 2, 2}), grid = ones({1, 3, 3, 2});
  const auto refused = [](const auto& f) { return category_of(f); };
  CHECK(refused([&] { grid_sample(x, grid, "linear"); }) == Category::bad_argument);
  CHECK(refused([&] { grid_sample(x, grid, "bilinear", "circular"); }) == Category::bad_argument);
  CHECK(refused([&] { grid_sample(x, ones({2, 3, 3, 2})); }) == Category::shape_mismatch);
  CHECK(refused([&] { grid_sample(x, ones({1, 3, 3, 3})); }) == Category::shape_mismatch);
  CHECK(refused([&] { grid_sample(x, ones({1, 3, 2})); }) == Category::bad_dim);
  CHECK(refused([&] { grid_sample(ones({1, 2, 2}), ones({1, 2, 1})); }) == Category::bad_dim);
  CHECK(refused([&] { grid_sample(ones({1, 1, 0, 2}), grid); }) == Category::bad_argument);
  CHECK(refused([&] { grid_sample(x, to(grid, kFloat64)); }) == Category::dtype_mismatch);
  CHECK(refused([&] { grid_sample(to(x, kInt64), to(grid, kInt64)); }) == Category::dtype_mismatch);
  const Tensor theta = ones({1, 2, 3});
  CHECK(refused([&] { affine_grid(theta, {1, 1, 2}); }) == Category::bad_dim);
  CHECK(refused([&] { affine_grid(theta, {2, 1, 2, 2}); }) == Category::shape_mismatch);
  CHECK(refused([&] { affine_grid(theta, {1, 1, 0, 2}); }) == Category::bad_argument);
  CHECK(refused([&] { affine_grid(to(theta, kInt64), {1, 1, 2, 2}); }) == Category::dtype_mismatch);
}

}  // namespace
}  // namespace retrograd
