// Softmax, normalisation and cross entropy of one contiguous row, for one instruction-set level: see RowTable
// in cpu/kernels/levels/softmax_norm_rows.h.
//
// Each function makes a few passes over the row by Sweep and fold (cpu/kernels/levels/row_lanes.h); a row of
// usual length stays in the first-level cache between them. Moments finds the statistics of rows step by
// step, several rows at a time, Normal applies them, NormalizeBackward is the gradient. Statistics whose
// squares leave the range are found again, of scaled elements (scaled_sums.h). Start reading at row_table(),
// at the end. Only plain loops here: nothing of the standard library, no throw (tools/isa.bzl says why).
#include "cpu/kernels/levels/softmax_norm_rows.h"

#include "cpu/kernels/levels/row_lanes.h"
#include "cpu/kernels/levels/scaled_sums.h"
#include "ops/reductions.h"

namespace retrograd::inline v0::cpu::RG_ISA {

// In cpu/kernels/levels/softmax_short_rows.cc.
template <class T>
void short_softmax(const T* x, int64_t rows, int64_t n, T* y);
template <class T>
void short_log_softmax(const T* x, int64_t rows, int64_t n, T* y);
template <class T>
void short_softmax_backward(const T* g, const T* y, int64_t rows, int64_t n, T* dx);
template <class T>
void short_log_softmax_backward(const T* g, const T* y, int64_t rows, int64_t n, T* dx);

namespace {

template <class T>
void softmax(const T* x, int64_t n, T* y) {
  const Vec<T> m = largest_number(x, n);
  Sweep<T, 1, 1, 1> exps;
  exps.run({x}, {y}, n, [m](const auto& v, auto& out, auto& term) { out[0] = term[0] = exp(v[0] - m); });
  const Vec<T> scale = static_cast<T>(1 / exps.sums[0]);
  Sweep<T, 1, 1, 0> sweep;
  sweep.run({y}, {y}, n, [scale](const auto& v, auto& out, auto&) { out[0] = v[0] * scale; });
}

// NaN where the largest element is infinite.
template <class T>
LogSum log_sum(const T* x, int64_t n) {
  const T max = largest_number(x, n);
  return {static_cast<double>(max),
          ops::log_one_plus(rest_of_exponentials(x, n, max)) + static_cast<double>(max - max)};
}

template <class T>
void log_softmax(const T* x, int64_t n, T* y) {
  const LogSum sum = log_sum(x, n);
  Sweep<T, 1, 1, 0> sweep;
  sweep.run({x}, {y}, n,
            [m = Vec<T>(static_cast<T>(sum.max)), log = Vec<T>(static_cast<T>(sum.log))](
                const auto& v, auto& out, auto&) { out[0] = (v[0] - m) - log; });
}

template <class T>
void softmax_backward(const T* g, const T* y, int64_t n, T* dx) {
  Sweep<T, 2, 0, 1> dot;
  dot.run({g, y}, {nullptr}, n, [](const auto& v, auto&, auto& term) { term[0] = v[0] * v[1]; });
  Sweep<T, 2, 1, 0> sweep;
  sweep.run({g, y}, {dx}, n, [s = Vec<T>(static_cast<T>(dot.sums[0]))](const auto& v, auto& out, auto&) {
    out[0] = v[1] * (v[0] - s);
  });
}

template <class T>
void log_softmax_backward(const T* g, const T* y, int64_t n, T* dx) {
  Sweep<T, 1, 0, 1> sum;
  sum.run({g}, {nullptr}, n, [](const auto& v, auto&, auto& term) { term[0] = v[0]; });
  const Vec<T> s = static_cast<T>(sum.sums[0]);
  // Few rows have a high share at all, and no row two: a block is looked through before.
  constexpr int64_t kBlock = 512;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = n - at < kBlock ? n - at : kBlock;
    Sweep<T, 2, 1, 0> sweep;
    if (has_high_share(y + at, count))
      sweep.run({g + at, y + at}, {dx + at}, count,
                [s](const auto& v, auto& out, auto&) { out[0] = less_share(v[0], v[1], s); });
    else
      sweep.run({g + at, y + at}, {dx + at}, count,
                [s](const auto& v, auto& out, auto&) { out[0] = v[0] - exp(v[1]) * s; });
  }
}

// The statistics of a row: `shift` is the mean as T, `rest` what the mean has beyond it. Found in steps, so that rows
// take them together: each step ends in sums and quotients that wait for each other. (Each sets its own fields: zeros
// in all of them first cost short rows a fifth.)
template <class T>
struct Moments {
  T shift;
  double sum, squares;  // of the differences from shift
  double rest, rstd;

