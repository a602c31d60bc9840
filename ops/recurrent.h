// Recurrent cells over whole sequences: LSTM, GRU and the simple RNN, each one op for all steps.
//
// With s the sigmoid, p the input of a step times the input weights (with biases), U the recurrent weights and h, c the
// state before the step:
//   rnn    h' = tanh(p + U h), or relu
//   lstm   i, f, o = s(p + U h), g = tanh(p + U h);  c' = f c + i g;  h' = o tanh(c')
//   gru    r, z = s(p + U h);  m = U h + b;  n = tanh(p + r m);  h' = n + z (h - n)
//
// Sizes: L steps, N sequences, H elements of a state; G blocks of H, the gates, in the order above (i, f, g, o and
// r, z, n). Time is the first dim. `reverse` goes from the last step to the first. `lengths` (int64, N), if given, says
// how many steps each sequence has: at the others its state stays as it is, in either direction.
//
// Derivatives. Linearised, each cell is a gated recurrence: with factors E (G blocks) and K that depend on the values
// of the forward pass, one block of E for each block of U h,
//   h[t] = x[t] + sum of E[t] * U h[t-1] over the blocks + K[t] h[t-1]                              (rnn, gru)
//   c[t] = xc[t] + the same sum without the last block + Kc[t] c[t-1]                               (lstm)
//   h[t] = xh[t] + last block of E[t] * U h[t-1] + Kh[t] c[t]
// gated_recurrence computes it and gated_recurrence_backward its transpose: the former gives tangents, the latter
// gradients. Each is the derivative of the other, and the derivative by E, K and U is a product of the trajectories of
// both. So derivatives of all orders are a fixed number of ops over whole sequences, whatever the length.
//
// float32 and float64; the public functions compute 16-bit formats in float32. Start reading at Lstm.
#pragma once

#include "ops/op.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct SequenceAttrs {
  bool reverse = false;
  void visit(AttrVisitor& v) { v.field("reverse", reverse); }
};

