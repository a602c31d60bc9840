// The losses of torch::nn, made in libtorch's way: the value of each, and its gradient by the first input.
#include "tests/torch/digest.h"

namespace nn = torch::nn;
using digest::expect, digest::wave;

namespace {

torch::Tensor longs(std::vector<int64_t> values) { return torch::tensor(values).to(torch::kLong); }

// A leaf that loss_and_gradient() reads the gradient of.
torch::Tensor leaf(torch::Tensor x) { return x.detach().clone().requires_grad_(true); }

// One number of both.
double of(const torch::Tensor& loss, const torch::Tensor& x) {
  loss.sum().backward();
  return digest::of(loss) + 3 * digest::of(x.grad());
}

}  // namespace

TEST_CASE("Losses of values") {
  torch::Tensor x = leaf(wave({4, 5}));
  const torch::Tensor y = wave({4, 5}, 0.3), sign = torch::tensor({1.0, -1.0, -1.0, 1.0});
  expect(of(nn::MSELoss()(x, y), x), 0.5006843);
  x = leaf(x);
  expect(of(nn::MSELoss(nn::MSELossOptions(torch::kSum))(x, y), x), 10.01369);
  x = leaf(x);
  expect(of(nn::L1Loss(nn::L1LossOptions().reduction(torch::kNone))(x, y), x), 5.473813);
  x = leaf(x);
  expect(of(nn::SmoothL1Loss(nn::SmoothL1LossOptions().beta(0.4))(x, y), x), 0.7136933);
  x = leaf(x);
  expect(of(nn::HuberLoss(nn::HuberLossOptions().delta(0.4))(x, y), x), 0.2854774);
  x = leaf(x);
  expect(of(nn::PoissonNLLLoss(nn::PoissonNLLLossOptions().full(true))(x, torch::sigmoid(y)), x), 1.337363);
  x = leaf(x);
  expect(of(nn::HingeEmbeddingLoss(nn::HingeEmbeddingLossOptions().margin(4))(x, torch::sign(y)), x),
         2.135846);
  x = leaf(x);
  expect(of(nn::SoftMarginLoss()(x, torch::sign(y)), x), 0.649648);
  x = leaf(x);
  expect(of(nn::CosineEmbeddingLoss(nn::CosineEmbeddingLossOptions().margin(0.1))(x, y, sign), x), 0.2602188);
  x = leaf(x);
  expect(of(nn::TripletMarginLoss(nn::TripletMarginLossOptions().margin(2).p(2).eps(1e-5))(x, y, y * y), x),
         0.9821205);
  x = leaf(x);
  nn::TripletMarginWithDistanceLoss triplet(
      nn::TripletMarginWithDistanceLossOptions()
          .distance_function(
              [](const torch::Tensor& a, const torch::Tensor& b) { return (a - b).abs().sum(1); })
          .reduction(torch::kSum));
  expect(of(triplet(x, y, y * y), x), -5.22247);
  torch::Tensor z = leaf(wave({4}));
  expect(of(nn::MarginRankingLoss(nn::MarginRankingLossOptions().margin(0.2))(z, wave({4}, 0.3), sign), z),
         1.997525);
}

TEST_CASE("Losses of probabilities") {
  torch::Tensor x = leaf(wave({4, 5}));
  const torch::Tensor y = wave({4, 5}, 0.3), p = torch::sigmoid(y);
  expect(of(nn::BCEWithLogitsLoss()(x, p), x), 0.6920546);
  x = leaf(x);
  expect(of(nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions().pos_weight(p.select(0, 1)))(x, p), x),
         0.565051);
  x = leaf(torch::sigmoid(x));
  expect(of(nn::BCELoss()(x, p), x), 0.5407632);
  x = leaf(x);
  expect(of(nn::BCELoss(nn::BCELossOptions().weight(p).reduction(torch::kSum))(x, p), x), 5.794323);
  x = leaf(torch::log(x));
  expect(of(nn::KLDivLoss(nn::KLDivLossOptions().reduction(torch::kBatchMean))(x, p), x), 0.223422);
}

TEST_CASE("Losses of classes") {
  torch::Tensor x = leaf(wave({4, 5}));
  const torch::Tensor classes = longs({0, 3, 1, 4}), weight = torch::sigmoid(wave({5}));
  expect(of(nn::CrossEntropyLoss()(x, classes), x), 1.532263);
  x = leaf(x);
  expect(of(nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().weight(weight).ignore_index(3).label_smoothing(
                0.2))(x, classes),
            x),
         0.9003351);
  x = leaf(x);
  expect(of(nn::NLLLoss(nn::NLLLossOptions().weight(weight).reduction(torch::kSum))(x, classes), x),
         -0.05526048);
  x = leaf(x);
  expect(of(nn::MultiMarginLoss(nn::MultiMarginLossOptions().margin(0.5))(x, classes), x), 0.7666541);
  x = leaf(x);
  expect(of(nn::MultiLabelMarginLoss()(x, longs({1, 0, -1, -1, -1}).expand({4, 5})), x), -2.00551);
  x = leaf(x);
  expect(of(nn::MultiLabelSoftMarginLoss()(x, (x > 0.2).to(torch::kFloat)), x), 0.3966497);
  torch::Tensor z = leaf(wave({6, 2, 4}));
  nn::CTCLoss ctc(nn::CTCLossOptions().blank(0).zero_infinity(true));
  expect(of(ctc(torch::log_softmax(z, 2), longs({1, 2, 3, 1}), longs({6, 5}), longs({2, 2})), z), 2.178975);
}

TEST_CASE("AdaptiveLogSoftmaxWithLoss") {
  nn::AdaptiveLogSoftmaxWithLoss loss(nn::AdaptiveLogSoftmaxWithLossOptions(4, 10, {3, 6}).div_value(2));
  digest::fill(*loss);
  torch::Tensor x = leaf(wave({5, 4}));
  const auto result = loss(x, longs({0, 4, 2, 9, 7}));
  expect(of(result.output, x), 8.488785);
  expect(result.loss, 3.23461);
  expect(digest::of(loss->log_prob(x)), 5.889366);
  expect(digest::of(loss->predict(x)), -3.062338);
}
