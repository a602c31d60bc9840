// Recurrent layers: RNN, LSTM and GRU over whole sequences. Parameters, their names, shapes, order and
// initial values are PyTorch's: weight_ih_l0 [gates * hidden, in], weight_hh_l0, bias_ih_l0, bias_hh_l0,
// the same with "_reverse" for the other direction, then those of layer 1, all uniform in +-1/sqrt(hidden).
//
//   nn::LSTM lstm{this, "lstm", 64, 128, {.num_layers = 2, .batch_first = true}};
//   const auto [output, state] = lstm(x);       // x (batch, length, 64) -> output (batch, length, 128)
//   const auto next = lstm(more, state);        // continues after x
//
// A layer multiplies the whole sequence by its input weights in one product; the steps are one op (ops/recurrent.h has
// the formulas). It can be differentiated any number of times and traced, and lengths and batches may vary in compiled
// functions.
//
// Sizes: L the length, N the batch, D 2 with both directions, else 1, P the size of a state: hidden, or
// proj_size.
//   input   (L, N, in), with batch_first (N, L, in), or without a batch (L, in)
//   output  the same with D * P in the last dim, of the last layer; forward direction first
//   state   (num_layers * D, N, P), without a batch (num_layers * D, P); zeros when it is not given
// Sequences of different lengths: forward_with_packed_input(), nn/packed_sequence.h.
// Errors: bad_dim, shape_mismatch; bad_argument for an empty sequence and for options outside their domain.
#pragma once

#include <memory>
#include <vector>

#include "nn/layer.h"
#include "nn/packed_sequence.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

using utils::rnn::PackedSequence;

struct RNNOptions {
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  // or "relu"
  bool bias = true, batch_first = false;
  double dropout = 0;  // in training, on the output of each layer but the last
  bool bidirectional = false;
};

struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  // Not 0: h is h' times weight_hr [proj_size, hidden], and has this size. Saves parameters and memory of states, not
  // time: a step multiplies by weight_hh weight_hr.
  int64_t proj_size = 0;
};

struct GRUOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
};

/// Common base of the three: parameters, and the loop over layers and directions.
class Recurrent : public Module {
 public:
  /// The parameters of one layer in one direction; biases and weight_hr are undefined where there are none.
  struct Weights {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
  };
  Weights weights(int64_t layer, bool reverse = false) const;
  /// All of them, in the order of registration.
  Tensors all_weights() const { return parameters(); }
  /// Does nothing: the layers need no joined copy of their parameters.
  void flatten_parameters() const {}
  std::string extra_repr() const;

 protected:
  struct Config {
    std::string_view name;
    int64_t gates, states;  // rows of weights by hidden; tensors of a state
    int64_t in, hidden, num_layers, proj_size;
    bool bias, batch_first, bidirectional;
    double dropout;
  };
  struct Result {
    Tensor output;
    Tensors state;  // h, and c of an LSTM
  };

  /// A layer in one direction over the whole sequence.
  struct OneLayer {
    Weights weights;
    const Tensor& lengths;  // undefined: all steps
    bool reverse;
    bool has_state;  // the states before were given, else they are zeros
  };

  Recurrent(Module* parent, std::string name, const Config& config, SourceLocation where);
  const Config& config() const { return config_; }

  /// `state` has the tensors of a state, or none.
  Result run(Operand input, const Tensors& state) const;
  /// The same for sequences of different lengths; the output is that of padding, too.
  Result run_packed(const PackedSequence& input, const Tensors& state, SourceLocation where) const;

 private:
  /// The states of all steps, of x (L, N, in) from the states `before` (N, P).
  virtual Tensors steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const = 0;

  int64_t directions() const { return config_.bidirectional ? 2 : 1; }
  int64_t size_of_state(int64_t k) const;
  void add_weights(int64_t layer, bool reverse);
  Result run_layers(const Tensor& x, const Tensor& lengths, const Tensors& state) const;
  Result run_direction(const Tensor& x, const Tensors& before, const OneLayer& layer) const;
  void check_input(const Tensor& x, bool batch_first, SourceLocation where) const;
  void check_state(const Tensor& x, bool batch_first, const Tensors& state, SourceLocation where) const;

  Config config_;
  // Of one layer in one direction.
  struct OwnWeights {
    std::unique_ptr<Parameter> weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
  };
  std::vector<OwnWeights> weights_;  // layer by layer, forward before reverse
};

/// Common base of RNN and GRU, whose state is h.
class HiddenRecurrent : public Recurrent {
 public:
  struct Output {
    Tensor output, h_n;
  };
  struct PackedOutput {
    PackedSequence output;
    Tensor h_n;  // after the last step of each sequence
  };
  Output forward(Operand input, const Tensor& h_0 = {}) const;
  PackedOutput forward_with_packed_input(const PackedSequence& input, const Tensor& h_0 = {},
                                         SourceLocation where = SourceLocation::current()) const;
  Output operator()(Operand input, const Tensor& h_0 = {}) const;

 protected:
  using Recurrent::Recurrent;
};

/// The simple one: Elman 1990.
class RNN : public Layer<RNN, HiddenRecurrent> {
 public:
  static constexpr std::string_view type_name = "RNN";
  using HiddenRecurrent::operator();
  RNN(Module* parent, std::string name, int64_t in, int64_t hidden, RNNOptions options = {},
      SourceLocation where = SourceLocation::current());
  std::tuple<int64_t, int64_t, RNNOptions> arguments() const;

 private:
  Tensors steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const override;

  bool is_relu_;
};

/// Hochreiter and Schmidhuber 1997. The order of the gates in the weights is i, f, g, o.
class LSTM : public Layer<LSTM, Recurrent> {
 public:
  static constexpr std::string_view type_name = "LSTM";
  struct State {
    Tensor h, c;
  };
  struct Output {
    Tensor output;
    State state;
  };
  struct PackedOutput {
    PackedSequence output;
    State state;  // after the last step of each sequence
  };
  LSTM(Module* parent, std::string name, int64_t in, int64_t hidden, LSTMOptions options = {},
       SourceLocation where = SourceLocation::current());
  /// Error(bad_argument) when one of h and c is given without the other.
  Output forward(Operand input, const State& state = {}) const;
  PackedOutput forward_with_packed_input(const PackedSequence& input, const State& state = {},
                                         SourceLocation where = SourceLocation::current()) const;
  Output operator()(Operand input, const State& state = {}) const;
  std::tuple<int64_t, int64_t, LSTMOptions> arguments() const;

 private:
  Tensors steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const override;
  Tensors projected_steps(const Tensor& projected, const Tensors& before, const OneLayer& layer) const;
};

/// Cho et al. 2014. The order of the gates in the weights is r, z, n.
class GRU : public Layer<GRU, HiddenRecurrent> {
 public:
  static constexpr std::string_view type_name = "GRU";
  using HiddenRecurrent::operator();
  GRU(Module* parent, std::string name, int64_t in, int64_t hidden, GRUOptions options = {},
      SourceLocation where = SourceLocation::current());
  std::tuple<int64_t, int64_t, GRUOptions> arguments() const;

 private:
  Tensors steps(const Tensor& x, const Tensors& before, const OneLayer& layer) const override;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
