// What the numbers of layers_test do not show: layers that draw random numbers, forms in place, statistics over batches
// that differ, pretrained tables, indices of pools, and the errors of constructors and calls.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::testing::same_bits;

namespace {

bool close(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && rg::max(rg::abs(a - b)).item<double>() < 1e-5;
}

TEST_CASE("a layer keeps the texts of its options") {
  std::string reduction(1, 's'), mode = "bilinear", padding = "reflect";
  reduction += "um";
  const nn::L1Loss loss(nullptr, "", {.reduction = reduction});
  const nn::Upsample upsample(nullptr, "", {.scale_factor = 2.0, .mode = mode});
  const nn::Conv2d conv(nullptr, "", 1, 1, 3, nn::ConvOptions{.padding = 1, .padding_mode = padding});
  reduction = "none", mode = "nearest", padding = "zeros";
  CHECK(loss(rg::ones({3}), rg::zeros({3})).item<double>() == 3);
  CHECK(upsample.options.mode == "bilinear");
  CHECK(conv.options.padding_mode == "reflect");
}

// ---- random layers ----

template <class D>
void check_dropout(const rg::Shape& shape, const std::function<Tensor(const Tensor&)>& function) {
  D layer(nullptr, "", 0.4);
  const Tensor x = rg::ones(shape);
  rg::manual_seed(7);
  const Tensor expected = function(x);
  rg::manual_seed(7);
  CHECK(same_bits(layer(x), expected));
  CHECK_FALSE(same_bits(expected, x));
  layer.eval();
  CHECK(same_bits(layer(x), x));

  D in_place(nullptr, "", 0.4, nn::DropoutOptions{.inplace = true});
  const Tensor y = x.clone();
  rg::manual_seed(7);
  CHECK(same_bits(in_place(y), expected));
  CHECK(same_bits(y, expected));
  CHECK(category_of([] { D(nullptr, "", 1.5); }) == Category::bad_argument);
}

TEST_CASE("dropout layers are their functions in training, and nothing else") {
  check_dropout<nn::Dropout>({50}, [](const Tensor& x) { return rg::dropout(x, 0.4); });
  check_dropout<nn::Dropout1d>({4, 10, 3}, [](const Tensor& x) { return rg::dropout1d(x, 0.4); });
  check_dropout<nn::Dropout2d>({4, 10, 3, 2}, [](const Tensor& x) { return rg::dropout2d(x, 0.4); });
  check_dropout<nn::Dropout3d>({10, 3, 2, 2}, [](const Tensor& x) { return rg::dropout3d(x, 0.4); });
  check_dropout<nn::AlphaDropout>({50}, [](const Tensor& x) { return rg::alpha_dropout(x, 0.4); });
  check_dropout<nn::FeatureAlphaDropout>({4, 10, 3},
                                         [](const Tensor& x) { return rg::feature_alpha_dropout(x, 0.4); });
}

TEST_CASE("RReLU draws slopes in training only, FractionalMaxPool always") {
  nn::RReLU slope(nullptr, "", {.lower = 0.1, .upper = 0.3});
  const Tensor x = rg::full({1, 1, 10, 10}, -2.0);
  CHECK_FALSE(same_bits(slope(x), slope(x)));
  slope.eval();
  CHECK(same_bits(slope(x), rg::leaky_relu(x, 0.2)));
  nn::FractionalMaxPool2d pool(nullptr, "", 2, {.output_ratio = 0.6});
  pool.eval();
  const Tensor ramp = rg::arange(100).to(rg::kFloat32).view({1, 1, 10, 10}), first = pool(ramp);
  bool differ = false;
  for (int i = 0; i < 10; ++i) differ = differ || !same_bits(pool(ramp), first);
  CHECK(differ);
}

// ---- in place ----

template <class L, class... Args>
void check_in_place(const nn::Module& plain_module, Args... arguments) {
  const L& plain = dynamic_cast<const L&>(plain_module);
  const L in_place(nullptr, "", arguments...);
  const Tensor x = rg::linspace(-2, 8, 11), y = x.clone();
  const Tensor expected = plain(x), got = in_place(y);
  CHECK(same_bits(got, expected));
  CHECK(same_bits(y, expected));
  CHECK_FALSE(same_bits(x, expected));
}

TEST_CASE("inplace writes the result into the operand") {
  const nn::InplaceOptions on{.inplace = true};
  check_in_place<nn::ReLU>(nn::ReLU(), on);
  check_in_place<nn::ReLU6>(nn::ReLU6(), on);
  check_in_place<nn::SELU>(nn::SELU(), on);
  check_in_place<nn::ELU>(nn::ELU(), nn::ELUOptions{.inplace = true});
  check_in_place<nn::CELU>(nn::CELU(), nn::ELUOptions{.inplace = true});
  check_in_place<nn::LeakyReLU>(nn::LeakyReLU(), nn::LeakyReLUOptions{.inplace = true});
  check_in_place<nn::Hardtanh>(nn::Hardtanh(), nn::HardtanhOptions{.inplace = true});
  check_in_place<nn::Threshold>(nn::Threshold(nullptr, "", 1, 20), 1.0, 20.0, on);
  nn::RReLU random(nullptr, "", {.inplace = true});
  random.eval();
  const Tensor x = rg::full({2}, -1.0);
  random(x);
  CHECK(x.to_vector()[0] == Approx(-(1.0 / 8 + 1.0 / 3) / 2));
  std::ostringstream text;
  nn::ReLU(nullptr, "", on).pretty_print(text);
  CHECK(text.str() == "ReLU(inplace=true)");
}

// ---- batch norms ----

// One of four batches that differ.
Tensor batch(int i) {
  return rg::sin(rg::arange(24).to(rg::kFloat32) * (0.3 + i)).view({8, 3}) * (i + 1.0) + 0.5 * i;
}

TEST_CASE("a recorded BatchNorm reads and writes its statistics in each run") {
  for (const std::optional<double> momentum : {std::optional<double>(0.1), std::optional<double>()}) {
    const nn::BatchNorm1d eager(nullptr, "", 3, {.momentum = momentum});
    const nn::BatchNorm1d compiled(nullptr, "", 3, {.momentum = momentum});
    const nn::BatchNorm1d stepped(nullptr, "", 3, {.momentum = momentum});
    auto function = rg::compile([&](const Tensor& x) { return compiled(x); });
    auto step = rg::compile_step([&](const Tensor& x) { return stepped(x); });
    for (int i = 0; i < 4; ++i) {
      const Tensor expected = eager(batch(i));
      CHECK(same_bits(function(batch(i)), expected));
      CHECK(same_bits(step(batch(i)), expected));
      for (const nn::BatchNorm1d* norm : {&compiled, &stepped}) {
        CHECK(same_bits(norm->running_mean, eager.running_mean));
        CHECK(same_bits(norm->running_var, eager.running_var));
        CHECK(norm->num_batches_tracked.item<int64_t>() == i + 1);
      }
    }
    CHECK(function.stats().captures == 1);
    CHECK(step.stats().captures == 1);
  }
}

TEST_CASE("a cumulative BatchNorm averages over all batches") {
  nn::BatchNorm1d norm(nullptr, "", 3, {.momentum = std::nullopt});
  Tensor mean = rg::zeros({3}), variance = rg::zeros({3});
  for (int i = 0; i < 4; ++i) {
    norm(batch(i));
    mean = mean + batch(i).mean({0}) / 4.0;
    variance = variance + batch(i).var({0}) / 4.0;
  }
  CHECK(close(norm.running_mean, mean));
  CHECK(close(norm.running_var, variance));
  norm.reset_running_stats();
  CHECK(same_bits(norm.running_var, rg::ones({3})));
  CHECK(norm.num_batches_tracked.item<int64_t>() == 0);
}

TEST_CASE("a BatchNorm switched to eval() is recorded again and leaves its statistics") {
  nn::BatchNorm1d norm(nullptr, "", 3);
  auto function = rg::compile([&](const Tensor& x) { return norm(x); });
  function(batch(1));
  norm.eval();
  const Tensor mean = norm.running_mean.clone();
  const Tensor y = function(batch(2));
  CHECK(same_bits(norm.running_mean, mean));
  CHECK(norm.num_batches_tracked.item<int64_t>() == 1);
  CHECK(same_bits(y, norm(batch(2))));
}

// ---- embeddings ----

TEST_CASE("pretrained tables share memory, and are frozen if wanted") {
  const Tensor table = rg::arange(6).to(rg::kFloat32).view({3, 2});
  const nn::Embedding frozen = nn::Embedding::from_pretrained(nullptr, "", table);
  CHECK(frozen(rg::tensor({2, 0})).to_vector() == std::vector<double>{4, 5, 0, 1});
  CHECK_FALSE(frozen.weight.requires_grad());
  CHECK_FALSE(table.requires_grad());
  const nn::Embedding trained = nn::Embedding::from_pretrained(nullptr, "", table, false);
  CHECK(trained.weight.requires_grad());
  table.fill_(3);
  CHECK(trained.weight.detach().to_vector()[5] == 3);
  const nn::EmbeddingBag bag = nn::EmbeddingBag::from_pretrained(nullptr, "", table, true, {.mode = "sum"});
  CHECK(bag(rg::tensor({0, 1}).view({1, 2})).to_vector() == std::vector<double>{6, 6});
  CHECK_FALSE(bag.weight.requires_grad());
  CHECK(category_of([] { nn::Embedding::from_pretrained(nullptr, "", rg::ones({3})); }) == Category::bad_dim);
}

TEST_CASE("the padding row of a new table is zero") {
  const nn::Embedding words(nullptr, "", 4, 3, {.padding_idx = -1});
  const std::vector<double> values = words.weight.detach().to_vector();
  for (int i = 0; i < 9; ++i) CHECK(values[static_cast<size_t>(i)] != 0);
  for (int i = 9; i < 12; ++i) CHECK(values[static_cast<size_t>(i)] == 0);
  CHECK(category_of([] { nn::Embedding(nullptr, "", 4, 3, {.padding_idx = 4}); }) == Category::bad_argument);
}

TEST_CASE("embedding_renorm_ scales only rows that are named and too long") {
  const Tensor table = rg::tensor({3.0, 4.0, 0.3, 0.4, 6.0, 8.0}).view({3, 2});
  rg::embedding_renorm_(table, rg::tensor({0, 1, 0}), 1.0);
  const std::vector<double> values = table.to_vector();
  CHECK(values[0] == Approx(0.6));
  CHECK(values[1] == Approx(0.8));
  CHECK(values[2] == Approx(0.3));
  CHECK(values[4] == 6);
  CHECK(category_of([&] { rg::embedding_renorm_(table, rg::tensor({0}), 0.0); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::embedding_renorm_(table, rg::tensor({3}), 1.0); }) ==
        Category::index_out_of_range);
}

// ---- adaptive softmax ----

TEST_CASE("AdaptiveLogSoftmaxWithLoss: all classes together have probability 1") {
  const nn::AdaptiveLogSoftmaxWithLoss layer(nullptr, "", 8, 10, {3, 6});
  const Tensor x = rg::randn({5, 8}), target = rg::tensor({0, 9, 4, 2, 6});
  const Tensor all = layer.log_prob(x);
  CHECK(close(rg::exp(all).sum({1}), rg::ones({5})));
  const auto [output, loss] = layer(x, target);
  CHECK(close(output, rg::gather(all, 1, target.unsqueeze(1)).squeeze(1)));
  CHECK(loss.item<double>() == Approx(-output.mean().item<double>()));
  CHECK(same_bits(layer.predict(x), rg::argmax(all, 1)));
  const auto [one, one_loss] = layer(x.select(0, 1), target.select(0, 1));
  CHECK(one.dim() == 0);
  CHECK(one.item<double>() == Approx(output.to_vector()[1]));
  for (const int64_t no_class : {-1, 10})
    CHECK(category_of([&] { layer(x, rg::full({5}, no_class, {rg::kInt64})); }) ==
          Category::index_out_of_range);
  for (const rg::IntArray& cutoffs : {rg::IntArray{}, {3, 3}, {0, 3}, {3, 10}})
    CHECK(category_of([&] { nn::AdaptiveLogSoftmaxWithLoss(nullptr, "", 8, 10, cutoffs); }) ==
          Category::bad_argument);
}

// ---- CrossMapLRN2d ----

TEST_CASE("CrossMapLRN2d sums over (size - 1) / 2 channels on each side, and divides by size") {
  const Tensor x = rg::linspace(-1, 2, 6).view({1, 6, 1, 1});
  const std::vector<double> values = x.to_vector();
  for (const int size : {3, 4}) {
    const std::vector<double> got =
        nn::CrossMapLRN2d(nullptr, "", size, {.alpha = 0.5, .beta = 2.0, .k = 1.5})(x).to_vector();
    for (int c = 0; c < 6; ++c) {
      double sum = 0;
      for (int i = std::max(c - 1, 0); i <= std::min(c + 1, 5); ++i)
        sum += values[static_cast<size_t>(i)] * values[static_cast<size_t>(i)];
      const double expected = values[static_cast<size_t>(c)] / std::pow(1.5 + 0.5 / size * sum, 2.0);
      CHECK(got[static_cast<size_t>(c)] == Approx(expected));
    }
  }
}

// ---- pools, losses, errors ----

TEST_CASE("forward_with_indices gives the places of the elements") {
  const Tensor x = rg::randn({2, 3, 8});
  const auto check = [&](const auto& pool) {
    const auto [values, indices] = pool.forward_with_indices(x);
    CHECK(same_bits(values, pool(x)));
    CHECK(same_bits(values, rg::gather(x, 2, indices)));
  };
  check(nn::MaxPool1d(nullptr, "", 2));
  check(nn::AdaptiveMaxPool1d(nullptr, "", 3));
}

TEST_CASE("constructors check their arguments") {
  const auto refused = [](const auto& f) { return category_of(f) == Category::bad_argument; };
  CHECK(refused([] { nn::Hardtanh(nullptr, "", {.min_val = 1, .max_val = 1}); }));
  CHECK(refused([] { nn::GroupNorm(nullptr, "", 4, 6); }));
  CHECK(refused([] { nn::Conv2d(nullptr, "", 2, 2, 3, {.padding_mode = "mirror"}); }));
  CHECK(refused([] { nn::Conv2d(nullptr, "", 2, 2, 3, {.stride = 2, .padding = "same"}); }));
  CHECK(refused([] { nn::Conv3d(nullptr, "", 2, 2, 3, {.padding = {1, 2}}); }));
  CHECK(refused([] { nn::ReflectionPad2d(nullptr, "", {1, 2}); }));
  CHECK(refused([] { nn::AvgPool1d(nullptr, "", 2, {.divisor_override = 3}); }));
}

TEST_CASE("calls check the number of dims") {
  const auto refused = [](const auto& f) { return category_of(f) == Category::bad_dim; };
  CHECK(refused([] { nn::BatchNorm2d(nullptr, "", 3)(rg::ones({2, 3, 4})); }));
  CHECK(refused([] { nn::InstanceNorm1d(nullptr, "", 3)(rg::ones({2, 3, 4, 4})); }));
  CHECK(refused([] { nn::ZeroPad2d(nullptr, "", 1)(rg::ones({3, 4})); }));
  CHECK(refused([] { nn::Softmax2d()(rg::ones({3, 4})); }));
  CHECK(refused([] { nn::CrossMapLRN2d(nullptr, "", 3)(rg::ones({3, 4, 4})); }));
}

TEST_CASE("a transposed convolution refuses a size that no convolution maps to its operand's") {
  const nn::ConvTranspose1d conv(nullptr, "", 2, 3, 3, {.stride = 2});
  const Tensor x = rg::ones({1, 2, 4});
  CHECK(conv(x, {10}).sizes() == rg::IntArray{1, 3, 10});
  CHECK(category_of([&] { conv(x, {11}); }) == Category::bad_argument);
  CHECK(category_of([&] { conv(x, {8}); }) == Category::bad_argument);
  CHECK(category_of([&] { conv(x, {1, 2}); }) == Category::bad_argument);
}

TEST_CASE("weights of a loss are buffers that share memory") {
  const Tensor weight = rg::tensor({1.0, 2.0});
  nn::NLLLoss loss(nullptr, "", {.weight = weight});
  CHECK(loss.state_dict().count("weight") == 1);
  loss.to(rg::kFloat64);
  CHECK(weight.dtype() == rg::kFloat32);
  CHECK(nn::NLLLoss().state_dict().empty());
}

TEST_CASE("the functional forms of batch_norm and instance_norm take the statistics first") {
  const Tensor x = rg::randn({4, 3, 5}), mean = rg::randn({3}), variance = rg::rand({3}) + 1.0;
  const Tensor weight = rg::randn({3}), bias = rg::randn({3});
  CHECK(same_bits(nn::functional::batch_norm(x, mean, variance, weight, bias),
                  rg::batch_norm(x, weight, bias, mean, variance)));
  CHECK(same_bits(nn::functional::instance_norm(x, mean, variance, weight, bias, false),
                  rg::instance_norm(x, weight, bias, mean, variance, false)));
}

}  // namespace

TEST_CASE("a convolution without input channels has a bias") {
  const nn::Conv1d conv(nullptr, "", 0, 2, 1);
  CHECK(conv.bias.size(0) == 2);
}
