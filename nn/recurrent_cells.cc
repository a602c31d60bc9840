// See nn/recurrent_cells.h. Each forward opens the scope of its caller's line, as in nn/layers.cc.
#include "nn/recurrent_cells.h"

#include <cmath>

#include <fmt/format.h>

#include "nn/init.h"
#include "nn/recurrent_steps.h"
#include "ops/creation.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {
namespace {

// Rows of weights; checks the sizes first.
int64_t rows(std::string_view name, int64_t gates, int64_t in, int64_t hidden, SourceLocation where) {
  if (in < 0 || hidden < 1)
    fail(Category::bad_argument, name,
         fmt::format("sizes of {} and {}: the hidden one is at least 1", in, hidden), where);
  return Dim::checked_mul(gates, hidden);
}

}  // namespace

RecurrentCell::RecurrentCell(Module* parent, std::string name, const Config& c, SourceLocation where)
    : Module(parent, std::move(name)),
      weight_ih(this, "weight_ih", empty({rows(c.name, c.gates, c.in, c.hidden, where), c.in})),
      weight_hh(this, "weight_hh", empty({c.gates * c.hidden, c.hidden})),
      bias_ih(this, "bias_ih", c.bias ? empty({c.gates * c.hidden}) : Tensor()),
      bias_hh(this, "bias_hh", c.bias ? empty({c.gates * c.hidden}) : Tensor()),
      config_(c) {
  const double bound = 1 / std::sqrt(static_cast<double>(c.hidden));
  for (const Tensor& p : parameters()) init::uniform_(p, -bound, bound);
}

void RecurrentCell::check(const Tensor& input, const Tensors& state, SourceLocation where) const {
  if (input.dim() != 1 && input.dim() != 2)
    fail(Category::bad_dim, config_.name, "one dim, or two with a batch, are needed, not " + describe(input),
         where);
  if (!(input.sym_size(-1) == Dim(config_.in)))
    fail(Category::shape_mismatch, config_.name,
         fmt::format("{} where the last dim must have {}", describe(input), config_.in), where);
  Shape wanted = input.sym_sizes();
  wanted[wanted.rank() - 1] = config_.hidden;
  for (const Tensor& s : state)
    if (s.defined() && !(s.sym_sizes() == wanted))
      fail(Category::shape_mismatch, config_.name,
           fmt::format("a state of {} where {} is needed", describe(s), to_string(wanted)), where);
}

Tensors RecurrentCell::next(Operand input, const Tensors& state) const {
  const CallScope scope(input.where());
  const Tensor& given = input.tensor();
  check(given, state, input.where());
  const bool is_batch = given.dim() == 2;
  const Tensor x = is_batch ? given : unsqueeze(given, 0);
  Tensors before;
  for (const Tensor& s : state) {
    if (!s.defined())
      before.push_back(zeros({x.sym_size(0), config_.hidden}, {x.dtype(), x.device()}));
    else
      before.push_back(is_batch ? s : unsqueeze(s, 0));
  }
  Tensors after = step(unsqueeze(x, 0), {weight_ih, weight_hh, bias_ih, bias_hh, {}}, before);
  for (Tensor& s : after) s = is_batch ? squeeze(s, 0) : squeeze(s, {0, 1});
  return after;
}

std::string RecurrentCell::extra_repr() const {
  std::string text = fmt::format("{}, {}", config_.in, config_.hidden);
  if (!config_.bias) text += ", bias=false";
  if (config_.nonlinearity != "tanh") text += fmt::format(", nonlinearity={}", config_.nonlinearity);
  return text;
}

namespace {

// A literal, which outlives the option.
std::string_view nonlinearity(std::string_view name, SourceLocation where) {
  if (name == "tanh") return "tanh";
  if (name == "relu") return "relu";
  fail(Category::bad_argument, "RNNCell", fmt::format("the nonlinearity \"{}\"", name), where);
}

}  // namespace

RNNCell::RNNCell(Module* parent, std::string name, int64_t in, int64_t hidden, RNNCellOptions o,
                 SourceLocation where)
    : Layer(parent, std::move(name), {type_name, 1, in, hidden, o.bias, nonlinearity(o.nonlinearity, where)},
            where) {}

Tensor RNNCell::forward(Operand input, const Tensor& h) const { return next(input, {h})[0]; }

Tensor RNNCell::operator()(Operand input, const Tensor& h) const { return call(*this, input, h); }

Tensors RNNCell::step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const {
  return {detail::rnn_steps(x, weights, before[0], {}, config().nonlinearity == "relu", false)};
}

LSTMCell::LSTMCell(Module* parent, std::string name, int64_t in, int64_t hidden, LSTMCellOptions o,
                   SourceLocation where)
    : Layer(parent, std::move(name), {type_name, 4, in, hidden, o.bias}, where) {}

LSTM::State LSTMCell::forward(Operand input, const LSTM::State& state) const {
  if (state.h.defined() != state.c.defined())
    fail(Category::bad_argument, "LSTMCell", "of h and c one is given, the other is not", input.where());
  const Tensors after = next(input, {state.h, state.c});
  return {after[0], after[1]};
}

LSTM::State LSTMCell::operator()(Operand input, const LSTM::State& state) const {
  return call(*this, input, state);
}

Tensors LSTMCell::step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const {
  return detail::lstm_steps(x, weights, before, {}, false);
}

GRUCell::GRUCell(Module* parent, std::string name, int64_t in, int64_t hidden, GRUCellOptions o,
                 SourceLocation where)
    : Layer(parent, std::move(name), {type_name, 3, in, hidden, o.bias}, where) {}

Tensor GRUCell::forward(Operand input, const Tensor& h) const { return next(input, {h})[0]; }

Tensor GRUCell::operator()(Operand input, const Tensor& h) const { return call(*this, input, h); }

Tensors GRUCell::step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const {
  return {detail::gru_steps(x, weights, before[0], {}, false)};
}

std::tuple<int64_t, int64_t, RNNCellOptions> RNNCell::arguments() const {
  return {config().in, config().hidden, {config().bias, std::string(config().nonlinearity)}};
}
std::tuple<int64_t, int64_t, LSTMCellOptions> LSTMCell::arguments() const {
  return {config().in, config().hidden, {config().bias}};
}
std::tuple<int64_t, int64_t, GRUCellOptions> GRUCell::arguments() const {
  return {config().in, config().hidden, {config().bias}};
}

}  // namespace retrograd::nn
