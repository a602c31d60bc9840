// Recurrent cells and the gated recurrence on the CPU (ops/recurrent.h).
//
// Sequences do not depend on each other: chunks of a few of them go through all steps on one thread, so threads meet
// once in a call. The recurrent weight is packed once (StateProduct); a single step multiplies it where it lies. A step
// is a product for the chunk, then a row function for each sequence (cpu/kernels/levels/recurrent_rows.h).
// Limit: few long sequences with a large state use few threads.
#include "ops/recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cpu/kernels/levels/recurrent_rows.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/packed_products.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kManySequences = 64, kChunkOfMany = 16, kChunkOfFew = 8;

// The steps of a batch of sequences, in the order in which they are computed: step 0 is the first.
class RecurrentSteps {
 public:
  RecurrentSteps(const Shape& states, const LocalCopy& lengths, bool reverse)
      : count(states[0].raw()),
        batch(states[1].raw()),
        lengths_(lengths.values<const int64_t>()),
        reverse_(reverse) {}

  const int64_t count, batch;

  int64_t time(int64_t step) const { return reverse_ ? count - 1 - step : step; }
  /// The first row of sequence `sequence` at a step, of `width` elements.
  template <class T>
  T* at(T* data, int64_t step, int64_t sequence, int64_t width) const {
    return data + (time(step) * batch + sequence) * width;
  }
  bool is_within(int64_t step, int64_t sequence) const {
    return !lengths_ || time(step) < lengths_[sequence];
  }
  bool any_within(int64_t step, int64_t begin, int64_t end) const {
    while (begin < end && !is_within(step, begin)) ++begin;
    return begin < end;
  }
  int64_t chunk() const {
    if (count == 1) return std::max<int64_t>(batch, 1);
    return batch < kManySequences ? kChunkOfFew : kChunkOfMany;
  }
  void check_lengths(const Call& call) const {
    for (int64_t i = 0; lengths_ && i < batch; ++i)
      if (lengths_[i] < 0 || lengths_[i] > count)
        fail_call(call, Category::index_out_of_range,
                  fmt::format("a length of {} in a sequence of {} steps", lengths_[i], count));
  }
  int64_t chunks() const { return ceil_div(batch, chunk()); }

 private:
  const int64_t* lengths_;
  bool reverse_;
};

// Products of states with the recurrent weight.
template <class T>
class StateProduct {
 public:
  /// b (k, n), for so many steps.
  StateProduct(MatrixView<T> b, int64_t k, int64_t n, int64_t steps) : b_(b), k_(k), n_(n) {
    if (steps > 1) packed_.emplace(k, n);
  }
  void prepare() const {
    if (packed_) packed_->pack(b_, k_, n_);
  }
  /// c = a b, or added to it, for rows of a and c that are a_row and c_row elements apart.
  void multiply(int64_t rows, const T* a, int64_t a_row, T* c, int64_t c_row, bool accumulate) const {
    const MatrixView<T> left{a, a_row, 1};
    if (packed_)
      cpu::multiply(rows, n_, k_, left, *packed_, 0, c, c_row, T(1), accumulate);
    else
      gemm(Gemm<T>{rows, n_, k_, left, b_, c, c_row, T(1), accumulate});
  }
  bool is_packed() const { return packed_.has_value(); }

 private:
  MatrixView<T> b_;
  int64_t k_, n_;
  std::optional<PackedRight<T>> packed_;
};

// f(begin, end) for chunks of sequences. A single step is one chunk, whose product runs on all threads: while the call
// is measured, f asks for that product's memory.
template <class T, class F>
void for_chunks(const RecurrentSteps& steps, const StateProduct<T>& product, const F& f) {
  if (steps.batch == 0) return;
  if (!product.is_packed()) return f(int64_t{0}, steps.batch);
  if (measuring()) return;
  product.prepare();
  parallel_range(steps.batch, steps.chunk(), f);
}

// A forward kernel: per step the sums in the gates, from the projected input and U h, then the cell.
template <class T>
class CellRun {
 public:
  CellRun(const Call& call, size_t lengths, TensorImpl& h, int64_t gates)
      : projected_(call.operands[0]),
        weight_(call.operands[1]),
        h_0_(call.operands[2]),
        lengths_(call.operands[lengths]),
        gates_(gates),
        hidden_(h.shape()[2].raw()),
        steps_(h.shape(), lengths_, call.attrs_as<ops::SequenceAttrs>().reverse),
        product_({weight_.template values<T>(), 1, hidden_}, hidden_, gates * hidden_, steps_.count),
        h_(static_cast<T*>(h.data())) {}

  const RecurrentSteps& steps() const { return steps_; }
  int64_t hidden() const { return hidden_; }
  T* h(int64_t step, int64_t sequence) const { return steps_.at(h_, step, sequence, hidden_); }
  const T* h_before(int64_t step, int64_t sequence) const {
    return step > 0 ? h(step - 1, sequence) : h_0_.template values<T>() + sequence * hidden_;
  }
  const T* projected(int64_t step, int64_t sequence) const {
    return steps_.at(projected_.template values<const T>(), step, sequence, gates_ * hidden_);
  }

