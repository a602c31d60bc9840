// Recurrent cells and the gated recurrence on a device (ops/recurrent.h): per step a product for the whole batch, then
// one launch for the elements of the state. See cuda/kernels/recurrent_call.h.
// Limit: two launches for each step; a plan records them in a graph of launches.
#include "ops/recurrent.h"

#include <optional>

#include "cuda/kernels/dense.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/matmul.h"
#include "cuda/kernels/recurrent_call.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {

// An operand that may be missing, row-major.
class DenseOperand {
 public:
  DenseOperand(const Call& call, size_t i) {
    if (!call.operands[i]) return;
    dense_.emplace(*call.operands[i], call.op->name);
    dense_->bring();
  }
  const void* data() { return dense_ ? dense_->here().data() : nullptr; }

 private:
  std::optional<DenseTensor> dense_;
};

// Where the rows of each step lie, in the order in which steps are computed: step 0 is the first.
class RecurrentSteps {
 public:
  RecurrentSteps(const TensorImpl& states, bool reverse)
      : count(states.shape()[0].raw()),
        batch(states.shape()[1].raw()),
        dtype(states.dtype()),
        item_(static_cast<int64_t>(element_size(states.dtype()))),
        reverse_(reverse) {}

  const int64_t count, batch;
  const ScalarType dtype;

  int64_t time(int64_t step) const { return reverse_ ? count - 1 - step : step; }
  template <class T>
  T* at(T* data, int64_t step, int64_t width) const {
    if (!data) return nullptr;
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return static_cast<Byte*>(data) + time(step) * batch * width * item_;
  }
  int64_t bytes(int64_t width) const { return batch * width * item_; }

 private:
  int64_t item_;
  bool reverse_;
};

// ---- cells ------------------------------------------------------------------------------------------------

// How many blocks of sums a cell has, and where they are computed.
struct CellSums {
  int64_t gates;
  TensorImpl* memory;  // (L, N, blocks H)
  int64_t blocks;
  bool with_projected;  // they include the projected input
};

void run_cell(const Call& call, CellStep cell, const CellSums& sums, size_t lengths, TensorImpl* h,
              TensorImpl* c, const void* bias, const void* c_0) {
  DenseOperand projected(call, 0), weight(call, 1), h_0(call, 2), of_lengths(call, lengths);
  const RecurrentSteps steps(*h, call.attrs_as<ops::SequenceAttrs>().reverse);
  const int64_t hidden = h->shape()[2].raw();
  if (h->numel().raw() == 0) return;
  Gpu& gpu = Gpu::current();
  if (sums.with_projected)
    gpu.copy(sums.memory->data(), projected.data(), steps.bytes(sums.gates * hidden) * steps.count);
  cell.is_double = steps.dtype == kFloat64;
  cell.batch = steps.batch;
  cell.hidden = hidden;
  cell.steps = steps.count;
  cell.lengths = static_cast<const int64_t*>(of_lengths.data());
  cell.bias = bias;
  if (cell.lengths) cell.note = gpu.faults().note(*call.op);
  for (int64_t step = 0; step < steps.count; ++step) {
    void* const memory = steps.at(sums.memory->data(), step, sums.blocks * hidden);
    cell.time = steps.time(step);
    cell.h_before = step > 0 ? steps.at(h->data(), step - 1, hidden) : h_0.data();
    cell.c_before = step > 0 && c ? steps.at(c->data(), step - 1, hidden) : c_0;
    cell.projected = steps.at(projected.data(), step, sums.gates * hidden);
    cell.gates = memory;
    cell.h = steps.at(h->data(), step, hidden);
    cell.c = c ? steps.at(c->data(), step, hidden) : nullptr;
    multiply_rows(call, steps.dtype,
                  {steps.batch, sums.gates * hidden, hidden, cell.h_before, hidden, weight.data(), true,
                   memory, sums.blocks * hidden, sums.with_projected});
    gpu.launchers().recurrent->cell(cell, gpu.compute().handle());
    gpu.launched(call.op->name);
  }
}

CellStep of_kind(CellKind kind) {
  CellStep cell;
  cell.kind = kind;
  return cell;
}

void lstm_kernel(const Call& call, TensorImpl* const* outputs) {
  DenseOperand c_0(call, 3);
  run_cell(call, of_kind(CellKind::lstm), {4, outputs[2], 4, true}, 4, outputs[0], outputs[1], nullptr,
           c_0.data());
}

