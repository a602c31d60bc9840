// multinomial on a device: running sums, or arrival times that are sorted (cuda/kernels/sampling.cu). Weights are
// checked first, for which the host waits. The random numbers are the CPU's; sums are added in another order, so that a
// number at the border of two positions may select the other one.
#include "ops/sampling.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/sampling_call.h"
#include "cuda/kernels/table.h"
#include "engine/runner.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/sort.h"

namespace retrograd::inline v0::cuda {
namespace {

// Runs an op on the device, without a record; returns result 0.
template <class Op>
Tensor made(const Call& call, const Tensor& x, typename Op::Attrs attrs, Tensor* second = nullptr) {
  TensorImpl* operand = x.get();
  Tensor results[2];
  eager_runner().emit({&ops::info<Op>, {&operand, 1}, &attrs, call.where, ops::info<Op>.outputs}, results);
  if (second) *second = results[1];
  return results[0];
}

// The weights as rows of dense doubles.
Tensor weights_of(const Call& call) {
  const Tensor given{RefPtr<TensorImpl>(call.operands[0])};
  return given.dtype() == kFloat64 ? made<ops::Clone>(call, given, {})
                                   : made<ops::To>(call, given, {kFloat64});
}

void check_weights(const Call& call, const Tensor& weights) {
  const IntList all = ops::reduction_dims({}, static_cast<int>(weights.dim()), call.op->name);
  const double lowest = made<ops::Amin>(call, weights, {all, false}).item<double>();
  const double highest = made<ops::Amax>(call, weights, {all, false}).item<double>();
  if (!(lowest >= 0 && highest <= std::numeric_limits<double>::max()))
    fail_call(call, Category::bad_argument,
              fmt::format("the weight {} is negative, nan or infinite", lowest >= 0 ? highest : lowest));
}

// Checks the number of weights above zero of each row: at least one, and without replacement one for each sample.
void check_counts(const Call& call, const Tensor& weights) {
  const auto& attrs = call.attrs_as<ops::Multinomial::Attrs>();
  const Tensor counts = made<ops::CountNonzero>(call, weights, {{weights.dim() - 1}, false});
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const double count : counts.to_vector()) least = std::min(least, static_cast<int64_t>(count));
  if (least == 0) fail_call(call, Category::bad_argument, "the weights of a row sum to zero");
  if (!attrs.replacement && least < attrs.samples.raw())
    fail_call(
        call, Category::bad_argument,
        fmt::format("{} samples without replacement of {} weights above zero", attrs.samples.raw(), least));
}

void multinomial(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Multinomial::Attrs>();
  TensorImpl& out = *outputs[0];
  SamplingCall c;
  c.length = call.operands[0]->shape().back().raw();
  c.samples = out.shape().back().raw();
  c.rows = out.numel().raw() / c.samples;
  if (c.rows == 0) return;  // then any number of samples is allowed
  if (c.length == 0) fail_call(call, Category::bad_argument, "there are no weights");
  const Tensor weights = weights_of(call);
  check_weights(call, weights);
  check_counts(call, weights);
  c.weights = weights.data_ptr<double>();
  c.seed = attrs.draw.seed_bits();
  c.offset = attrs.draw.offset_bits();
  Gpu& gpu = Gpu::current();
  const SamplingLaunchers& launchers = *gpu.launchers().sampling;
  const int64_t last = weights.dim() - 1;
  if (attrs.replacement || c.samples == 1) {
    const Tensor sums = made<ops::CumSum>(call, weights, {last});
    c.sums = sums.data_ptr<double>();
    c.places = static_cast<int64_t*>(out.data());
    launchers.find(c, gpu.compute().handle());
    return gpu.launched(call.op->name);
  }
  const Tensor times = made<ops::Clone>(call, weights, {});
  c.times = times.data_ptr<double>();
  launchers.arrive(c, gpu.compute().handle());
  gpu.launched(call.op->name);
  Tensor order;
  made<ops::Sort>(call, times, {last, c.samples, false}, &order);
  gpu.copy(out.data(), order.raw_data(), order.nbytes());
}

}  // namespace

void add_sampling_kernels(KernelTable& table) { table.set(&ops::info<ops::Multinomial>, multinomial); }

}  // namespace retrograd::cuda