  /// U h for sequences [begin, end) into `sums`, rows `sums_row` apart, or added to what they hold.
  void multiply(int64_t step, int64_t begin, int64_t end, T* sums, int64_t sums_row, bool accumulate) const {
    if (measuring() || steps_.any_within(step, begin, end))
      product_.multiply(end - begin, h_before(step, begin), hidden_, sums, sums_row, accumulate);
  }
  /// The projected input of sequences [begin, end), into rows that follow each other.
  void begin_sums(int64_t step, int64_t begin, int64_t end, T* sums) const {
    if (!measuring()) std::copy_n(projected(step, begin), (end - begin) * gates_ * hidden_, sums);
  }
  /// cell(step, sequence) for those within their length; the state of others stays.
  template <class Multiply, class Cell, class Stay>
  void run(const Call& call, const Multiply& multiply, const Cell& cell, const Stay& stay) const {
    if (!measuring()) steps_.check_lengths(call);
    for_chunks(steps_, product_, [&](int64_t begin, int64_t end) {
      for (int64_t step = 0; step < steps_.count; ++step) {
        multiply(step, begin, end);
        if (measuring()) continue;
        for (int64_t i = begin; i < end; ++i) {
          if (steps_.is_within(step, i)) {
            cell(step, i);
          } else {
            std::copy_n(h_before(step, i), hidden_, h(step, i));
            stay(step, i);
          }
        }
      }
    });
  }

 private:
  LocalCopy projected_, weight_, h_0_, lengths_;
  int64_t gates_, hidden_;
  RecurrentSteps steps_;
  StateProduct<T> product_;
  T* h_;
};

template <class T>
void run_lstm(const Call& call, TensorImpl* const* outputs) {
  const CellRun<T> f(call, 4, *outputs[0], 4);
  const LocalCopy c_0(call.operands[3]);
  const RecurrentSteps& steps = f.steps();
  const int64_t n = f.hidden();
  T *const c = static_cast<T*>(outputs[1]->data()), *const gates = static_cast<T*>(outputs[2]->data());
  const auto c_before = [&](int64_t step, int64_t i) {
    return step > 0 ? steps.at(c, step - 1, i, n) : c_0.values<T>() + i * n;
  };
  f.run(
      call,
      [&](int64_t step, int64_t begin, int64_t end) {
        T* const sums = steps.at(gates, step, begin, 4 * n);
        f.begin_sums(step, begin, end, sums);
        f.multiply(step, begin, end, sums, 4 * n, true);
      },
      [&](int64_t step, int64_t i) {
        recurrent_row_table<T>().lstm(steps.at(gates, step, i, 4 * n), c_before(step, i),
                                      steps.at(c, step, i, n), f.h(step, i), n);
      },
      [&](int64_t step, int64_t i) {
        std::copy_n(c_before(step, i), n, steps.at(c, step, i, n));
        std::fill_n(steps.at(gates, step, i, 4 * n), 4 * n, T(0));
      });
}

template <class T>
void run_gru(const Call& call, TensorImpl* const* outputs) {
  const CellRun<T> f(call, 4, *outputs[0], 3);
  const LocalCopy bias(call.operands[3]);
  const RecurrentSteps& steps = f.steps();
  const int64_t n = f.hidden();
  T* const gates = static_cast<T*>(outputs[1]->data());
  f.run(
      call,
      [&](int64_t step, int64_t begin, int64_t end) {
        f.multiply(step, begin, end, steps.at(gates, step, begin, 4 * n), 4 * n, false);
      },
      [&](int64_t step, int64_t i) {
        recurrent_row_table<T>().gru(f.projected(step, i), bias.values<T>(), f.h_before(step, i),
                                     steps.at(gates, step, i, 4 * n), f.h(step, i), n);
      },
      [&](int64_t step, int64_t i) { std::fill_n(steps.at(gates, step, i, 4 * n), 4 * n, T(0)); });
}

template <class T>
void run_rnn(const Call& call, TensorImpl* const* outputs) {
  const CellRun<T> f(call, 3, *outputs[0], 1);
  const bool relu = call.attrs_as<ops::Rnn::Attrs>().relu;
  const int64_t n = f.hidden();
  f.run(
      call,
      [&](int64_t step, int64_t begin, int64_t end) {
        f.begin_sums(step, begin, end, f.h(step, begin));
        f.multiply(step, begin, end, f.h(step, begin), n, true);
      },
      [&](int64_t step, int64_t i) { recurrent_row_table<T>().rnn(f.h(step, i), relu, n); },
      [](int64_t, int64_t) {});
}

// The gated recurrence and its transpose.
template <class T>
class GatedRun {
 public:
  /// `input`: the number of the operand x or g.
  GatedRun(const Call& call, size_t input, size_t lengths, TensorImpl& states)
      : attrs_(call.attrs_as<ops::GatedRecurrenceAttrs>()),
        weight_(call.operands[0]),
        factors_(call.operands[1]),
        keep_(call.operands[2]),
        input_(call.operands[input]),
        lengths_(call.operands[lengths]),
        hidden_(weight_->shape()[1].raw()),
        width_(states.shape()[2].raw()),
        sums_(attrs_.gates * hidden_),
        steps_(states.shape(), lengths_, attrs_.reverse),
        states_(static_cast<T*>(states.data())) {}