  void find_shift(const T* x, int64_t n, bool center) { shift = center ? row_mean(x, n) : T(0); }
  // After the mean: two passes, since E[x^2] - E[x]^2 cancels.
  void find_squares(const T* x, int64_t n) {
    Sweep<T, 1, 0, 2> sweep;
    sweep.run({x}, {nullptr}, n, [m = Vec<T>(shift)](const auto& v, auto&, auto& term) {
      term[0] = v[0] - m;
      term[1] = term[0] * term[0];
    });
    sum = sweep.sums[0];
    squares = sweep.sums[1];
    exponent = 0;
    if (!is_in_range<T>(squares)) rescale(x, n);
  }
  void finish(int64_t n, double eps, bool center) {
    const double count = static_cast<double>(n);
    rest = center ? sum / count : 0;
    const double scaled_eps = ops::scaled_by_exponent(eps, -2 * exponent);
    rstd = ops::scaled_by_exponent(1 / __builtin_sqrt(squares / count - rest * rest + scaled_eps), -exponent);
    rest = ops::scaled_by_exponent(rest, exponent);
  }
  RowStats stats() const { return {static_cast<double>(shift) + rest, rstd}; }

 private:
  [[gnu::noinline]] void rescale(const T* x, int64_t n) {
    const ScaledSums found = scaled_sums(x, 1, n, static_cast<double>(shift), 0);
    if (!found.is_of_use) return;
    sum = found.sum;
    squares = found.squares;
    exponent = static_cast<int>(found.exponent);
  }

  int exponent;  // of the differences, in whose unit sum and squares are
};

template <class T>
void find_moments(const T* x, int64_t step, int64_t rows, int64_t n, double eps, bool center,
                  Moments<T>* all) {
  for (int64_t r = 0; r < rows; ++r) all[r].find_shift(x + r * step, n, center);
  for (int64_t r = 0; r < rows; ++r) all[r].find_squares(x + r * step, n);
  for (int64_t r = 0; r < rows; ++r) all[r].finish(n, eps, center);
}

// How statistics normalise.
template <class T>
struct Normal {
  Vec<T> shift, rest, rstd;

  explicit Normal(const Moments<T>& m)
      : shift(m.shift), rest(static_cast<T>(m.rest)), rstd(static_cast<T>(m.rstd)) {}
  Vec<T> operator()(Vec<T> v) const { return ((v - shift) - rest) * rstd; }
};

template <class T>
void normalize_row(const T* x, const T* weight, const T* bias, int64_t n, Normal<T> xhat, T* y) {
  if (weight && bias) {
    Sweep<T, 3, 1, 0> sweep;
    sweep.run({x, weight, bias}, {y}, n,
              [=](const auto& v, auto& out, auto&) { out[0] = xhat(v[0]) * v[1] + v[2]; });
  } else if (weight) {
    Sweep<T, 2, 1, 0> sweep;
    sweep.run({x, weight}, {y}, n, [=](const auto& v, auto& out, auto&) { out[0] = xhat(v[0]) * v[1]; });
  } else if (bias) {
    Sweep<T, 2, 1, 0> sweep;
    sweep.run({x, bias}, {y}, n, [=](const auto& v, auto& out, auto&) { out[0] = xhat(v[0]) + v[1]; });
  } else {
    Sweep<T, 1, 1, 0> sweep;
    sweep.run({x}, {y}, n, [=](const auto& v, auto& out, auto&) { out[0] = xhat(v[0]); });
  }
}

template <class T>
void normalize(const T* x, int64_t x_step, const T* weight, const T* bias, int64_t rows, int64_t n,
               double eps, bool center, T* y, int64_t y_step, RowStats* stats) {
  constexpr int64_t kTogether = 8;
  for (int64_t begin = 0; begin < rows; begin += kTogether) {
    const int64_t count = rows - begin < kTogether ? rows - begin : kTogether;
    Moments<T> all[kTogether];
    find_moments(x + begin * x_step, x_step, count, n, eps, center, all);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = begin + r;
      normalize_row(x + row * x_step, weight, bias, n, Normal<T>(all[r]), y + row * y_step);
      stats[row] = all[r].stats();
    }
  }
}

template <class T>
RowStats normalize_segments(const T* x, const T* weight, const T* bias, int64_t n, int64_t segment,
                            double eps, bool center, T* y) {
  Moments<T> m;
  find_moments(x, 0, 1, n, eps, center, &m);
  const Normal<T> xhat(m);
  for (int64_t at = 0, s = 0; at < n; at += segment, ++s) {
    const Vec<T> scale = weight ? weight[s] : T(1), shift = bias ? bias[s] : T(0);
    Sweep<T, 1, 1, 0> sweep;
    sweep.run({x + at}, {y + at}, segment,
              [=](const auto& v, auto& out, auto&) { out[0] = xhat(v[0]) * scale + shift; });
  }
  return m.stats();
}

// With h = g * weight and xhat = (x - mean) * rstd: dx = rstd * (h - mean(h) - xhat * mean(h * xhat)).
template <class T>
struct NormalizeBackward {
  const T *g, *x;
  Vec<T> mean, rstd;
  int64_t n;
  bool center;
  T* dx;

