// torch::nn::functional: each function with options in libtorch's way.
#include "tests/torch/digest.h"

namespace F = torch::nn::functional;
using digest::expect, digest::wave;

TEST_CASE("Activations with options") {
  const torch::Tensor x = wave({3, 4}) * 3;
  expect(digest::of(F::elu(x)), 3.76772);
  expect(digest::of(F::elu(x, F::ELUFuncOptions().alpha(0.5))), 4.100017);
  expect(digest::of(F::selu(x)), 3.488615);
  expect(digest::of(F::selu(x, F::SELUFuncOptions(false))), 3.488615);
  expect(digest::of(F::celu(x, F::CELUFuncOptions().alpha(0.7))), 3.953609);
  expect(digest::of(F::relu(x)), 4.432314);
  expect(digest::of(F::relu6(x * 4)), 9.484293);
  expect(digest::of(F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.2))), 3.990302);
  expect(digest::of(F::hardtanh(x, F::HardtanhFuncOptions().min_val(-0.5).max_val(1.5))), 2.018605);
  expect(digest::of(F::threshold(x, F::ThresholdFuncOptions(0.5, -2))), 4.584844);
  expect(digest::of(F::hardshrink(x, F::HardshrinkFuncOptions().lambda(1.2))), 3.374911);
  expect(digest::of(F::softshrink(x, F::SoftshrinkFuncOptions(0.4))), 2.016752);
  expect(digest::of(F::gelu(x)), 4.521892);
  expect(digest::of(F::gelu(x, F::GELUFuncOptions().approximate("tanh"))), 4.52298);
  expect(digest::of(F::glu(x)), 3.282452);
  expect(digest::of(F::softplus(x, F::SoftplusFuncOptions().beta(0.5).threshold(3.0))), 3.996475);
  expect(digest::of(F::softmax(x, F::SoftmaxFuncOptions(1))), 0.2459911);
  expect(digest::of(F::softmin(x, 0)), 0.5887133);
  expect(digest::of(F::log_softmax(x, F::LogSoftmaxFuncOptions(0).dtype(torch::kDouble))), -4.832637);
  expect(digest::of(F::logsigmoid(x)), -1.671582);
  expect(digest::of(F::silu(x)), 4.179235);
  expect(digest::of(F::mish(x)), 4.399159);
  expect(digest::of(F::softsign(x)), 0.5321276);
  expect(digest::of(F::tanhshrink(x)), 1.475436);
  expect(digest::of(F::prelu(x, wave({4}, 0.9))), 1.310397);
}

TEST_CASE("An inplace option writes into the operand") {
  torch::Tensor x = wave({6}) * 3;
  const torch::Tensor before = x.clone();
  const torch::Tensor y = F::relu(x, F::ReLUFuncOptions().inplace(true));
  CHECK(y.data_ptr<float>() == x.data_ptr<float>());
  CHECK(torch::equal(x, F::relu(before)));
  F::elu(x, F::ELUFuncOptions().inplace(true));
  F::hardtanh(x, F::HardtanhFuncOptions().max_val(0.5).inplace(true));
  CHECK(x.max().item<float>() == 0.5f);
}

TEST_CASE("Convolutions with options") {
  const torch::Tensor x = wave({2, 4, 7, 6}), w = wave({6, 2, 3, 3}, 0.9), b = wave({6}, 0.4);
  expect(digest::of(F::conv2d(x, w, F::Conv2dFuncOptions().bias(b).stride({2, 1}).padding({1, 2}).groups(2))),
         3.145276);
  expect(digest::of(F::conv2d(x, wave({5, 4, 3, 2}, 0.9), F::Conv2dFuncOptions().padding(torch::kSame))),
         -5.517142);
  expect(digest::of(F::conv2d(x, wave({5, 4, 3, 2}, 0.9), F::Conv2dFuncOptions().padding(1).dilation(2))),
         1.787109);
  expect(digest::of(F::conv1d(wave({2, 3, 9}), wave({4, 3, 3}, 0.9), F::Conv1dFuncOptions().stride(2))),
         8.520104);
  expect(digest::of(F::conv3d(wave({1, 2, 4, 4, 4}), wave({3, 2, 2, 2, 2}, 0.9))), 36.05512);
  expect(
      digest::of(F::conv_transpose2d(x, wave({4, 3, 3, 3}, 0.9),
                                     F::ConvTranspose2dFuncOptions().stride(2).padding(1).output_padding(1))),
      -1.935063);
  expect(digest::of(F::conv_transpose1d(wave({2, 3, 5}), wave({3, 4, 3}, 0.9))), -2.791215);
  expect(digest::of(F::conv_transpose3d(wave({1, 2, 3, 3, 3}), wave({2, 2, 2, 2, 2}, 0.9))), -0.2545471);
}

