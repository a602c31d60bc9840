// The layers of torch::nn, made in libtorch's way: results and gradients of each.
#include "tests/torch/digest.h"

namespace nn = torch::nn;
using digest::expect, digest::wave;

namespace {

// The result of a module whose parameters are filled, on inputs of which the first requires a gradient.
template <class Holder, class... Inputs>
torch::Tensor run(Holder& layer, Inputs... inputs) {
  digest::fill(*layer);
  return layer(inputs...);
}

// Checks the result, its gradient by x, and those of the parameters.
template <class Holder>
void check(Holder layer, torch::Tensor x, double result, double gradient, double parameters = 0,
           int line = __builtin_LINE()) {
  x = x.detach().clone().requires_grad_(true);
  const torch::Tensor y = run(layer, x);
  torch::Tensor g = wave({y.numel()}, 0.2);
  (y.reshape({-1}) * g).sum().backward();
  expect(digest::of(y), result, line * 10);
  expect(digest::of(x.grad()), gradient, line * 10 + 1);
  if (parameters != 0 || std::getenv("DIGESTS")) expect(digest::of_gradients(*layer), parameters, line * 10 + 2);
}

}  // namespace

TEST_CASE("Linear layers") {
  nn::Linear fc(4, 3);
  CHECK(fc->options.in_features() == 4);
  CHECK(fc->options.bias());
  CHECK(fc->weight.sizes() == std::vector<int64_t>({3, 4}));
  CHECK(fc->bias.sizes() == std::vector<int64_t>({3}));
  check(fc, wave({2, 5, 4}), 0, 0, 0);
  nn::Linear plain(nn::LinearOptions(4, 3).bias(false));
  CHECK_FALSE(plain->bias.defined());
  CHECK(plain->parameters().size() == 1);
  check(plain, wave({2, 4}), 0, 0, 0);
  check(nn::Flatten(), wave({2, 3, 4}), 0, 0);
  check(nn::Flatten(nn::FlattenOptions().start_dim(0).end_dim(1)), wave({2, 3, 4}), 0, 0);
  check(nn::Unflatten(nn::UnflattenOptions(1, {2, 3})), wave({2, 6}), 0, 0);
  check(nn::Identity(), wave({2, 6}), 0, 0);
  nn::Bilinear bilinear(3, 4, 2);
  digest::fill(*bilinear);
  expect(digest::of(bilinear(wave({5, 3}), wave({5, 4}))), 0);
}

TEST_CASE("Convolutions") {
  check(nn::Conv1d(3, 4, 3), wave({2, 3, 8}), 0, 0, 0);
  check(nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 2}).stride(2).padding({1, 0}).groups(2)), wave({2, 4, 7, 6}), 0, 0, 0);
  check(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(torch::kSame).bias(false)), wave({1, 2, 5, 5}), 0, 0, 0);
  check(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(1).padding_mode(torch::kCircular)), wave({1, 2, 5, 5}), 0, 0, 0);
  check(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(2).padding_mode(torch::kReflect)), wave({1, 2, 5, 5}), 0, 0, 0);
  check(nn::Conv3d(nn::Conv3dOptions(2, 3, 2).dilation(2)), wave({1, 2, 4, 4, 4}), 0, 0, 0);
  check(nn::ConvTranspose1d(nn::ConvTranspose1dOptions(3, 2, 3)), wave({2, 3, 4}), 0, 0, 0);
  nn::ConvTranspose2d up(nn::ConvTranspose2dOptions(4, 2, 3).stride(2).padding(1).output_padding(1));
  check(up, wave({1, 4, 3, 3}), 0, 0, 0);
  CHECK(up->options.output_padding()->at(0) == 1);
  check(nn::ConvTranspose3d(nn::ConvTranspose3dOptions(2, 2, 2).bias(false)), wave({1, 2, 2, 2, 2}), 0, 0, 0);
}

TEST_CASE("Normalisations") {
  nn::BatchNorm1d norm(4);
  check(norm, wave({6, 4}), 0, 0, 0);
  expect(digest::of(norm->running_mean) + digest::of(norm->running_var), 0);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 1);
  CHECK(norm->named_buffers().size() == 3);
  norm->eval();
  expect(digest::of(norm(wave({6, 4}))), 0);
  nn::BatchNorm2d image_norm(nn::BatchNorm2dOptions(3).eps(1e-3).momentum(0.3));
  check(image_norm, wave({2, 3, 4, 4}), 0, 0, 0);
  expect(digest::of(image_norm->running_var), 0);
  check(nn::BatchNorm3d(nn::BatchNorm3dOptions(2).affine(false).track_running_stats(false)), wave({2, 2, 2, 3, 2}), 0, 0);
  check(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(3).affine(true)), wave({2, 3, 4, 4}), 0, 0, 0);
  check(nn::InstanceNorm1d(3), wave({2, 3, 4}), 0, 0);
  check(nn::LayerNorm(nn::LayerNormOptions({3, 4}).eps(1e-4)), wave({2, 3, 4}), 0, 0, 0);
  check(nn::LayerNorm(nn::LayerNormOptions({4}).elementwise_affine(false)), wave({2, 3, 4}), 0, 0);
  check(nn::GroupNorm(2, 4), wave({2, 4, 3}), 0, 0, 0);
  check(nn::GroupNorm(nn::GroupNormOptions(2, 4).affine(false)), wave({2, 4, 3}), 0, 0);
  check(nn::LocalResponseNorm(nn::LocalResponseNormOptions(2).alpha(0.2).k(2)), wave({2, 4, 3, 3}), 0, 0);
  check(nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(3).beta(0.5)), wave({2, 4, 3, 3}), 0, 0);
}

