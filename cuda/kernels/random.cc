// Draws on a device. See cuda/kernels/random_call.h. Kernels check probabilities and deviations in tensors
// (cuda/faults.h).
#include <cmath>

#include "cuda/gpu.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/random_call.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/table.h"
#include "cuda/numbers.h"
#include "engine/philox.h"
#include "ops/dropout.h"

namespace retrograd::inline v0::cuda {
namespace {

constexpr uint64_t kAllDims = ~uint64_t{0};

// ---- numbers of a call -----------------------------------------------------------------------------------

DrawNumbers numbers_of(const ops::Draw& draw, double a = 0, double b = 0) {
  return {draw.seed_bits(), draw.offset_bits(), a, b};
}
DrawNumbers numbers_of(const ops::Uniform::Attrs& x) {
  return numbers_of(x.draw, x.a.to_double(), x.b.to_double());
}
DrawNumbers numbers_of(const ops::Normal::Attrs& x) {
  return numbers_of(x.draw, x.a.to_double(), x.b.to_double());
}
DrawNumbers numbers_of(const ops::NormalAround::Attrs& x) {
  return numbers_of(x.draw, x.mean.to_double(), x.std.to_double());
}
DrawNumbers numbers_of(const ops::Exponential::Attrs& x) { return numbers_of(x.draw, x.a.to_double()); }
DrawNumbers numbers_of(const ops::Bernoulli::Attrs& x) { return numbers_of(x.draw); }
DrawNumbers numbers_of(const ops::StochasticRound::Attrs& x) { return numbers_of(x.draw); }

DrawNumbers numbers_of(const ops::RandInt::Attrs& x) {
  DrawNumbers n = numbers_of(x.draw);
  n.low = static_cast<uint64_t>(x.a.to_int());
  n.range = static_cast<uint64_t>(x.b.to_int()) - n.low;
  return n;
}

// The float such that u < p, for a float u, if and only if u is less than it.
float threshold(double p) {
  const auto t = static_cast<float>(p);
  return static_cast<double>(t) < p ? std::nextafter(t, 2.0f) : t;
}
DrawNumbers numbers_of(const ops::BernoulliNumber::Attrs& x) {
  return numbers_of(x.draw, static_cast<double>(threshold(x.a.to_double())));
}

DrawNumbers numbers_of(const ops::Dropout::Attrs& x) {
  const double p = x.p.to_double();
  DrawNumbers n = numbers_of(x.draw, 0, p < 1 ? 1 / (1 - p) : 0);
  const Chance chance = chance_of(p);
  n.chance_high = chance.high;
  n.chance_low = chance.low;
  return n;
}

// ---- kernels ---------------------------------------------------------------------------------------------

RandomCall call_of(const TensorImpl& out) {
  RandomCall c;
  c.out = row_side(out, kAllDims);
  return c;
}

template <class Op>
void start(const Call& call, Distribution kind, RandomCall c) {
  using Attrs = typename Op::Attrs;
  if (c.out.along.numel == 0) return;
  c.numbers = given_numbers<Attrs>(call, [](const Attrs& attrs) { return numbers_of(attrs); });
  Gpu& gpu = Gpu::current();
  gpu.launchers().random->draw[static_cast<int>(kind)](c, gpu.compute().handle());
  gpu.launched(call.op->name);
}

template <class Op, Distribution kind>
void fill_kernel(const Call& call, TensorImpl* const* outputs) {
  start<Op>(call, kind, call_of(*outputs[0]));
}

void bernoulli_kernel(const Call& call, TensorImpl* const* outputs) {
  RandomCall c = call_of(*outputs[0]);
  c.a_side = row_side(*call.operands[0], kAllDims);
  c.note = Gpu::current().faults().note(*call.op);
  start<ops::Bernoulli>(call, Distribution::bernoulli, c);
}

void normal_around_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& out = *outputs[0];
  RandomCall c = call_of(out);
  c.a_side = row_side(call.operands[0], out.shape(), kAllDims);
  c.b_side = row_side(call.operands[1], out.shape(), kAllDims);
  c.note = Gpu::current().faults().note(*call.op);
  start<ops::NormalAround>(call, Distribution::normal, c);
}

void dropout_kernel(const Call& call, TensorImpl* const* outputs) {
  RandomCall c = call_of(*outputs[0]);
  c.a_side = row_side(*call.operands[0], kAllDims);
  start<ops::Dropout>(call, Distribution::dropout, c);
}

void stochastic_round_kernel(const Call& call, TensorImpl* const* outputs) {
  RandomCall c = call_of(*outputs[0]);
  c.a_side = row_side(*call.operands[0], kAllDims);
  start<ops::StochasticRound>(call, Distribution::rounding, c);
}

}  // namespace

void add_random_kernels(KernelTable& table) {
  using enum Distribution;
  table.set(&ops::info<ops::Uniform>, fill_kernel<ops::Uniform, uniform>);
  table.set(&ops::info<ops::Normal>, fill_kernel<ops::Normal, normal>);
  table.set(&ops::info<ops::RandInt>, fill_kernel<ops::RandInt, integers>);
  table.set(&ops::info<ops::Exponential>, fill_kernel<ops::Exponential, exponential>);
  table.set(&ops::info<ops::BernoulliNumber>, fill_kernel<ops::BernoulliNumber, bernoulli>);
  table.set(&ops::info<ops::Bernoulli>, bernoulli_kernel);
  table.set(&ops::info<ops::NormalAround>, normal_around_kernel);
  table.set(&ops::info<ops::Dropout>, dropout_kernel);
  table.set(&ops::info<ops::StochasticRound>, stochastic_round_kernel);
}

}  // namespace retrograd::cuda
