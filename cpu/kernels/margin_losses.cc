// Kernels of ops/margin_losses.h, and check_range of ops/likelihood_losses.h.
//
// Samples run in parallel, each by one thread, in float or double. Of a sample the targets are read up to the first -1
// and marked; then each is compared with all classes that are not marked.
#include "ops/margin_losses.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/likelihood_losses.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kGrain = 1 << 14;  // comparisons, or elements, of a piece of work

// The scores and targets of all samples.
template <class T>
class Samples {
 public:
  Samples(const Call& call, TensorImpl* x, TensorImpl* target)
      : count(x->shape()[0].raw()),
        classes(x->shape()[1].raw()),
        grain(std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes * classes))),
        x_(x, dtype_of<T>()),
        target_(target),
        is_target_(classes, ceil_div(count, grain)) {
    if (measuring()) return;
    for (int64_t i = 0; i < count * classes; ++i)
      if (const int64_t t = target_.values<int64_t>()[i]; t < -1 || t >= classes)
        fail_call(call, Category::index_out_of_range,
                  fmt::format("target {} at place {} is not one of {} classes", t, i, classes));
  }

  const int64_t count, classes, grain;

  /// f(j, i, hinge) for targets j and other classes i of a sample with a hinge above 0.
  template <class F>
  void for_hinges(int64_t sample, const F& f) const {
    const T* const x = x_.values<T>() + sample * classes;
    const int64_t *const begin = target_.values<int64_t>() + sample * classes, *const end = std::find(
                                                                                   begin, begin + classes,
                                                                                   int64_t{-1});
    uint8_t* const is_target = is_target_.mine();
    std::fill_n(is_target, classes, uint8_t{0});
    for (const int64_t* j = begin; j < end; ++j) is_target[*j] = 1;
    for (const int64_t* j = begin; j < end; ++j)
      for (int64_t i = 0; i < classes; ++i)
        if (const T hinge = 1 - x[*j] + x[i]; !is_target[i] && !(hinge <= 0)) f(*j, i, hinge);
  }

 private:
  const LocalCopy x_, target_;
  const ThreadScratch<uint8_t> is_target_;
};

void multilabel_margin(const Call& call, TensorImpl* const* outputs) {
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalResult loss(*outputs[0], dtype_of<T>());
    const Samples<T> samples(call, call.operands[0], call.operands[1]);
    parallel_range(samples.count, samples.grain, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        T sum = 0;
        samples.for_hinges(n, [&](int64_t, int64_t, T hinge) { sum += hinge; });
        static_cast<T*>(loss->data())[n] = sum / static_cast<T>(samples.classes);
      }
    });
    loss.finish();
  });
}

void multilabel_margin_backward(const Call& call, TensorImpl* const* outputs) {
  dispatch_floating(outputs[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy g(call.operands[0], dtype_of<T>());
    const LocalResult dx(*outputs[0], dtype_of<T>());
    const Samples<T> samples(call, call.operands[1], call.operands[2]);
    parallel_range(samples.count, samples.grain, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        // Counts of hinges are exact; they are scaled once.
        T* const row = static_cast<T*>(dx->data()) + n * samples.classes;
        std::fill_n(row, samples.classes, T(0));
        samples.for_hinges(n, [&](int64_t j, int64_t i, T) {
          row[j] -= 1;
          row[i] += 1;
        });
        const T scale = g.values<T>()[n] / static_cast<T>(samples.classes);
        for (int64_t i = 0; i < samples.classes; ++i) row[i] = row[i] == 0 ? T(0) : row[i] * scale;
      }
    });
    dx.finish();
  });
}

void check_range(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::CheckRange::Attrs>();
  const double low = a.low.to_double(), high = a.high.to_double();
  dispatch_floating(call.operands[0]->dtype(), [&]<class T>(std::type_identity<T>) {
    const LocalCopy x(call.operands[0], dtype_of<T>());
    if (measuring()) return;
    const int64_t size = x->numel().raw();
    std::atomic<bool> fits{true};
    parallel_range(size, kGrain, [&](int64_t begin, int64_t end) {
      const T *const values = x.values<T>(), least = static_cast<T>(low), most = static_cast<T>(high);
      int64_t bad = 0;
      for (int64_t i = begin; i < end; ++i) bad += !(values[i] >= least && values[i] <= most);
      if (!a.refuses_nan)
        for (int64_t i = begin; i < end && bad > 0; ++i) bad -= values[i] != values[i];
      if (bad > 0) fits = false;
    });
    if (!fits)
      fail_call(call, Category::bad_argument, fmt::format("elements are not all from {} to {}", low, high));
    *static_cast<bool*>(outputs[0]->data()) = true;
  });
}

}  // namespace

void add_margin_losses_kernels(KernelTable& table) {
  table.set(&ops::info<ops::MultilabelMargin>, multilabel_margin, KernelTable::kScratch);
  table.set(&ops::info<ops::MultilabelMarginBackward>, multilabel_margin_backward, KernelTable::kScratch);
  table.set(&ops::info<ops::CheckRange>, check_range, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
