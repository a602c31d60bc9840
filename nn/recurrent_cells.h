// One step of a recurrent layer: RNNCell, LSTMCell, GRUCell. Parameters, their names, shapes, order and initial values
// are PyTorch's: weight_ih [gates * hidden, in], weight_hh [gates * hidden, hidden], bias_ih and bias_hh
// [gates * hidden], uniform in +-1/sqrt(hidden). The formulas are those of the layers (ops/recurrent.h).
//
//   nn::LSTMCell cell{this, "cell", 64, 128};
//   nn::LSTM::State state;                                        // undefined: zeros
//   for (const Tensor& x : inputs) state = cell(x, state);        // x (batch, 64), state.h (batch, 128)
//
// A layer over the whole sequence is faster than its cell in a loop, and records a fixed number of ops for any length:
// a cell is for input that depends on the last output.
// Input (N, in), states (N, hidden), or without a batch (in) and (hidden). Errors: bad_dim for another number of dims,
// shape_mismatch for other sizes, dtype_mismatch; at construction bad_argument for sizes below 1 or another
// nonlinearity.
#pragma once

#include "nn/recurrent.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

struct RNNCellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  // or "relu"
};
struct LSTMCellOptions {
  bool bias = true;
};
struct GRUCellOptions {
  bool bias = true;
};

/// Common base of the three: parameters, and one step of checked input.
class RecurrentCell : public Module {
 public:
  std::string extra_repr() const;

  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  struct Config {
    std::string_view name;
    int64_t gates, in, hidden;
    bool bias;
    std::string_view nonlinearity = "tanh";  // of an RNNCell
  };
  RecurrentCell(Module* parent, std::string name, const Config& config, SourceLocation where);
  const Config& config() const { return config_; }

  /// The next state of an input and a state whose tensors are all undefined (zeros), or none.
  Tensors next(Operand input, const Tensors& state) const;

 private:
  /// The states after x (1, N, in), each (1, N, hidden), from the states `before` (N, hidden).
  virtual Tensors step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const = 0;
  void check(const Tensor& input, const Tensors& state, SourceLocation where) const;

  Config config_;
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.
class RNNCell : public Layer<RNNCell, RecurrentCell> {
 public:
  static constexpr std::string_view type_name = "RNNCell";
  RNNCell(Module* parent, std::string name, int64_t in, int64_t hidden, RNNCellOptions options = {},
          SourceLocation where = SourceLocation::current());
  Tensor forward(Operand input, const Tensor& h = {}) const;
  Tensor operator()(Operand input, const Tensor& h = {}) const;
  std::tuple<int64_t, int64_t, RNNCellOptions> arguments() const;

 private:
  Tensors step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const override;
};

class LSTMCell : public Layer<LSTMCell, RecurrentCell> {
 public:
  static constexpr std::string_view type_name = "LSTMCell";
  LSTMCell(Module* parent, std::string name, int64_t in, int64_t hidden, LSTMCellOptions options = {},
           SourceLocation where = SourceLocation::current());
  /// Error(bad_argument) when one of h and c is given without the other.
  LSTM::State forward(Operand input, const LSTM::State& state = {}) const;
  LSTM::State operator()(Operand input, const LSTM::State& state = {}) const;
  std::tuple<int64_t, int64_t, LSTMCellOptions> arguments() const;

 private:
  Tensors step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const override;
};

class GRUCell : public Layer<GRUCell, RecurrentCell> {
 public:
  static constexpr std::string_view type_name = "GRUCell";
  GRUCell(Module* parent, std::string name, int64_t in, int64_t hidden, GRUCellOptions options = {},
          SourceLocation where = SourceLocation::current());
  Tensor forward(Operand input, const Tensor& h = {}) const;
  Tensor operator()(Operand input, const Tensor& h = {}) const;
  std::tuple<int64_t, int64_t, GRUCellOptions> arguments() const;

 private:
  Tensors step(const Tensor& x, const Recurrent::Weights& weights, const Tensors& before) const override;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
