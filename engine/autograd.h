// Public entry points of differentiation: backward, grad, forward mode.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/emitter.h"
#include "engine/hook.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::autograd {

/// Accumulates the gradients of `roots` into the leaves they depend on, or into `inputs` only (a non-leaf among them
/// gets its .grad as with retain_grad). `cotangents[i]` has the type of roots[i]; undefined means ones, for a root of
/// one element.
/// retain_graph (default: create_graph) keeps saved values for another backward. create_graph records the backward
/// itself.
/// Errors: no_grad_fn, non_scalar_backward_without_cotangent, cotangent_mismatch, backward_twice_freed,
/// version_mismatch, bad_argument.
void backward(const Tensors& roots, const Tensors& cotangents = {}, std::optional<bool> retain_graph = {},
              bool create_graph = false, const std::optional<Tensors>& inputs = {},
              SourceLocation where = SourceLocation::current());

/// The gradients of `roots` with respect to `inputs`; .grad of the leaves is not changed. An input that is not reached
/// gives Error(unused_input), or an undefined tensor with allow_unused, or zeros with materialize_grads.
Tensors grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents = {},
             std::optional<bool> retain_graph = {}, bool create_graph = false, bool allow_unused = false,
             bool materialize_grads = false, SourceLocation where = SourceLocation::current());

/// Whether values computed here may be differentiated again: inside a backward with create_graph, or in one that is
/// recorded as part of a function.
bool is_differentiated_again();

/// For hooks and functions that run inside a backward: calls `callback` on this thread when that backward has finished,
/// in order of queueing. Callbacks may queue more. They are not called when the backward fails. Error(hook_forbidden)
/// outside of a backward. (PyTorch: queue_callback)
void queue_callback(std::function<void()> callback, SourceLocation where = SourceLocation::current());

/// While open on this thread, the gradients that each rule returns are checked. The first one with a nan or an infinity
/// where its operands have none ends the backward with an Error(bad_argument) that names the node, the line of the
/// forward call and the range of the operands' values. Leaves whose .grad has a nan or an infinity are refused before
/// the backward begins. Captured graphs run node by node while the guard is open.
/// check_nan = false: nothing is checked in this scope. (Errors name the line of the forward call in any case.)
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true, SourceLocation where = SourceLocation::current());
  static bool is_enabled();

 private:
  struct Scoped {
    bool check_nan;
  };
  static Scoped checked(bool check_nan, SourceLocation where);

  OpenScopes<Scoped>::Guard guard_;
};

/// The same for all threads where no guard is open, until it is switched off. libtorch's name.
struct AnomalyMode {
  static bool is_enabled() { return DetectAnomalyGuard::is_enabled(); }
  static void set_enabled(bool enabled, bool check_nan = true,
                          SourceLocation where = SourceLocation::current());
};

enum class MultiGradMode { all, any };
namespace detail {
/// grad() for gradients that are parts of sums: no path goes through an input, the tensor hooks of the inputs, which
/// will see the sums, are not called, and the gradient of an input that is not reached is undefined. Each input is given
/// once. It is never captured.
Tensors partial_grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents,
                     bool create_graph, SourceLocation where);
HookHandle add_multi_grad_hook(const Tensors& tensors, std::function<void(const Tensors&)> hook,
                               MultiGradMode mode, SourceLocation where);
}
/// Calls `hook`, void(const Tensors&), once per backward. all: when all of `tensors` that this backward reaches have
/// their gradient; the hook gets one entry per tensor, undefined where it is not reached or has no gradient. any: at
/// the first gradient, which is then the only entry.
template <class F>
HookHandle register_multi_grad_hook(const Tensors& tensors, F&& hook, MultiGradMode mode = MultiGradMode::all,
                                    SourceLocation where = SourceLocation::current()) {
  return detail::add_multi_grad_hook(tensors, retrograd::detail::multi_grad_hook(std::forward<F>(hook)), mode,
                                     where);
}

/// Forward mode: while open, tensors made with make_dual carry tangents through every op. Levels nest (PyTorch:
/// fwAD.dual_level), at most 256 on a thread: Error(unsupported) beyond.
class DualLevel {
 public:
  explicit DualLevel(SourceLocation where = SourceLocation::current());
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;

  /// `primal` with a tangent of the same type at this level. Error(cotangent_mismatch) when the types differ.
  Tensor make_dual(const Tensor& primal, const Tensor& tangent,
                   SourceLocation where = SourceLocation::current());
  /// The tangent of `tensor` at this level; undefined when it has none.
  Tensor tangent(const Tensor& tensor, SourceLocation where = SourceLocation::current()) const;

 private:
  uint64_t level_ = 0;
  RefPtr<Emitter::Layer> layer_;
};

/// The value of f at `inputs` and its derivative in the direction `tangents` (undefined: zero).
struct JvpResult {
  Tensors outputs, tangents;
};
JvpResult jvp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& tangents,
              SourceLocation where = SourceLocation::current());

}  // namespace retrograd::autograd
#pragma GCC visibility pop