  template <bool Weighted>
  void dx_row(const T* weight, double sum, double dot) const {
    const Vec<T> a = static_cast<T>(center ? sum / static_cast<double>(n) : 0),
                 b = static_cast<T>(dot / static_cast<double>(n));
    const auto f = [a, b, mean = mean, rstd = rstd](Vec<T> h, Vec<T> x) {
      return rstd * ((h - a) - (x - mean) * rstd * b);
    };
    if constexpr (Weighted) {
      Sweep<T, 3, 1, 0> sweep;
      sweep.run({g, x, weight}, {dx}, n,
                [f](const auto& v, auto& out, auto&) { out[0] = f(v[0] * v[2], v[1]); });
    } else {
      Sweep<T, 2, 1, 0> sweep;
      sweep.run({g, x}, {dx}, n, [f](const auto& v, auto& out, auto&) { out[0] = f(v[0], v[1]); });
    }
  }

  // The sums over the row of h and h * xhat. Without a weight dweight and dbias are not wanted either, or
  // stand for a weight of ones.
  void affine(const T* weight, T* dweight, T* dbias) const {
    Sweep<T, 5, 2, 2> sweep;
    sweep.run({g, x, weight, dweight, dbias}, {dweight, dbias, nullptr}, n,
              [mean = mean, rstd = rstd](const auto& v, auto& out, auto& term) {
                const Vec<T> xhat = (v[1] - mean) * rstd, product = v[0] * xhat;
                out[0] = v[3] + product;
                out[1] = v[4] + v[0];
                term[0] = v[0] * v[2];
                term[1] = product * v[2];
              });
    dx_row<true>(weight, sweep.sums[0], sweep.sums[1]);
  }

  void plain() const {
    Sweep<T, 2, 0, 2> sweep;
    sweep.run({g, x}, {nullptr}, n, [mean = mean, rstd = rstd](const auto& v, auto&, auto& term) {
      term[0] = v[0];
      term[1] = v[0] * ((v[1] - mean) * rstd);
    });
    dx_row<false>(nullptr, sweep.sums[0], sweep.sums[1]);
  }
};

template <class T>
void normalize_backward(const T* g, const T* x, RowStats stats, const T* weight, int64_t n, bool center,
                        T* dx, T* dweight, T* dbias) {
  const NormalizeBackward<T> row{g, x, static_cast<T>(stats.mean), static_cast<T>(stats.rstd), n, center, dx};
  if (weight)
    row.affine(weight, dweight, dbias);
  else
    row.plain();
}

// The sums of each segment first, of which those of the row are made.
template <class T>
void normalize_segments_backward(const T* g, const T* x, RowStats stats, const T* weight, int64_t n,
                                 int64_t segment, bool center, T* dx, T* dweight, T* dbias) {
  const Vec<T> mean = static_cast<T>(stats.mean), rstd = static_cast<T>(stats.rstd);
  double sum = 0, dot = 0;
  for (int64_t at = 0, s = 0; at < n; at += segment, ++s) {
    Sweep<T, 2, 0, 2> sweep;
    sweep.run({g + at, x + at}, {nullptr}, segment, [=](const auto& v, auto&, auto& term) {
      term[0] = v[0];
      term[1] = v[0] * ((v[1] - mean) * rstd);
    });
    const double w = weight ? static_cast<double>(weight[s]) : 1;
    sum += w * sweep.sums[0];
    dot += w * sweep.sums[1];
    dbias[s] = static_cast<T>(sweep.sums[0]);
    dweight[s] = static_cast<T>(sweep.sums[1]);
  }
  const Vec<T> a = static_cast<T>(center ? sum / static_cast<double>(n) : 0),
               b = static_cast<T>(dot / static_cast<double>(n));
  for (int64_t at = 0, s = 0; at < n; at += segment, ++s) {
    const Vec<T> scale = weight ? weight[s] : T(1);
    Sweep<T, 2, 1, 0> sweep;
    sweep.run({g + at, x + at}, {dx + at}, segment, [=](const auto& v, auto& out, auto&) {
      out[0] = rstd * ((v[0] * scale - a) - (v[1] - mean) * rstd * b);
    });
  }
}

template <class T>
void scaled_softmax(const T* x, LogSum sum, double g, int64_t n, T* dx) {
  Sweep<T, 1, 1, 0> sweep;
  sweep.run({x}, {dx}, n,
            [m = Vec<T>(static_cast<T>(sum.max)), log = Vec<T>(static_cast<T>(sum.log)),
             scale = Vec<T>(static_cast<T>(g))](const auto& v, auto& out, auto&) {
              out[0] = exp((v[0] - m) - log) * scale;
            });
}

}  // namespace

template <class T>
const RowTable<T>& row_table() {
  static constexpr RowTable<T> table{softmax<T>,
                                     log_softmax<T>,
                                     softmax_backward<T>,
                                     log_softmax_backward<T>,
                                     normalize<T>,
                                     normalize_backward<T>,
                                     normalize_segments<T>,
                                     normalize_segments_backward<T>,
                                     Vec<T>::size,
                                     short_softmax<T>,
                                     short_log_softmax<T>,
                                     short_softmax_backward<T>,
                                     short_log_softmax_backward<T>,
                                     log_sum<T>,
                                     scaled_softmax<T>};
  return table;
}
template const RowTable<float>& row_table<float>();
template const RowTable<double>& row_table<double>();

}  // namespace retrograd::cpu::RG_ISA
