// See autograd/gradcheck.h for the checks. A JacobianCheck owns copies of the inputs, with their strides, and computes
// three Jacobians: by differences, by backwards, by tangents. A Jacobian is stored as one matrix for each pair of a
// checked output and a checked input.
#include "autograd/jacobian_check.h"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "autograd/check_tools.h"
#include "ops/creation.h"

namespace retrograd::inline v0::autograd::check {
namespace {

struct Matrix {
  Matrix(size_t rows, size_t columns) : rows(rows), columns(columns), values(rows * columns) {}
  double& at(size_t r, size_t c) { return values[r * columns + c]; }
  size_t rows, columns;
  std::vector<double> values;
};
using Jacobian = std::vector<std::vector<Matrix>>;  // [checked output][variable]

class JacobianCheck {
 public:
  JacobianCheck(Names names, const VectorFunction& f, const Tensors& inputs, const GradcheckOptions& options,
                SourceLocation where);
  void run();

 private:
  struct Variable {
    size_t input;  // its index among the inputs
    Tensor x;
    std::vector<int64_t> places;
    std::vector<size_t> first;  // for each element, the first one at the same place
  };

  void choose_outputs();
  Tensors pick(const Tensors& all) const {
    Tensors y;
    for (const size_t i : outputs_) y.push_back(all[i]);
    return y;
  }
  Tensors evaluate();
  std::vector<std::vector<double>> values();
  Tensors gradients(const Tensors& roots, const Tensors& cotangents);
  Jacobian empty_jacobian(const Tensors& y) const;
  Jacobian by_differences(const Tensors& y);
  Jacobian by_reverse(const Tensors& y);
  Jacobian by_forward(const Tensors& y);
  void compare(Jacobian analytic, Jacobian& numeric, const Tensors& y, std::string_view mode) const;
  void check_dot(const Tensors& y, Jacobian& jacobian);
  void check_undefined(const Tensors& y);
  void check_repeatable(const Tensors& y);
  template <class... Args>
  [[noreturn]] void differ(fmt::format_string<Args...> text, Args&&... args) const {
    throw GradcheckError(fmt::format("{}: {} (called at {})", names_.check,
                                     fmt::format(text, std::forward<Args>(args)...), to_string(where_)));
  }

  Names names_;
  const VectorFunction& f_;
  const GradcheckOptions& options_;
  SourceLocation where_;
  Tensors inputs_;  // with the copies in place of the checked ones
  std::vector<Variable> variables_;
  std::vector<size_t> outputs_;  // the checked ones
  Numbers numbers_{1};
};

JacobianCheck::JacobianCheck(Names names, const VectorFunction& f, const Tensors& inputs,
                             const GradcheckOptions& options, SourceLocation where)
    : names_(std::move(names)), f_(f), options_(options), where_(where), inputs_(inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
    if (inputs[i].dtype() != kFloat64)
      fail(Category::dtype_mismatch, names_.check,
           fmt::format("{} is {}: differences need float64", names_.inputs[i], describe(inputs[i])), where);
    inputs_[i] = strided_leaf(inputs[i]);
    Variable variable{i, inputs_[i], places_of(inputs_[i]), {}};
    std::map<int64_t, size_t> first;
    for (size_t e = 0; e < variable.places.size(); ++e)
      variable.first.push_back(first.try_emplace(variable.places[e], e).first->second);
    variables_.push_back(std::move(variable));
  }
  if (variables_.empty()) fail(Category::bad_argument, names_.check, "no input requires a gradient", where);
}

/// The checked outputs of a call that records.
Tensors JacobianCheck::evaluate() {
  EnableGradGuard recording;
  return pick(f_(inputs_));
}

/// Copied from the outputs, which may be views of the inputs.
std::vector<std::vector<double>> JacobianCheck::values() {
  NoGradGuard values_only;
  std::vector<std::vector<double>> list;
  for (const Tensor& y : pick(f_(inputs_))) list.push_back(y.to_vector());
  return list;
}

/// Selects the outputs that have a gradient. If none has one, selects all: they may not depend on the inputs then.
void JacobianCheck::choose_outputs() {
  EnableGradGuard recording;
  const Tensors all = f_(inputs_);
  for (const bool with_gradient : {true, false}) {
    if (!outputs_.empty()) break;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].defined() && all[i].is_floating_point() && all[i].requires_grad() == with_gradient)
        outputs_.push_back(i);
  }
  for (const size_t i : outputs_)
    if (all[i].dtype() != kFloat64)
      fail(Category::dtype_mismatch, names_.check,
           fmt::format("output {} is {}: differences need float64", i, describe(all[i])), where_);
  while (names_.outputs.size() < all.size())
    names_.outputs.push_back(fmt::format("output {}", names_.outputs.size()));
}

