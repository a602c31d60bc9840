// torch::nn where it differs from libtorch: errors have this library's categories, and what would be ignored does not
// compile.
#include <catch2/catch.hpp>
#include <sstream>

#include <retrograd/torch.h>

#include "tests/errors.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using retrograd::Category, retrograd::category_of;

namespace {

template <class Layer>
concept ChangesOptions = requires(Layer& layer) {
  layer.options.bias(false);
};
template <class T>
concept TakesReduction = requires(T reduction) {
  nn::L1LossOptions().reduction(reduction);
};

// Registered in the constructor, and not in reset().
struct WrongImpl : nn::Cloneable<WrongImpl> {
  WrongImpl() : fc(register_module("fc", nn::Linear(2, 2))) {}
  void reset() override {}
  nn::Linear fc;
};

// Without a clone() of its own.
struct DerivedImpl : nn::LinearImpl {
  DerivedImpl() : nn::LinearImpl(2, 2) {}
};

// In both styles.
struct MixedImpl : nn::Module {
  retrograd::nn::Linear inner{this, "inner", 3, 2};
  nn::Linear outer = register_module("outer", nn::Linear(2, 1));
  torch::Tensor forward(torch::Tensor x) { return outer(inner(x)); }
};
TORCH_MODULE(Mixed);

}  // namespace

TEST_CASE("Options of a module are constant") {
  static_assert(!ChangesOptions<nn::LinearImpl>);
  static_assert(requires(nn::LinearOptions options) { options.bias(false); });
  static_assert(TakesReduction<torch::enumtype::kSum>);
  static_assert(!TakesReduction<torch::enumtype::kBatchMean>);
  CHECK(torch::enumtype::get_enum_name(nn::KLDivLossOptions(torch::kBatchMean).reduction()) == "kBatchMean");
}

TEST_CASE("Errors of torch::nn") {
  const torch::Tensor x = torch::ones({2, 3});
  CHECK(category_of([] { nn::Linear(nullptr)->parameters(); }) == Category::bad_argument);
  CHECK(category_of([] {
          nn::Conv2dOptions(1, 1, std::vector<int64_t>{1, 2, 3});
        }) == Category::bad_argument);
  CHECK(category_of([] { nn::Embedding(nn::EmbeddingOptions(3, 2).sparse(true)); }) == Category::unsupported);
  CHECK(category_of([&] {
          F::embedding(torch::ones({2}).to(torch::kLong), x, F::EmbeddingFuncOptions().sparse(true));
        }) == Category::unsupported);
  CHECK(category_of([&] { nn::Embedding::from_pretrained(torch::ones({2})); }) == Category::bad_dim);
  CHECK(category_of([] { nn::GELU(nn::GELUOptions().approximate("erf")); }) == Category::bad_argument);
  CHECK(category_of([] {
          nn::ConvTranspose2d(nn::ConvTranspose2dOptions(1, 1, 1).padding_mode(torch::kReflect));
        }) == Category::bad_argument);
  CHECK(category_of([&] { F::smooth_l1_loss(x, x, F::SmoothL1LossFuncOptions().beta(1.0), 2.0); }) ==
        Category::bad_argument);
  CHECK(category_of([&] {
          F::pad(x, F::PadFuncOptions({1, 1}).mode(torch::kReflect).value(3));
        }) == Category::bad_argument);
}

TEST_CASE("A class that is not made again by reset() cannot be cloned") {
  const WrongImpl wrong;
  CHECK(category_of([&] { wrong.clone(); }) == Category::unsupported);
}

TEST_CASE("A class that inherits the clone() of a layer cannot be cloned") {
  const DerivedImpl derived;
  std::string text;
  CHECK(category_of([&] { derived.clone(); }, &text) == Category::unsupported);
  CHECK(text.find("clone_as<DerivedImpl>") != std::string::npos);
}

TEST_CASE("Both styles in one module") {
  Mixed mixed;
  CHECK(mixed->named_parameters().keys() ==
        std::vector<std::string>{"inner.weight", "inner.bias", "outer.weight", "outer.bias"});
  CHECK(mixed(torch::ones({4, 3})).size(0) == 4);
}

TEST_CASE("New initial values") {
  nn::Linear fc(3, 2);
  const torch::Tensor before = fc->weight.clone();
  fc->reset_parameters();
  CHECK_FALSE(torch::equal(fc->weight, before));
  nn::BatchNorm1d norm(3);
  norm(torch::randn({5, 3}));
  norm->reset_parameters();
  CHECK(norm->running_mean.abs().sum().item<float>() == 0);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 0);
}
