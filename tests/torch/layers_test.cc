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
  if (parameters != 0 || std::getenv("DIGESTS"))
    expect(digest::of_gradients(*layer), parameters, line * 10 + 2);
}

}  // namespace

TEST_CASE("Linear layers") {
  nn::Linear fc(4, 3);
  CHECK(fc->options.in_features() == 4);
  CHECK(fc->options.bias());
  CHECK(fc->weight.sizes() == std::vector<int64_t>({3, 4}));
  CHECK(fc->bias.sizes() == std::vector<int64_t>({3}));
  check(fc, wave({2, 5, 4}), 2.746804, -1.472136, -0.8839333);
  nn::Linear plain(nn::LinearOptions(4, 3).bias(false));
  CHECK_FALSE(plain->bias.defined());
  CHECK(plain->parameters().size() == 1);
  check(plain, wave({2, 4}), -0.6861715, 0.4107461, -2.597217);
  check(nn::Flatten(), wave({2, 3, 4}), 0.808668, 0.5485538);
  check(nn::Flatten(nn::FlattenOptions().start_dim(0).end_dim(1)), wave({2, 3, 4}), 0.808668, 0.5485538);
  check(nn::Unflatten(nn::UnflattenOptions(1, {2, 3})), wave({2, 6}), 0.7407514, 0.4065654);
  check(nn::Identity(), wave({2, 6}), 0.7407514, 0.4065654);
  nn::Bilinear bilinear(3, 4, 2);
  digest::fill(*bilinear);
  expect(digest::of(bilinear(wave({5, 3}), wave({5, 4}))), -0.07741923);
}

TEST_CASE("Convolutions") {
  check(nn::Conv1d(3, 4, 3), wave({2, 3, 8}), 2.467643, 3.328172, 1.247345);
  check(nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 2}).stride(2).padding({1, 0}).groups(2)), wave({2, 4, 7, 6}),
        -16.44968, 0.358482, 22.82246);
  check(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(torch::kSame).bias(false)), wave({1, 2, 5, 5}),
        -0.2962809, 0.224827, 9.249069);
  check(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(1).padding_mode(torch::kCircular)), wave({1, 2, 5, 5}),
        -2.184651, 0.7394397, 16.36802);
  check(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(2).padding_mode(torch::kReflect)), wave({1, 2, 5, 5}),
        -7.649065, 2.540643, -6.634947);
  check(nn::Conv3d(nn::Conv3dOptions(2, 3, 2).dilation(2)), wave({1, 2, 4, 4, 4}), 19.05569, -2.809192,
        4.868318);
  check(nn::ConvTranspose1d(nn::ConvTranspose1dOptions(3, 2, 3)), wave({2, 3, 4}), 0.8629932, -2.138989,
        -4.563978);
  nn::ConvTranspose2d up(nn::ConvTranspose2dOptions(4, 2, 3).stride(2).padding(1).output_padding(1));
  check(up, wave({1, 4, 3, 3}), -2.095395, 3.333204, 9.8249);
  CHECK(up->options.output_padding()->at(0) == 1);
  check(nn::ConvTranspose3d(nn::ConvTranspose3dOptions(2, 2, 2).bias(false)), wave({1, 2, 2, 2, 2}),
        0.06999159, 0.1445466, 2.66768);
}

TEST_CASE("Normalisations") {
  nn::BatchNorm1d norm(4);
  check(norm, wave({6, 4}), 1.389027, 2.61112, -0.1092723);
  expect(digest::of(norm->running_mean) + digest::of(norm->running_var), 0.7283397);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 1);
  CHECK(norm->named_buffers().size() == 3);
  norm->eval();
  expect(digest::of(norm(wave({6, 4}))), 0.75993);
  nn::BatchNorm2d image_norm(nn::BatchNorm2dOptions(3).eps(1e-3).momentum(0.3));
  check(image_norm, wave({2, 3, 4, 4}), -0.2429354, 0.2980253, -1.014801);
  expect(digest::of(image_norm->running_var), 1.267947);
  check(nn::BatchNorm3d(nn::BatchNorm3dOptions(2).affine(false).track_running_stats(false)),
        wave({2, 2, 2, 3, 2}), -0.1703418, 0.114377);
  check(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(3).affine(true)), wave({2, 3, 4, 4}), -0.1711526,
        0.257983, 2.073907);
  check(nn::InstanceNorm1d(3), wave({2, 3, 4}), 0.7809594, -0.6648557);
  check(nn::LayerNorm(nn::LayerNormOptions({3, 4}).eps(1e-4)), wave({2, 3, 4}), 4.158613, -6.584424,
        3.949661);
  check(nn::LayerNorm(nn::LayerNormOptions({4}).elementwise_affine(false)), wave({2, 3, 4}), 0.7809596,
        -0.6648546);
  check(nn::GroupNorm(2, 4), wave({2, 4, 3}), 0.6178244, -1.019651, -2.481181);
  check(nn::GroupNorm(nn::GroupNormOptions(2, 4).affine(false)), wave({2, 4, 3}), 3.103543, -1.827199);
  check(nn::LocalResponseNorm(nn::LocalResponseNormOptions(2).alpha(0.2).k(2)), wave({2, 4, 3, 3}),
        -0.2502559, -0.1910895);
  check(nn::CrossMapLRN2d(nn::CrossMapLRN2dOptions(3).beta(0.5)), wave({2, 4, 3, 3}), -0.4503889, -0.2074815);
}

