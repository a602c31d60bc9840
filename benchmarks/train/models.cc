// See models.h. Forward passes are written out here instead of using nn's layers: in a 16-bit dtype each parameter is
// rounded where it is used.
#include "benchmarks/train/models.h"

#include <stdexcept>

namespace bench {
namespace {

// A parameter for an op on x: in the dtype of x, unless autocast decides.
rg::Tensor beside(const rg::Tensor& x, const rg::Tensor& parameter) {
  return rg::is_autocast_enabled() ? parameter : parameter.to(x.dtype());
}
rg::Tensor linear(const rg::nn::Linear& layer, const rg::Tensor& x) {
  return rg::linear(x, beside(x, layer.weight), beside(x, layer.bias));
}
rg::Tensor norm(const rg::nn::LayerNorm& layer, const rg::Tensor& x) {
  return rg::layer_norm(x, {x.size(-1)}, beside(x, layer.weight), beside(x, layer.bias));
}

class Mlp : public Model {
 public:
  Mlp(BatchSize size, rg::ScalarType dtype, rg::Device device)
      : batch_(size.batch ? size.batch : 128),
        x_(rg::randn({batch_, kIn}).to(dtype).to(device)),
        y_(rg::randint(0, kClasses, {batch_}).to(device)) {
    to(device);
  }

  rg::Tensor loss() const override {
    const rg::Tensor hidden = rg::relu(linear(fc2, rg::relu(linear(fc1, x_))));
    return rg::cross_entropy(linear(fc3, hidden), y_);
  }
  std::vector<Product> products() const override {
    std::vector<Product> list;
    add_linear(list, batch_, kIn, kWidth, false);
    add_linear(list, batch_, kWidth, kWidth);
    add_linear(list, batch_, kWidth, kClasses);
    return list;
  }
  int64_t tokens() const override { return batch_; }

 private:
  static constexpr int64_t kIn = 784, kWidth = 512, kClasses = 10;
  rg::nn::Linear fc1{this, "fc1", kIn, kWidth}, fc2{this, "fc2", kWidth, kWidth},
      fc3{this, "fc3", kWidth, kClasses};
  int64_t batch_;
  rg::Tensor x_, y_;
};

struct GptSizes {
  int64_t vocabulary, block, layers, heads, width, batch;
  int64_t loss_rows = 0;  // at a time; 0: all
};

struct Block : rg::nn::Module {
  rg::nn::LayerNorm ln1, ln2;
  rg::nn::Linear qkv, proj, fc, out;
  int64_t heads;

  Block(Module* parent, std::string name, int64_t width, int64_t heads)
      : Module(parent, std::move(name)),
        ln1(this, "ln1", {width}),
        ln2(this, "ln2", {width}),
        qkv(this, "qkv", width, 3 * width),
        proj(this, "proj", width, width),
        fc(this, "fc", width, 4 * width),
        out(this, "out", 4 * width, width),
        heads(heads) {
    for (const rg::nn::Linear* layer : {&qkv, &proj, &fc, &out})
      rg::nn::init::normal_(layer->weight, 0, 0.02);
  }
  rg::Tensor attention(const rg::Tensor& x) const {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    rg::Tensors parts = rg::split(linear(qkv, x), {width, width, width}, 2);
    for (rg::Tensor& part : parts) part = part.view({batch, length, heads, width / heads}).transpose(1, 2);
    const rg::Tensor mixed = rg::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    return linear(proj, mixed.transpose(1, 2).reshape({batch, length, width}));
  }
  rg::Tensor forward(const rg::Tensor& x) const {
    const rg::Tensor y = x + attention(norm(ln1, x));
    return y + linear(out, rg::gelu(linear(fc, norm(ln2, y)), "tanh"));
  }
};

class Gpt : public Model {
 public:
  Gpt(const GptSizes& s, rg::ScalarType dtype, rg::Device device)
      : sizes_(s),
        dtype_(dtype),
        wte(this, "wte", s.vocabulary, s.width),
        wpe(this, "wpe", s.block, s.width),
        lnf(this, "lnf", {s.width}) {
    rg::nn::init::normal_(wte.weight, 0, 0.02);
    rg::nn::init::normal_(wpe.weight, 0, 0.02);
    for (int64_t i = 0; i < s.layers; ++i) blocks.emplace_back(s.width, s.heads);
    tokens_ = rg::randint(0, s.vocabulary, {s.batch, s.block}).to(device);
    next_ = rg::randint(0, s.vocabulary, {s.batch, s.block}).to(device);
    positions_ = rg::arange(0, s.block).to(device);
    to(device);
  }

  rg::Tensor loss() const override {
    rg::Tensor h = (wte(tokens_) + wpe(positions_)).to(dtype_);
    for (const auto& block : blocks.items()) h = block->forward(h);
    h = norm(lnf, h);
    const rg::Tensor head = wte.weight.to(dtype_), next = next_.view({-1});
    if (sizes_.loss_rows == 0)
      return rg::cross_entropy(rg::linear(h, head).view({-1, sizes_.vocabulary}), next);
    return rg::nn::functional::linear_cross_entropy(h.view({-1, sizes_.width}), head, next, {}, {}, "mean",
                                                    -100, 0.0,
                                                    rg::nn::LinearCrossEntropyOptions{sizes_.loss_rows});
  }
  std::vector<Product> products() const override {
    std::vector<Product> list;
    const int64_t rows = tokens(), width = sizes_.width;
    for (int64_t i = 0; i < sizes_.layers; ++i) {
      for (const int64_t out : {3 * width, width, 4 * width}) add_linear(list, rows, width, out);
      add_linear(list, rows, 4 * width, width);
      add_attention(list, sizes_.batch * sizes_.heads, sizes_.block, width / sizes_.heads);
    }
    add_linear(list, rows, width, sizes_.vocabulary);
    return list;
  }
  int64_t tokens() const override { return sizes_.batch * sizes_.block; }

 private:
  const GptSizes sizes_;
  const rg::ScalarType dtype_;
  rg::nn::Embedding wte, wpe;
  rg::nn::ModuleList<Block> blocks{this, "blocks"};
  rg::nn::LayerNorm lnf;
  rg::Tensor tokens_, next_, positions_;
};

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names{"mlp", "gpt-char", "gpt-124m"};
  return names;
}

std::unique_ptr<Model> make_model(const std::string& name, BatchSize size, rg::ScalarType dtype,
                                  rg::Device device) {
  if (name == "mlp") return std::make_unique<Mlp>(size, dtype, device);
  GptSizes sizes;
  if (name == "gpt-char")
    sizes = {.vocabulary = 65, .block = 64, .layers = 4, .heads = 4, .width = 128, .batch = 12};
  else if (name == "gpt-124m")
    sizes = {.vocabulary = 50257, .block = 64, .layers = 12, .heads = 12, .width = 768, .batch = 4};
  else
    throw std::invalid_argument("unknown model: " + name);
  if (size.batch) sizes.batch = size.batch;
  if (size.block) sizes.block = size.block;
  sizes.loss_rows = size.loss_rows;
  return std::make_unique<Gpt>(sizes, dtype, device);
}

}  // namespace bench