TEST_CASE("Losses with options") {
  const torch::Tensor x = wave({4, 5}), y = wave({4, 5}, 0.3),
                      classes = torch::tensor({0, 3, 1, 4}).to(torch::kLong);
  const torch::Tensor p = torch::sigmoid(x), q = torch::sigmoid(y),
                      sign = torch::tensor({1.0, -1.0, -1.0, 1.0});
  expect(digest::of(F::l1_loss(x, y)), 0.756155);
  expect(digest::of(F::l1_loss(x, y, torch::kSum)), 15.1231);
  expect(digest::of(F::mse_loss(x, y, F::MSELossFuncOptions(torch::kNone))), 2.44804);
  expect(digest::of(F::mse_loss(x, y, F::MSELossFuncOptions().reduction(torch::kSum))), 17.942);
  expect(digest::of(F::smooth_l1_loss(x, y)), 0.4034651);
  expect(digest::of(F::smooth_l1_loss(x, y, F::SmoothL1LossFuncOptions(torch::kSum), /*beta=*/0.3)),
         12.55547);
  expect(digest::of(F::huber_loss(x, y, F::HuberLossFuncOptions().delta(0.5))), 0.2754697);
  expect(digest::of(F::kl_div(torch::log(p), q, F::KLDivFuncOptions().reduction(torch::kBatchMean))),
         0.2415989);
  expect(
      digest::of(F::kl_div(torch::log(p), torch::log(q), F::KLDivFuncOptions(torch::kSum).log_target(true))),
      0.9663954);
  expect(digest::of(F::binary_cross_entropy(p, q, F::BinaryCrossEntropyFuncOptions().weight(q))), 0.3807485);
  expect(digest::of(F::binary_cross_entropy_with_logits(
             x, q,
             F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(q.select(0, 1)).reduction(torch::kSum))),
         12.53759);
  expect(digest::of(F::nll_loss(torch::log(p), classes, F::NLLLossFuncOptions().ignore_index(3))), 0.4743303);
  expect(digest::of(F::cross_entropy(x, classes)), 1.496631);
  expect(digest::of(F::cross_entropy(
             x, classes, F::CrossEntropyFuncOptions().label_smoothing(0.1).weight(q.select(0, 0)))),
         1.472046);
  expect(digest::of(F::poisson_nll_loss(p, q, F::PoissonNLLLossFuncOptions().log_input(false).full(true))),
         0.8724827);
  expect(digest::of(F::hinge_embedding_loss(x, torch::sign(y), F::HingeEmbeddingLossFuncOptions().margin(2))),
         1.032201);
  expect(digest::of(F::multi_margin_loss(x, classes, F::MultiMarginLossFuncOptions().margin(0.5).p(2))),
         0.412547);
  expect(digest::of(
             F::multilabel_margin_loss(x, torch::tensor({1, 0, -1, -1, -1}).to(torch::kLong).expand({4, 5}))),
         1.485586);
  expect(digest::of(F::soft_margin_loss(x, torch::sign(y), F::SoftMarginLossFuncOptions(torch::kNone))),
         0.05348003);
  expect(digest::of(F::multilabel_soft_margin_loss(x, (y > 0).to(torch::kFloat))), 0.7342651);
  expect(digest::of(F::cosine_embedding_loss(x, y, sign, F::CosineEmbeddingLossFuncOptions().margin(0.1))),
         0.1259888);
  expect(digest::of(
             F::margin_ranking_loss(x.select(1, 0), y.select(1, 1), sign,
                                    F::MarginRankingLossFuncOptions().margin(0.2).reduction(torch::kSum))),
         1.593784);
  expect(digest::of(F::triplet_margin_loss(x, y, p, F::TripletMarginLossFuncOptions().p(1).swap(true))),
         2.697069);
  expect(digest::of(
             F::ctc_loss(torch::log_softmax(wave({6, 2, 4}), 2), torch::tensor({1, 2, 3, 1}).to(torch::kLong),
                         torch::tensor({6, 5}).to(torch::kLong), torch::tensor({2, 2}).to(torch::kLong),
                         F::CTCLossFuncOptions().reduction(torch::kSum))),
         8.783054);
}

