// Losses over classes on the CPU: picking at the targets, and cross entropy by the row functions of
// cpu/kernels/rows.h.
#include <fmt/format.h>

#include "cpu/kernels/row_access.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/losses.h"

namespace retrograd::cpu {
namespace {

// The class of each sample, -1 where it is ignored.
std::vector<int64_t> read_targets(const Call& call, const TensorImpl& target, int64_t classes,
                                  int64_t ignore_index) {
  std::vector<int64_t> out(static_cast<size_t>(target.numel().raw()));
  const Rows rows(target, ~uint64_t{0});
  const int64_t* from = rows.read(0, out.data());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t t = from[i];
    if (t == ignore_index)
      out[i] = -1;
    else if (t >= 0 && t < classes)
      out[i] = t;
    else
      fail_call(call, Category::index_out_of_range,
                fmt::format("target {} at place {} is not one of {} classes", t, i, classes));
  }
  return out;
}

// A dense row of numbers, one per sample.
template <class T>
std::vector<T> read_samples(const TensorImpl& x) {
  std::vector<T> out(static_cast<size_t>(x.numel().raw()));
  const Rows rows(x, ~uint64_t{0});
  const T* from = rows.read(0, out.data());
  if (from != out.data()) std::copy_n(from, out.size(), out.data());
  return out;
}

// Rows along the classes, and their targets.
struct Samples {
  Rows rows;
  std::vector<int64_t> targets;

  Samples(const Call& call, const TensorImpl& x, const TensorImpl& target)
      : rows(x, uint64_t{1} << call.attrs_as<ops::ClassLossAttrs>().dim),
        targets(
            read_targets(call, target, rows.length(), call.attrs_as<ops::ClassLossAttrs>().ignore_index)) {}

  template <class F>
  void for_blocks(const F& f) const {
    if (!targets.empty()) parallel_range(static_cast<int64_t>(targets.size()), rows.grain(), f);
  }
  int64_t target(int64_t row) const { return targets[static_cast<size_t>(row)]; }
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
    const std::vector<T> g = read_samples<T>(*call.operands[0]);
    const int64_t n = samples.rows.length();
    samples.for_blocks([&](int64_t begin, int64_t end) {
      RowTiles<T> tile(1, n);
      for (int64_t row = begin; row < end; ++row) {
        T* out = samples.rows.target(row, tile[0]);
        std::fill_n(out, n, T(0));
        if (samples.target(row) >= 0) out[samples.target(row)] = -g[static_cast<size_t>(row)];
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
      T* lse = static_cast<T*>(outputs[1]->data());
      samples.for_blocks([&](int64_t begin, int64_t end) {
        RowTiles<T> tile(1, samples.rows.length());
        for (int64_t row = begin; row < end; ++row) {
          const T* x = samples.rows.read(row, tile[0]);
          const int64_t t = samples.target(row);
          const double sum = row_table<T>().log_sum_exp(x, samples.rows.length());
          lse[row] = static_cast<T>(sum);
          loss[row] = convert<D>(t < 0 ? 0.0 : sum - static_cast<double>(x[t]));
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
    const std::vector<T> g = read_samples<T>(*call.operands[0]), lse = read_samples<T>(*call.operands[3]);
    samples.for_blocks([&](int64_t begin, int64_t end) {
      RowTiles<T> tiles(2, n);
      for (int64_t row = begin; row < end; ++row) {
        const T scale = g[static_cast<size_t>(row)];
        const int64_t t = samples.target(row);
        T* dx = out.target(row, tiles[1]);
        if (t < 0) {
          std::fill_n(dx, n, T(0));
        } else {
          row_table<T>().scaled_softmax(samples.rows.read(row, tiles[0]),
                                        static_cast<double>(lse[static_cast<size_t>(row)]),
                                        static_cast<double>(scale), n, dx);
          dx[t] -= scale;
        }
        out.write(row, dx);
      }
    });
  });
}

}  // namespace

void add_class_loss_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Nll>, nll_kernel);
  table.set(&ops::info<ops::NllBackward>, nll_backward_kernel);
  table.set(&ops::info<ops::CrossEntropy>, cross_entropy_kernel);
  table.set(&ops::info<ops::CrossEntropyBackward>, cross_entropy_backward_kernel);
}

}  // namespace retrograd::cpu
