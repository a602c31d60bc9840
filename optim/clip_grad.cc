// See optim/clip_grad.h.
#include "optim/clip_grad.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/emitter.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/op.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "optim/chunks.h"

namespace retrograd::optim {
namespace {

// The gradients that are there, contiguous; one that was not is replaced in its parameter.
Tensors gradients(const Tensors& parameters, std::string_view op, SourceLocation where) {
  NoGradGuard no_grad;
  Tensors all;
  for (const Tensor& p : parameters) {
    Tensor g = p.grad();
    if (!g.defined()) continue;
    if (g.dtype() != kFloat32 && g.dtype() != kFloat64)
      fail(Category::dtype_mismatch, op,
           fmt::format("gradients are float32 or float64, one is {}", describe(g)), where);
    if (!g.is_contiguous()) {
      g = contiguous(Operand(g, where));
      p.set_grad(g, where);
    }
    all.push_back(g);
  }
  return all;
}

std::vector<Chunk> chunks_of(const Tensors& tensors) {
  std::vector<int64_t> sizes;
  for (const Tensor& t : tensors) sizes.push_back(t.numel());
  return cut(sizes);
}

// Eight sums side by side, so that additions overlap.
template <class T, class F>
double sum_of(const T* x, int64_t n, const F& f) {
  double sums[8] = {};
  const int64_t whole = n / 8 * 8;
  for (int64_t i = 0; i < whole; i += 8)
    for (int64_t k = 0; k < 8; ++k) sums[k] += f(static_cast<double>(x[i + k]));
  for (int64_t i = whole; i < n; ++i) sums[i - whole] += f(static_cast<double>(x[i]));
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// The part of the norm that a chunk has: sum |x|^norm_type, or the largest |x|, which is nan if there is one.
template <class T>
double part_of_norm(const T* x, int64_t n, double norm_type) {
  if (norm_type == 2) return sum_of(x, n, [](double v) { return v * v; });
  if (!std::isinf(norm_type))
    return sum_of(x, n, [=](double v) { return std::pow(std::fabs(v), norm_type); });
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    if (const double a = std::fabs(static_cast<double>(x[i])); a > largest || std::isnan(a)) largest = a;
  return largest;
}

double total_norm(const Tensors& grads, const std::vector<Chunk>& chunks, double norm_type) {
  std::vector<double> parts(chunks.size());
  cpu::parallel_for(static_cast<int64_t>(chunks.size()), [&](int64_t i) {
    const Chunk& c = chunks[static_cast<size_t>(i)];
    const Tensor& g = grads[c.item];
    const int64_t n = c.end - c.begin;
    parts[static_cast<size_t>(i)] = g.dtype() == kFloat64
                                        ? part_of_norm(memory<double>(g) + c.begin, n, norm_type)
                                        : part_of_norm(memory<float>(g) + c.begin, n, norm_type);
  });
  double total = 0;
  for (double part : parts) {
    if (!std::isinf(norm_type))
      total += part;
    else if (part > total || std::isnan(part))
      total = part;
  }
  return std::isinf(norm_type) ? total : norm_type == 2 ? std::sqrt(total) : std::pow(total, 1 / norm_type);
}

[[noreturn]] void fail_nonfinite(double norm, SourceLocation where) {
  fail(Category::bad_argument, "clip_grad_norm_", fmt::format("the norm of the gradients is {}", norm),
       where);
}

// Applies f(element) to every element.
template <class F>
void map(const Tensors& grads, const std::vector<Chunk>& chunks, const F& f) {
  for (const Tensor& g : grads) g.impl().storage()->will_be_written();
  cpu::parallel_for(static_cast<int64_t>(chunks.size()), [&](int64_t i) {
    const Chunk& c = chunks[static_cast<size_t>(i)];
    const auto run = [&](auto* x) {
      for (int64_t k = c.begin; k < c.end; ++k) x[k] = f(x[k]);
    };
    if (grads[c.item].dtype() == kFloat64)
      run(memory<double>(grads[c.item]));
    else
      run(memory<float>(grads[c.item]));
  });
  for (const Tensor& g : grads) g.impl().storage()->bump_version();
}

// The norm of all operands together, as a node of a recorded function.
struct TotalNorm {
  struct Attrs {
    Scalar norm_type;
    bool error_if_nonfinite;
    void visit(AttrVisitor& v) {
      v.field("norm_type", norm_type);
      v.field("error_if_nonfinite", error_if_nonfinite);
    }
  };
  static constexpr std::string_view name = "total_norm", doc = "norm of all operands together",
                                    no_derivative = "gradients are clipped without gradients";
  static constexpr int8_t arity = -1;
  static constexpr uint32_t traits = Trait::pure | Trait::checks | Trait::fresh;
  static void infer(const Call& call, TensorImpl* const* outputs) {
    outputs[0]->set_type(kFloat64, call.operands[0]->device(), {});
  }
  static void run_on_host(const Call& call, Tensor* results) {
    const Attrs& attrs = call.attrs_as<Attrs>();
    Tensors grads;
    for (TensorImpl* x : call.operands) grads.push_back(contiguous(Tensor(RefPtr<TensorImpl>(x))));
    const double norm = total_norm(grads, chunks_of(grads), attrs.norm_type.to_double());
    if (attrs.error_if_nonfinite && !std::isfinite(norm)) fail_nonfinite(norm, call.where);
    results[0] = scalar_tensor(norm, {kFloat64});
  }
};

bool is_recorded() { return Emitter::current().values() == Emitter::Values::of_function; }

// min(1, factor) times each gradient: nothing but the bits of a factor below 1 is changed by the 1.
GradNorm record_clip(const Tensors& grads, double max_norm, TotalNorm::Attrs attrs, SourceLocation where) {
  const NoGradGuard no_grad;
  if (grads.empty()) return GradNorm(0);
  std::vector<TensorImpl*> operands;
  for (const Tensor& g : grads) operands.push_back(g.get());
  Tensor norm;
  Emitter::current().emit({&ops::info<TotalNorm>, operands, &attrs, where, 1}, &norm);
  const Tensor factor = clamp(max_norm / (norm + 1e-6), {}, 1.0);
  for (const Tensor& g : grads) g.mul_(to(factor, g.dtype()));
  return {norm, where};
}

}  // namespace

GradNorm::operator double() const { return recorded_.defined() ? recorded_.item<double>(where_) : value_; }

Tensor GradNorm::tensor() const {
  return recorded_.defined() ? recorded_ : scalar_tensor(value_, {kFloat64});
}

GradNorm clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type,
                         bool error_if_nonfinite, SourceLocation where) {
  constexpr std::string_view op = "clip_grad_norm_";
  if (!(max_norm >= 0))
    fail(Category::bad_argument, op, fmt::format("max_norm must be at least 0, it is {}", max_norm), where);
  if (!(norm_type > 0))
    fail(Category::bad_argument, op, fmt::format("norm_type must be above 0, it is {}", norm_type), where);
  const Tensors grads = gradients(parameters, op, where);
  if (is_recorded()) return record_clip(grads, max_norm, {norm_type, error_if_nonfinite}, where);
  const std::vector<Chunk> chunks = chunks_of(grads);
  const double norm = total_norm(grads, chunks, norm_type);
  if (error_if_nonfinite && !std::isfinite(norm)) fail_nonfinite(norm, where);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1)) map(grads, chunks, [factor](auto x) { return x * static_cast<decltype(x)>(factor); });
  return GradNorm(norm);
}

void clip_grad_value_(const Tensors& parameters, double clip_value, SourceLocation where) {
  constexpr std::string_view op = "clip_grad_value_";
  if (!(clip_value >= 0))
    fail(Category::bad_argument, op, fmt::format("clip_value must be at least 0, it is {}", clip_value),
         where);
  const Tensors grads = gradients(parameters, op, where);
  if (is_recorded()) {
    const NoGradGuard no_grad;
    for (const Tensor& g : grads) g.copy_(clamp(g, -clip_value, clip_value));
    return;
  }
  map(grads, chunks_of(grads), [clip_value](auto x) {
    const auto bound = static_cast<decltype(x)>(clip_value);
    return x > bound ? bound : x < -bound ? -bound : x;
  });
}

}  // namespace retrograd::optim
