// Function<MyOp>: a differentiable function of the user's own, in libtorch's form.
//
//   struct Scale : rg::Function<Scale> {
//     static rg::Tensor forward(rg::AutogradContext* ctx, const rg::Tensor& x, double factor) {
//       ctx->saved_data["factor"] = factor;
//       return x * factor;
//     }
//     static rg::Tensors backward(rg::AutogradContext* ctx, const rg::Tensors& grads) {
//       return {grads[0] * ctx->saved_data["factor"], {}};   // one entry per argument of forward; undefined where there is no gradient
//     }
//   };
//   rg::Tensor y = Scale::apply(x, 2.0);
//
// forward runs without gradients and records nothing of its own: the call is one tape record. Tensors given to save_for_backward become
// slots like any other: version-checked, packed by hooks, unpacked when backward asks for them. backward is traced through when it consists
// of tensor functions. saved_data holds numbers; a traced backward treats them as part of the structure, so other numbers are captured anew.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/rule.h"

namespace retrograd {

class AutogradContext {
 public:
  /// Keeps tensors for backward: arguments, results or others.
  void save_for_backward(Tensors tensors) { to_save_ = std::move(tensors); }
  /// In backward: the saved tensors, in the order in which they were given. Each is unpacked at the first call.
  Tensors get_saved_variables();
  /// Results that have no gradient.
  void mark_non_differentiable(const Tensors& results);
  /// With false, backward sees undefined tensors for results without a gradient instead of zeros.
  void set_materialize_grads(bool on) { materialize_ = on; }
  /// In backward: whether the gradient of tensor argument i (counted among the tensors) is wanted.
  bool needs_input_grad(size_t i) const { return context_->needs(static_cast<int>(i)); }

  std::map<std::string, Scalar> saved_data;

 private:
  friend struct FunctionCall;
  struct SavedPlace {
    bool is_result;
    int index;
  };
  Tensors to_save_;
  std::vector<SavedPlace> saved_;
  std::vector<const TensorImpl*> non_differentiable_;
  bool materialize_ = true;
  RuleContext* context_ = nullptr;
};

/// What Function<F>::apply does that does not depend on F.
struct FunctionCall {
  using Forward = std::function<Tensors(AutogradContext*)>;
  using Backward = Tensors (*)(AutogradContext*, const Tensors&);
  /// `arguments` has an entry per argument of forward, null for those that are no tensors.
  static Tensors apply(const OpInfo& op, const std::vector<const Tensor*>& arguments, const Forward& forward, SourceLocation where);
  /// The rule: calls backward and hands its gradients on.
  static void run_backward(RuleContext& rule, Backward backward);
};

template <class F>
class Function {
 public:
  /// Calls F::forward(ctx, args...). Error(bad_argument) when backward gives the wrong number of gradients, cotangent_mismatch when one has
  /// another type than its argument.
  template <class... Args>
  static auto apply(const Args&... args) {
    using Result = decltype(F::forward(static_cast<AutogradContext*>(nullptr), args...));
    const std::vector<const Tensor*> arguments{pointer(args)...};
    const auto forward = [&](AutogradContext* ctx) -> Tensors {
      if constexpr (std::is_same_v<Result, Tensor>) return {F::forward(ctx, args...)};
      else return F::forward(ctx, args...);
    };
    Tensors results = FunctionCall::apply(op, arguments, forward, {});
    if constexpr (std::is_same_v<Result, Tensor>) return std::move(results[0]);
    else return results;
  }

 private:
  static const Tensor* pointer(const Tensor& t) { return &t; }
  template <class T>
  static const Tensor* pointer(const T&) {
    return nullptr;
  }
  static constexpr OpInfo make() {
    OpInfo info;
    info.name = "function";
    info.arity = -1;
    info.outputs = -1;
    info.traits = static_cast<uint32_t>(Trait::effect);
    info.vjp = [](RuleContext& rule) { FunctionCall::run_backward(rule, F::backward); };
    return info;
  }
  static constexpr OpInfo op = make();
};

}  // namespace retrograd
