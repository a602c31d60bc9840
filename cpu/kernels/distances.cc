// Distances between rows and their gradients on the CPU.
//
// A task takes rows of a against all rows of b. Powers of differences are summed in double, eight sums side by side;
// where they leave the range, or lose digits at its lower end, they are computed again from differences divided by the
// largest. A gradient computes its distances again, while both rows are in the cache. Start reading at distance().
#include "ops/distances.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kLanes = 8, kPairGrain = 16384;  // differences a chunk

// The norms by exponent: the power of a difference, the root of their sum, and the derivative by a difference d at a
// distance y > 0.
struct Count {
  static double power(double d, double) { return d != 0 ? 1 : 0; }
  static double root(double sum, double) { return sum; }
  static double slope(double, double, double) { return 0; }
};
struct Manhattan {
  static double power(double d, double) { return std::fabs(d); }
  static double root(double sum, double) { return sum; }
  static double slope(double d, double, double) { return static_cast<double>((d > 0) - (d < 0)); }
};
struct Euclid {
  static double power(double d, double) { return d * d; }
  static double root(double sum, double) { return std::sqrt(sum); }
  static double slope(double d, double y, double) { return d / y; }
};
struct General {
  static double power(double d, double p) { return std::pow(std::fabs(d), p); }
  static double root(double sum, double p) { return std::pow(sum, 1 / p); }
  static double slope(double d, double y, double p) {
    return d == 0 ? 0 : std::copysign(std::pow(std::fabs(d) / y, p - 1), d);
  }
};

/// An infinite exponent: no sum.
struct Largest : Count {};

template <class T>
struct Pair {
  const T *a, *b;
  int64_t n;
  double operator[](int64_t i) const { return static_cast<double>(a[i]) - static_cast<double>(b[i]); }
};

template <class T>
double largest(const Pair<T>& d) {
  double most = 0;
  for (int64_t i = 0; i < d.n; ++i)
    if (const double v = std::fabs(d[i]); v > most || v != v) most = v;
  return most;
}

template <class Norm, class T>
double sum_of_powers(const Pair<T>& d, double p, double scale) {
  double sums[kLanes] = {};
  const int64_t whole = d.n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) sums[k] += Norm::power(d[i + k] * scale, p);
  for (int64_t i = whole; i < d.n; ++i) sums[i - whole] += Norm::power(d[i] * scale, p);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class Norm, class T>
double distance(const Pair<T>& d, double p) {
  if constexpr (std::is_same_v<Norm, Largest>) return largest(d);
  const double sum = sum_of_powers<Norm>(d, p, 1);
  if (std::is_same_v<Norm, Count> || std::isnormal(sum)) return Norm::root(sum, p);
  const double most = largest(d);
  if (most == 0 || !std::isfinite(most)) return most;
  int exponent;  // of 2, so that dividing is exact
  std::frexp(most, &exponent);
  exponent = std::clamp(exponent, -1000, 1000);
  return std::ldexp(Norm::root(sum_of_powers<Norm>(d, p, std::ldexp(1.0, -exponent)), p), exponent);
}

// out += g * the derivative by a.
template <class Norm, class T>
void add_slopes(const Pair<T>& d, double p, double g, double* out) {
  const double y = distance<Norm>(d, p);
  if (y == 0) return;
  if constexpr (std::is_same_v<Norm, Largest>) {
    int64_t ties = 0;
    for (int64_t i = 0; i < d.n; ++i) ties += std::fabs(d[i]) == y;
    for (int64_t i = 0; i < d.n; ++i)
      if (std::fabs(d[i]) == y) out[i] += std::copysign(1.0, d[i]) * (g / static_cast<double>(ties));
  } else {
    for (int64_t i = 0; i < d.n; ++i) out[i] += g * Norm::slope(d[i], y, p);
  }
}

// f(Norm) for the exponent.
template <class F>
void dispatch_norm(double p, const F& f) {
  if (p == 0) return f(Count());
  if (p == 1) return f(Manhattan());
  if (p == 2) return f(Euclid());
  if (std::isinf(p)) return f(Largest());
  f(General());
}

/// The operands a and b of a call as rows, and how they are numbered: pairs (i, j) of a batch.
struct CdistSizes {
  int64_t rows, others, length, count;  // rows of a, of b, their length; rows of all batches of a
  CdistSizes(const TensorImpl& a, const TensorImpl& b)
      : rows(a.shape()[a.rank() - 2].raw()),
        others(b.shape()[b.rank() - 2].raw()),
        length(a.shape().back().raw()),
        count(length > 0 ? a.numel().raw() / length : 0) {}
  int64_t grain() const { return std::max<int64_t>(1, kPairGrain / std::max<int64_t>(1, others * length)); }
};

void cdist(const Call& call, TensorImpl* const* outputs) {
  const double p = call.attrs_as<ops::DistanceAttrs>().p.to_double();
  const ScalarType dtype = compute_type(outputs[0]->dtype());
  const LocalCopy a(call.operands[0], dtype), b(call.operands[1], dtype);
  const LocalResult result(*outputs[0], dtype);
  const CdistSizes s(*a, *b);
  if (s.length == 0) {
    clear(*outputs[0]);
    return;
  }
  dispatch_floating(dtype, [&]<class T>(std::type_identity<T>) {
    T* const y = static_cast<T*>(result->data());
    dispatch_norm(p, [&]<class Norm>(Norm) {
      parallel_range(s.count, s.grain(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t j = 0; j < s.others; ++j) {
            const int64_t other = i / s.rows * s.others + j;
            const Pair<T> d{a.values<T>() + i * s.length, b.values<T>() + other * s.length, s.length};
            y[i * s.others + j] = static_cast<T>(distance<Norm>(d, p));
          }
      });
    });
  });
  result.finish();
}

void cdist_backward(const Call& call, TensorImpl* const* outputs) {
  const double p = call.attrs_as<ops::DistanceAttrs>().p.to_double();
  const ScalarType dtype = compute_type(outputs[0]->dtype());
  const LocalCopy g(call.operands[0], dtype), a(call.operands[1], dtype), b(call.operands[2], dtype);
  const LocalResult result(*outputs[0], dtype);
  const CdistSizes s(*a, *b);
  const ThreadScratch<double> sums(s.length, ceil_div(s.count, s.grain()));
  dispatch_floating(dtype, [&]<class T>(std::type_identity<T>) {
    T* const out = static_cast<T*>(result->data());
    dispatch_norm(p, [&]<class Norm>(Norm) {
      parallel_range(s.count, s.grain(), [&](int64_t begin, int64_t end) {
        double* const sum = sums.mine();
        for (int64_t i = begin; i < end; ++i) {
          std::fill_n(sum, s.length, 0.0);
          for (int64_t j = 0; j < s.others; ++j) {
            const int64_t other = i / s.rows * s.others + j;
            const Pair<T> d{a.values<T>() + i * s.length, b.values<T>() + other * s.length, s.length};
            add_slopes<Norm>(d, p, static_cast<double>(g.values<T>()[i * s.others + j]), sum);
          }
          std::transform(sum, sum + s.length, out + i * s.length, [](double v) { return static_cast<T>(v); });
        }
      });
    });
  });
  result.finish();
}

}  // namespace

void add_distances_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Cdist>, cdist, KernelTable::kScratch);
  table.set(&ops::info<ops::CdistBackward>, cdist_backward, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
