// Kernels of ops/ctc_loss.h.
//
// The places of a target of L labels are 2 L + 1: a blank, then each label and a blank. alpha(t, s) is the logarithm of
// the probability of all alignments of steps 0 .. t that end at place s; beta(t, s) that of the steps after t, from
// place s. Their sum less the total is the logarithm of the posterior. Only places that can be reached from the
// beginning and can reach the end are computed. Numbers are float64, or dual numbers for a product with the Hessian.
// Samples run in parallel, each by one thread, which owns its part of the gradient.
#include "ops/ctc_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();  // log 0

// A logarithm of a probability, and its derivative in the direction v.
struct Dual {
  double value, slope;
};

double value_of(double x) { return x; }
double value_of(Dual x) { return x.value; }
template <class Number>
Number never() {
  if constexpr (std::is_same_v<Number, Dual>)
    return {kNever, 0};
  else
    return kNever;
}
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }

// log(e^a + e^b + e^c).
double log_sum(double a, double b, double c) {
  const double most = std::max({a, b, c});
  if (most == kNever) return kNever;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}
Dual log_sum(Dual a, Dual b, Dual c) {
  const double most = std::max({a.value, b.value, c.value});
  if (most == kNever) return {kNever, 0};
  const double p = std::exp(a.value - most), q = std::exp(b.value - most), r = std::exp(c.value - most),
               sum = p + q + r;
  return {most + std::log(sum), (p * a.slope + q * b.slope + r * c.slope) / sum};
}

// What a step adds to the posterior of a place, from alpha + beta - total: its negative is the gradient.
double posterior(double log) { return std::exp(log); }
double posterior(Dual log) { return log.value == kNever ? 0 : std::exp(log.value) * log.slope; }

// The operands of a call, checked; targets and log_probs of each sample.
template <class T>
class Batch {
 public:
  Batch(const Call& call, size_t first)
      : blank(call.attrs_as<ops::CtcAttrs>().blank),
        steps(call.operands[first]->shape()[0].raw()),
        samples(call.operands[first]->shape()[1].raw()),
        classes(call.operands[first]->shape()[2].raw()),
        x_(call.operands[first], dtype_of<T>()),
        targets_(call.operands[first + 1]),
        input_lengths_(call.operands[first + 2]),
        target_lengths_(call.operands[first + 3]),
        begins_(samples) {
    const bool is_padded = call.operands[first + 1]->rank() == 2;
    const int64_t labels = call.operands[first + 1]->numel().raw();
    width_ = is_padded ? labels / samples : labels;
    if (!measuring()) check(call, is_padded, labels);
  }

  const int64_t blank, steps, samples, classes;

  /// The most places of a target that steps can spell.
  int64_t most_places() const { return 2 * std::min(width_, steps) + 1; }
  int64_t length(int64_t n) const { return input_lengths_.template values<int64_t>()[n]; }
  int64_t labels(int64_t n) const { return target_lengths_.template values<int64_t>()[n]; }
  int64_t class_at(int64_t n, int64_t s) const {
    return s % 2 == 0 ? blank : targets_.template values<int64_t>()[begins_[n] + s / 2];
  }
  /// Whether an alignment may go from place s - 2 to s.
  bool skips(int64_t n, int64_t s) const {
    return s % 2 == 1 && s >= 3 && class_at(n, s) != class_at(n, s - 2);
  }
  int64_t offset(int64_t t, int64_t n) const { return (t * samples + n) * classes; }
  double log_prob(int64_t t, int64_t n, int64_t c) const {
    return static_cast<double>(x_.template values<T>()[offset(t, n) + c]);
  }

 private:
  void check(const Call& call, bool is_padded, int64_t labels) {
    int64_t end = 0;
    for (int64_t n = 0; n < samples; ++n) {
      if (length(n) < 0 || length(n) > steps)
        fail_call(call, Category::bad_argument,
                  fmt::format("input length {} for {} steps", length(n), steps));
      if (this->labels(n) < 0 || this->labels(n) > width_)
        fail_call(call, Category::bad_argument,
                  fmt::format("target length {} for {} labels", this->labels(n), width_));
      begins_[n] = is_padded ? n * width_ : end;
      end = begins_[n] + this->labels(n);
      if (end > labels) break;  // refused below
      for (int64_t s = 1; s < 2 * this->labels(n); s += 2)
        if (const int64_t c = class_at(n, s); c < 0 || c >= classes)
          fail_call(call, Category::index_out_of_range,
                    fmt::format("target {} is not one of {} classes", c, classes));
    }
    if (!is_padded && end != labels)
      fail_call(call, Category::shape_mismatch,
                fmt::format("target lengths do not add up to {} targets", labels));
  }

  const LocalCopy x_, targets_, input_lengths_, target_lengths_;
  Scratch<int64_t> begins_;
  int64_t width_;
};

// The recurrence of one sample. `at(t, c)` is the logarithm of the probability of class c at step t.
template <class Number, class T, class At>
class Alignments {
 public:
  Alignments(const Batch<T>& batch, int64_t sample, const At& at)
      : b_(batch), n_(sample), at_(at), steps_(b_.length(n_)), places_(2 * b_.labels(n_) + 1) {}

  int64_t steps() const { return steps_; }
  /// Whether there are enough steps for the labels; there may be no alignment even so.
  bool may_fit() const { return b_.labels(n_) <= steps_; }

