// See optim/muon.h.
#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/views.h"

namespace retrograd::inline v0::optim {
namespace {

enum : size_t { kMomentum, kExpAvg, kExpAvgSq };
// Factors of a matrix; those of AdamW are the numbers of its op.
struct MuonFactor {
  enum : size_t { fresh, momentum, keep, a, b, c, eps, rate, a2, a3 };
};
// Iterations between two products with X. In bfloat16 the rounding errors of A grow with each: after three they are
// still those of the ordinary form.
constexpr int64_t kMostIterations = 3;
// The structure, in the order of visit().
enum : size_t { kNesterov, kSteps, kAdjustment, kUsesMuon };

bool is_matrix(bool uses_muon, const Tensor& param) { return uses_muon && param.dim() >= 2; }

struct Shape2 {
  int64_t rows, columns;
  bool operator==(const Shape2&) const = default;
};
Shape2 shape_of(const Tensor& param) {
  const int64_t rows = param.sizes()[0];
  return {rows, rows == 0 ? 0 : param.numel() / rows};
}

double ratio_of(MuonAdjustLR adjustment, const Tensor& param) {
  const Shape2 shape = shape_of(param);
  const auto a = static_cast<double>(shape.rows),
             b = static_cast<double>(std::max<int64_t>(1, shape.columns));
  switch (adjustment) {
    case MuonAdjustLR::original: return std::sqrt(std::max(1.0, a / b));
    case MuonAdjustLR::match_rms_adamw: return 0.2 * std::sqrt(std::max(a, b));
    case MuonAdjustLR::spectral_unclamped: return std::sqrt(a / b);
  }
  return 1;
}

// Matrices of one shape, dtype, device and group.
using Batch = std::vector<const detail::ParamUpdate*>;

bool are_alike(const detail::ParamUpdate& a, const detail::ParamUpdate& b) {
  return a.group == b.group && shape_of(a.param) == shape_of(b.param) && a.param.dtype() == b.param.dtype() &&
         a.param.device() == b.param.device();
}

std::vector<Batch> batches_of(std::span<const detail::ParamUpdate> updates) {
  std::vector<Batch> batches;
  for (const detail::ParamUpdate& u : updates) {
    if (!is_matrix(u.structure[kUsesMuon], u.param) || u.param.numel() == 0) continue;
    const auto same = std::ranges::find_if(batches, [&](const Batch& b) { return are_alike(*b[0], u); });
    if (same != batches.end())
      same->push_back(&u);
    else
      batches.push_back({&u});
  }
  return batches;
}

// Some iterations of Newton-Schulz. With A = X X' each multiplies X by P = a I + B, B = b A + c A A. A becomes P A P, so
// X is multiplied only once, by the product of all P, which is a^n I + Q. A tall X is the same on its other side.
Tensor iterate(const Tensor& x, bool is_tall, int64_t iterations, const detail::ParamUpdate& u) {
  const auto& f = u.factors;
  const Scalar powers[kMostIterations] = {f[MuonFactor::a], f[MuonFactor::a2], f[MuonFactor::a3]};
  const Tensor turned = x.transpose(-2, -1);
  Tensor gram = is_tall ? bmm(turned, x) : bmm(x, turned), q;
  for (int64_t i = 0; i < iterations; ++i) {
    const Tensor b = add(gram * f[MuonFactor::b], bmm(gram, gram.transpose(-2, -1)), f[MuonFactor::c]);
    q = i == 0 ? b : baddbmm(add(q * powers[0], b, powers[i - 1]), b, q);
    if (i + 1 == iterations) return is_tall ? baddbmm(x, x, q, powers[i]) : baddbmm(x, q, x, powers[i]);
    gram = baddbmm(gram, b, gram, powers[0]);
    gram = baddbmm(gram, b, gram, powers[0]);
  }
  return x;
}

// Nearly orthogonal matrices.
Tensor orthogonal(Tensor x, const Shape2& shape, const detail::ParamUpdate& u) {
  x = x / maximum(norm(x, 2, {-2, -1}, true), u.factors[MuonFactor::eps]);
  const int64_t longer = std::max(shape.rows, shape.columns), shorter = std::min(shape.rows, shape.columns);
  // Products of A alone are fewer multiplications where one side is more than twice as long.
  const int64_t most = longer > 2 * shorter ? kMostIterations : 1;
  for (int64_t left = u.structure[kSteps]; left > 0; left -= most)
    x = iterate(x, shape.rows > shape.columns, std::min(left, most), u);
  return x;
}

void step_batch(const Batch& batch) {
  const detail::ParamUpdate& first = *batch[0];
  const Shape2 shape = shape_of(first.param);
  const ScalarType dtype = first.param.dtype();
  const bool is_fast = executor_of(first.param.device()).multiplies_fast(kBFloat16) && dtype != kFloat64;
  const ScalarType product = is_fast ? kBFloat16 : dtype == kFloat64 ? kFloat64 : kFloat32;
  Tensors buffers, directions;
  for (const detail::ParamUpdate* u : batch) {
    const Tensor &buffer = u->states[kMomentum], &g = u->grad;
    buffers.push_back(lerp(buffer, g, u->factors[MuonFactor::fresh]));
    const Tensor direction =
        u->structure[kNesterov] ? lerp(g, buffers.back(), u->factors[MuonFactor::momentum]) : buffers.back();
    directions.push_back(direction.reshape({shape.rows, shape.columns}).to(product));
  }
  const Tensor all = orthogonal(stack(directions), shape, first);
  Tensors next;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Tensor x = all.select(0, static_cast<int64_t>(i));
    const Tensor change = reshape(x.to(dtype), batch[i]->param.sizes());
    next.push_back(sub(batch[i]->param * batch[i]->factors[MuonFactor::keep], change,
                       batch[i]->factors[MuonFactor::rate]));
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i]->set(batch[i]->states[kMomentum], buffers[i]);
    batch[i]->set(batch[i]->param, next[i]);
    batch[i]->done();
  }
}

