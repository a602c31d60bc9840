// Entries for modules, optimizers and checkpoints: made, used once or twice, and dropped. An embedding of 2^40 rows is
// refused for lack of memory, one of -1 rows as an argument.
#include <unistd.h>

#include <cstdio>

#include "tests/fuzz/api_table.h"
#include "tests/test_folder.h"

namespace fuzz {
namespace {

using rg::IntArray;
using rg::IntList;
using rg::Operand;
namespace nn = rg::nn;
namespace optim = rg::optim;

template <class M>
Tensor trained(Arguments& a, M& module, Operand x, bool training) {
  a.remember(module.parameters());
  module.train(training);
  const Tensor y = module(x);
  (void)module.parameter_count(), (void)module.named_parameters(), module.zero_grad(training);
  return y;
}

void add_layers(ApiTable& t) {
  add(
      t, "nn::Linear",
      +[](Arguments& a, int64_t in, int64_t out, bool bias, Operand x, bool training) {
        nn::Linear m(nullptr, "m", in, out, {bias});
        return trained(a, m, x, training);
      },
      "#m; #p; n m");
  add(
      t, "nn::Embedding",
      +[](Arguments& a, int64_t rows, int64_t width, Operand x, bool training) {
        nn::Embedding m(nullptr, "m", rows, width);
        return trained(a, m, x, training);
      },
      "#n; #m; k:n");
  add(
      t, "nn::LayerNorm",
      +[](Arguments& a, IntArray shape, double eps, bool bias, Operand x, bool training) {
        nn::LayerNorm m(nullptr, "m", shape, {eps, bias});
        return trained(a, m, x, training);
      },
      "=m; n m");
  add(
      t, "nn::CausalSelfAttention",
      +[](Arguments& a, int64_t width, int64_t heads, bool bias, Operand x, bool training) {
        nn::CausalSelfAttention m(nullptr, "m", width, heads, {bias});
        return trained(a, m, x, training);
      },
      "#d; b n d");
  add(
      t, "nn::Dropout", +[](Arguments& a, double p, Operand x, bool training) {
        nn::Dropout m(nullptr, "m", p);
        return trained(a, m, x, training);
      });
  add(
      t, "nn::ReLU", +[](Operand x) { return nn::ReLU()(x); });
  add(
      t, "nn::GELU", +[](std::string_view approximate, Operand x) {
        return nn::GELU(nullptr, "m", {std::string(approximate)})(x);
      });
}

template <class M>
void add_convolution(ApiTable& t, std::string_view name, std::string_view pattern) {
  add(
      t, name,
      +[](Arguments& a, int64_t in, int64_t out, IntList kernel, IntList stride, rg::ConvPadding padding,
          IntList dilation, int64_t groups, bool bias, Operand x) {
        M m(nullptr, "m", in, out, kernel, {stride, padding, dilation, groups, bias});
        return trained(a, m, x, true);
      },
      pattern);
}
template <class M>
void add_transposed_convolution(ApiTable& t, std::string_view name, std::string_view pattern) {
  add(
      t, name,
      +[](Arguments& a, int64_t in, int64_t out, IntList kernel, IntList stride, IntList padding,
          IntList more, int64_t groups, bool bias, IntList dilation, Operand x) {
        M m(nullptr, "m", in, out, kernel, {stride, padding, more, groups, bias, dilation});
        return trained(a, m, x, true);
      },
      pattern);
}

void add_windows(ApiTable& t) {
  add_convolution<nn::Conv1d>(t, "nn::Conv1d", "#c; #o; n c L");
  add_convolution<nn::Conv2d>(t, "nn::Conv2d", "#c; #o; n c H W");
  add_convolution<nn::Conv3d>(t, "nn::Conv3d", "#c; #o; n c D H W");
  add_transposed_convolution<nn::ConvTranspose1d>(t, "nn::ConvTranspose1d", "#c; #o; n c L");
  add_transposed_convolution<nn::ConvTranspose2d>(t, "nn::ConvTranspose2d", "#c; #o; n c H W");
  add_transposed_convolution<nn::ConvTranspose3d>(t, "nn::ConvTranspose3d", "#c; #o; n c D H W");
  add(
      t, "nn::MaxPool2d",
      +[](IntList kernel, IntList stride, IntList padding, IntList dilation, bool ceil, Operand x) {
        return nn::MaxPool2d(nullptr, "m", kernel, {stride, padding, dilation, ceil})(x);
      },
      "n c H W");
  add(
      t, "nn::AvgPool2d",
      +[](IntList kernel, IntList stride, IntList padding, bool ceil, bool count,
          std::optional<int64_t> divisor, Operand x) {
        return nn::AvgPool2d(nullptr, "m", kernel, {stride, padding, ceil, count, divisor})(x);
      },
      "n c H W");
  add(
      t, "nn::AdaptiveAvgPool2d",
      +[](rg::AdaptiveSize size, Operand x) { return nn::AdaptiveAvgPool2d(nullptr, "m", size)(x); });
  add(
      t, "nn::Upsample",
      +[](rg::InterpolateOptions options, Operand x) { return nn::Upsample(nullptr, "m", options)(x); });
}

// ---- checkpoints --------------------------------------------------------------------------------------------

rg::StateDict named(const Tensors& tensors, std::string_view word) {
  static constexpr std::string_view kNames[] = {"weight", "bias", "0.step", "0.exp_avg", "0.momentum_buffer"};
  rg::StateDict state;
  for (const Tensor& t : tensors) state[std::string(kNames[state.size() % std::size(kNames)])] = t;
  if (word == "none") state["no.such.key"] = rg::zeros({1});
  return state;
}

void add_state(ApiTable& t) {
  add(
      t, "nn::Module names", +[](std::string_view name, std::string_view other, Tensor x) {
        nn::Module root, child(&root, std::string(name)), second(&root, std::string(other));
        const nn::Parameter parameter(&root, std::string(other), x), same(&child, std::string(name), x);
        return root.parameters();
      });
  add(
      t, "nn::ModuleList", +[](Arguments& a, int64_t in, int64_t out, Tensor x) {
        nn::ModuleList<nn::Linear> list;
        list.emplace_back(2, 3);
        try {
          list.emplace_back(in, out);
        } catch (const rg::Error&) {  // the list is as it was
        }
        (void)list.named_parameters();
        a.remember(list.parameters());
        return list[list.size() - 1](x);
      });
  add(
      t, "nn::fans", +[](Tensor x) { (void)nn::init::fans(x); });
  add(
      t, "nn::Module::load_state_dict",
      +[](int64_t in, int64_t out, Tensor weight, Tensor bias, std::string_view word, bool strict) {
        nn::Linear m(nullptr, "m", in, out);
        m.load_state_dict(m.state_dict());
        m.load_state_dict(named({weight, bias}, word), strict);
      },
      "#m; #p; p m; p");
  add(
      t, "save and load", +[](Tensors values, std::string_view word) {
        const std::string path = rg::testing::in_test_folder("api_fuzz_" + std::to_string(getpid()));
        rg::save(named(values, word), path, {{"word", std::string(word)}});
        const rg::StateDict state = rg::load(path);
        std::remove(path.c_str());
        Tensors loaded;
        for (const auto& [name, tensor] : state) loaded.push_back(tensor);
        return loaded;
      });
  add(
      t, "TrainingState saved and loaded",
      +[](Tensors values, Tensor other, int64_t number, std::string_view word) {
        const std::string path = rg::testing::in_test_folder("api_fuzz_state_" + std::to_string(getpid()));
        std::string text(word);
        rg::TrainingState state, another;
        for (size_t i = 0; i < values.size(); ++i) state.add(std::to_string(i), values[i]);
        state.add(std::string(word), number).add("text", text);
        state.save(path);
        state.load(path);
        another.add("0", other).add("text", text);
        another.load(path);
      });
}

template <class Optimizer>
void use(Optimizer& optimizer, double lr, const Tensors& state, std::string_view word) {
  optimizer.step();
  optimizer.set_lr(lr);
  optimizer.step();
  optimizer.load_state_dict(optimizer.state_dict());
  if (!state.empty()) optimizer.load_state_dict(named(state, word));
  optimizer.step();
  optimizer.zero_grad(word == "sum");
}

void add_optimizers(ApiTable& t) {
  add(
      t, "optim::SGD",
      +[](Tensors params, Fraction lr, Fraction momentum, double dampening, Fraction decay, bool nesterov,
          bool maximize, Tensors state, std::string_view word) {
        optim::SGD sgd(params, {lr.value, momentum.value, dampening, decay.value, nesterov, maximize});
        use(sgd, lr.value, state, word);
      });
  add(
      t, "optim::AdamW",
      +[](Tensors params, Fraction lr, Fraction beta1, Fraction beta2, Fraction eps, Fraction decay,
          bool amsgrad, Tensors state, std::string_view word) {
        optim::AdamW adamw(params,
                           {lr.value, {beta1.value, beta2.value}, eps.value, decay.value, amsgrad, !amsgrad});
        use(adamw, lr.value, state, word);
      });
}

}  // namespace

void add_module_api(ApiTable& table) {
  add_layers(table);
  add_windows(table);
  add_state(table);
  add_optimizers(table);
}

}  // namespace fuzz
