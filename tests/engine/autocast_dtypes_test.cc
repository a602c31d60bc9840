// The dtype of each op under autocast, against those that PyTorch gives with its CUDA lists, and values of each list.
#include <catch2/catch.hpp>

#include <functional>
#include <vector>

#include "retrograd/retrograd.h"
#include "tests/engine/autocast.h"
#include "tests/errors.h"

namespace {

using namespace autocast_tests;
using rg::autocast;
using rg::Category;
using rg::category_of;
using rg::kBFloat16;
using rg::kFloat16;
using rg::kFloat32;
using rg::kFloat64;
using rg::ScalarType;
using rg::Shape;
using rg::Tensor;

Tensor indices() { return rg::tensor<int64_t>({0, 1, 2, 3}, {4}, {rg::kInt64}); }

struct Case {
  const char* name;
  std::function<Tensor(ScalarType)> run;  // of the first operand; other operands are float32 where `mixed`
  ScalarType of_float32, of_bfloat16;
};

// The dtypes that torch 2.15 gives under torch.autocast("cuda", torch.bfloat16).
std::vector<Case> matrix_products() {
  const auto f32 = [](const Shape& s) { return values(s); };
  return {
      {"mm",
       [=](ScalarType d) {
         return rg::mm(values({4, 4}, d), f32({4, 4}));
       },
       kBFloat16, kBFloat16},
      {"bmm",
       [=](ScalarType d) {
         return rg::bmm(values({2, 4, 4}, d), f32({2, 4, 4}));
       },
       kBFloat16, kBFloat16},
      {"mv",
       [=](ScalarType d) {
         return rg::mv(values({4, 4}, d), f32({4}));
       },
       kBFloat16, kBFloat16},
      {"dot", [=](ScalarType d) { return rg::dot(values({4}, d), f32({4})); }, kFloat32, kFloat32},
      {"dot of one dtype", [](ScalarType d) { return rg::dot(values({4}, d), values({4}, d)); }, kFloat32,
       kBFloat16},
      {"matmul of vectors", [=](ScalarType d) { return rg::matmul(values({4}, d), f32({4})); }, kBFloat16,
       kBFloat16},
      {"matmul",
       [=](ScalarType d) {
         return rg::matmul(values({2, 3, 4}, d), f32({4, 4}));
       },
       kBFloat16, kBFloat16},
      {"addmm",
       [=](ScalarType d) {
         return rg::addmm(f32({4, 4}), values({4, 4}, d), f32({4, 4}));
       },
       kBFloat16, kBFloat16},
      {"baddbmm",
       [=](ScalarType d) {
         return rg::baddbmm(f32({2, 4, 4}), values({2, 4, 4}, d), f32({2, 4, 4}));
       },
       kBFloat16, kBFloat16},
      {"linear",
       [=](ScalarType d) {
         return rg::linear(values({4, 4}, d), f32({4, 4}), f32({4}));
       },
       kBFloat16, kBFloat16},
      {"linear to a number",
       [=](ScalarType d) {
         return rg::linear(values({4, 4}, d), f32({4}), f32({1}));
       },
       kBFloat16, kBFloat16},
      {"einsum",
       [=](ScalarType d) {
         return rg::einsum("ij,ij->i", {values({4, 4}, d), f32({4, 4})});
       },
       kBFloat16, kBFloat16},
      {"tensordot",
       [=](ScalarType d) {
         return rg::tensordot(values({4, 4}, d), f32({4, 4}), 1);
       },
       kFloat32, kFloat32},
      {"outer", [](ScalarType d) { return rg::outer(values({4}, d), values({4}, d)); }, kFloat32, kBFloat16},
      {"matrix_power",
       [](ScalarType d) {
         return rg::matrix_power(values({4, 4}, d), 3);
       },
       kBFloat16, kBFloat16},
      {"conv1d",
       [=](ScalarType d) {
         return rg::conv1d(values({1, 4, 8}, d), f32({4, 4, 3}), f32({4}));
       },
       kBFloat16, kBFloat16},
      {"conv2d",
       [=](ScalarType d) {
         return rg::conv2d(values({1, 4, 8, 8}, d), f32({4, 4, 3, 3}), f32({4}));
       },
       kBFloat16, kBFloat16},
      {"conv_transpose2d",
       [=](ScalarType d) {
         return rg::conv_transpose2d(values({1, 4, 8, 8}, d), f32({4, 4, 3, 3}), f32({4}));
       },
       kBFloat16, kBFloat16},
      {"attention",
       [=](ScalarType d) {
         return rg::scaled_dot_product_attention(values({2, 4, 4}, d), f32({2, 4, 4}), f32({2, 4, 4}));
       },
       kBFloat16, kBFloat16},
      {"attention with a mask",
       [=](ScalarType d) {
         return rg::scaled_dot_product_attention(values({2, 4, 4}, d), f32({2, 4, 4}), f32({2, 4, 4}),
                                                 f32({4, 4}));
       },
       kBFloat16, kBFloat16},
  };
}

template <class F>
Case unary(const char* name, F f, ScalarType of_float32, ScalarType of_bfloat16) {
  return {name, [f](ScalarType d) { return f(values({4, 4}, d)); }, of_float32, of_bfloat16};
}
#define RG_UNARY(f, of_bfloat16) \
  unary(                         \
      #f, [](const Tensor& x) { return rg::f(x); }, kFloat32, of_bfloat16)

std::vector<Case> functions() {
  return {RG_UNARY(acos, kFloat32),
          RG_UNARY(asin, kFloat32),
          RG_UNARY(cosh, kFloat32),
          RG_UNARY(erfinv, kFloat32),
          RG_UNARY(exp, kFloat32),
          RG_UNARY(expm1, kFloat32),
          RG_UNARY(log, kFloat32),
          RG_UNARY(log10, kFloat32),
          RG_UNARY(log2, kFloat32),
          RG_UNARY(log1p, kFloat32),
          RG_UNARY(reciprocal, kFloat32),
          RG_UNARY(rsqrt, kFloat32),
          RG_UNARY(sinh, kFloat32),
          RG_UNARY(tan, kFloat32),
          RG_UNARY(square, kFloat32),
          RG_UNARY(softplus, kFloat32),
          RG_UNARY(exp2, kBFloat16),
          RG_UNARY(sqrt, kBFloat16),
          RG_UNARY(sin, kBFloat16),
          RG_UNARY(atan, kBFloat16),
          RG_UNARY(sigmoid, kBFloat16),
          RG_UNARY(tanh, kBFloat16),
          RG_UNARY(erf, kBFloat16),
          RG_UNARY(relu, kBFloat16),
          RG_UNARY(abs, kBFloat16),
          RG_UNARY(gelu, kBFloat16),
          RG_UNARY(silu, kBFloat16),
          RG_UNARY(logsigmoid, kBFloat16),
          RG_UNARY(elu, kBFloat16),
          RG_UNARY(mean, kBFloat16),
          RG_UNARY(sum, kFloat32),
          RG_UNARY(prod, kFloat32),
          RG_UNARY(norm, kFloat32),
          RG_UNARY(vector_norm, kFloat32),
          RG_UNARY(var, kBFloat16),
          RG_UNARY(std, kBFloat16),
          RG_UNARY(amax, kBFloat16),
          RG_UNARY(trace, kBFloat16),
          RG_UNARY(inverse, kFloat32),
          RG_UNARY(det, kFloat32),
          unary(
              "pow 2", [](const Tensor& x) { return rg::pow(x, 2); }, kFloat32, kFloat32),
          unary(
              "pow", [](const Tensor& x) { return rg::pow(x, x); }, kFloat32, kFloat32),
          unary(
              "number to a power", [](const Tensor& x) { return rg::pow(2.0, x); }, kFloat32, kFloat32),
          unary(
              "sum along", [](const Tensor& x) { return rg::sum(x, 1); }, kFloat32, kFloat32),
          unary(
              "cumsum", [](const Tensor& x) { return rg::cumsum(x, 0); }, kFloat32, kFloat32),
          unary(
              "cumprod", [](const Tensor& x) { return rg::cumprod(x, 0); }, kFloat32, kFloat32),
          unary(
              "softmax", [](const Tensor& x) { return rg::softmax(x, 1); }, kFloat32, kFloat32),
          unary(
              "log_softmax", [](const Tensor& x) { return rg::log_softmax(x, 1); }, kFloat32, kFloat32),
          unary(
              "logsumexp", [](const Tensor& x) { return rg::logsumexp(x, 1); }, kFloat32, kFloat32),
          unary(
              "softmax to bfloat16", [](const Tensor& x) { return rg::softmax(x, 1, kBFloat16); }, kBFloat16,
              kBFloat16),
          unary(
              "sum to bfloat16", [](const Tensor& x) { return rg::sum(x, {}, false, kBFloat16); }, kBFloat16,
              kBFloat16),
          unary(
              "mul", [](const Tensor& x) { return x * x; }, kFloat32, kBFloat16),
          unary(
              "add of float32",
              [](const Tensor& x) {
                return x + values({4, 4});
              },
              kFloat32, kFloat32),
          unary(
              "dropout", [](const Tensor& x) { return rg::dropout(x, 0.5); }, kFloat32, kBFloat16)};
}
#undef RG_UNARY

std::vector<Case> norms_and_losses() {
  const auto loss = [](const char* name, auto f) {
    return Case{name,
                [f](ScalarType d) {
                  return f(values({4, 4}, d), rg::flip(values({4, 4}, d), {0}));
                },
                kFloat32, kFloat32};
  };
  const Tensor four = values({4});
  return {
      {"layer_norm",
       [=](ScalarType d) {
         return rg::layer_norm(values({4, 4}, d), {4}, four, four);
       },
       kFloat32, kFloat32},
      {"rms_norm",
       [=](ScalarType d) {
         return rg::rms_norm(values({4, 4}, d), {4}, four);
       },
       kFloat32, kFloat32},
      {"group_norm",
       [=](ScalarType d) {
         return rg::group_norm(values({2, 4, 4}, d), 2, four, four);
       },
       kFloat32, kFloat32},
      {"batch_norm",
       [=](ScalarType d) {
         return rg::batch_norm(values({2, 4, 4}, d), four, four, {}, {}, true);
       },
       kFloat32, kBFloat16},
      {"interpolate",
       [](ScalarType d) {
         return rg::interpolate(values({1, 1, 4, 4}, d), {.size = rg::IntArray{8, 8}});
       },
       kFloat32, kFloat32},
      {"avg_pool1d",
       [](ScalarType d) {
         return rg::avg_pool1d(values({1, 4, 4}, d), 2);
       },
       kFloat32, kBFloat16},
      {"embedding",
       [](ScalarType d) {
         return rg::embedding(values({4, 4}, d), rg::tensor<int64_t>({0, 3}, {2}, {rg::kInt64}));
       },
       kFloat32, kBFloat16},
      loss("mse_loss", [](const Tensor& a, const Tensor& b) { return rg::mse_loss(a, b); }),
      loss("l1_loss", [](const Tensor& a, const Tensor& b) { return rg::l1_loss(a, b); }),
      loss("huber_loss", [](const Tensor& a, const Tensor& b) { return rg::huber_loss(a, b); }),
      loss("smooth_l1_loss", [](const Tensor& a, const Tensor& b) { return rg::smooth_l1_loss(a, b); }),
      loss("kl_div", [](const Tensor& a, const Tensor& b) { return rg::kl_div(a, b); }),
      loss("cosine_similarity", [](const Tensor& a, const Tensor& b) { return rg::cosine_similarity(a, b); }),
      loss("binary_cross_entropy_with_logits",
           [](const Tensor& a, const Tensor& b) { return rg::binary_cross_entropy_with_logits(a, b); }),
      loss("binary_cross_entropy",
           [](const Tensor& a, const Tensor& b) { return rg::binary_cross_entropy(a, b); }),
      loss("cross_entropy", [](const Tensor& a, const Tensor&) { return rg::cross_entropy(a, indices()); }),
      loss("weighted, smoothed cross_entropy",
           [=](const Tensor& a, const Tensor&) {
             return rg::cross_entropy(a, indices(), four, "mean", -100, 0.1);
           }),
      loss("nll_loss", [=](const Tensor& a, const Tensor&) { return rg::nll_loss(a, indices(), four); }),
      loss("solve", [](const Tensor& a, const Tensor& b) { return rg::solve(a, b); }),
      {"scatter_add", [=](ScalarType d) { return rg::scatter_add(values({4}, d), 0, indices(), four); },
       kFloat32, kFloat32},
      {"index_put", [=](ScalarType d) { return rg::index_put(values({4}, d), {indices()}, four); }, kFloat32,
       kFloat32},
      {"cat",
       [=](ScalarType d) {
         return rg::cat({values({4}, d), four});
       },
       kFloat32, kFloat32},
      {"stack",
       [=](ScalarType d) {
         return rg::stack({values({4}, d), four});
       },
       kFloat32, kFloat32},
      {"addcmul", [=](ScalarType d) { return rg::addcmul(values({4}, d), four, values({4}, d)); }, kFloat32,
       kFloat32},
      {"atan2", [=](ScalarType d) { return rg::atan2(values({4}, d), four); }, kFloat32, kFloat32},
  };
}

}  // namespace

TEST_CASE("each op has the dtype that PyTorch gives it") {
  for (const auto& cases : {matrix_products(), functions(), norms_and_losses()})
    for (const Case& c : cases) {
      INFO(c.name);
      const autocast scope(kBFloat16);
      CHECK(c.run(kFloat32).dtype() == c.of_float32);
      CHECK(c.run(kBFloat16).dtype() == c.of_bfloat16);
    }
}

TEST_CASE("a value is that of the op on converted operands") {
  const Tensor a = values({4, 5}), b = values({5, 3}), x = values({4, 5}, kBFloat16);
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    const Tensor product = rg::mm(a.to(dtype), b.to(dtype));
    const autocast scope(dtype);
    check_equal(rg::mm(a, b), product);
    CHECK(rg::mm(a, x.transpose(0, 1)).dtype() == dtype);
  }
  const Tensor exact = rg::exp(x.to(kFloat32)), total = rg::sum(x.to(kFloat32), 1);
  const autocast scope;
  check_equal(rg::exp(x), exact);
  check_equal(rg::sum(x, 1), total);
}

