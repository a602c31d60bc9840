// See benchmarks/memory_models.h.
#include "benchmarks/memory_models.h"

namespace bench {

namespace rg = retrograd;

Cnn::Block::Block(Module* parent, std::string name, int64_t in, int64_t out, int64_t stride)
    : Module(parent, std::move(name)),
      conv1(this, "conv1", in, out, 3, {.stride = stride, .padding = 1, .bias = false}),
      conv2(this, "conv2", out, out, 3, {.padding = 1, .bias = false}),
      norm1(this, "norm1", out),
      norm2(this, "norm2", out) {
  if (in != out) shortcut.emplace_back(in, out, 1, rg::nn::ConvOptions{.stride = stride, .bias = false});
}

rg::Tensor Cnn::Block::forward(const rg::Tensor& x) const {
  const rg::Tensor h = norm2(conv2(rg::relu(norm1(conv1(x)))));
  return rg::relu(h + (shortcut.size() > 0 ? shortcut[0](x) : x));
}

Cnn::Cnn(int64_t batch)
    : images_(rg::randn({batch, kColours, kSide, kSide})), classes_(rg::randint(0, kClasses, {batch})) {
  int64_t channels = kChannels;
  for (int stage = 0; stage < kStages; ++stage)
    for (int block = 0; block < kBlocks; ++block) {
      const bool is_next = stage > 0 && block == 0;  // twice the channels, half the side
      blocks.emplace_back(channels, is_next ? 2 * channels : channels, is_next ? 2 : 1);
      channels = is_next ? 2 * channels : channels;
    }
}

rg::Tensor Cnn::loss() const {
  rg::Tensor h = rg::relu(norm(conv(images_)));
  for (const auto& block : blocks.items()) h = block->forward(h);
  return rg::cross_entropy(head(rg::mean(h, {2, 3})), classes_);
}

// Initial weights under which values and gradients neither vanish nor grow over many layers.
Chain::Chain(int64_t count, int64_t rows) : x_(rg::randn({rows, kWidth})) {
  for (int64_t i = 0; i < count; ++i)
    rg::nn::init::kaiming_normal_(layers.emplace_back(kWidth, kWidth).weight);
}

rg::Tensor Chain::loss() const {
  rg::Tensor h = x_;
  for (const auto& layer : layers.items()) h = rg::gelu((*layer)(h));
  return rg::mean(rg::square(h));
}

}  // namespace bench
