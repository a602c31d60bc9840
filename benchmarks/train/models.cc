#include "benchmarks/train/models.h"

#include <stdexcept>

namespace bench {
namespace {

class Mlp : public Model {
 public:
  explicit Mlp(BatchSize size)
      : batch_(size.batch ? size.batch : 128),
        x_(rg::randn({batch_, kIn})),
        y_(rg::randint(0, kClasses, {batch_})) {}

  rg::Tensor loss() const override { return rg::cross_entropy(fc3(rg::relu(fc2(rg::relu(fc1(x_))))), y_); }
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
};

struct Block : rg::nn::Module {
  rg::nn::LayerNorm ln1, ln2;
  rg::nn::CausalSelfAttention attn;
  rg::nn::Linear fc, out;

  Block(Module* parent, std::string name, int64_t width, int64_t heads)
      : Module(parent, std::move(name)),
        ln1(this, "ln1", {width}),
        ln2(this, "ln2", {width}),
        attn(this, "attn", width, heads),
        fc(this, "fc", width, 4 * width),
        out(this, "out", 4 * width, width) {
    for (const rg::nn::Linear* layer : {&attn.qkv, &attn.proj, &fc, &out})
      rg::nn::init::normal_(layer->weight, 0, 0.02);
  }
  rg::Tensor forward(const rg::Tensor& x) const {
    const rg::Tensor y = x + attn(ln1(x));
    return y + out(rg::gelu(fc(ln2(y)), "tanh"));
  }
};

class Gpt : public Model {
 public:
  explicit Gpt(const GptSizes& s)
      : sizes_(s),
        wte(this, "wte", s.vocabulary, s.width),
        wpe(this, "wpe", s.block, s.width),
        lnf(this, "lnf", {s.width}) {
    rg::nn::init::normal_(wte.weight, 0, 0.02);
    rg::nn::init::normal_(wpe.weight, 0, 0.02);
    for (int64_t i = 0; i < s.layers; ++i) blocks.emplace_back(s.width, s.heads);
    tokens_ = rg::randint(0, s.vocabulary, {s.batch, s.block});
    next_ = rg::randint(0, s.vocabulary, {s.batch, s.block});
  }

  rg::Tensor loss() const override {
    rg::Tensor h = wte(tokens_) + wpe(rg::arange(0, sizes_.block));
    for (const auto& block : blocks.items()) h = block->forward(h);
    const rg::Tensor scores = rg::linear(lnf(h), wte.weight);
    return rg::cross_entropy(scores.view({-1, sizes_.vocabulary}), next_.view({-1}));
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
  rg::nn::Embedding wte, wpe;
  rg::nn::ModuleList<Block> blocks{this, "blocks"};
  rg::nn::LayerNorm lnf;
  rg::Tensor tokens_, next_;
};

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names{"mlp", "gpt-char", "gpt-124m"};
  return names;
}

std::unique_ptr<Model> make_model(const std::string& name, BatchSize size) {
  if (name == "mlp") return std::make_unique<Mlp>(size);
  GptSizes sizes;
  if (name == "gpt-char")
    sizes = {.vocabulary = 65, .block = 64, .layers = 4, .heads = 4, .width = 128, .batch = 12};
  else if (name == "gpt-124m")
    sizes = {.vocabulary = 50257, .block = 64, .layers = 12, .heads = 12, .width = 768, .batch = 4};
  else
    throw std::invalid_argument("unknown model: " + name);
  if (size.batch) sizes.batch = size.batch;
  if (size.block) sizes.block = size.block;
  return std::make_unique<Gpt>(sizes);
}

}  // namespace bench