  void advance(TensorImpl* state) const {
    const LocalCopy first(state);
    const StateProduct<T> product({weight_.values<T>(), 1, hidden_}, hidden_, sums_, steps_.count);
    const ThreadScratch<T> scratch(sums_ * steps_.chunk(), steps_.chunks());
    for_chunks(steps_, product, [&](int64_t begin, int64_t end) {
      T* const products = scratch.mine();
      for (int64_t step = 0; step < steps_.count; ++step) {
        const T* const before = step > 0 ? states(step - 1, begin) : first.values<T>() + begin * width_;
        if (measuring() || steps_.any_within(step, begin, end))
          product.multiply(end - begin, before, width_, products, sums_, false);
        if (measuring()) continue;
        for (int64_t i = begin; i < end; ++i)
          advance_row(step, i, products + (i - begin) * sums_, before + (i - begin) * width_);
      }
    });
  }

  void retreat(TensorImpl& before) const {
    const StateProduct<T> product({weight_.values<T>(), hidden_, 1}, sums_, hidden_, steps_.count);
    const ThreadScratch<T> scratch((sums_ + width_) * steps_.chunk(), steps_.chunks());
    for_chunks(steps_, product, [&](int64_t begin, int64_t end) {
      T *const products = scratch.mine(), *const carry = products + sums_ * steps_.chunk();
      const int64_t rows = end - begin;
      if (!measuring()) std::fill_n(carry, rows * width_, T(0));
      for (int64_t step = steps_.count - 1; step >= 0; --step) {
        if (!measuring())
          for (int64_t i = begin; i < end; ++i)
            retreat_row(step, i, carry + (i - begin) * width_, products + (i - begin) * sums_);
        if (measuring() || steps_.any_within(step, begin, end))
          product.multiply(rows, products, sums_, carry, width_, true);
      }
      if (!measuring()) std::copy_n(carry, rows * width_, static_cast<T*>(before.data()) + begin * width_);
    });
  }

 private:
  T* states(int64_t step, int64_t i) const { return steps_.at(states_, step, i, width_); }
  const T* input(int64_t step, int64_t i) const {
    return steps_.at(input_.values<const T>(), step, i, width_);
  }
  GatedStep<T> gated_step(int64_t step, int64_t i) const {
    return {hidden_, attrs_.gates, attrs_.has_cell, steps_.at(factors_.values<const T>(), step, i, sums_),
            keep_ ? steps_.at(keep_.values<const T>(), step, i, width_) : nullptr};
  }
  void advance_row(int64_t step, int64_t i, const T* products, const T* before) const {
    T* const out = states(step, i);
    const T* const x = input(step, i);
    if (steps_.is_within(step, i))
      return recurrent_row_table<T>().advance(gated_step(step, i), products, x, before, out);
    for (int64_t k = 0; k < width_; ++k) out[k] = x[k] + before[k];
  }
  void retreat_row(int64_t step, int64_t i, T* carry, T* products) const {
    T* const delta = states(step, i);
    const T* const g = input(step, i);
    if (steps_.is_within(step, i))
      return recurrent_row_table<T>().retreat(gated_step(step, i), g, carry, delta, products);
    for (int64_t k = 0; k < width_; ++k) carry[k] = delta[k] = g[k] + carry[k];
    std::fill_n(products, sums_, T(0));
  }

  const ops::GatedRecurrenceAttrs& attrs_;
  LocalCopy weight_, factors_, keep_, input_, lengths_;
  int64_t hidden_, width_, sums_;
  RecurrentSteps steps_;
  T* states_;
};

template <class T>
void run_gated(const Call& call, TensorImpl* const* outputs) {
  GatedRun<T>(call, 3, 5, *outputs[0]).advance(call.operands[4]);
}
template <class T>
void run_gated_backward(const Call& call, TensorImpl* const* outputs) {
  GatedRun<T>(call, 3, 4, *outputs[0]).retreat(*outputs[1]);
}

template <Kernel f32, Kernel f64>
void by_dtype(const Call& call, TensorImpl* const* outputs) {
  return outputs[0]->dtype() == kFloat64 ? f64(call, outputs) : f32(call, outputs);
}

}  // namespace

void add_recurrent_kernels(KernelTable& table) {
  const auto set = [&](const OpInfo& op, Kernel kernel) { table.set(&op, kernel, KernelTable::kScratch); };
  set(ops::info<ops::Lstm>, by_dtype<run_lstm<float>, run_lstm<double>>);
  set(ops::info<ops::Gru>, by_dtype<run_gru<float>, run_gru<double>>);
  set(ops::info<ops::Rnn>, by_dtype<run_rnn<float>, run_rnn<double>>);
  set(ops::info<ops::GatedRecurrence>, by_dtype<run_gated<float>, run_gated<double>>);
  set(ops::info<ops::GatedRecurrenceBackward>,
      by_dtype<run_gated_backward<float>, run_gated_backward<double>>);
}

}  // namespace retrograd::cpu