TEST_CASE("Embeddings") {
  const torch::Tensor index = torch::tensor({0, 4, 2, 2}).to(torch::kLong);
  nn::Embedding embedding(5, 3);
  digest::fill(*embedding);
  const torch::Tensor y = embedding(index);
  (y * wave({4, 3}, 0.2)).sum().backward();
  expect(digest::of(y), 0);
  expect(digest::of(embedding->weight.grad()), 0);
  nn::Embedding padded(nn::EmbeddingOptions(5, 3).padding_idx(2));
  CHECK(padded->weight.select(0, 2).abs().sum().item<float>() == 0);
  auto given = nn::Embedding::from_pretrained(wave({5, 3}));
  CHECK_FALSE(given->weight.requires_grad());
  expect(digest::of(given(index)), 0);
  auto tuned = nn::Embedding::from_pretrained(wave({5, 3}), nn::EmbeddingFromPretrainedOptions().freeze(false));
  CHECK(tuned->weight.requires_grad());
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(5, 3).mode(torch::kSum));
  digest::fill(*bag);
  expect(digest::of(bag(index.reshape({2, 2}))), 0);
  expect(digest::of(bag(index, torch::tensor({0, 1}).to(torch::kLong))), 0);
}

TEST_CASE("Activations") {
  const torch::Tensor x = wave({3, 4}) * 2;
  check(nn::ReLU(), x, 0, 0);
  check(nn::ReLU6(), x * 4, 0, 0);
  check(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.3)), x, 0, 0);
  check(nn::ELU(nn::ELUOptions().alpha(0.6)), x, 0, 0);
  check(nn::SELU(), x, 0, 0);
  check(nn::CELU(nn::CELUOptions().alpha(2)), x, 0, 0);
  check(nn::GELU(), x, 0, 0);
  check(nn::GELU(nn::GELUOptions().approximate("tanh")), x, 0, 0);
  check(nn::GLU(1), x, 0, 0);
  check(nn::SiLU(), x, 0, 0);
  check(nn::Mish(), x, 0, 0);
  check(nn::Sigmoid(), x, 0, 0);
  check(nn::LogSigmoid(), x, 0, 0);
  check(nn::Tanh(), x, 0, 0);
  check(nn::Tanhshrink(), x, 0, 0);
  check(nn::Softsign(), x, 0, 0);
  check(nn::Softplus(nn::SoftplusOptions().beta(2)), x, 0, 0);
  check(nn::Softshrink(0.2), x, 0, 0);
  check(nn::Hardshrink(nn::HardshrinkOptions(0.8)), x, 0, 0);
  check(nn::Hardtanh(nn::HardtanhOptions().min_val(-0.5)), x, 0, 0);
  check(nn::Threshold(0.3, 7), x, 0, 0);
  check(nn::Softmax(1), x, 0, 0);
  check(nn::Softmin(nn::SoftminOptions(0)), x, 0, 0);
  check(nn::LogSoftmax(nn::LogSoftmaxOptions(1)), x, 0, 0);
  check(nn::Softmax2d(), wave({1, 3, 2, 2}), 0, 0);
  check(nn::PReLU(nn::PReLUOptions().num_parameters(4).init(0.1)), x, 0, 0, 0);
  nn::RReLU random(nn::RReLUOptions().lower(0.1).upper(0.3));
  random->eval();
  check(random, x, 0, 0);
  torch::Tensor changed = x.clone();
  nn::ReLU in_place(nn::ReLUOptions().inplace(true));
  in_place(changed);
  CHECK(torch::equal(changed, torch::relu(x)));
}