/// Results h (L, N, H), c (L, N, H), gates (L, N, 4H) after their sigmoid or tanh, zeros beyond a sequence's length.
struct Lstm {
  using Attrs = SequenceAttrs;
  static constexpr std::string_view name = "lstm", doc = "an LSTM over a sequence: its states and gates";
  static constexpr std::string_view operands = "projected, weight_hh, h_0, c_0, lengths";
  static constexpr std::string_view example =
      "f32[5,2,12], f32[12,3], f32[2,3], f32[2,3], i64[2] {reverse=false} : f32[5,2,3], f32[5,2,3], "
      "f32[5,2,12]";
  static constexpr int8_t arity = 5, outputs = 3;
  static constexpr uint8_t optional = 1 << 4;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// Results h (L, N, H) and gates (L, N, 4H): r, z, n and m, zeros beyond a sequence's length. bias: (H), that of m.
struct Gru {
  using Attrs = SequenceAttrs;
  static constexpr std::string_view name = "gru", doc = "a GRU over a sequence: its states and gates";
  static constexpr std::string_view operands = "projected, weight_hh, h_0, bias, lengths";
  static constexpr std::string_view example =
      "f32[5,2,9], f32[9,3], f32[2,3], f32[3], i64[2] {reverse=false} : f32[5,2,3], f32[5,2,12]";
  static constexpr int8_t arity = 5, outputs = 2;
  static constexpr uint8_t optional = 1 << 3 | 1 << 4;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// Result h (L, N, H).
struct Rnn {
  struct Attrs : SequenceAttrs {
    bool relu = false;  // instead of tanh
    void visit(AttrVisitor& v) {
      SequenceAttrs::visit(v);
      v.field("relu", relu);
    }
  };
  static constexpr std::string_view name = "rnn", doc = "a simple RNN over a sequence: its states";
  static constexpr std::string_view operands = "projected, weight_hh, h_0, lengths";
  static constexpr std::string_view example =
      "f32[5,2,3], f32[3,3], f32[2,3], i64[2] {reverse=false, relu=false} : f32[5,2,3]";
  static constexpr int8_t arity = 4;
  static constexpr uint8_t optional = 1 << 3;
  static constexpr uint32_t traits = Trait::pure | Trait::checks;
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

struct GatedRecurrenceAttrs : SequenceAttrs {
  int64_t gates = 1;      // blocks of weight and factors
  bool has_cell = false;  // the state is (h, c), else h
  void visit(AttrVisitor& v) {
    SequenceAttrs::visit(v);
    v.field("gates", gates);
    v.field("has_cell", has_cell);
  }
};

/// Operands weight U (G H, H), factors E (L, N, G H), keep K (L, N, S), x (L, N, S) and the state before (N, S), where S
/// is H, or 2 H with a cell: then h before c, xh before xc and Kh before Kc. Without a cell, no K counts as zeros.
/// Result (L, N, S). Beyond a sequence's length E and K are not used: the state changes by x alone.
struct GatedRecurrence {
  using Attrs = GatedRecurrenceAttrs;
  static constexpr std::string_view name = "gated_recurrence",
                                    doc = "tangents of a recurrent cell over a sequence";
  static constexpr std::string_view operands = "weight, factors, keep, x, state, lengths";
  static constexpr std::string_view example =
      "f32[6,3], f32[5,2,6], f32[5,2,6], f32[5,2,6], f32[2,6], i64[2] {reverse=false, gates=2, "
      "has_cell=true} : "
      "f32[5,2,6]";
  static constexpr int8_t arity = 6;
  static constexpr uint8_t optional = 1 << 2 | 1 << 5;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

/// Operands U, E, K as above and the gradient (L, N, S) of the states. Results: the gradient of x (L, N, S), and that of
/// the state before (N, S).
struct GatedRecurrenceBackward {
  using Attrs = GatedRecurrenceAttrs;
  static constexpr std::string_view name = "gated_recurrence_backward",
                                    doc = "gradients of a recurrent cell over a sequence";
  static constexpr std::string_view operands = "weight, factors, keep, g, lengths";
  static constexpr std::string_view example =
      "f32[6,3], f32[5,2,6], f32[5,2,6], f32[5,2,6], i64[2] {reverse=false, gates=2, has_cell=true} : "
      "f32[5,2,6], "
      "f32[2,6]";
  static constexpr int8_t arity = 5, outputs = 2;
  static constexpr uint8_t optional = 1 << 2 | 1 << 4;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs);
  static SaveSet saves_for(const Call& call, uint64_t wants);
  static void vjp(RuleContext& c);
  static void jvp(TangentContext& c);
  static void batch(BatchContext& c);
};

using RecurrentOps = OpList<Lstm, Gru, Rnn, GatedRecurrence, GatedRecurrenceBackward>;

/// The states of all steps, (L, N, H).
struct SequenceStates {
  Tensor h, c;  // c: of an LSTM
};

// Layers over a sequence, of operands of one floating dtype; lengths and bias may be undefined. Errors: dtype_mismatch,
// bad_dim, shape_mismatch; bad_argument for no steps; index_out_of_range for a length below 0 or above L.

SequenceStates lstm(Operand projected, const Tensor& weight_hh, const SequenceStates& before,
                    const Tensor& lengths, bool reverse);
Tensor gru(Operand projected, const Tensor& weight_hh, const Tensor& bias, const Tensor& before,
           const Tensor& lengths, bool reverse);
Tensor rnn(Operand projected, const Tensor& weight_hh, const Tensor& before, const Tensor& lengths, bool relu,
           bool reverse);

/// bool (L, N): whether a step is within a sequence's length.
Tensor steps_within(Dim steps, const Tensor& lengths);

}  // namespace ops
}  // namespace retrograd
#pragma GCC visibility pop
