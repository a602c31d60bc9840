// See nn/recurrent.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/functional.h"
#include "nn/init.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {
namespace {

// Appends the entries of dim 0, by recursive halving: the gradient of a part has the size of the tensor that it was cut
// from, so that cutting every entry from x would take quadratic time.
void append_entries(const Tensor& x, Tensors& out) {
  const int64_t n = x.size(0);
  if (n == 1) return out.push_back(x.select(0, 0));
  append_entries(narrow(x, 0, 0, n / 2), out);
  append_entries(narrow(x, 0, n / 2, n - n / 2), out);
}

}  // namespace

Recurrent::Recurrent(Module* parent, std::string name, const Config& config, SourceLocation where)
    : Module(parent, std::move(name)), config_(config) {
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, config.name, text, where);
  };
  if (config.in < 0 || config.hidden < 1)
    refuse(fmt::format("sizes of {} and {}: the hidden one is at least 1", config.in, config.hidden));
  if (config.num_layers < 1) refuse(fmt::format("{} layers", config.num_layers));
  if (!(config.dropout >= 0 && config.dropout <= 1))
    refuse(fmt::format("the probability {} is outside [0, 1]", config.dropout));
  if (config.proj_size < 0 || config.proj_size >= config.hidden)
    refuse(
        fmt::format("a proj_size of {} is not below the hidden size of {}", config.proj_size, config.hidden));
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    for (int64_t d = 0; d < directions(); ++d) add_weights(layer, d == 1);
}

void Recurrent::add_weights(int64_t layer, bool reverse) {
  const std::string suffix = fmt::format("_l{}{}", layer, reverse ? "_reverse" : "");
  const double bound = 1 / std::sqrt(static_cast<double>(config_.hidden));
  const auto add = [&](const char* kind, const Shape& shape) {
    auto parameter = std::make_unique<Parameter>(this, kind + suffix, empty(shape));
    init::uniform_(*parameter, -bound, bound);
    return parameter;
  };
  const int64_t rows = config_.gates * config_.hidden, state = size_of_state(0);
  OwnWeights w;
  w.weight_ih = add("weight_ih", {rows, layer == 0 ? config_.in : directions() * state});
  w.weight_hh = add("weight_hh", {rows, state});
  if (config_.bias) w.bias_ih = add("bias_ih", {rows});
  if (config_.bias) w.bias_hh = add("bias_hh", {rows});
  if (config_.proj_size) w.weight_hr = add("weight_hr", {config_.proj_size, config_.hidden});
  weights_.push_back(std::move(w));
}

Recurrent::Weights Recurrent::weights(int64_t layer, bool reverse) const {
  const OwnWeights& w = weights_.at(static_cast<size_t>(layer * directions() + reverse));
  const auto tensor = [](const std::unique_ptr<Parameter>& p) { return p ? Tensor(*p) : Tensor(); };
  return {tensor(w.weight_ih), tensor(w.weight_hh), tensor(w.bias_ih), tensor(w.bias_hh), tensor(w.weight_hr)};
}

// c of an LSTM is not projected.
int64_t Recurrent::size_of_state(int64_t k) const {
  return k == 0 && config_.proj_size ? config_.proj_size : config_.hidden;
}

Recurrent::Result Recurrent::run(Operand input, const Tensors& state) const {
  const Tensor& given = input.tensor();
  check_input(given, input.where());
  check_state(given, state, input.where());
  const bool is_batch = given.dim() == 3, turned = is_batch && config_.batch_first;
  Tensors states = state;
  if (!is_batch)
    for (Tensor& s : states) s = unsqueeze(s, 1);
  Result result = run_batch(!is_batch ? unsqueeze(given, 1) : turned ? given.transpose(0, 1) : given, states);
  if (turned) result.output = result.output.transpose(0, 1);
  if (is_batch) return result;
  result.output = squeeze(result.output, {1});
  for (Tensor& s : result.state) s = squeeze(s, {1});
  return result;
}

// x (length, batch, in), the tensors of the state (layers * directions, batch, size).
Recurrent::Result Recurrent::run_batch(const Tensor& x, const Tensors& state) const {
  std::vector<Tensors> last(static_cast<size_t>(config_.states));  // of each layer and direction
  Tensor sequence = x;
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    if (layer > 0) sequence = functional::dropout(sequence, config_.dropout, is_training());
    Tensors outputs;
    for (int64_t d = 0; d < directions(); ++d) {
      Tensors begin;
      for (int64_t k = 0; k < config_.states; ++k)
        begin.push_back(state.empty() ? zeros({x.sym_size(1), size_of_state(k)}, {x.dtype(), x.device()})
                                      : state[static_cast<size_t>(k)].select(0, layer * directions() + d));
      Result result = run_direction(sequence, std::move(begin), weights(layer, d == 1), d == 1);
      outputs.push_back(result.output);
      for (size_t k = 0; k < last.size(); ++k) last[k].push_back(result.state[k]);
    }
    sequence = outputs.size() == 1 ? outputs[0] : cat(outputs, 2);
  }
  Result result{sequence, {}};
  for (const Tensors& all : last) result.state.push_back(stack(all));
  return result;
}

Recurrent::Result Recurrent::run_direction(const Tensor& x, Tensors state, const Weights& weights,
                                           bool reverse) const {
  Tensors projected, outputs;
  append_entries(linear(x, weights.weight_ih, input_bias(weights)), projected);
  if (reverse) std::ranges::reverse(projected);
  // Transposed once: its gradients are added up as they are computed, and transposed at the end.
  const Tensor recurrent = t(weights.weight_hh);
  for (const Tensor& now : projected) {
    state = step(now, state, recurrent, weights);
    outputs.push_back(state[0]);
  }
  if (reverse) std::ranges::reverse(outputs);
  return {stack(outputs), std::move(state)};
}