/// Undefined where no root has a history.
Tensors JacobianCheck::gradients(const Tensors& roots, const Tensors& cotangents) {
  Tensors asked;
  for (const Variable& v : variables_) asked.push_back(v.x);
  if (roots.empty() || !roots[0].requires_grad()) return Tensors(asked.size());
  const Tensors found = grad(roots, asked, cotangents, true, false, true, false, where_);
  for (size_t k = 0; k < found.size(); ++k)
    if (found[k].defined() && !(found[k].impl().type() == asked[k].impl().type()))
      differ("the gradient of {} is {} where it is {}", names_.inputs[variables_[k].input],
             describe(found[k]), describe(asked[k]));
  return found;
}

Jacobian JacobianCheck::empty_jacobian(const Tensors& y) const {
  Jacobian jacobian(y.size());
  for (size_t o = 0; o < y.size(); ++o)
    for (const Variable& v : variables_)
      jacobian[o].emplace_back(static_cast<size_t>(y[o].numel()), v.places.size());
  return jacobian;
}

Jacobian JacobianCheck::by_differences(const Tensors& y) {
  Jacobian jacobian = empty_jacobian(y);
  for (size_t k = 0; k < variables_.size(); ++k) {
    const Variable& v = variables_[k];
    double* memory = v.x.data_ptr<double>();
    for (size_t e = 0; e < v.places.size(); ++e) {
      if (v.first[e] != e) continue;
      // Not a view of x: tensors that saved x must not notice that it is written to.
      const Tensor number = from_blob(memory + v.places[e], {}, {kFloat64, v.x.device()});
      const double at = number.item<double>();
      number.fill_(at + options_.eps);
      const auto above = values();
      number.fill_(at - options_.eps);
      const auto below = values();
      number.fill_(at);
      for (size_t o = 0; o < y.size(); ++o)
        for (size_t r = 0; r < above[o].size(); ++r)
          jacobian[o][k].at(r, e) = (above[o][r] - below[o][r]) / (2 * options_.eps);
    }
  }
  return jacobian;
}

Jacobian JacobianCheck::by_reverse(const Tensors& y) {
  Jacobian jacobian = empty_jacobian(y);
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t r = 0; r < static_cast<size_t>(y[o].numel()); ++r) {
      const Tensors row = gradients({y[o]}, {unit(y[o].impl().shape(), r, y[o].device())});
      for (size_t k = 0; k < row.size(); ++k) {
        const std::vector<double> values = values_of(row[k], variables_[k].x);
        std::copy(values.begin(), values.end(), jacobian[o][k].values.begin() + r * values.size());
      }
    }
  return jacobian;
}

Jacobian JacobianCheck::by_forward(const Tensors& y) {
  Jacobian jacobian = empty_jacobian(y);
  for (size_t k = 0; k < variables_.size(); ++k)
    for (size_t e = 0; e < variables_[k].places.size(); ++e) {
      Tensors directions(inputs_.size());
      directions[variables_[k].input] = unit(variables_[k].x.impl().shape(), e, variables_[k].x.device());
      const JvpResult column = jvp(f_, inputs_, directions, where_);
      for (size_t o = 0; o < y.size(); ++o) {
        const std::vector<double> values = values_of(column.tangents[outputs_[o]], y[o]);
        for (size_t r = 0; r < values.size(); ++r) jacobian[o][k].at(r, e) = values[r];
      }
    }
  return jacobian;
}

/// Elements that share memory have changed together: their derivatives are summed first.
void JacobianCheck::compare(Jacobian analytic, Jacobian& numeric, const Tensors& y,
                            std::string_view mode) const {
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t k = 0; k < variables_.size(); ++k) {
      const Variable& v = variables_[k];
      Matrix& found = analytic[o][k];
      for (size_t r = 0; r < found.rows; ++r) {
        for (size_t e = 0; e < found.columns; ++e)
          if (v.first[e] != e) found.at(r, v.first[e]) += found.at(r, e);
        for (size_t e = 0; e < found.columns; ++e) {
          const double got = found.at(r, e), want = numeric[o][k].at(r, e);
          if (v.first[e] != e || std::abs(got - want) <= options_.atol + options_.rtol * std::abs(want))
            continue;
          differ(
              "the derivative of {}, element {}, by {}, element {}, is {:.10g} in {} mode, {:.10g} by "
              "differences",
              names_.outputs[outputs_[o]], index_text(y[o], r), names_.inputs[v.input], index_text(v.x, e),
              got, mode, want);
        }
      }
    }
}

