// The layers of tests/nn/layers_test.cc, with the arguments that layer_numbers.py gives them, and their texts.
#include "tests/nn/layer_case.h"

#include <cmath>

namespace retrograd::testing {
namespace {

using namespace nn;

// A pool and its inverse.
template <int Dims>
struct Unpooled : Module {
  explicit Unpooled(Module*, const std::string&, IntList size) : size(size) {}
  Tensor operator()(const Tensor& x) const {
    const auto [values, indices] = pool.forward_with_indices(x);
    return unpool(values, indices, size);
  }

  MaxPool<Dims> pool{this, "pool", 2, {.stride = 2}};
  MaxUnpool<Dims> unpool{this, "unpool", 2, {.stride = 2}};
  IntList size;
};

// A transposed convolution to a size.
struct Sized : Module {
  Sized(Module*, const std::string&) {}
  Tensor operator()(const Tensor& x) const { return conv(x, {6, 7}); }

  ConvTranspose2d conv{this, "conv", 2, 3, 3, {.stride = 2, .padding = 1}};
};

Tensor samples(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0, n = zeros(shape).numel(); i < n; ++i)
    values.push_back(0.5 + 0.49 * std::sin(1.3 * static_cast<double>(i)));
  return tensor(values, shape, kFloat64);
}

Tensor class_weights() { return tensor({0.5, 1.5, 2.0}, kFloat64); }

Tensor taxicab(const Tensor& a, const Tensor& b) { return sum(abs(a - b), {-1}); }

void add(std::vector<LayerCase>& all, std::vector<LayerCase> more) {
  for (LayerCase& c : more) all.push_back(std::move(c));
}

std::vector<LayerCase> activations() {
  return {
      layer_case<ReLU>("ReLU", "ReLU()"),
      layer_case<ReLU6>("ReLU6", "ReLU6()"),
      layer_case<SELU>("SELU", "SELU()"),
      layer_case<ELU>("ELU", "ELU(alpha=0.7)", ELUOptions{.alpha = 0.7}),
      layer_case<CELU>("CELU", "CELU(alpha=0.5)", ELUOptions{.alpha = 0.5}),
      layer_case<LeakyReLU>("LeakyReLU", "LeakyReLU(negative_slope=0.2)", LeakyReLUOptions{0.2}),
      layer_case<Hardtanh>("Hardtanh", "Hardtanh(min_val=-0.5, max_val=0.8)", HardtanhOptions{-0.5, 0.8}),
      layer_case<RReLU>("RReLU", "RReLU(lower=0.2, upper=0.2)", RReLUOptions{0.2, 0.2}),
      layer_case<GELU>("GELU", "GELU(approximate=none)"),
      layer_case<GELU>("GELU tanh", "GELU(approximate=tanh)", GELUOptions{"tanh"}),
      layer_case<GLU>("GLU", "GLU(dim=1)", GLUOptions{1}),
      layer_case<Hardshrink>("Hardshrink", "Hardshrink(0.6)", ShrinkOptions{0.6}),
      layer_case<Softshrink>("Softshrink", "Softshrink(0.6)", ShrinkOptions{0.6}),
      layer_case<Softplus>("Softplus", "Softplus(beta=2, threshold=1.5)", SoftplusOptions{2, 1.5}),
      layer_case<PReLU>("PReLU", "PReLU(num_parameters=1)"),
      layer_case<PReLU>("PReLU channels", "PReLU(num_parameters=5)", PReLUOptions{5, 0.1}),
      layer_case<Threshold>("Threshold", "Threshold(threshold=0.1, value=20)", 0.1, 20.0),
      layer_case<Softmax>("Softmax", "Softmax(dim=0)", 0),
      layer_case<Softmin>("Softmin", "Softmin(dim=1)", 1),
      layer_case<LogSoftmax>("LogSoftmax", "LogSoftmax(dim=1)", 1),
      layer_case<Softmax2d>("Softmax2d", "Softmax2d()"),
      layer_case<Hardsigmoid>("Hardsigmoid", "Hardsigmoid()"),
      layer_case<Hardswish>("Hardswish", "Hardswish()"),
      layer_case<LogSigmoid>("LogSigmoid", "LogSigmoid()"),
      layer_case<Mish>("Mish", "Mish()"),
      layer_case<SiLU>("SiLU", "SiLU()"),
      layer_case<Sigmoid>("Sigmoid", "Sigmoid()"),
      layer_case<Softsign>("Softsign", "Softsign()"),
      layer_case<Tanh>("Tanh", "Tanh()"),
      layer_case<Tanhshrink>("Tanhshrink", "Tanhshrink()"),
  };
}

std::vector<LayerCase> linear_layers_and_norms() {
  return {
      layer_case<Linear>("Linear", "Linear(in_features=4, out_features=3, bias=true)", 4, 3),
      layer_case<Linear>("Linear no bias", "Linear(in_features=4, out_features=3, bias=false)", 4, 3,
                         LinearOptions{.bias = false}),
      layer_case<Bilinear>("Bilinear", "Bilinear(in1_features=4, in2_features=3, out_features=2, bias=true)",
                           4, 3, 2),
      layer_case<BatchNorm1d>(
          "BatchNorm1d", "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)", 3),
      layer_case<BatchNorm1d>(
          "BatchNorm1d length",
          "BatchNorm1d(3, eps=0.001, momentum=0.3, affine=true, track_running_stats=true)", 3,
          BatchNormOptions{.eps = 1e-3, .momentum = 0.3}),
      layer_case<BatchNorm2d>(
          "BatchNorm2d", "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=false, track_running_stats=true)", 3,
          BatchNormOptions{.affine = false}),
      layer_case<BatchNorm2d>(
          "BatchNorm2d cumulative",
          "BatchNorm2d(3, eps=1e-05, momentum=None, affine=true, track_running_stats=true)", 3,
          BatchNormOptions{.momentum = std::nullopt}),
      layer_case<BatchNorm3d>(
          "BatchNorm3d", "BatchNorm3d(2, eps=1e-05, momentum=0.1, affine=true, track_running_stats=false)", 2,
          BatchNormOptions{.track_running_stats = false}),
      layer_case<InstanceNorm1d>(
          "InstanceNorm1d",
          "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)", 3),
      layer_case<InstanceNorm1d>(
          "InstanceNorm1d no batch",
          "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=false)", 3,
          InstanceNormOptions{.affine = true}),
      layer_case<InstanceNorm2d>(
          "InstanceNorm2d",
          "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)", 3,
          InstanceNormOptions{.affine = true, .track_running_stats = true}),
      layer_case<InstanceNorm3d>(
          "InstanceNorm3d",
          "InstanceNorm3d(2, eps=0.01, momentum=0.1, affine=false, track_running_stats=false)", 2,
          InstanceNormOptions{.eps = 1e-2}),
      layer_case<GroupNorm>("GroupNorm", "GroupNorm(2, 6, eps=1e-05, affine=true)", 2, 6),
      layer_case<LayerNorm>("LayerNorm", "LayerNorm([3, 4], eps=1e-05, elementwise_affine=true)",
                            IntArray{3, 4}),
      layer_case<LayerNorm>("LayerNorm no bias", "LayerNorm([4], eps=1e-05, elementwise_affine=true)",
                            IntArray{4}, LayerNormOptions{.bias = false}),
      layer_case<LayerNorm>("LayerNorm plain", "LayerNorm([4], eps=1e-05, elementwise_affine=false)",
                            IntArray{4}, LayerNormOptions{.elementwise_affine = false}),
      layer_case<RMSNorm>("RMSNorm", "RMSNorm([4], eps=0.001, elementwise_affine=true)", IntArray{4},
                          RMSNormOptions{.eps = 1e-3}),
      layer_case<LocalResponseNorm>("LocalResponseNorm", "LocalResponseNorm(3, alpha=0.1, beta=0.75, k=2)", 3,
                                    ResponseNormOptions{.alpha = 0.1, .k = 2}),
      layer_case<CrossMapLRN2d>("CrossMapLRN2d", "CrossMapLRN2d(5, alpha=0.1, beta=0.75, k=1)", 5,
                                ResponseNormOptions{.alpha = 0.1}),
      layer_case<CrossMapLRN2d>("CrossMapLRN2d even", "CrossMapLRN2d(4, alpha=0.1, beta=0.6, k=1)", 4,
                                ResponseNormOptions{.alpha = 0.1, .beta = 0.6}),
  };
}

std::vector<LayerCase> convolutions() {
  return {
      layer_case<Conv1d>("Conv1d", "Conv1d(4, 6, kernel_size=[3], stride=[2], padding=[1], groups=2)", 4, 6,
                         3, ConvOptions{.stride = 2, .padding = 1, .groups = 2}),
      layer_case<Conv2d>(
          "Conv2d",
          "Conv2d(2, 3, kernel_size=[3, 2], stride=[1, 1], padding=[1, 0], dilation=[1, 2], bias=false)", 2,
          3, IntList{3, 2}, ConvOptions{.padding = {1, 0}, .dilation = {1, 2}, .bias = false}),
      layer_case<Conv2d>("Conv2d same", "Conv2d(2, 3, kernel_size=[4, 4], stride=[1, 1], padding=same)", 2, 3,
                         4, ConvOptions{.padding = "same"}),
      layer_case<Conv3d>("Conv3d", "Conv3d(2, 2, kernel_size=[2, 2, 2], stride=[1, 1, 1])", 2, 2, 2),
      layer_case<Conv1d>("Conv1d circular",
                         "Conv1d(2, 3, kernel_size=[3], stride=[1], padding=[2], padding_mode=circular)", 2,
                         3, 3, ConvOptions{.padding = 2, .padding_mode = "circular"}),
      layer_case<Conv2d>(
          "Conv2d reflect",
          "Conv2d(2, 3, kernel_size=[3, 3], stride=[1, 1], padding=[1, 2], padding_mode=reflect)", 2, 3, 3,
          ConvOptions{.padding = {1, 2}, .padding_mode = "reflect"}),
      layer_case<Conv2d>(
          "Conv2d replicate",
          "Conv2d(2, 3, kernel_size=[4, 4], stride=[1, 1], padding=same, padding_mode=replicate)", 2, 3, 4,
          ConvOptions{.padding = "same", .padding_mode = "replicate"}),
      layer_case<ConvTranspose1d>("ConvTranspose1d",
                                  "ConvTranspose1d(4, 2, kernel_size=[3], stride=[2], groups=2)", 4, 2, 3,
                                  ConvTransposeOptions{.stride = 2, .groups = 2}),
      layer_case<ConvTranspose2d>(
          "ConvTranspose2d",
          "ConvTranspose2d(2, 3, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1], output_padding=[1, 1], "
          "bias=false)",
          2, 3, 3, ConvTransposeOptions{.stride = 2, .padding = 1, .output_padding = 1, .bias = false}),
      layer_case<Sized>("ConvTranspose2d size", ""),
      layer_case<ConvTranspose3d>(
          "ConvTranspose3d",
          "ConvTranspose3d(2, 2, kernel_size=[2, 2, 2], stride=[1, 1, 1], dilation=[2, 2, 2])", 2, 2, 2,
          ConvTransposeOptions{.dilation = 2}),
  };
}

std::vector<LayerCase> pools() {
  return {
      layer_case<MaxPool1d>(
          "MaxPool1d", "MaxPool1d(kernel_size=[3], stride=[2], padding=[1], dilation=[1], ceil_mode=false)",
          3, MaxPoolOptions{.stride = 2, .padding = 1}),
      layer_case<MaxPool2d>(
          "MaxPool2d",
          "MaxPool2d(kernel_size=[3, 2], stride=[3, 2], padding=[0, 0], dilation=[1, 2], ceil_mode=true)",
          IntList{3, 2}, MaxPoolOptions{.dilation = {1, 2}, .ceil_mode = true}),
      layer_case<MaxPool3d>("MaxPool3d",
                            "MaxPool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0], "
                            "dilation=[1, 1, 1], ceil_mode=false)",
                            2),
      layer_case<AvgPool1d>("AvgPool1d", "AvgPool1d(kernel_size=[3], stride=[2], padding=[1])", 3,
                            AvgPoolOptions{.stride = 2, .padding = 1, .count_include_pad = false}),
      layer_case<AvgPool2d>("AvgPool2d", "AvgPool2d(kernel_size=[2, 2], stride=[1, 1], padding=[1, 1])", 2,
                            AvgPoolOptions{.stride = 1, .padding = 1, .divisor_override = 3}),
      layer_case<AvgPool3d>("AvgPool3d",
                            "AvgPool3d(kernel_size=[2, 2, 2], stride=[2, 2, 2], padding=[0, 0, 0])", 2),
      layer_case<AdaptiveAvgPool1d>("AdaptiveAvgPool1d", "AdaptiveAvgPool1d(output_size=[3])",
                                    AdaptiveSize(3)),
      layer_case<AdaptiveAvgPool2d>("AdaptiveAvgPool2d", "AdaptiveAvgPool2d(output_size=[3, None])",
                                    AdaptiveSize{3, std::nullopt}),
      layer_case<AdaptiveAvgPool3d>("AdaptiveAvgPool3d", "AdaptiveAvgPool3d(output_size=[2, 2, 2])",
                                    AdaptiveSize(2)),
      layer_case<AdaptiveMaxPool1d>("AdaptiveMaxPool1d", "AdaptiveMaxPool1d(output_size=[3])",
                                    AdaptiveSize(3)),
      layer_case<AdaptiveMaxPool2d>("AdaptiveMaxPool2d", "AdaptiveMaxPool2d(output_size=[3, None])",
                                    AdaptiveSize{3, std::nullopt}),
      layer_case<AdaptiveMaxPool3d>("AdaptiveMaxPool3d", "AdaptiveMaxPool3d(output_size=[2, 2, 2])",
                                    AdaptiveSize(2)),
      layer_case<FractionalMaxPool2d>(
          "FractionalMaxPool2d", "FractionalMaxPool2d(kernel_size=[2, 2], output_size=[3, 4])", 2,
          FractionalMaxPoolOptions{.output_size = {3, 4}, .random_samples = samples({2, 3, 2})}),
      layer_case<FractionalMaxPool2d>(
          "FractionalMaxPool2d ratio", "FractionalMaxPool2d(kernel_size=[3, 2], output_ratio=[0.5, 0.6])",
          IntList{3, 2},
          FractionalMaxPoolOptions{.output_ratio = {0.5, 0.6}, .random_samples = samples({2, 3, 2})}),
      layer_case<FractionalMaxPool3d>(
          "FractionalMaxPool3d", "FractionalMaxPool3d(kernel_size=[2, 2, 2], output_size=[2, 3, 1])", 2,
          FractionalMaxPoolOptions{.output_size = {2, 3, 1}, .random_samples = samples({1, 2, 3})}),
      layer_case<LPPool1d>("LPPool1d", "LPPool1d(norm_type=2, kernel_size=[3], stride=[2], ceil_mode=false)",
                           2.0, 3, LPPoolOptions{.stride = 2}),
      layer_case<LPPool2d>("LPPool2d",
                           "LPPool2d(norm_type=1.5, kernel_size=[2, 3], stride=[2, 3], ceil_mode=true)", 1.5,
                           IntList{2, 3}, LPPoolOptions{.ceil_mode = true}),
      layer_case<LPPool3d>("LPPool3d",
                           "LPPool3d(norm_type=2, kernel_size=[2, 2, 2], stride=[2, 2, 2], ceil_mode=false)",
                           2.0, 2),
      layer_case<Unpooled<1>>("MaxUnpool1d", "", IntList{}),
      layer_case<Unpooled<2>>("MaxUnpool2d", "", IntList{2, 2, 5, 7}),
      layer_case<Unpooled<3>>("MaxUnpool3d", "", IntList{5, 4, 4}),
      layer_case<Upsample>("Upsample", "Upsample(scale_factor=2, mode=bilinear)",
                           InterpolateOptions{.scale_factor = 2, .mode = "bilinear"}),
  };
}

std::vector<LayerCase> paddings_and_patches() {
  return {
      layer_case<ReflectionPad1d>("ReflectionPad1d", "ReflectionPad1d(padding=[2, 2])", 2),
      layer_case<ReflectionPad2d>("ReflectionPad2d", "ReflectionPad2d(padding=[1, 2, 0, 1])",
                                  IntList{1, 2, 0, 1}),
      layer_case<ReflectionPad3d>("ReflectionPad3d", "ReflectionPad3d(padding=[1, 1, 1, 1, 1, 1])", 1),
      layer_case<ReplicationPad1d>("ReplicationPad1d", "ReplicationPad1d(padding=[1, 3])", IntList{1, 3}),
      layer_case<ReplicationPad2d>("ReplicationPad2d", "ReplicationPad2d(padding=[1, 1, 1, 1])", 1),
      layer_case<ReplicationPad3d>("ReplicationPad3d", "ReplicationPad3d(padding=[1, 1, 1, 1, 1, 1])", 1),
      layer_case<CircularPad2d>("CircularPad2d", "CircularPad2d(padding=[1, 2, 0, 1])", IntList{1, 2, 0, 1}),
      layer_case<ZeroPad1d>("ZeroPad1d", "ZeroPad1d(padding=[2, 2])", 2),
      layer_case<ZeroPad2d>("ZeroPad2d", "ZeroPad2d(padding=[1, -1, 0, 1])", IntList{1, -1, 0, 1}),
      layer_case<ZeroPad3d>("ZeroPad3d", "ZeroPad3d(padding=[1, 1, 1, 1, 1, 1])", 1),
      layer_case<ConstantPad1d>("ConstantPad1d", "ConstantPad1d(padding=[2, 2], value=3.5)", 2, 3.5),
      layer_case<ConstantPad2d>("ConstantPad2d", "ConstantPad2d(padding=[1, 2, 0, 1], value=-1)",
                                IntList{1, 2, 0, 1}, -1.0),
      layer_case<ConstantPad3d>("ConstantPad3d", "ConstantPad3d(padding=[1, 1, 1, 1, 1, 1], value=0.5)", 1,
                                0.5),
      layer_case<Unfold>("Unfold",
                         "Unfold(kernel_size=[2, 3], dilation=[1, 1], padding=[1, 1], stride=[2, 1])",
                         IntList{2, 3}, UnfoldOptions{.padding = 1, .stride = {2, 1}}),
      layer_case<Fold>(
          "Fold",
          "Fold(output_size=[4, 5], kernel_size=[2, 3], dilation=[1, 1], padding=[0, 0], stride=[2, 1])",
          IntList{4, 5}, IntList{2, 3}, UnfoldOptions{.stride = {2, 1}}),
      layer_case<PixelShuffle>("PixelShuffle", "PixelShuffle(upscale_factor=2)", 2),
      layer_case<PixelUnshuffle>("PixelUnshuffle", "PixelUnshuffle(downscale_factor=2)", 2),
      layer_case<ChannelShuffle>("ChannelShuffle", "ChannelShuffle(groups=2)", 2),
  };
}

std::vector<LayerCase> embeddings_and_distances() {
  return {
      layer_case<Embedding>(
          "Embedding", "Embedding(num_embeddings=6, embedding_dim=3, padding_idx=1, scale_grad_by_freq=true)",
          6, 3, EmbeddingOptions{.padding_idx = 1, .scale_grad_by_freq = true}),
      layer_case<Embedding>("Embedding max_norm",
                            "Embedding(num_embeddings=6, embedding_dim=3, max_norm=0.4, norm_type=1)", 6, 3,
                            EmbeddingOptions{.max_norm = 0.4, .norm_type = 1.0}),
      layer_case<EmbeddingBag>("EmbeddingBag",
                               "EmbeddingBag(num_embeddings=6, embedding_dim=3, padding_idx=2, mode=sum)", 6,
                               3, EmbeddingBagOptions{.mode = "sum", .padding_idx = 2}),
      layer_case<EmbeddingBag>("EmbeddingBag offsets",
                               "EmbeddingBag(num_embeddings=6, embedding_dim=3, mode=max)", 6, 3,
                               EmbeddingBagOptions{.mode = "max"}),
      layer_case<CosineSimilarity>("CosineSimilarity", "CosineSimilarity(dim=0, eps=1e-08)",
                                   CosineSimilarityOptions{.dim = 0}),
      layer_case<PairwiseDistance>("PairwiseDistance", "PairwiseDistance(p=3, eps=1e-06, keepdim=true)",
                                   PairwiseDistanceOptions{.p = 3, .keepdim = true}),
  };
}

std::vector<LayerCase> losses() {
  const Tensor weight = class_weights();
  return {
      layer_case<L1Loss>("L1Loss", "L1Loss()", LossOptions{"sum"}),
      layer_case<MSELoss>("MSELoss", "MSELoss()"),
      layer_case<SmoothL1Loss>("SmoothL1Loss", "SmoothL1Loss()", SmoothL1LossOptions{.beta = 0.5}),
      layer_case<HuberLoss>("HuberLoss", "HuberLoss()", HuberLossOptions{"none", 0.5}),
      layer_case<CrossEntropyLoss>(
          "CrossEntropyLoss", "CrossEntropyLoss()",
          CrossEntropyLossOptions{.weight = weight, .ignore_index = 2, .label_smoothing = 0.1}),
      layer_case<CrossEntropyLoss>("CrossEntropyLoss sum", "CrossEntropyLoss()",
                                   CrossEntropyLossOptions{.reduction = "sum"}),
      layer_case<NLLLoss>("NLLLoss", "NLLLoss()", NLLLossOptions{.weight = weight}),
      layer_case<BCELoss>("BCELoss", "BCELoss()", WeightedLossOptions{.weight = weight}),
      layer_case<BCEWithLogitsLoss>("BCEWithLogitsLoss", "BCEWithLogitsLoss()",
                                    BCEWithLogitsLossOptions{.pos_weight = weight}),
      layer_case<CTCLoss>("CTCLoss", "CTCLoss()", CTCLossOptions{1, "sum"}),
      layer_case<KLDivLoss>("KLDivLoss", "KLDivLoss()", KLDivLossOptions{"batchmean", true}),
      layer_case<PoissonNLLLoss>("PoissonNLLLoss", "PoissonNLLLoss()", PoissonNLLLossOptions{.full = true}),
      layer_case<GaussianNLLLoss>("GaussianNLLLoss", "GaussianNLLLoss()",
                                  GaussianNLLLossOptions{.full = true}),
      layer_case<HingeEmbeddingLoss>("HingeEmbeddingLoss", "HingeEmbeddingLoss(margin=0.7)",
                                     HingeEmbeddingLossOptions{0.7}),
      layer_case<MarginRankingLoss>("MarginRankingLoss", "MarginRankingLoss(margin=0.3)",
                                    MarginLossOptions{0.3}),
      layer_case<CosineEmbeddingLoss>("CosineEmbeddingLoss", "CosineEmbeddingLoss(margin=0.1)",
                                      MarginLossOptions{0.1}),
      layer_case<TripletMarginLoss>("TripletMarginLoss",
                                    "TripletMarginLoss(margin=0.8, p=2, eps=1e-06, swap=true)",
                                    TripletMarginLossOptions{.margin = 0.8, .swap = true}),
      layer_case<TripletMarginWithDistanceLoss>("TripletMarginWithDistanceLoss",
                                                "TripletMarginWithDistanceLoss(margin=0.8, swap=false)",
                                                TripletMarginWithDistanceLossOptions{taxicab, 0.8}),
      layer_case<MultiMarginLoss>("MultiMarginLoss", "MultiMarginLoss(p=2, margin=0.9)",
                                  MultiMarginLossOptions{2, 0.9, weight}),
      layer_case<MultiLabelMarginLoss>("MultiLabelMarginLoss", "MultiLabelMarginLoss()"),
      layer_case<SoftMarginLoss>("SoftMarginLoss", "SoftMarginLoss()"),
      layer_case<MultiLabelSoftMarginLoss>("MultiLabelSoftMarginLoss", "MultiLabelSoftMarginLoss()",
                                           WeightedLossOptions{.weight = weight}),
      layer_case<AdaptiveLogSoftmaxWithLoss>("AdaptiveLogSoftmaxWithLoss", "AdaptiveLogSoftmaxWithLoss", 8,
                                             10, IntArray{3, 6},
                                             AdaptiveLogSoftmaxWithLossOptions{2.0, true}),
  };
}

}  // namespace

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> all = activations();
  add(all, linear_layers_and_norms());
  add(all, convolutions());
  add(all, pools());
  add(all, paddings_and_patches());
  add(all, embeddings_and_distances());
  add(all, losses());
  return all;
}

}  // namespace retrograd::testing
