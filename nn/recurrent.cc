// See nn/recurrent.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/functional.h"
#include "nn/init.h"
#include "nn/recurrent_steps.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/recurrent.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0::nn {

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
  return {tensor(w.weight_ih), tensor(w.weight_hh), tensor(w.bias_ih), tensor(w.bias_hh),
          tensor(w.weight_hr)};
}

std::string Recurrent::extra_repr() const {
  const Config& c = config_;
  const std::string text = fmt::format(
      "input_size={}, hidden_size={}, num_layers={}, bias={}, batch_first={}, dropout={}, bidirectional={}",
      c.in, c.hidden, c.num_layers, c.bias, c.batch_first, c.dropout, c.bidirectional);
  return c.proj_size ? fmt::format("{}, proj_size={}", text, c.proj_size) : text;
}

// c of an LSTM is not projected.
int64_t Recurrent::size_of_state(int64_t k) const {
  return k == 0 && config_.proj_size ? config_.proj_size : config_.hidden;
}

Recurrent::Result Recurrent::run(Operand input, const Tensors& state) const {
  const Tensor& given = input.tensor();
  check_input(given, config_.batch_first, input.where());
  check_state(given, config_.batch_first, state, input.where());
  const bool is_batch = given.dim() == 3, turned = is_batch && config_.batch_first;
  Tensors states = state;
  if (!is_batch)
    for (Tensor& s : states) s = unsqueeze(s, 1);
  const Tensor x = !is_batch ? unsqueeze(given, 1) : turned ? given.transpose(0, 1) : given;
  Result result = run_layers(x, {}, states);
  if (turned) result.output = result.output.transpose(0, 1);
  if (is_batch) return result;
  result.output = squeeze(result.output, {1});
  for (Tensor& s : result.state) s = squeeze(s, {1});
  return result;
}

Recurrent::Result Recurrent::run_packed(const PackedSequence& input, const Tensors& state,
                                        SourceLocation where) const {
  const Tensor& x = input.padded();
  if (x.dim() != 3)
    fail(Category::bad_dim, config_.name, "sequences of vectors are needed, not " + describe(x), where);
  check_input(x, false, where);
  check_state(x, false, state, where);
  return run_layers(x, input.lengths(), state);
}

// x (length, batch, in), the tensors of the state (layers * directions, batch, size).
Recurrent::Result Recurrent::run_layers(const Tensor& x, const Tensor& lengths, const Tensors& state) const {
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
      Result result =
          run_direction(sequence, begin, {weights(layer, d == 1), lengths, d == 1, !state.empty()});
      outputs.push_back(result.output);
      for (size_t k = 0; k < last.size(); ++k) last[k].push_back(result.state[k]);
    }
    sequence = outputs.size() == 1 ? outputs[0] : cat(outputs, 2);
  }
  Result result{sequence, {}};
  for (const Tensors& all : last) result.state.push_back(all.size() == 1 ? unsqueeze(all[0], 0) : stack(all));
  return result;
}

Recurrent::Result Recurrent::run_direction(const Tensor& x, const Tensors& before,
                                           const OneLayer& layer) const {
  const Tensors states = steps(x, before, layer);
  Result result{states[0], {}};
  for (const Tensor& all : states)
    result.state.push_back(select(all, 0, layer.reverse ? Dim(0) : x.sym_size(0) - 1));
  return result;
}

void Recurrent::check_input(const Tensor& x, bool batch_first, SourceLocation where) const {
  if (x.dim() != 2 && x.dim() != 3)
    fail(Category::bad_dim, config_.name, "two dims, or three with a batch, are needed, not " + describe(x),
         where);
  if (!(x.sym_size(-1) == Dim(config_.in)))
    fail(Category::shape_mismatch, config_.name,
         fmt::format("{} where the last dim must have {}", describe(x), config_.in), where);
  if (x.sym_size(x.dim() == 3 && batch_first ? 1 : 0) == 0)
    fail(Category::bad_argument, config_.name, "an empty sequence: " + describe(x), where);
}

void Recurrent::check_state(const Tensor& x, bool batch_first, const Tensors& state,
                            SourceLocation where) const {
  for (size_t k = 0; k < state.size(); ++k) {
    Shape wanted{config_.num_layers * directions()};
    if (x.dim() == 3) wanted.push_back(x.sym_size(batch_first ? 0 : 1));
    wanted.push_back(size_of_state(static_cast<int64_t>(k)));
    if (!(state[k].sym_sizes() == wanted))
      fail(Category::shape_mismatch, config_.name,
           fmt::format("a state of {} where {} is needed", describe(state[k]), to_string(wanted)), where);
  }
}

namespace {

Tensors state_of(const Tensor& h) { return h.defined() ? Tensors{h} : Tensors(); }
Tensors state_of(const LSTM::State& state, SourceLocation where) {
  if (state.h.defined() != state.c.defined())
    fail(Category::bad_argument, "LSTM", "of h and c one is given, the other is not", where);
  return state.h.defined() ? Tensors{state.h, state.c} : Tensors();
}

}  // namespace

HiddenRecurrent::Output HiddenRecurrent::forward(Operand input, const Tensor& h_0) const {
  CallScope scope(input.where());
  Result result = run(input, state_of(h_0));
  return {result.output, result.state[0]};
}