void step_others(std::span<const detail::ParamUpdate> updates, SourceLocation where) {
  using Step = ops::StepOf<ops::AdamW>;
  if (updates.empty()) return;
  ops::UpdateList list(ops::info<Step>, where, updates[0].found_inf);
  const std::array<bool, Step::Names::structure> flags{};
  std::vector<const detail::ParamUpdate*> others;
  for (const detail::ParamUpdate& u : updates) {
    if (is_matrix(u.structure[kUsesMuon], u.param)) {
      if (u.param.numel() == 0) u.done();
      continue;
    }
    others.push_back(&u);
    const Tensor operands[] = {u.param, u.states[kExpAvg], u.states[kExpAvgSq], {}, u.grad};
    list.add(operands, {u.factors.data(), Step::Names::numbers}, flags);
  }
  list.run([&](size_t i) { others[i]->done(); });
}

}  // namespace

Tensor MuonRule::make_state(const Options& options, size_t state, const Tensor& param, ScalarType dtype) {
  if (is_matrix(options.use_muon, param) != (state == kMomentum)) return {};
  return zeros(param.sizes(), {dtype, param.device()});
}

void MuonRule::factors_of(const Options& o, double step, const Tensor& param, double* f) {
  if (!is_matrix(o.use_muon, param)) {
    const double numbers[] = {o.adamw_lr,  o.adamw_betas[0],     o.adamw_betas[1],
                              o.adamw_eps, o.adamw_weight_decay, step};
    static_assert(std::size(numbers) == ops::StepNames<ops::AdamW>::numbers);
    std::ranges::copy(numbers, f);
    std::fill(f + std::size(numbers), f + factors, 0.0);
    return;
  }
  f[MuonFactor::fresh] = 1 - o.momentum;
  f[MuonFactor::momentum] = o.momentum;
  f[MuonFactor::keep] = 1 - o.lr * o.weight_decay;
  f[MuonFactor::a] = o.ns_coefficients[0];
  f[MuonFactor::a2] = f[MuonFactor::a] * f[MuonFactor::a];
  f[MuonFactor::a3] = f[MuonFactor::a2] * f[MuonFactor::a];
  f[MuonFactor::b] = o.ns_coefficients[1];
  f[MuonFactor::c] = o.ns_coefficients[2];
  f[MuonFactor::eps] = o.eps;
  f[MuonFactor::rate] = o.lr * ratio_of(o.adjust_lr_fn, param);
}

void MuonRule::update(std::span<const detail::ParamUpdate> updates, SourceLocation where) {
  for (const Batch& batch : batches_of(updates)) step_batch(batch);
  step_others(updates, where);
}

}  // namespace retrograd::optim
