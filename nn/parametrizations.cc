// weight_norm and spectral_norm. See nn/parametrize.h.
#include <cmath>

#include <fmt/format.h>

#include "nn/convolution.h"
#include "nn/init.h"
#include "nn/parametrize.h"
#include "ops/arithmetic.h"
#include "ops/composed.h"
#include "ops/creation.h"
#include "ops/matmul.h"
#include "ops/operators.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0::nn::utils::parametrizations {
namespace {

using parametrize::Parametrization;

class WeightNorm : public Parametrization {
 public:
  explicit WeightNorm(int64_t dim) : dim_(dim) {}

  // 16-bit formats are rounded once.
  Tensor forward(const Tensors& originals) override {
    const ops::Widened wide(originals[1]);
    const Tensor g = wide(originals[0]), v = wide(originals[1]);
    return wide.back(v * (g / length(v)));
  }
  Tensors right_inverse(const Tensor& value) const override { return {length(value), value}; }

 private:
  Tensor length(const Tensor& v) const {
    if (dim_ == -1) return vector_norm(v);
    IntArray others;
    for (int64_t d = 0; d < v.dim(); ++d)
      if (d != dim_) others.push_back(d);
    return others.empty() ? v.abs() : vector_norm(v, 2, others, true);
  }

  int64_t dim_;
};

class SpectralNorm : public Parametrization {
 public:
  SpectralNorm(const Tensor& weight, int64_t n_power_iterations, double eps, int64_t dim)
      : iterations_(n_power_iterations), eps_(eps), dim_(dim) {
    if (weight.dim() < 2) return;
    const NoGradGuard no_grad;
    const Tensor matrix = as_matrix(weight.detach());
    for (int64_t side : {0, 1}) {
      const Tensor start = init::normal_(empty({matrix.size(side)}, {weight.dtype(), weight.device()}));
      vectors_.push_back(std::make_unique<Buffer>(this, side ? "_v" : "_u", normalize(start, 2.0, 0, eps_)));
    }
    iterate(matrix, 15);
  }

  Tensor forward(const Tensors& originals) override {
    const Tensor& weight = originals[0];
    if (vectors_.empty()) return normalize(weight, 2.0, 0, eps_);
    const ops::Widened wide(weight);
    const Tensor matrix = as_matrix(weight);
    if (is_training()) iterate(matrix.detach(), iterations_);
    // Clones, since the next call writes to the buffers.
    const Tensor u = vectors_[0]->clone(), v = vectors_[1]->clone();
    return wide.back(wide(weight) / dot(wide(u), mv(wide(matrix), wide(v))));
  }

 private:
  Tensor as_matrix(const Tensor& weight) const {
    const Tensor rows_first = dim_ == 0 ? weight : movedim(weight, IntArray{dim_}, IntArray{0});
    return rows_first.reshape({rows_first.sym_size(0), -1});
  }
  void iterate(const Tensor& matrix, int64_t times) {
    const NoGradGuard no_grad;
    Buffer &u = *vectors_[0], &v = *vectors_[1];
    for (int64_t i = 0; i < times; ++i) {
      u = normalize(mv(matrix, v), 2.0, 0, eps_);
      v = normalize(mv(matrix.t(), u), 2.0, 0, eps_);
    }
  }

  std::vector<std::unique_ptr<Buffer>> vectors_;  // u, v; none of a vector
  int64_t iterations_;
  double eps_;
  int64_t dim_;
};

const Tensor& needed(const OrderedDict<std::string, Tensor>& parameters, const std::string& name,
                     std::string_view op, SourceLocation where) {
  if (const Tensor* const found = parameters.find(name)) return *found;
  fail(Category::bad_argument, op, fmt::format("the module has no parameter \"{}\"", name), where);
}

int64_t wrapped(int64_t dim, const Tensor& weight, std::string_view op, SourceLocation where) {
  if (dim < -weight.dim() || dim >= weight.dim())
    fail(Category::bad_dim, op, fmt::format("dim {} of {}", dim, describe(weight)), where);
  return dim < 0 ? dim + weight.dim() : dim;
}

bool is_transposed(const Module& module) {
  return module.as<ConvTranspose1d>() || module.as<ConvTranspose2d>() || module.as<ConvTranspose3d>();
}

}  // namespace

void weight_norm(Module& module, const std::string& name, int64_t dim, SourceLocation where) {
  const auto parameters = module.named_parameters(false);
  const Tensor& weight = needed(parameters, name, "weight_norm", where);
  if (dim != -1) dim = wrapped(dim, weight, "weight_norm", where);
  parametrize::register_parametrization(module, name, std::make_shared<WeightNorm>(dim), where);
}

void spectral_norm(Module& module, const std::string& name, int64_t n_power_iterations, double eps,
                   std::optional<int64_t> dim, SourceLocation where) {
  if (n_power_iterations < 1)
    fail(Category::bad_argument, "spectral_norm", fmt::format("{} power iterations", n_power_iterations),
         where);
  const auto parameters = module.named_parameters(false);
  const Tensor& weight = needed(parameters, name, "spectral_norm", where);
  const int64_t rows = wrapped(dim.value_or(is_transposed(module) ? 1 : 0), weight, "spectral_norm", where);
  parametrize::register_parametrization(
      module, name, std::make_shared<SpectralNorm>(weight, n_power_iterations, eps, rows), where);
}

}  // namespace retrograd::nn::utils::parametrizations