HiddenRecurrent::Output HiddenRecurrent::operator()(Operand input, const Tensor& h_0) const {
  return call(*this, input, h_0);
}

HiddenRecurrent::PackedOutput HiddenRecurrent::forward_with_packed_input(const PackedSequence& input,
                                                                         const Tensor& h_0,
                                                                         SourceLocation where) const {
  CallScope scope(where);
  Result result = run_packed(input, state_of(h_0), where);
  return {{result.output, input.lengths(), where}, result.state[0]};
}

RNN::RNN(Module* parent, std::string name, int64_t in, int64_t hidden, RNNOptions o, SourceLocation where)
    : Layer(parent, std::move(name),
            {type_name, 1, 1, in, hidden, o.num_layers, 0, o.bias, o.batch_first, o.bidirectional, o.dropout},
            where),
      is_relu_(o.nonlinearity == "relu") {
  if (!is_relu_ && o.nonlinearity != "tanh")
    fail(Category::bad_argument, "RNN", fmt::format("the nonlinearity \"{}\"", o.nonlinearity), where);
}

std::tuple<int64_t, int64_t, RNNOptions> RNN::arguments() const {
  const Config& c = config();
  return {c.in,
          c.hidden,
          {c.num_layers, is_relu_ ? "relu" : "tanh", c.bias, c.batch_first, c.dropout, c.bidirectional}};
}

Tensors RNN::steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const {
  return {detail::rnn_steps(x, layer.weights, before[0], layer.lengths, is_relu_, layer.reverse)};
}

LSTM::LSTM(Module* parent, std::string name, int64_t in, int64_t hidden, LSTMOptions o, SourceLocation where)
    : Layer(parent, std::move(name),
            {type_name, 4, 2, in, hidden, o.num_layers, o.proj_size, o.bias, o.batch_first, o.bidirectional,
             o.dropout},
            where) {}

std::tuple<int64_t, int64_t, LSTMOptions> LSTM::arguments() const {
  const Config& c = config();
  return {c.in, c.hidden, {c.num_layers, c.bias, c.batch_first, c.dropout, c.bidirectional, c.proj_size}};
}

LSTM::Output LSTM::forward(Operand input, const State& state) const {
  CallScope scope(input.where());
  Result result = run(input, state_of(state, input.where()));
  return {result.output, {result.state[0], result.state[1]}};
}

LSTM::Output LSTM::operator()(Operand input, const State& state) const { return call(*this, input, state); }

LSTM::PackedOutput LSTM::forward_with_packed_input(const PackedSequence& input, const State& state,
                                                   SourceLocation where) const {
  CallScope scope(where);
  Result result = run_packed(input, state_of(state, where), where);
  return {{result.output, input.lengths(), where}, {result.state[0], result.state[1]}};
}

Tensors LSTM::steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const {
  if (layer.weights.weight_hr.defined())
    return projected_steps(detail::input_sums(x, layer.weights), before, layer);
  return detail::lstm_steps(x, layer.weights, before, layer.lengths, layer.reverse);
}

// A projection R of h is part of the recurrent weight, U (R h) = (U R) h: the op computes the states that are projected
// afterwards. The given state is projected already: it enters the sums of the first step. 16-bit formats are rounded
// once.
Tensors LSTM::projected_steps(const Tensor& projected, const Tensors& before, const OneLayer& layer) const {
  const ops::Widened wide(projected);
  const Tensor u = wide(layer.weights.weight_hh), r = wide(layer.weights.weight_hr), h_0 = wide(before[0]),
               c_0 = wide(before[1]), &lengths = layer.lengths;
  Tensor sums = wide(projected);
  const Dim steps = sums.sym_size(0), batch = sums.sym_size(1);
  if (layer.has_state) {
    Tensor is_first = unsqueeze(arange(Scalar(steps), TensorOptions{kInt64, sums.device()}), 1);
    if (!layer.reverse)
      is_first = eq(is_first, 0);
    else
      is_first = lengths.defined() ? eq(is_first, lengths - 1) : eq(is_first, Scalar(steps) - 1);
    sums = sums + where(unsqueeze(is_first, 2), linear(h_0, u), 0);
  }
  const Tensor none = zeros({batch, c_0.sym_size(1)}, {sums.dtype(), sums.device()});
  const ops::SequenceStates all = ops::lstm(sums, mm(u, r), {none, c_0}, lengths, layer.reverse);
  Tensor h = linear(all.h, r);
  if (layer.has_state && lengths.defined()) h = where(unsqueeze(eq(lengths, 0), 1), h_0, h);
  return {wide.back(h), wide.back(all.c)};
}

GRU::GRU(Module* parent, std::string name, int64_t in, int64_t hidden, GRUOptions o, SourceLocation where)
    : Layer(parent, std::move(name),
            {type_name, 3, 1, in, hidden, o.num_layers, 0, o.bias, o.batch_first, o.bidirectional, o.dropout},
            where) {}

std::tuple<int64_t, int64_t, GRUOptions> GRU::arguments() const {
  const Config& c = config();
  return {c.in, c.hidden, {c.num_layers, c.bias, c.batch_first, c.dropout, c.bidirectional}};
}

Tensors GRU::steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const {
  return {detail::gru_steps(x, layer.weights, before[0], layer.lengths, layer.reverse)};
}

}  // namespace retrograd::nn
