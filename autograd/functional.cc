// See autograd/functional.h. Everything is made of autograd::grad, a DualLevel, and a CompiledBackward for the rows of
// Jacobians. In gradients_of(), inputs that are not reached get zeros or an error.
#include "autograd/functional.h"

#include <fmt/format.h>

#include "autograd/jacobian_shape.h"
#include "ops/creation.h"
#include "ops/index_ops.h"
#include "ops/join.h"
#include "ops/shape_ops.h"
#include "tracer/backward/compile_backward.h"

namespace retrograd::inline v0::autograd {
namespace {

/// The options of a call, with the defaults at the place of the call.
struct Wanted {
  bool create_graph, strict;

  explicit Wanted(const FunctionalOptions& options)
      : create_graph(options.create_graph.value_or(is_differentiated_again())), strict(options.strict) {}
};

/// New tensors for the function, which require a gradient: results that may be differentiated later depend on the
/// inputs, also in a replay of a recording.
Tensors fresh(const Tensors& inputs, bool create_graph, SourceLocation where) {
  Tensors x;
  for (const Tensor& input : inputs) {
    const Operand of(input, where);
    x.push_back(create_graph ? alias(of) : detach(of));
    x.back().requires_grad_(true, where);
  }
  return x;
}

Tensor without_history(const Tensor& t, bool create_graph) {
  return create_graph || !t.defined() ? t : t.detach();
}
Tensors without_history(Tensors list, bool create_graph) {
  for (Tensor& t : list) t = without_history(t, create_graph);
  return list;
}

void check_gradients_are_on(std::string_view function, SourceLocation where) {
  if (!GradMode::is_enabled())
    fail(Category::bad_argument, function,
         "inference mode keeps gradients off, so all of them would be zeros. Hint: no_grad in its place, or "
         "InferenceMode(false) around the derivative",
         where);
}

Tensor zeros_for(const Tensor& x, SourceLocation where) { return zeros_of(x.impl().type(), where); }

[[noreturn]] void independent(std::string_view function, size_t input, SourceLocation where) {
  fail(Category::unused_input, function, fmt::format("the result does not depend on input {}", input), where);
}

/// Gradients of those `outputs` that have a history, by inputs; through `compiled` if there is one. Zeros for inputs
/// that are not reached.
Tensors gradients_of(std::string_view function, const Tensors& outputs, const Tensors& inputs,
                     const Tensors& cotangents, Wanted options, bool record, CompiledBackward* compiled,
                     SourceLocation where) {
  Tensors roots, given, gradients(inputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() || !outputs[i].requires_grad()) continue;
    if (!cotangents.empty() && !cotangents[i].defined()) continue;
    roots.push_back(outputs[i]);
    given.push_back(cotangents.empty() ? Tensor() : cotangents[i]);
  }
  if (!roots.empty())
    gradients = compiled ? compiled->grad(roots, inputs, given, true, record, true, false, where)
                         : grad(roots, inputs, given, true, record, true, false, where);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].defined()) continue;
    if (options.strict) independent(function, i, where);
    gradients[i] = zeros_for(inputs[i], where);
  }
  return gradients;
}

/// Checks `given`: one for each of `like`, of its type; undefined ones are allowed.
void check_types(std::string_view function, const Tensors& given, const Tensors& like, SourceLocation where) {
  if (given.size() != like.size())
    fail(Category::cotangent_mismatch, function,
         fmt::format("{} tensors were given where {} are needed", given.size(), like.size()), where);
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].defined() && !(given[i].impl().type() == like[i].impl().type()))
      fail(Category::cotangent_mismatch, function,
           fmt::format("tensor {} is {} where {} is needed", i, describe(given[i]), describe(like[i])),
           where);
}

void check_scalar(std::string_view function, const Tensor& output, SourceLocation where) {
  if (!output.defined() || output.numel() != 1)
    fail(Category::non_scalar_backward_without_cotangent, function,
         fmt::format("the function gave {} where one element is needed", describe(output)), where);
}

/// 1 at flat position `at`, 0 elsewhere.
Tensor unit(const TensorType& type, int64_t at, SourceLocation where) {
  const Tensor flat = zeros_of({type.dtype, type.device, {type.shape.numel()}}, where);
  const Tensor index = tensor({static_cast<double>(at)}, {1}, {kInt64, type.device}, where);
  return reshape_to(Operand(scatter(Operand(flat, where), 0, index, 1), where), type.shape);
}