TEST_CASE("Normalisations with options") {
  const torch::Tensor x = wave({3, 4, 5}), w = wave({4}, 0.9), b = wave({4}, 0.4);
  torch::Tensor mean = torch::zeros({4}), var = torch::ones({4});
  expect(digest::of(F::batch_norm(x, mean, var, F::BatchNormFuncOptions().weight(w).bias(b).training(true))),
         -0.62172);
  expect(digest::of(mean) + digest::of(var), 0.738374);
  expect(digest::of(F::batch_norm(x, mean, var, F::BatchNormFuncOptions().eps(0.1))), -0.6484277);
  expect(digest::of(F::instance_norm(x, F::InstanceNormFuncOptions().weight(w).bias(b))), -1.158051);
  expect(digest::of(F::layer_norm(x, F::LayerNormFuncOptions({4, 5}).eps(2e-5))), -1.016078);
  expect(digest::of(F::group_norm(x, F::GroupNormFuncOptions(2).weight(w).bias(b))), -0.6185114);
  expect(digest::of(F::local_response_norm(x, F::LocalResponseNormFuncOptions(2).alpha(0.3))), -0.4052312);
  expect(digest::of(F::normalize(x, F::NormalizeFuncOptions().p(1).dim(-1))), -0.2841645);
}

TEST_CASE("Pools that are undone, or at given places") {
  const torch::Tensor x = wave({1, 2, 6, 6});
  const auto [values, indices] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(2));
  expect(digest::of(F::max_unpool2d(values, indices, F::MaxUnpool2dFuncOptions(2))), 0.1433395);
  const torch::Tensor samples = torch::sigmoid(wave({1, 2, 2}));
  const auto options = F::FractionalMaxPool2dFuncOptions(2).output_size(3)._random_samples(samples);
  const auto [fractional, places] = F::fractional_max_pool2d_with_indices(x, options);
  expect(digest::of(fractional), 0.4638091);
  expect(digest::of(places), 21.40332);
}

TEST_CASE("Attention as a function") {
  const torch::Tensor q = wave({3, 2, 4}), w = wave({12, 4}, 0.9), b = wave({12}, 0.4);
  const auto options =
      F::MultiheadAttentionForwardFuncOptions(4, 2, w, b, {}, {}, false, 0.0, wave({4, 4}), wave({4}));
  const auto [output, weights] = F::multi_head_attention_forward(q, q, q, options);
  expect(digest::of(output), -0.2642171);
  expect(digest::of(weights), 0.9299504);
}

TEST_CASE("Pools with options") {
  const torch::Tensor x = wave({2, 3, 8, 6}), line = wave({2, 3, 10}), cube = wave({1, 2, 4, 5, 6});
  expect(digest::of(F::max_pool2d(x, F::MaxPool2dFuncOptions({3, 2}).stride({2, 1}).padding(1))), -2.540975);
  const auto [values, indices] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(3).stride(2));
  expect(digest::of(values), 1.065148);
  expect(digest::of(indices), -5.146238);
  expect(digest::of(F::max_pool1d(line, F::MaxPool1dFuncOptions(3).dilation(2).ceil_mode(true))), 0.03224145);
  expect(digest::of(F::max_pool3d(cube, F::MaxPool3dFuncOptions(2))), 0.09742606);
  expect(digest::of(F::avg_pool1d(line, F::AvgPool1dFuncOptions(3).stride(2))), -2.24098);
  expect(digest::of(F::avg_pool2d(x, F::AvgPool2dFuncOptions(3).padding(1).count_include_pad(false))),
         0.4205632);
  expect(digest::of(F::avg_pool3d(cube, F::AvgPool3dFuncOptions(2).divisor_override(3))), -0.445687);
  expect(digest::of(F::lp_pool1d(line, F::LPPool1dFuncOptions(2, 3))), 1.872969);
  expect(digest::of(F::lp_pool2d(x.abs(), F::LPPool2dFuncOptions(3, {2, 3}).stride(1))), 2.227343);
  expect(digest::of(F::adaptive_avg_pool1d(line, F::AdaptiveAvgPool1dFuncOptions(4))), -2.155545);
  expect(digest::of(F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions({3, std::nullopt}))),
         0.09008667);
  expect(digest::of(F::adaptive_avg_pool3d(cube, F::AdaptiveAvgPool3dFuncOptions(2))), 0.0008039288);
  expect(digest::of(F::adaptive_max_pool2d(x, F::AdaptiveMaxPool2dFuncOptions(3))), -0.02299881);
  expect(
      digest::of(std::get<1>(F::adaptive_max_pool1d_with_indices(line, F::AdaptiveMaxPool1dFuncOptions(4)))),
      0.8953292);
}