void Recurrent::check_input(const Tensor& x, SourceLocation where) const {
  if (x.dim() != 2 && x.dim() != 3)
    fail(Category::bad_dim, config_.name, "two dims, or three with a batch, are needed, not " + describe(x),
         where);
  if (x.size(-1) != config_.in)
    fail(Category::shape_mismatch, config_.name,
         fmt::format("{} where the last dim must have {}", describe(x), config_.in), where);
  if (x.size(x.dim() == 3 && config_.batch_first ? 1 : 0) == 0)
    fail(Category::bad_argument, config_.name, "an empty sequence: " + describe(x), where);
}

void Recurrent::check_state(const Tensor& x, const Tensors& state, SourceLocation where) const {
  for (size_t k = 0; k < state.size(); ++k) {
    Shape wanted{config_.num_layers * directions()};
    if (x.dim() == 3) wanted.push_back(x.sym_size(config_.batch_first ? 0 : 1));
    wanted.push_back(size_of_state(static_cast<int64_t>(k)));
    if (!(state[k].sym_sizes() == wanted))
      fail(Category::shape_mismatch, config_.name,
           fmt::format("a state of {} where {} is needed", describe(state[k]), to_string(wanted)), where);
  }
}

RNN::RNN(Module* parent, std::string name, int64_t in, int64_t hidden, RNNOptions o, SourceLocation where)
    : Recurrent(parent, std::move(name),
                {"RNN", 1, 1, in, hidden, o.num_layers, 0, o.bias, o.batch_first, o.bidirectional, o.dropout},
                where),
      is_relu_(o.nonlinearity == "relu") {
  if (!is_relu_ && o.nonlinearity != "tanh")
    fail(Category::bad_argument, "RNN", fmt::format("the nonlinearity \"{}\"", o.nonlinearity), where);
}

RNN::Output RNN::forward(Operand input, const Tensor& h_0) const {
  CallScope scope(input.where());
  Result result = run(input, h_0.defined() ? Tensors{h_0} : Tensors());
  return {result.output, result.state[0]};
}

Tensor RNN::input_bias(const Weights& w) const {
  return w.bias_ih.defined() ? w.bias_ih + w.bias_hh : Tensor();
}

Tensors RNN::step(const Tensor& projected, const Tensors& state, const Tensor& recurrent,
                  const Weights&) const {
  const Tensor sum = addmm(projected, state[0], recurrent);
  return {is_relu_ ? relu(sum) : tanh(sum)};
}

LSTM::LSTM(Module* parent, std::string name, int64_t in, int64_t hidden, LSTMOptions o, SourceLocation where)
    : Recurrent(parent, std::move(name),
                {"LSTM", 4, 2, in, hidden, o.num_layers, o.proj_size, o.bias, o.batch_first, o.bidirectional,
                 o.dropout},
                where) {}

LSTM::Output LSTM::forward(Operand input, const State& state) const {
  CallScope scope(input.where());
  if (state.h.defined() != state.c.defined())
    fail(Category::bad_argument, "LSTM", "of h and c one is given, the other is not", input.where());
  Result result = run(input, state.h.defined() ? Tensors{state.h, state.c} : Tensors());
  return {result.output, {result.state[0], result.state[1]}};
}

Tensor LSTM::input_bias(const Weights& w) const {
  return w.bias_ih.defined() ? w.bias_ih + w.bias_hh : Tensor();
}

Tensors LSTM::step(const Tensor& projected, const Tensors& state, const Tensor& recurrent,
                   const Weights& w) const {
  const Tensors gates = chunk(addmm(projected, state[0], recurrent), 4, 1);  // i, f, g, o
  const Tensor c = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor h = sigmoid(gates[3]) * tanh(c);
  return {w.weight_hr.defined() ? linear(h, w.weight_hr) : h, c};
}

GRU::GRU(Module* parent, std::string name, int64_t in, int64_t hidden, GRUOptions o, SourceLocation where)
    : Recurrent(parent, std::move(name),
                {"GRU", 3, 1, in, hidden, o.num_layers, 0, o.bias, o.batch_first, o.bidirectional, o.dropout},
                where) {}

GRU::Output GRU::forward(Operand input, const Tensor& h_0) const {
  CallScope scope(input.where());
  Result result = run(input, h_0.defined() ? Tensors{h_0} : Tensors());
  return {result.output, result.state[0]};
}

// The other bias is inside the product with r.
Tensor GRU::input_bias(const Weights& w) const { return w.bias_ih; }

Tensors GRU::step(const Tensor& projected, const Tensors& state, const Tensor& recurrent,
                  const Weights& w) const {
  const int64_t hidden = state[0].size(1);
  const Tensors x = split(projected, {2 * hidden, hidden}, 1);
  const Tensors h =
      split(w.bias_hh.defined() ? addmm(w.bias_hh, state[0], recurrent) : mm(state[0], recurrent),
            {2 * hidden, hidden}, 1);
  const Tensors gates = chunk(sigmoid(x[0] + h[0]), 2, 1);  // r, z
  const Tensor n = tanh(x[1] + gates[0] * h[1]);
  return {n + gates[1] * (state[0] - n)};
}

}  // namespace retrograd::nn