TEST_CASE("float64, integers and float8 keep their dtypes") {
  const autocast scope;
  CHECK(rg::mm(values({2, 2}, kFloat64), values({2, 2}, kFloat64)).dtype() == kFloat64);
  CHECK(rg::exp(values({2}, kFloat64)).dtype() == kFloat64);
  CHECK(rg::sum(rg::ones({3}, {rg::kInt64})).dtype() == rg::kInt64);
  CHECK(rg::mm(rg::ones({2, 2}, {rg::kInt64}), rg::ones({2, 2}, {rg::kInt64})).dtype() == rg::kInt64);
  CHECK(category_of([] {
          rg::mm(values({2, 2}, rg::kFloat8_e4m3fn), values({2, 2}, rg::kFloat8_e4m3fn));
        }) == Category::dtype_mismatch);
}

TEST_CASE("binary_cross_entropy is refused in float16, with its line") {
  std::string text;
  const auto call = [] { rg::binary_cross_entropy(values({3}), values({3})); };
  {
    const autocast scope(kFloat16);
    CHECK(category_of(call, &text) == Category::unsupported);
    const autocast off(kFloat16, {.enabled = false});
    CHECK_NOTHROW(call());
  }
  CHECK_THAT(text, Catch::Contains("binary_cross_entropy") && Catch::Contains("with_logits") &&
                       Catch::Contains("autocast_dtypes_test.cc"));
}
