// functional_call: a module as a function of its parameters, as PyTorch's torch.func.functional_call. With it the
// functions of autograd/functional.h, a loop of inner steps, or an ensemble use modules:
//
//   auto loss = [&](const Tensor& w) { return mse_loss(nn::functional_call(net, {{"fc.weight", w}}, x), y); };
//   const Tensor& w = net.fc.weight;
//   const Tensor adapted = w - 0.1 * autograd::grad({loss(w)}, {w}, {}, {}, /*create_graph=*/true)[0];
//   loss(adapted).backward();  // through the step
//
// While it runs, the module's Parameters and Buffers are handles of the given tensors, and afterwards of their own
// again, also when it throws. So one module must not be called on two threads meanwhile. In a recorded function the
// given tensors may be the function's values. A compiled function that is called inside of a functional_call runs as it
// is: compile the function that makes the functional_call.
#pragma once

#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/recording.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

/// Tensors to use in place of a module's parameters and buffers: by full name ("blocks.0.ln1.weight"), where the others
/// stay, or one for each parameter, in the order of Module::parameters(). Knows the caller's line.
class ParameterValues {
 public:
  ParameterValues(StateDict by_name, SourceLocation where = SourceLocation::current())
      : by_name_(std::move(by_name)), where_(where) {}
  ParameterValues(std::initializer_list<StateDict::value_type> by_name,
                  SourceLocation where = SourceLocation::current())
      : by_name_(by_name), where_(where) {}
  ParameterValues(Tensors in_order, SourceLocation where = SourceLocation::current())
      : in_order_(std::move(in_order)), where_(where) {}
  SourceLocation where() const { return where_; }

 private:
  friend class detail::Substitution;
  StateDict by_name_;
  std::optional<Tensors> in_order_;  // and then no names
  SourceLocation where_;
};

namespace detail {

/// While it lives, the module's parameters and buffers are the given tensors.
class Substitution {
 public:
  Substitution(const Module& module, const ParameterValues& values);
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  const SubstitutionScope scope_;
  std::vector<std::pair<Tensor*, Tensor>> own_;  // as they were
};

// A forward takes an Operand, which would report this file.
template <class T>
decltype(auto) located(const T& input, SourceLocation where) {
  if constexpr (std::is_base_of_v<Tensor, T>)
    return Operand(input, where);
  else
    return (input);
}

}  // namespace detail

/// Calls the module, with its hooks, with `values` in place of its parameters. Shapes and dtypes may differ from the
/// parameters': the module's ops check them. A tensor with several names is replaced under all of them.
/// Error(bad_argument) for a name that the module does not have, another number of tensors in order, an undefined
/// tensor, two values for one tensor, or a tensor that was registered as a handle (Module::register_parameter).
template <class M, class... Inputs>
auto functional_call(M& module, const ParameterValues& values, const Inputs&... inputs) {
  const detail::Substitution substitution(module, values);
  return M::call(module, detail::located(inputs, values.where())...);
}

}  // namespace retrograd::nn

namespace retrograd::inline v0::func {
using nn::functional_call;
}
#pragma GCC visibility pop
