// See optim/soap.h.
#include "optim/soap.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/factorizations.h"
#include "ops/index_ops.h"
#include "ops/matmul.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/sort.h"
#include "ops/spectral.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::optim {
namespace {

constexpr size_t kMostRotated = 4;
struct SOAPState {
  enum : size_t { exp_avg, exp_avg_sq, products, bases = products + kMostRotated };
};
struct SOAPFactor {
  enum : size_t { fresh1, beta2, fresh2, eps, size, keep, fresh_products };
};
// The structure, in the order of visit(), then the variant.
struct SOAPStructure {
  enum : size_t { frequency, most, merges, of_vectors, normalizes, corrects_bias, variant };
};
enum SOAPVariant : int64_t { kBegins, kPlain, kRenews };

// The dims that are preconditioned.
IntArray dims_of(const Tensor& param, bool merges, int64_t most) {
  const IntArray sizes = param.sizes();
  IntArray dims;
  if (merges && sizes.size() > 1) {
    int64_t open = 1;
    for (const int64_t size : sizes) {
      if (open * size <= most) {
        open *= size;
        continue;
      }
      dims.push_back(open > 1 ? open : size);
      open = open > 1 ? size : 1;
    }
    if (open > 1 || dims.empty()) dims.push_back(open);
  } else {
    dims = sizes;
  }
  for (; dims.size() > kMostRotated; dims.pop_back()) dims[dims.size() - 2] *= dims.back();
  return dims;
}

// A parameter's dims, the products of gradients and the bases of those that have one.
struct Axes {
  IntArray dims;
  std::array<Tensor, kMostRotated> products, bases;
};

Axes axes_of(const detail::ParamUpdate& u, SourceLocation where) {
  Axes axes{dims_of(u.param, u.structure[SOAPStructure::merges], u.structure[SOAPStructure::most]), {}, {}};
  for (size_t i = 0; i < kMostRotated; ++i) {
    axes.products[i] = u.states[SOAPState::products + i];
    axes.bases[i] = u.states[SOAPState::bases + i];
    if (axes.bases[i].defined() && (i >= axes.dims.size() || axes.bases[i].sizes()[0] != axes.dims[i]))
      fail(
          Category::bad_argument, SOAPRule::name,
          fmt::format("dim {} of a parameter has a basis of size {} from earlier steps. Hint: merge_dims and "
                      "max_precond_dim are chosen before the first step",
                      i, axes.bases[i].sizes()[0]),
          where);
  }
  return axes;
}

// Dim `dim` comes last.
Tensor with_last(const Tensor& x, size_t dim) {
  IntArray order;
  for (size_t i = 0; i < static_cast<size_t>(x.dim()); ++i)
    if (i != dim) order.push_back(static_cast<int64_t>(i));
  order.push_back(static_cast<int64_t>(dim));
  return permute(x, order);
}

// Each turn takes the first dim to the end, so all come back to their place.
Tensor rotated(Tensor x, const Axes& axes, bool is_back = false) {
  for (size_t i = 0; i < axes.dims.size(); ++i) {
    x = with_last(x, 0);
    const Tensor& basis = axes.bases[i];
    if (basis.defined()) x = matmul(x, is_back ? basis.t() : basis);
  }
  return x;
}

void add_products(Axes& axes, const Tensor& g, const Scalar& fresh) {
  for (size_t i = 0; i < axes.dims.size(); ++i) {
    Tensor& sum = axes.products[i];
    if (!sum.defined()) continue;
    const int64_t n = axes.dims[i];
    const Tensor columns = with_last(g, i).reshape({g.numel() / n, n});
    sum = sum + (matmul(columns.t(), columns) - sum) * fresh;
  }
}

// A round of orthogonal iteration. Second moments follow the order of the columns.
void renew(Axes& axes, Tensor& exp_avg_sq, SourceLocation where) {
  for (size_t i = 0; i < axes.dims.size(); ++i) {
    Tensor& basis = axes.bases[i];
    if (!basis.defined()) continue;
    const Tensor turned = matmul(axes.products[i], basis);
    const Tensor order = argsort(sum(basis * turned, {0}), 0, true);
    exp_avg_sq = index_select(exp_avg_sq, static_cast<int64_t>(i), order);
    basis = linalg::qr(detach(Operand(index_select(turned, 1, order), where))).Q;  // a constant
  }
}

void set_axes(const detail::ParamUpdate& u, const Axes& axes, bool are_bases_new) {
  for (size_t i = 0; i < kMostRotated; ++i) {
    if (!axes.bases[i].defined()) continue;
    u.set(u.states[SOAPState::products + i], axes.products[i]);
    if (are_bases_new) u.set(u.states[SOAPState::bases + i], axes.bases[i]);
  }
}

// As columns, those of the largest eigenvalues first; a constant.
Tensor falling_eigenvectors(const Tensor& symmetric, SourceLocation where) {
  return flip(Operand(linalg::eigh(detach(Operand(symmetric, where))).eigenvectors, where), {-1});
}

void begin_bases(const detail::ParamUpdate& u, Axes& axes, const Tensor& g, SourceLocation where) {
  add_products(axes, g, u.factors[SOAPFactor::fresh_products]);
  for (size_t i = 0; i < kMostRotated; ++i)
    if (axes.bases[i].defined()) axes.bases[i] = falling_eigenvectors(axes.products[i], where);
  set_axes(u, axes, true);
}

void step_rotated(const detail::ParamUpdate& u, Axes& axes, const Tensor& g, SourceLocation where) {
  const auto& f = u.factors;
  const bool renews = u.structure[SOAPStructure::variant] == kRenews;
  const Tensor turned = rotated(g, axes), before = u.states[SOAPState::exp_avg].reshape(axes.dims);
  Tensor exp_avg = before + (turned - before) * f[SOAPFactor::fresh1];
  Tensor exp_avg_sq = u.states[SOAPState::exp_avg_sq].reshape(axes.dims) * f[SOAPFactor::beta2] +
                      square(turned) * f[SOAPFactor::fresh2];
  Tensor change = rotated(exp_avg / (sqrt(exp_avg_sq) + f[SOAPFactor::eps]), axes, true);
  if (u.structure[SOAPStructure::normalizes]) change = change / (sqrt(mean(square(change))) + 1e-30);
  const Tensor param = u.param.to(g.dtype());
  const Tensor next = (param - reshape(change, param.sizes()) * f[SOAPFactor::size]) * f[SOAPFactor::keep];
  add_products(axes, g, f[SOAPFactor::fresh_products]);
  if (renews) {
    exp_avg = rotated(exp_avg, axes, true);
    renew(axes, exp_avg_sq, where);
    exp_avg = rotated(exp_avg, axes);
  }
  u.set(u.states[SOAPState::exp_avg], reshape(exp_avg, param.sizes()));
  u.set(u.states[SOAPState::exp_avg_sq], reshape(exp_avg_sq, param.sizes()));
  set_axes(u, axes, renews);
  u.set(u.param, next);
}

}  // namespace