TEST_CASE("Embeddings") {
  const torch::Tensor index = torch::tensor({0, 4, 2, 2}).to(torch::kLong);
  nn::Embedding embedding(5, 3);
  digest::fill(*embedding);
  const torch::Tensor y = embedding(index);
  (y * wave({4, 3}, 0.2)).sum().backward();
  expect(digest::of(y), 2.567641);
  expect(digest::of(embedding->weight.grad()), 0.2885096);
  nn::Embedding padded(nn::EmbeddingOptions(5, 3).padding_idx(2));
  CHECK(padded->weight.select(0, 2).abs().sum().item<float>() == 0);
  auto given = nn::Embedding::from_pretrained(wave({5, 3}));
  CHECK_FALSE(given->weight.requires_grad());
  expect(digest::of(given(index)), -0.8525794);
  auto tuned =
      nn::Embedding::from_pretrained(wave({5, 3}), nn::EmbeddingFromPretrainedOptions().freeze(false));
  CHECK(tuned->weight.requires_grad());
  nn::EmbeddingBag bag(nn::EmbeddingBagOptions(5, 3).mode(torch::kSum));
  digest::fill(*bag);
  expect(digest::of(bag(index.reshape({2, 2}))), 1.91464);
  expect(digest::of(bag(index, torch::tensor({0, 1}).to(torch::kLong))), 3.986588);
}

TEST_CASE("Activations") {
  const torch::Tensor x = wave({3, 4}) * 2;
  check(nn::ReLU(), x, 2.954876, -0.192116);
  check(nn::ReLU6(), x * 4, 9.591256, -0.8023214);
  check(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.3)), x, 2.512864, -0.0125116);
  check(nn::ELU(nn::ELUOptions().alpha(0.6)), x, 2.58704, -0.1545895);
  check(nn::SELU(), x, 2.026873, -0.09189756);
  check(nn::CELU(nn::CELUOptions().alpha(2)), x, 2.041582, 0.002223529);
  check(nn::GELU(), x, 2.905082, 0.2738642);
  check(nn::GELU(nn::GELUOptions().approximate("tanh")), x, 2.905091, 0.2736107);
  check(nn::GLU(1), x, 2.05019, -0.9687225);
  check(nn::SiLU(), x, 2.44451, 0.2852116);
  check(nn::Mish(), x, 2.73186, 0.1295123);
  check(nn::Sigmoid(), x, 0.9265947, -0.1243944);
  check(nn::LogSigmoid(), x, -1.093375, 0.1498964);
  check(nn::Tanh(), x, 0.7773396, -0.9654333);
  check(nn::Tanhshrink(), x, 0.704163, 1.371999);
  check(nn::Softsign(), x, 0.4908232, -0.6930111);
  check(nn::Softplus(nn::SoftplusOptions().beta(2)), x, 2.664145, 0.2598484);
  check(nn::Softshrink(0.2), x, 1.385158, 1.148621);
  check(nn::Hardshrink(nn::HardshrinkOptions(0.8)), x, 2.249941, 1.601356);
  check(nn::Hardtanh(nn::HardtanhOptions().min_val(-0.5)), x, 1.228248, -1.375808);
  check(nn::Threshold(0.3, 7), x, 2.581164, 0.5499401);
  check(nn::Softmax(1), x, 0.3098773, -0.06039924);
  check(nn::Softmin(nn::SoftminOptions(0)), x, 0.5887977, 0.1951405);
  check(nn::LogSoftmax(nn::LogSoftmaxOptions(1)), x, -0.98208, -0.3610864);
  check(nn::Softmax2d(), wave({1, 3, 2, 2}), 0.4913288, -0.3075546);
  check(nn::PReLU(nn::PReLUOptions().num_parameters(4).init(0.1)), x, 0.8735977, 0.9904138, -0.1119452);
  nn::RReLU random(nn::RReLUOptions().lower(0.1).upper(0.3));
  random->eval();
  check(random, x, 2.660201, -0.07237972);
  torch::Tensor changed = x.clone();
  nn::ReLU in_place(nn::ReLUOptions().inplace(true));
  in_place(changed);
  CHECK(torch::equal(changed, torch::relu(x)));
}

