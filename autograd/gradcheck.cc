// See autograd/gradcheck.h. gradgradcheck is gradcheck of another function: the gradient, as a function of the inputs
// and the cotangents.
#include "autograd/gradcheck.h"

#include <fmt/format.h>

#include "autograd/check_tools.h"
#include "autograd/jacobian_check.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::autograd {
namespace {

using check::Numbers;

std::vector<std::string> numbered(std::string_view what, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(fmt::format("{} {}", what, i));
  return names;
}

Tensor random_cotangent(Numbers& numbers, const Tensor& y, bool non_contiguous) {
  const Shape& shape = y.impl().shape();
  if (!non_contiguous || shape.rank() < 2) return numbers.like(shape, y.device());
  Shape swapped = shape;
  std::swap(swapped[0], swapped[shape.rank() - 1]);
  return transpose(numbers.like(swapped, y.device()), 0, -1);
}

}  // namespace

GradcheckResult gradcheck(const VectorFunction& f, const Tensors& inputs, const GradcheckOptions& options,
                          SourceLocation where) {
  return check::run({"gradcheck", numbered("input", inputs.size()), {}}, f, inputs, options, where);
}

GradcheckResult gradgradcheck(const VectorFunction& f, const Tensors& inputs, const Tensors& cotangents,
                              const GradcheckOptions& options, SourceLocation where) {
  const size_t n = inputs.size();
  check::Names names{"gradgradcheck", numbered("input", n), {}};
  Tensors point = inputs;
  std::vector<size_t> outputs, wanted;
  {
    EnableGradGuard recording;
    Numbers numbers(2);
    const Tensors y = f(inputs);
    for (size_t o = 0; o < y.size(); ++o) {
      if (!y[o].defined() || !y[o].requires_grad()) continue;
      const size_t nth = outputs.size();
      if (!cotangents.empty() && nth >= cotangents.size())
        fail(Category::cotangent_mismatch, "gradgradcheck",
             fmt::format("{} cotangents are too few", cotangents.size()), where);
      const Tensor w = cotangents.empty() ? random_cotangent(numbers, y[o], options.non_contiguous_cotangents)
                                          : cotangents[nth];
      point.push_back(w.detach().requires_grad_());
      names.inputs.push_back(fmt::format("the cotangent of output {}", o));
      outputs.push_back(o);
    }
  }
  for (size_t i = 0; i < n; ++i)
    if (inputs[i].defined() && inputs[i].requires_grad()) {
      names.outputs.push_back(fmt::format("the gradient of input {}", i));
      wanted.push_back(i);
    }
  const VectorFunction gradient = [&](const Tensors& x) -> Tensors {
    EnableGradGuard recording;
    const Tensors y = f(Tensors(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)));
    Tensors roots, asked, given(x.begin() + static_cast<std::ptrdiff_t>(n), x.end());
    for (const size_t o : outputs) roots.push_back(y[o]);
    for (const size_t i : wanted) asked.push_back(x[i]);
    if (roots.empty()) return Tensors(asked.size());
    return grad(roots, asked, given, true, true, true, false, where);
  };
  return check::run(std::move(names), gradient, point, options, where);
}

}  // namespace retrograd::autograd