ScalarType SOAPRule::state_dtype(size_t, const Tensor&, ScalarType dtype) {
  return element_size(dtype) < 4 ? kFloat32 : dtype;
}

Tensor SOAPRule::make_state(const Options& o, size_t state, const Tensor& param, ScalarType dtype) {
  if (state < SOAPState::products) return zeros(param.sizes(), {dtype, param.device()});
  const IntArray dims = dims_of(param, o.merge_dims, o.max_precond_dim);
  const bool is_basis = state >= SOAPState::bases;
  const size_t dim = state - (is_basis ? SOAPState::bases : SOAPState::products);
  if (dim >= dims.size() || dims[dim] > o.max_precond_dim || (param.dim() < 2 && !o.precondition_1d))
    return {};
  const TensorOptions like{dtype, param.device()};
  return is_basis ? eye(dims[dim], {}, like) : zeros({dims[dim], dims[dim]}, like);
}

int64_t SOAPRule::variant(const Options& o, double step) {
  if (step <= 1) return kBegins;
  return std::fmod(step - 1, static_cast<double>(o.precondition_frequency)) == 0 ? kRenews : kPlain;
}

void SOAPRule::factors_of(const Options& o, double step, const Tensor&, double* f) {
  // Steps that have changed the parameter, this one included; the first step uses no size.
  const double moved = std::max(1.0, step - 1);
  f[SOAPFactor::fresh1] = 1 - o.betas[0];
  f[SOAPFactor::beta2] = o.betas[1];
  f[SOAPFactor::fresh2] = 1 - o.betas[1];
  f[SOAPFactor::eps] = o.eps;
  f[SOAPFactor::size] =
      o.correct_bias ? o.lr * std::sqrt(1 - std::pow(o.betas[1], moved)) / (1 - std::pow(o.betas[0], moved))
                     : o.lr;
  f[SOAPFactor::keep] = 1 - o.lr * o.weight_decay;
  f[SOAPFactor::fresh_products] = 1 - (o.shampoo_beta < 0 ? o.betas[1] : o.shampoo_beta);
}

void SOAPRule::update(std::span<const detail::ParamUpdate> updates, SourceLocation where) {
  for (const detail::ParamUpdate& u : updates) {
    if (u.param.numel() > 0) {
      Axes axes = axes_of(u, where);
      const Tensor g = u.grad.to(u.states[SOAPState::exp_avg].dtype()).reshape(axes.dims);
      u.structure[SOAPStructure::variant] == kBegins ? begin_bases(u, axes, g, where)
                                                     : step_rotated(u, axes, g, where);
    }
    u.done();
  }
}

}  // namespace retrograd::optim