TEST_CASE("Pools") {
  const torch::Tensor x = wave({2, 3, 8, 6}), line = wave({2, 3, 10}), cube = wave({1, 2, 4, 5, 6});
  check(nn::MaxPool1d(3), line, -0.4019644, -0.3808092);
  check(nn::MaxPool2d(nn::MaxPool2dOptions({3, 2}).stride(2).padding(1)), x, 3.98097, 4.604173);
  check(nn::MaxPool3d(2), cube, 0.09742606, -1.476522);
  check(nn::AvgPool1d(nn::AvgPool1dOptions(4).stride(2)), line, -1.877212, 0.1049725);
  check(nn::AvgPool2d(nn::AvgPool2dOptions(3).padding(1).count_include_pad(false)), x, 0.4205632, 0.08721793);
  check(nn::AvgPool3d(2), cube, -0.1671326, -0.1026033);
  check(nn::LPPool1d(nn::LPPool1dOptions(2, 3)), line, 1.872969, -0.2122953);
  check(nn::LPPool2d(nn::LPPool2dOptions(2, {2, 3}).stride(1)), x, 3.062431, 0.2024598);
  check(nn::AdaptiveAvgPool1d(4), line, -2.155545, 0.290538);
  check(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, 2})), x, -0.3325442, 0.08867832);
  check(nn::AdaptiveAvgPool3d(2), cube, 0.0008039288, -0.02164801);
  check(nn::AdaptiveMaxPool1d(4), line, -2.199543, 0.8138649);
  check(nn::AdaptiveMaxPool2d(3), x, -0.02299881, 0.03035951);
  check(nn::AdaptiveMaxPool3d(2), cube, 0.4449828, 0.8379444);
  nn::MaxPool2d pool(2);
  auto [values, indices] = pool->forward_with_indices(x);
  expect(digest::of(indices), 8.231262);
  expect(digest::of(nn::MaxUnpool2d(2)(values, indices)), 2.986199);
}

TEST_CASE("Padding") {
  const torch::Tensor x = wave({1, 2, 4, 5}), line = wave({2, 3, 6}), cube = wave({1, 2, 3, 4, 5});
  check(nn::ReflectionPad1d(2), line, -2.816463, 0.6065159);
  check(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 2, 3, 0})), x, -2.057614, -0.6491704);
  check(nn::ReflectionPad3d(1), cube, 10.88166, 4.634345);
  check(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({3, 1})), line, 0.1591344, -3.193341);
  check(nn::ReplicationPad2d(2), x, -6.830401, 0.4825906);
  check(nn::ReplicationPad3d(1), cube, -0.07743979, 0.9675);
  check(nn::ZeroPad1d(1), line, -8.359018, 0.6608912);
  check(nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 2, 3, 0})), x, -0.9790963, 0.09169376);
  check(nn::ZeroPad3d(1), cube, 12.66535, 0.7175817);
  check(nn::ConstantPad1d(2, 0.5), line, 1.294754, -0.8730829);
  check(nn::ConstantPad2d(nn::ConstantPad2dOptions({1, 0, 2, 1}, -1)), x, 0.4663705, -0.9573365);
  check(nn::ConstantPad3d(1, 3.5), cube, 14.13293, 0.7175817);
}

TEST_CASE("Folds, pixel shuffles and resampling") {
  const torch::Tensor x = wave({1, 4, 5, 6});
  check(nn::Unfold(nn::UnfoldOptions({2, 3}).padding(1)), x, 16.90689, 5.074019);
  check(nn::Fold(nn::FoldOptions({3, 4}, {2, 2})), wave({1, 8, 6}), 0.8298552, -0.1179007);
  check(nn::PixelShuffle(2), x, 0.5765225, -3.389062);
  check(nn::PixelUnshuffle(nn::PixelUnshuffleOptions(2)), wave({1, 2, 4, 6}), -0.8096769, 0.8263848);
  check(nn::Upsample(nn::UpsampleOptions()
                         .scale_factor(std::vector<double>({2, 1.5}))
                         .mode(torch::kBilinear)
                         .align_corners(false)),
        x, 2.032208, 0.8646145);
  check(nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>({7, 8}))), x, -2.775684, 0.2691729);
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
  expect(digest::of(nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(1))(x, y)), -0.856667);
  expect(digest::of(nn::PairwiseDistance(nn::PairwiseDistanceOptions().p(1).keepdim(true))(x, y)), 7.172929);
}