/// The Jacobian of one output.
Tensors rows_of(const Tensor& y, const Tensors& x, Wanted options, SourceLocation where) {
  CompiledBackward compiled = compile_backward();
  std::vector<Tensors> rows(x.size());
  for (int64_t r = 0; r < y.numel(); ++r) {
    Tensors row = gradients_of("jacobian", {y}, x, {unit(y.impl().type(), r, where)}, options,
                               options.create_graph, &compiled, where);
    for (size_t i = 0; i < x.size(); ++i) rows[i].push_back(std::move(row[i]));
  }
  Tensors result;
  for (size_t i = 0; i < x.size(); ++i) {
    const Shape shape = jacobian_shape(y.impl().shape(), x[i].impl().shape(), where);
    if (rows[i].empty())
      result.push_back(zeros(shape, {x[i].dtype(), x[i].device()}, where));
    else
      result.push_back(reshape_to(Operand(stack(rows[i], 0, where), where), shape));
    rows[i].clear();
  }
  return result;
}

/// The gradient of a function of one element, with a graph that can be differentiated again.
Tensors scalar_gradient(std::string_view function, const ScalarFunction& f, const Tensors& x, Tensor& output,
                        Wanted options, SourceLocation where) {
  output = f(x);
  check_scalar(function, output, where);
  return gradients_of(function, {output}, x, {}, options, true, nullptr, where);
}

}  // namespace

VjpResult vjp(const VectorFunction& f, const Tensors& inputs, const Tensors& cotangents,
              FunctionalOptions given, SourceLocation where) {
  require_function(static_cast<bool>(f), "vjp", where);
  const Wanted options(given);
  EnableGradGuard recording;
  check_gradients_are_on("vjp", where);
  const Tensors x = fresh(inputs, options.create_graph, where);
  VjpResult result;
  const Tensors y = f(x);
  if (cotangents.empty())
    check_scalar("vjp", y.size() == 1 ? y[0] : Tensor(), where);
  else
    check_types("vjp", cotangents, y, where);
  result.gradients =
      without_history(gradients_of("vjp", y, x, cotangents, options, options.create_graph, nullptr, where),
                      options.create_graph);
  result.outputs = without_history(y, options.create_graph);
  return result;
}

std::vector<Tensors> jacobian(const VectorFunction& f, const Tensors& inputs, FunctionalOptions given,
                              SourceLocation where) {
  require_function(static_cast<bool>(f), "jacobian", where);
  const Wanted options(given);
  EnableGradGuard recording;
  check_gradients_are_on("jacobian", where);
  const Tensors x = fresh(inputs, options.create_graph, where);
  std::vector<Tensors> result;
  for (const Tensor& y : f(x))
    result.push_back(without_history(rows_of(y, x, options, where), options.create_graph));
  return result;
}

std::vector<Tensors> hessian(const ScalarFunction& f, const Tensors& inputs, FunctionalOptions given,
                             SourceLocation where) {
  require_function(static_cast<bool>(f), "hessian", where);
  const Wanted options(given);
  const auto gradient = [&](const Tensors& x) {
    Tensor output;
    return scalar_gradient("hessian", f, x, output, options, where);
  };
  return jacobian(gradient, inputs, given, where);
}

HessianProduct hvp(const ScalarFunction& f, const Tensors& inputs, const Tensors& v, FunctionalOptions given,
                   SourceLocation where) {
  require_function(static_cast<bool>(f), "hvp", where);
  const Wanted options(given);
  check_types("hvp", v, inputs, where);
  EnableGradGuard recording;
  check_gradients_are_on("hvp", where);
  const Tensors x = fresh(inputs, options.create_graph, where);
  HessianProduct result;
  DualLevel level(where);
  Tensors duals;
  for (size_t i = 0; i < x.size(); ++i)
    duals.push_back(v[i].defined() ? level.make_dual(x[i], v[i], where) : x[i]);
  result.output = f(duals);
  check_scalar("hvp", result.output, where);
  const Tensors gradient =
      gradients_of("hvp", {result.output}, duals, {}, options, options.create_graph, nullptr, where);
  for (size_t i = 0; i < x.size(); ++i) {
    Tensor product = level.tangent(gradient[i]);
    if (!product.defined() && options.strict) independent("hvp", i, where);
    result.product.push_back(product.defined() ? without_history(product, options.create_graph)
                                               : zeros_for(x[i], where));
  }
  result.output = without_history(result.output, options.create_graph);
  return result;
}

HessianProduct vhp(const ScalarFunction& f, const Tensors& inputs, const Tensors& v, FunctionalOptions given,
                   SourceLocation where) {
  require_function(static_cast<bool>(f), "vhp", where);
  const Wanted options(given);
  check_types("vhp", v, inputs, where);
  EnableGradGuard recording;
  check_gradients_are_on("vhp", where);
  const Tensors x = fresh(inputs, options.create_graph, where);
  HessianProduct result;
  const Tensors gradient = scalar_gradient("vhp", f, x, result.output, options, where);
  result.product =
      without_history(gradients_of("vhp", gradient, x, v, options, options.create_graph, nullptr, where),
                      options.create_graph);
  result.output = without_history(result.output, options.create_graph);
  return result;
}

}  // namespace retrograd::autograd
