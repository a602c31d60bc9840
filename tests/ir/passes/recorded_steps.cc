// See recorded_steps.h.
#include "tests/ir/passes/recorded_steps.h"

#include "engine/taper.h"
#include "examples/gpt.h"
#include "retrograd/retrograd.h"
#include "tracer/function/function_recorder.h"

namespace recorded_steps {
namespace {

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

template <class F>
Step record(std::string name, const Tensors& arguments, F&& function) {
  rg::RecordedFunction recorded;
  {
    rg::FunctionRecorder recorder(recorded.graph, {}, {}, nullptr, rg::PairForm::inlined);
    const Tensors stand_ins = recorder.inputs().arguments(arguments);
    rg::Taper taper(recorder);
    const rg::Emitter::Scope scope(taper);
    const rg::BackwardRunner::Scopes::Guard eager(nullptr);
    recorder.finish({function(stand_ins)}, recorded);
  }
  Step step{std::move(name), std::move(recorded.graph), {}};
  for (const rg::RecordedFunction::Write& w : recorded.writes) step.writes.push_back({w.input, w.output});
  return step;
}

// The usual body of a step.
template <class Optimizer, class Loss>
Step record_training(std::string name, Optimizer& optimizer, const Tensors& arguments, Loss&& loss_of,
                     bool clear_behind = false) {
  return record(std::move(name), arguments, [&](const Tensors& given) {
    if (!clear_behind) optimizer.zero_grad();
    const Tensor loss = loss_of(given);
    loss.backward();
    optimizer.step();
    if (clear_behind) optimizer.zero_grad();
    return loss;
  });
}

struct Perceptron : rg::nn::Module {
  rg::nn::Linear fc1{this, "fc1", 6, 16}, fc2{this, "fc2", 16, 3};
};

struct Convolutional : rg::nn::Module {
  rg::nn::Conv2d conv1{this, "conv1", 1, 4, 3}, conv2{this, "conv2", 4, 4, 3};
  rg::nn::Linear fc{this, "fc", 4, 3};
};

Tensor some_tokens(int64_t batch, int64_t length) { return rg::zeros({batch, length}, {rg::kInt64}); }

// Its weights in bfloat16 wherever they are used, the sums of the residual stream in float32.
struct MixedBlock : rg::nn::Module {
  rg::nn::LayerNorm ln;
  rg::nn::Linear fc, out;
  MixedBlock(Module* parent, std::string name, int64_t width)
      : Module(parent, std::move(name)),
        ln(this, "ln", {width}),
        fc(this, "fc", width, 4 * width),
        out(this, "out", 4 * width, width) {}
  Tensor forward(const Tensor& x) const {
    const auto half = [](const Tensor& t) { return t.to(rg::kBFloat16); };
    const Tensor h = rg::gelu(rg::linear(half(ln(x)), half(fc.weight), half(fc.bias)));
    return x + rg::linear(h, half(out.weight), half(out.bias)).to(rg::kFloat32);
  }
};

struct MixedGpt : rg::nn::Module {
  rg::nn::Embedding wte;
  rg::nn::ModuleList<MixedBlock> blocks{this, "blocks"};
  MixedGpt(int64_t layers, int64_t width) : wte(this, "wte", 65, width) {
    for (int64_t i = 0; i < layers; ++i) blocks.emplace_back(width);
  }
  Tensor loss(const Tensor& tokens, const Tensor& next) const {
    Tensor h = wte(tokens);
    for (const auto& block : blocks.items()) h = block->forward(h);
    return rg::cross_entropy(rg::linear(h, wte.weight).view({-1, 65}), next.view({-1}));
  }
};

}  // namespace

Step perceptron() {
  Perceptron net;
  rg::optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  return record_training(
      "perceptron", optimizer, {rg::ones({5, 6}), rg::ones({5, 3})},
      [&](const Tensors& in) { return rg::mean(rg::square(net.fc2(rg::tanh(net.fc1(in[0]))) - in[1])); });
}

Step convolutional() {
  Convolutional net;
  rg::optim::AdamW optimizer(net.parameters(), {});
  return record_training("convolutional", optimizer, {rg::ones({2, 1, 8, 8}), rg::zeros({2}, {rg::kInt64})},
                         [&](const Tensors& in) {
                           const Tensor h = rg::relu(net.conv2(rg::relu(net.conv1(in[0]))));
                           return rg::cross_entropy(net.fc(rg::mean(h, {2, 3})), in[1]);
                         });
}

Step gpt(int64_t layers, int64_t width, int64_t batch, int64_t length, bool clear_behind) {
  examples::Gpt net({65, length, width, 2, layers});
  rg::optim::AdamW optimizer(net.parameters(), {});
  const Tensor tokens = some_tokens(batch, length);
  return record_training(
      "gpt of " + std::to_string(layers) + " layers" + (clear_behind ? ", no gradients left" : ""), optimizer,
      {tokens, tokens}, [&](const Tensors& in) { return net.loss(in[0], in[1]); }, clear_behind);
}

Step mixed_gpt(int64_t layers, int64_t width, int64_t batch, int64_t length) {
  MixedGpt net(layers, width);
  rg::optim::AdamW optimizer(net.parameters(), {});
  const Tensor tokens = some_tokens(batch, length);
  return record_training("bfloat16 gpt of " + std::to_string(layers) + " layers", optimizer, {tokens, tokens},
                         [&](const Tensors& in) { return net.loss(in[0], in[1]); });
}

std::vector<Step> all_small() {
  std::vector<Step> all;
  all.push_back(perceptron());
  all.push_back(convolutional());
  all.push_back(gpt(2, 8, 2, 4));
  all.push_back(gpt(2, 8, 2, 4, true));
  all.push_back(mixed_gpt(2, 8, 2, 4));
  return all;
}

}  // namespace recorded_steps