  /// The total; alpha(t) is the row of step t, which may be the same memory for every second step.
  template <class Rows>
  Number forward(const Rows& alpha) const {
    if (steps_ == 0) return places_ == 1 ? Number{} : never<Number>();
    for (int64_t t = 0; t < steps_; ++t) {
      Number* const row = alpha(t);
      std::fill_n(row, places_, never<Number>());
      const Number* const before = t > 0 ? alpha(t - 1) : nullptr;
      const int64_t end = std::min(places_, 2 * (t + 1));
      for (int64_t s = std::max<int64_t>(0, places_ - 2 * (steps_ - t)); s < end; ++s) {
        Number all{};
        if (before)
          all = log_sum(before[s], s > 0 ? before[s - 1] : never<Number>(),
                        b_.skips(n_, s) ? before[s - 2] : never<Number>());
        row[s] = all + at_(t, b_.class_at(n_, s));
      }
    }
    const Number* const last = alpha(steps_ - 1);
    return log_sum(last[places_ - 1], places_ > 1 ? last[places_ - 2] : never<Number>(), never<Number>());
  }

  /// f(t, class, posterior) for all steps and places; `beta` are two rows of memory.
  template <class Rows, class F>
  void backward(const Rows& alpha, Number total, Number* beta, const F& f) const {
    Number *row = beta, *next = beta + places_;
    std::fill_n(row, places_, never<Number>());
    row[places_ - 1] = Number{};
    if (places_ > 1) row[places_ - 2] = Number{};
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      for (int64_t s = 0; s < places_; ++s)
        f(t, b_.class_at(n_, s), posterior(alpha(t)[s] + row[s] + negative(total)));
      // What is ahead of a place before this step.
      for (int64_t s = 0; s < places_; ++s) row[s] = row[s] + at_(t, b_.class_at(n_, s));
      for (int64_t s = 0; s < places_; ++s)
        next[s] = log_sum(row[s], s + 1 < places_ ? row[s + 1] : never<Number>(),
                          s + 2 < places_ && b_.skips(n_, s + 2) ? row[s + 2] : never<Number>());
      std::swap(row, next);
    }
  }

 private:
  static double negative(double x) { return -x; }
  static Dual negative(Dual x) { return {-x.value, -x.slope}; }

  const Batch<T>& b_;
  int64_t n_;
  const At& at_;
  int64_t steps_, places_;
};

template <class Number, class T, class At>
Alignments<Number, T, At> alignments(const Batch<T>& batch, int64_t sample, const At& at) {
  return {batch, sample, at};
}

void ctc_loss(const Call& call, TensorImpl* const* outputs) {
  const bool zero_infinity = call.attrs_as<ops::CtcAttrs>().zero_infinity;
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const Batch<T> batch(call, 0);
    const LocalResult loss(*outputs[0], dtype_of<T>());
    const int64_t width = batch.most_places();
    const ThreadScratch<double> rows(2 * width, batch.samples);
    parallel_for(batch.samples, [&](int64_t n) {
      double* const memory = rows.mine();
      const auto at = [&](int64_t t, int64_t c) { return batch.log_prob(t, n, c); };
      const auto sample = alignments<double>(batch, n, at);
      const double total =
          sample.may_fit() ? sample.forward([&](int64_t t) { return memory + t % 2 * width; }) : kNever;
      static_cast<T*>(loss->data())[n] = static_cast<T>(zero_infinity && total == kNever ? 0 : -total);
    });
    loss.finish();
  });
}

// Adds the gradient of sample n, times g, to `to`.
template <class Number, class T, class At>
void add_gradient(const Batch<T>& batch, int64_t n, const At& at, bool zero_infinity, double g,
                  Number* memory, T* to) {
  const auto sample = alignments<Number>(batch, n, at);
  const int64_t width = batch.most_places();
  const auto alpha = [&](int64_t t) { return memory + (2 + t) * width; };
  const Number total = sample.may_fit() ? sample.forward(alpha) : never<Number>();
  if (value_of(total) == kNever) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (int64_t t = 0; !zero_infinity && t < sample.steps(); ++t)
      std::fill_n(to + batch.offset(t, n), batch.classes, nan);
    return;
  }
  sample.backward(alpha, total, memory, [&](int64_t t, int64_t c, double p) {
    to[batch.offset(t, n) + c] -= static_cast<T>(g * p);
  });
}

void ctc_loss_backward(const Call& call, TensorImpl* const* outputs) {
  const bool zero_infinity = call.attrs_as<ops::CtcAttrs>().zero_infinity;
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const Batch<T> batch(call, 1);
    const LocalCopy g(call.operands[0], dtype_of<T>()), v(call.operands[5], dtype_of<T>());
    const LocalResult out(*outputs[0], dtype_of<T>());
    const int64_t size = (batch.steps + 2) * batch.most_places();
    const ThreadScratch<double> rows(v ? 0 : size, batch.samples);
    const ThreadScratch<Dual> dual_rows(v ? size : 0, batch.samples);
    clear(*out);
    parallel_for(batch.samples, [&](int64_t n) {
      const double scale = static_cast<double>(g.values<T>()[n]);
      T* const to = static_cast<T*>(out->data());
      if (v)
        add_gradient(
            batch, n,
            [&](int64_t t, int64_t c) {
              return Dual{batch.log_prob(t, n, c),
                          static_cast<double>(v.values<T>()[batch.offset(t, n) + c])};
            },
            zero_infinity, scale, dual_rows.mine(), to);
      else
        add_gradient(
            batch, n, [&](int64_t t, int64_t c) { return batch.log_prob(t, n, c); }, zero_infinity, scale,
            rows.mine(), to);
    });
    out.finish();
  });
}

}  // namespace

void add_ctc_loss_kernels(KernelTable& table) {
  table.set(&ops::info<ops::CtcLoss>, ctc_loss, KernelTable::kScratch);
  table.set(&ops::info<ops::CtcLossBackward>, ctc_loss_backward, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