void gru_kernel(const Call& call, TensorImpl* const* outputs) {
  DenseOperand bias(call, 3);
  run_cell(call, of_kind(CellKind::gru), {3, outputs[1], 4, false}, 4, outputs[0], nullptr, bias.data(),
           nullptr);
}

void rnn_kernel(const Call& call, TensorImpl* const* outputs) {
  const CellKind kind = call.attrs_as<ops::Rnn::Attrs>().relu ? CellKind::relu : CellKind::tanh;
  run_cell(call, of_kind(kind), {1, outputs[0], 1, true}, 3, outputs[0], nullptr, nullptr, nullptr);
}

// ---- the gated recurrence ---------------------------------------------------------------------------------

class GatedRun {
 public:
  /// `input`: the number of the operand x or g.
  GatedRun(const Call& call, size_t input, size_t lengths, TensorImpl& states)
      : call_(call),
        attrs_(call.attrs_as<ops::GatedRecurrenceAttrs>()),
        weight_(call, 0),
        factors_(call, 1),
        keep_(call, 2),
        input_(call, input),
        lengths_(call, lengths),
        hidden_(call.operands[0]->shape()[1].raw()),
        width_(states.shape()[2].raw()),
        sums_(attrs_.gates * hidden_),
        steps_(states, attrs_.reverse),
        states_(states) {}

  void advance() {
    DenseOperand first(call_, 4);
    if (states_.numel().raw() == 0) return;
    const Scratch products(steps_.bytes(sums_), call_.op->name);
    for (int64_t step = 0; step < steps_.count; ++step) {
      GatedRecurrenceStep s = at(step);
      s.before = step > 0 ? steps_.at(states_.data(), step - 1, width_) : first.data();
      s.products = products.data();
      multiply_rows(
          call_, steps_.dtype,
          {steps_.batch, sums_, hidden_, s.before, width_, weight_.data(), true, s.products, sums_, false});
      Gpu& gpu = Gpu::current();
      gpu.launchers().recurrent->advance(s, gpu.compute().handle());
      gpu.launched(call_.op->name);
    }
  }

  void retreat(TensorImpl& before) {
    if (states_.numel().raw() == 0) return;
    fill(call_, before, 0.0);
    const Scratch products(steps_.bytes(sums_), call_.op->name);
    for (int64_t step = steps_.count - 1; step >= 0; --step) {
      GatedRecurrenceStep s = at(step);
      s.products = products.data();
      s.carry = before.data();
      Gpu& gpu = Gpu::current();
      gpu.launchers().recurrent->retreat(s, gpu.compute().handle());
      gpu.launched(call_.op->name);
      multiply_rows(
          call_, steps_.dtype,
          {steps_.batch, hidden_, sums_, s.products, sums_, weight_.data(), false, s.carry, width_, true});
    }
  }

 private:
  GatedRecurrenceStep at(int64_t step) {
    GatedRecurrenceStep s;
    s.is_double = steps_.dtype == kFloat64;
    s.has_cell = attrs_.has_cell;
    s.batch = steps_.batch;
    s.hidden = hidden_;
    s.gates = attrs_.gates;
    s.time = steps_.time(step);
    s.lengths = static_cast<const int64_t*>(lengths_.data());
    s.factors = steps_.at(factors_.data(), step, sums_);
    s.keep = steps_.at(keep_.data(), step, width_);
    s.x = steps_.at(input_.data(), step, width_);
    s.states = steps_.at(states_.data(), step, width_);
    return s;
  }

  const Call& call_;
  const ops::GatedRecurrenceAttrs& attrs_;
  DenseOperand weight_, factors_, keep_, input_, lengths_;
  int64_t hidden_, width_, sums_;
  RecurrentSteps steps_;
  TensorImpl& states_;
};

void advance_kernel(const Call& call, TensorImpl* const* outputs) {
  GatedRun(call, 3, 5, *outputs[0]).advance();
}
void retreat_kernel(const Call& call, TensorImpl* const* outputs) {
  GatedRun(call, 3, 4, *outputs[0]).retreat(*outputs[1]);
}

}  // namespace

void add_recurrent_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Lstm>, lstm_kernel);
  table.set(&ops::info<ops::Gru>, gru_kernel);
  table.set(&ops::info<ops::Rnn>, rnn_kernel);
  table.set(&ops::info<ops::GatedRecurrence>, advance_kernel);
  table.set(&ops::info<ops::GatedRecurrenceBackward>, retreat_kernel);
}

}  // namespace retrograd::cuda