TEST_CASE("Pools") {
  const torch::Tensor x = wave({2, 3, 8, 6}), line = wave({2, 3, 10}), cube = wave({1, 2, 4, 5, 6});
  check(nn::MaxPool1d(3), line, 0, 0);
  check(nn::MaxPool2d(nn::MaxPool2dOptions({3, 2}).stride(2).padding(1)), x, 0, 0);
  check(nn::MaxPool3d(2), cube, 0, 0);
  check(nn::AvgPool1d(nn::AvgPool1dOptions(4).stride(2)), line, 0, 0);
  check(nn::AvgPool2d(nn::AvgPool2dOptions(3).padding(1).count_include_pad(false)), x, 0, 0);
  check(nn::AvgPool3d(2), cube, 0, 0);
  check(nn::LPPool1d(nn::LPPool1dOptions(2, 3)), line, 0, 0);
  check(nn::LPPool2d(nn::LPPool2dOptions(2, {2, 3}).stride(1)), x, 0, 0);
  check(nn::AdaptiveAvgPool1d(4), line, 0, 0);
  check(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, 2})), x, 0, 0);
  check(nn::AdaptiveAvgPool3d(2), cube, 0, 0);
  check(nn::AdaptiveMaxPool1d(4), line, 0, 0);
  check(nn::AdaptiveMaxPool2d(3), x, 0, 0);
  check(nn::AdaptiveMaxPool3d(2), cube, 0, 0);
  nn::MaxPool2d pool(2);
  auto [values, indices] = pool->forward_with_indices(x);
  expect(digest::of(indices), 0);
  expect(digest::of(nn::MaxUnpool2d(2)(values, indices)), 0);
}

TEST_CASE("Padding") {
  const torch::Tensor x = wave({1, 2, 4, 5}), line = wave({2, 3, 6}), cube = wave({1, 2, 3, 4, 5});
  check(nn::ReflectionPad1d(2), line, 0, 0);
  check(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 2, 3, 0})), x, 0, 0);
  check(nn::ReflectionPad3d(1), cube, 0, 0);
  check(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({3, 1})), line, 0, 0);
  check(nn::ReplicationPad2d(2), x, 0, 0);
  check(nn::ReplicationPad3d(1), cube, 0, 0);
  check(nn::ZeroPad1d(1), line, 0, 0);
  check(nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 2, 3, 0})), x, 0, 0);
  check(nn::ZeroPad3d(1), cube, 0, 0);
  check(nn::ConstantPad1d(2, 0.5), line, 0, 0);
  check(nn::ConstantPad2d(nn::ConstantPad2dOptions({1, 0, 2, 1}, -1)), x, 0, 0);
  check(nn::ConstantPad3d(1, 3.5), cube, 0, 0);
}

TEST_CASE("Folds, pixel shuffles and resampling") {
  const torch::Tensor x = wave({1, 4, 5, 6});
  check(nn::Unfold(nn::UnfoldOptions({2, 3}).padding(1)), x, 0, 0);
  check(nn::Fold(nn::FoldOptions({3, 4}, {2, 2})), wave({1, 8, 6}), 0, 0);
  check(nn::PixelShuffle(2), x, 0, 0);
  check(nn::PixelUnshuffle(nn::PixelUnshuffleOptions(2)), wave({1, 2, 4, 6}), 0, 0);
  check(nn::Upsample(nn::UpsampleOptions()
                         .scale_factor(std::vector<double>({2, 1.5}))
                         .mode(torch::kBilinear)
                         .align_corners(false)),
        x, 0, 0);
  check(nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>({7, 8}))), x, 0, 0);
}

TEST_CASE("Dropouts") {
  const torch::Tensor x = torch::ones({2, 50, 4, 4});
  nn::Dropout dropout(0.5);
  CHECK(dropout->options.p() == 0.5);
  CHECK(dropout->is_training());
  const torch::Tensor y = dropout(x);
  CHECK(((y == 0) | (y == 2)).all().item<bool>());
  CHECK_FALSE(torch::equal(y, x));
  dropout->eval();
  CHECK(torch::equal(dropout(x), x));
  nn::Dropout2d channels(nn::Dropout2dOptions().p(0.5));
  const torch::Tensor z = channels(x).sum({2, 3});
  CHECK(((z == 0) | (z == 32)).all().item<bool>());
  nn::AlphaDropout alpha(0.3);
  nn::FeatureAlphaDropout feature_alpha;
  nn::Dropout3d cubes;
  alpha->eval(), feature_alpha->eval(), cubes->eval();
  CHECK(torch::equal(alpha(x), x));
  CHECK(torch::equal(feature_alpha(x), x));
  CHECK(torch::equal(cubes(x.unsqueeze(0)), x.unsqueeze(0)));
}

TEST_CASE("Distances") {
  const torch::Tensor x = wave({3, 4}), y = wave({3, 4}, 0.3);
  expect(digest::of(nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(1))(x, y)), 0);
  expect(digest::of(nn::PairwiseDistance(nn::PairwiseDistanceOptions().p(1).keepdim(true))(x, y)), 0);
}
