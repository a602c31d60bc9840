// Pooling layers: each is its function with its options, and errors name the line that called the layer.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Tensor;

namespace {

struct Net : nn::Module {
  nn::MaxPool2d largest{this, "largest", {3, 2}, {.stride = 2, .padding = {1, 0}, .ceil_mode = true}};
  nn::AvgPool2d average{this, "average", 2, {.stride = 1, .padding = 1, .count_include_pad = false}};
  nn::AdaptiveAvgPool2d adaptive{this, "adaptive", {3, std::nullopt}};
  nn::Upsample up{this, "up", {.scale_factor = 2, .mode = "bilinear"}};
};

bool same(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.to_vector() == b.to_vector();
}

TEST_CASE("layers are their functions") {
  const Net net;
  const Tensor x = rg::rand({2, 3, 7, 9});
  CHECK(net.parameters().empty());
  CHECK(same(net.largest(x), rg::max_pool2d(x, {3, 2}, 2, {1, 0}, 1, true)));
  CHECK(same(net.average(x), rg::avg_pool2d(x, 2, 1, 1, false, false)));
  CHECK(same(net.adaptive(x), rg::adaptive_avg_pool2d(x, {3, 9})));
  CHECK(same(net.up(x), rg::interpolate(x, {.scale_factor = 2, .mode = "bilinear"})));
}

TEST_CASE("errors name the caller's line") {
  const Net net;
  std::string text;
  const int line = __LINE__ + 2;
  try {
    net.largest(rg::zeros({2, 2}));
  } catch (const rg::Error& e) {
    text = e.what();
  }
  CHECK(text.find("pooling_test.cc:" + std::to_string(line)) != std::string::npos);
}

}  // namespace