void JacobianCheck::check_dot(const Tensors& y, Jacobian& jacobian) {
  Tensors w, t(inputs_.size());
  for (const Tensor& output : y) w.push_back(numbers_.like(output.impl().shape(), output.device()));
  for (const Variable& v : variables_) t[v.input] = numbers_.like(v.x.impl().shape(), v.x.device());
  const Tensors reverse = gradients(y, w);
  const JvpResult forward = jvp(f_, inputs_, t, where_);
  double w_jt = 0, jw_t = 0, size = 0;
  for (size_t k = 0; k < variables_.size(); ++k) {
    const std::vector<double> direction = t[variables_[k].input].to_vector(),
                              gradient = values_of(reverse[k], variables_[k].x);
    for (size_t e = 0; e < direction.size(); ++e) jw_t += gradient[e] * direction[e];
  }
  for (size_t o = 0; o < y.size(); ++o) {
    const std::vector<double> cotangent = w[o].to_vector(),
                              tangent = values_of(forward.tangents[outputs_[o]], y[o]);
    for (size_t r = 0; r < cotangent.size(); ++r) w_jt += cotangent[r] * tangent[r];
    for (const Matrix& m : jacobian[o])
      for (const double d : m.values) size += 1.5 * 1.5 * std::abs(d);
  }
  if (!(std::abs(w_jt - jw_t) <= options_.dot_rtol * std::max(size, 1.0)))
    differ("<w, J t> is {:.17g} in forward mode, <J' w, t> is {:.17g} in reverse mode", w_jt, jw_t);
}

/// Compares an omitted cotangent with zeros.
void JacobianCheck::check_undefined(const Tensors& y) {
  for (size_t o = 0; o < y.size() && y.size() > 1; ++o) {
    Tensors w;
    for (const Tensor& output : y)
      w.push_back(w.size() == o ? numbers_.like(output.impl().shape(), output.device()) : zeros_like(output));
    const Tensors alone = gradients({y[o]}, {w[o]}), with_zeros = gradients(y, w);
    for (size_t k = 0; k < variables_.size(); ++k) {
      const Variable& v = variables_[k];
      const std::vector<double> a = values_of(alone[k], v.x), b = values_of(with_zeros[k], v.x);
      for (size_t e = 0; e < a.size(); ++e)
        if (!(std::abs(a[e] - b[e]) <= 1e-12 * std::max(1.0, std::abs(b[e]))))
          differ(
              "with a cotangent of {} alone the gradient of {}, element {}, is {:.17g}, but {:.17g} with "
              "zeros for the others",
              names_.outputs[outputs_[o]], names_.inputs[v.input], index_text(v.x, e), a[e], b[e]);
    }
  }
}

void JacobianCheck::check_repeatable(const Tensors& y) {
  Tensors w;
  for (const Tensor& output : y) w.push_back(numbers_.like(output.impl().shape(), output.device()));
  const Tensors again = evaluate();
  for (size_t o = 0; o < y.size(); ++o)
    if (!same_bits(y[o], again[o]))
      differ("{} has other bits at the second call", names_.outputs[outputs_[o]]);
  const Tensors first = gradients(y, w), second = gradients(y, w), other = gradients(again, w);
  for (size_t k = 0; k < variables_.size(); ++k)
    if (!same_bits(first[k], second[k]) || !same_bits(first[k], other[k]))
      differ("the gradient of {} has other bits at the second backward", names_.inputs[variables_[k].input]);
}

void JacobianCheck::run() {
  choose_outputs();
  const Tensors y = evaluate();
  Jacobian numeric = by_differences(y), reverse = by_reverse(y);
  compare(reverse, numeric, y, "reverse");
  if (options_.check_forward) {
    compare(by_forward(y), numeric, y, "forward");
    check_dot(y, reverse);
  }
  if (options_.check_undefined) check_undefined(y);
  if (options_.check_repeatable) check_repeatable(y);
}

}  // namespace

GradcheckResult run(Names names, const VectorFunction& f, const Tensors& inputs,
                    const GradcheckOptions& options, SourceLocation where) {
  try {
    JacobianCheck(std::move(names), f, inputs, options, where).run();
  } catch (const GradcheckError& e) {
    if (options.raise) throw;
    return {false, e.what()};
  }
  return {};
}

}  // namespace retrograd::autograd::check
