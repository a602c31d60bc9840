// Draws on a device. See cuda/kernels/random_call.h. Probabilities and deviations that a tensor gives are
// looked at before, for which the host waits.
#include <cmath>

#include <fmt/format.h>

#include "cuda/gpu.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/random_call.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/table.h"
#include "engine/philox.h"
#include "ops/dropout.h"

namespace retrograd::cuda {
namespace {

constexpr uint64_t kAllDims = ~uint64_t{0};

RandomCall call_of(const ops::Draw& draw, const TensorImpl& out) {
  RandomCall c;
  c.seed = draw.seed_bits();
  c.offset = draw.offset_bits();
  c.out = row_side(out, kAllDims);
  return c;
}

void start(const Call& call, Distribution kind, const RandomCall& c) {
  if (c.out.along.numel == 0) return;
  Gpu& gpu = Gpu::current();
  gpu.launchers().random->draw[static_cast<int>(kind)](c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

template <class Op, Distribution kind>
void fill_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<typename Op::Attrs>();
  RandomCall c = call_of(attrs.draw, *outputs[0]);
  c.a = attrs.a.to_double();
  c.b = attrs.b.to_double();
  start(call, kind, c);
}

void integers_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::RandInt::Attrs>();
  RandomCall c = call_of(attrs.draw, *outputs[0]);
  c.low = static_cast<uint64_t>(attrs.a.to_int());
  c.range = static_cast<uint64_t>(attrs.b.to_int()) - c.low;
  start(call, Distribution::integers, c);
}

void exponential_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Exponential::Attrs>();
  RandomCall c = call_of(attrs.draw, *outputs[0]);
  c.a = attrs.a.to_double();
  start(call, Distribution::exponential, c);
}

// u < p for a float u if and only if u < this float.
float threshold(double p) {
  const auto t = static_cast<float>(p);
  return static_cast<double>(t) < p ? std::nextafter(t, 2.0f) : t;
}

void bernoulli_number_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::BernoulliNumber::Attrs>();
  RandomCall c = call_of(attrs.draw, *outputs[0]);
  c.a = static_cast<double>(threshold(attrs.a.to_double()));
  start(call, Distribution::bernoulli, c);
}

void bernoulli_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& p = *call.operands[0];
  RandomCall c = call_of(call.attrs_as<ops::Bernoulli::Attrs>().draw, *outputs[0]);
  c.a_side = row_side(p, kAllDims);
  c.note = Gpu::current().faults().note(*call.op);
  start(call, Distribution::bernoulli, c);
}

void normal_around_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::NormalAround::Attrs>();
  const TensorImpl &out = *outputs[0], *std = call.operands[1];
  RandomCall c = call_of(attrs.draw, out);
  c.a_side = row_side(call.operands[0], out.shape(), kAllDims);
  c.b_side = row_side(std, out.shape(), kAllDims);
  c.note = Gpu::current().faults().note(*call.op);
  c.a = attrs.mean.to_double();
  c.b = attrs.std.to_double();
  start(call, Distribution::normal, c);
}

void dropout_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Dropout::Attrs>();
  RandomCall c = call_of(attrs.draw, *outputs[0]);
  const double p = attrs.p.to_double();
  const Chance chance = chance_of(p);
  c.chance_high = chance.high;
  c.chance_low = chance.low;
  c.a_side = row_side(*call.operands[0], kAllDims);
  c.b = p < 1 ? 1 / (1 - p) : 0;
  start(call, Distribution::dropout, c);
}

}  // namespace

void add_random_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Uniform>, fill_kernel<ops::Uniform, Distribution::uniform>);
  table.set(&ops::info<ops::Normal>, fill_kernel<ops::Normal, Distribution::normal>);
  table.set(&ops::info<ops::RandInt>, integers_kernel);
  table.set(&ops::info<ops::Exponential>, exponential_kernel);
  table.set(&ops::info<ops::BernoulliNumber>, bernoulli_number_kernel);
  table.set(&ops::info<ops::Bernoulli>, bernoulli_kernel);
  table.set(&ops::info<ops::NormalAround>, normal_around_kernel);
  table.set(&ops::info<ops::Dropout>, dropout_kernel);
}

}  // namespace retrograd::cuda
