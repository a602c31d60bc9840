// Losses over classes on the CPU: picking at the targets (nll), and cross entropy by the row functions of
// cpu/kernels/levels/softmax_norm_rows.h.
//
// Samples holds the rows along the classes and the class of each, read and checked once; -1 stands for a target that
// is ignored. Cross entropy saves each row's maximum and log(sum(exp(x - max))) separately, so that the backward
// keeps the digits of shares near 1. Rows run in parallel, each by one thread.
#include <cmath>

#include <fmt/format.h>

#include "cpu/kernels/levels/softmax_norm_rows.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/losses.h"

namespace retrograd::inline v0::cpu {
namespace {

// Rows along the classes, and the class of each: -1 if it is ignored.
class Samples {
 public:
  Samples(const Call& call, const TensorImpl& x, const TensorImpl& target)
      : rows(x, uint64_t{1} << call.attrs_as<ops::ClassLossAttrs>().dim),
        count_(target.numel().raw()),
        targets_(count_) {
    if (!measuring()) read_targets(call, target);
  }

  const Rows rows;
  int64_t chunks() const { return ceil_div(count_, rows.grain()); }
  template <class F>
  void for_blocks(const F& f) const {
    parallel_range(count_, rows.grain(), f);
  }
  int64_t target(int64_t row) const { return targets_[row]; }

 private:
  void read_targets(const Call& call, const TensorImpl& target) {
    const int64_t ignored = call.attrs_as<ops::ClassLossAttrs>().ignore_index;
    const int64_t* from = Rows(target, ~uint64_t{0}).read(0, targets_.data());
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t t = from[i];
      if (t != ignored && (t < 0 || t >= rows.length()))
        fail_call(call, Category::index_out_of_range,
                  fmt::format("target {} at place {} is not one of {} classes", t, i, rows.length()));
      targets_[i] = t == ignored ? -1 : t;
    }
  }

  int64_t count_;
  Scratch<int64_t> targets_;
};

template <class T>
T element(const Rows& rows, int64_t row, int64_t i) {
  T tile;
  return *rows.read(row, i, i + 1, &tile);
}

void nll_kernel(const Call& call, TensorImpl* const* outputs) {
  const Samples samples(call, *call.operands[0], *call.operands[1]);
  dispatch(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    T* out = static_cast<T*>(outputs[0]->data());
    samples.for_blocks([&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t t = samples.target(row);
        out[row] = t < 0 ? T(0) : convert<T>(-element<ComputeOf<T>>(samples.rows, row, t));
      }
    });
  });
}

void nll_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  const Samples samples(call, *outputs[0], *call.operands[1]);
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy g(call.operands[0], dtype_of<T>());
    const int64_t n = samples.rows.length();
    const RowTiles<T> tiles(1, n, samples.chunks());
    samples.for_blocks([&](int64_t begin, int64_t end) {
      typename RowTiles<T>::Mine tile(tiles);
      for (int64_t row = begin; row < end; ++row) {
        T* out = samples.rows.target(row, tile[0]);
        std::fill_n(out, n, T(0));
        if (samples.target(row) >= 0) out[samples.target(row)] = -g.values<T>()[row];
        samples.rows.write(row, out);
      }
    });
  });
}

void cross_entropy_kernel(const Call& call, TensorImpl* const* outputs) {
  const Samples samples(call, *call.operands[0], *call.operands[1]);
  dispatch(outputs[0]->dtype(), [&]<class D>(std::type_identity<D>) {
    if constexpr (!std::is_integral_v<D>) {
      using T = ComputeOf<D>;
      D* loss = static_cast<D*>(outputs[0]->data());
      T *const max = static_cast<T*>(outputs[1]->data()), *const log_sum = max + samples.rows.count();
      const RowTiles<T> tiles(1, samples.rows.length(), samples.chunks());
      samples.for_blocks([&](int64_t begin, int64_t end) {
        typename RowTiles<T>::Mine tile(tiles);
        for (int64_t row = begin; row < end; ++row) {
          const T* x = samples.rows.read(row, tile[0]);
          const int64_t t = samples.target(row);
          const LogSum sum = row_table<T>().log_sum(x, samples.rows.length());
          max[row] = static_cast<T>(sum.max);
          log_sum[row] = static_cast<T>(sum.log);
          loss[row] = convert<D>(t < 0 ? 0.0 : (sum.max - static_cast<double>(x[t])) + sum.log);
        }
      });
    }
  });
}

void cross_entropy_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  const Samples samples(call, *call.operands[1], *call.operands[2]);
  const Rows out(*outputs[0], uint64_t{1} << call.attrs_as<ops::ClassLossAttrs>().dim);
  const int64_t n = out.length();
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy g(call.operands[0], dtype_of<T>()), stats(call.operands[3], dtype_of<T>());
    const T *const maxima = stats.values<T>(), *const log_sums = maxima + samples.rows.count();
    const RowTiles<T> tiles(2, n, samples.chunks());
    samples.for_blocks([&](int64_t begin, int64_t end) {
      typename RowTiles<T>::Mine tile(tiles);
      for (int64_t row = begin; row < end; ++row) {
        const T scale = g.values<T>()[row];
        const int64_t t = samples.target(row);
        T* dx = out.target(row, tile[1]);
        if (t < 0) {
          std::fill_n(dx, n, T(0));
        } else {
          const T* const x = samples.rows.read(row, tile[0]);
          const double at_target = static_cast<double>(x[t]);
          const LogSum sum{static_cast<double>(maxima[row]), static_cast<double>(log_sums[row])};
          row_table<T>().scaled_softmax(x, sum, static_cast<double>(scale), n, dx);
          // For a share above 1/2, 1 - share would lose digits.
          const double log_share = (at_target - sum.max) - sum.log;
          if (log_share > -0.6931471805599453)
            dx[t] = static_cast<T>(static_cast<double>(scale) * std::expm1(log_share));
          else
            dx[t] -= scale;
        }
        out.write(row, dx);
      }
    });
  });
}

}  // namespace

void add_class_losses_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Nll>, nll_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::NllBackward>, nll_backward_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::CrossEntropy>, cross_entropy_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::CrossEntropyBackward>, cross_entropy_backward_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