TEST_CASE("Padding, folds and resampling with options") {
  const torch::Tensor x = wave({1, 4, 5, 6});
  expect(digest::of(F::pad(x, F::PadFuncOptions({1, 2, 0, 3}))), -0.1199814);
  expect(digest::of(F::pad(x, F::PadFuncOptions({1, 2}).value(0.5))), 0.9400893);
  expect(digest::of(F::pad(x, F::PadFuncOptions({1, 2, 2, 1}).mode(torch::kReflect))), -0.2098641);
  expect(digest::of(F::pad(x, F::PadFuncOptions({1, 2, 2, 1}).mode(torch::kReplicate))), 0.2999855);
  expect(digest::of(F::pad(x, F::PadFuncOptions({1, 2, 2, 1}).mode(torch::kCircular))), -3.796682);
  const torch::Tensor columns = F::unfold(x, F::UnfoldFuncOptions({2, 3}).padding(1).stride(2));
  expect(digest::of(columns), -4.068132);
  expect(digest::of(F::fold(columns, F::FoldFuncOptions({5, 6}, {2, 3}).padding(1).stride(2))), 0.7725297);
  expect(digest::of(F::pixel_shuffle(x, F::PixelShuffleFuncOptions(2))), 0.5765225);
  expect(digest::of(F::pixel_unshuffle(wave({1, 2, 4, 6}), F::PixelUnshuffleFuncOptions(2))), -0.8096769);
  expect(digest::of(F::interpolate(x, F::InterpolateFuncOptions().scale_factor(std::vector<double>({2, 2})))),
         -0.003791928);
  expect(digest::of(F::interpolate(x, F::InterpolateFuncOptions()
                                          .size(std::vector<int64_t>({7, 4}))
                                          .mode(torch::kBilinear)
                                          .align_corners(true))),
         -3.82001);
  const torch::Tensor theta = torch::tensor({{{0.8, 0.1, 0.0}, {-0.2, 0.9, 0.1}}}).to(torch::kFloat);
  const torch::Tensor grid = F::affine_grid(theta, {1, 4, 3, 3}, false);
  expect(digest::of(grid), -0.8806939);
  expect(digest::of(F::grid_sample(
             x, grid, F::GridSampleFuncOptions().padding_mode(torch::kBorder).align_corners(true))),
         0.7254242);
}

TEST_CASE("Linear maps, embeddings and distances with options") {
  const torch::Tensor x = wave({3, 4}), y = wave({3, 4}, 0.3), table = wave({5, 2}, 0.9);
  const torch::Tensor index = torch::tensor({0, 4, 2, 2}).to(torch::kLong);
  expect(digest::of(F::linear(x, wave({2, 4}, 0.9), wave({2}))), -3.390778);
  expect(digest::of(F::bilinear(x, y, wave({2, 4, 4}, 0.9))), 2.091832);
  expect(digest::of(F::one_hot(index, 6)), 0.5778917);
  expect(digest::of(F::embedding(index, table)), -0.0762836);
  expect(digest::of(F::embedding(index, table, F::EmbeddingFuncOptions().padding_idx(2))), -0.0762836);
  expect(digest::of(
             F::embedding_bag(index.reshape({2, 2}), table, F::EmbeddingBagFuncOptions().mode(torch::kSum))),
         2.577711);
  expect(digest::of(F::embedding_bag(
             index, table, F::EmbeddingBagFuncOptions().offsets(torch::tensor({0, 3}).to(torch::kLong)))),
         0.693332);
  expect(digest::of(F::cosine_similarity(x, y, F::CosineSimilarityFuncOptions().dim(0))), -0.122647);
  expect(digest::of(F::pairwise_distance(x, y, F::PairwiseDistanceFuncOptions().p(1).keepdim(true))),
         7.172929);
  expect(digest::of(F::pdist(x)), 2.313741);
}

TEST_CASE("Dropouts with options") {
  const torch::Tensor x = torch::ones({2, 50, 4, 4});
  CHECK(torch::equal(F::dropout(x, F::DropoutFuncOptions().p(0.4).training(false)), x));
  for (const torch::Tensor& y :
       {F::dropout(x, F::DropoutFuncOptions().p(0.5)), F::dropout2d(x, F::Dropout2dFuncOptions().p(0.5))}) {
    CHECK(((y == 0) | (y == 2)).all().item<bool>());
    CHECK((y == 0).any().item<bool>());
    CHECK((y == 2).any().item<bool>());
  }
  CHECK(torch::equal(F::alpha_dropout(x), x));
  CHECK_FALSE(torch::equal(F::alpha_dropout(x, F::AlphaDropoutFuncOptions().training(true)), x));
}
