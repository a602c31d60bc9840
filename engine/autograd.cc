// See engine/autograd.h: thin entry points over the driver.
#include "engine/autograd.h"

#include <memory>
#include <mutex>

#include "engine/driver.h"

namespace retrograd::inline v0::autograd {
namespace {

// A backward in code that is being recorded becomes part of the recording, whatever scopes are open.
Tensors run(const BackwardRequest& request) {
  const auto runner = Emitter::current().is_symbolic() ? nullptr : BackwardRunner::current();
  return runner ? runner->run(request) : run_backward(request);
}

}  // namespace

void backward(const Tensors& roots, const Tensors& cotangents, std::optional<bool> retain_graph,
              bool create_graph, const std::optional<Tensors>& inputs, SourceLocation where) {
  run(make_request(roots, cotangents, inputs, true, retain_graph, create_graph, where));
}

Tensors grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents,
             std::optional<bool> retain_graph, bool create_graph, bool allow_unused, bool materialize_grads,
             SourceLocation where) {
  Tensors gradients = run(make_request(roots, cotangents, inputs, false, retain_graph, create_graph, where));
  finish_gradients(gradients, inputs, allow_unused, materialize_grads, where);
  return gradients;
}

Tensors detail::partial_grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents,
                             bool create_graph, SourceLocation where) {
  BackwardRequest request = make_request(roots, cotangents, inputs, false, create_graph, create_graph, where);
  request.ends_at_inputs = true;
  return run_backward(request);
}

bool is_differentiated_again() {
  return CurrentBackward::innermost() &&
         (GradMode::is_enabled() || Emitter::current().values() == Emitter::Values::of_function);
}

void queue_callback(std::function<void()> callback, SourceLocation where) {
  CurrentBackward* current = CurrentBackward::innermost();
  if (!current)
    fail(Category::hook_forbidden, "queue_callback", "no backward is running on this thread", where);
  require_function(static_cast<bool>(callback), "queue_callback", where);
  current->queue(std::move(callback));
}

namespace {

// The place of a gradient of interest, without ownership: the hooks are attached to the records and leaves that they
// wait for, and would keep them alive.
struct Place {
  uint64_t seq = 0;  // of a record
  WeakRef<TensorImpl> leaf = {};
  bool reached(CurrentBackward& in) const {
    return seq ? in.reaches(seq) : !leaf.expired() && in.reaches(leaf.address());
  }
};

Place place_of(TensorImpl& tensor) {
  const Edge edge = gradient_edge(tensor);
  if (edge.record()) return {.seq = edge.record()->seq};
  return {.leaf = WeakRef<TensorImpl>(*edge.leaf())};
}

// State of one multi-grad hook within one backward. A new backward (another id) starts from the initial state.
// Completeness is PyTorch's: as many calls as there are places that the backward reaches, without its only root. Then
// the count starts again, so such a root is told apart.
// The gradients seen so far are owned by the backward, through one of its callbacks, and are freed with it. The hook
// must not own them: it is attached to the graph that gradients of a recorded backward hold, and would keep them
// forever when the backward ends early.
struct MultiGrad {
  std::mutex mutex;
  std::vector<Place> places;
  std::function<void(const Tensors&)> hook;
  MultiGradMode mode;
  uint64_t backward = 0;
  int64_t calls = 0, expected = 0;
  bool fired = false;
  std::weak_ptr<Tensors> seen;

  // Returns the gradients when the hook is to be called now.
  std::optional<Tensors> receive(size_t index, const Tensor& grad) {
    CurrentBackward* current = CurrentBackward::innermost();
    RG_ASSERT(current != nullptr);
    std::lock_guard lock(mutex);
    if (backward != current->id()) {
      backward = current->id();
      calls = 0;
      fired = false;
    }
    if (mode == MultiGradMode::any)
      return std::exchange(fired, true) ? std::optional<Tensors>() : Tensors{grad};
    std::shared_ptr<Tensors> all = seen.lock();
    if (calls == 0) {
      all = std::make_shared<Tensors>(places.size());
      seen = all;
      current->queue([all] {});
      expected = 0;
      for (const Place& place : places) expected += place.reached(*current);
    }
    RG_ASSERT(all != nullptr);
    (*all)[index] = grad;
    if (++calls != expected) return {};
    calls = 0;
    return std::move(*all);
  }
};

}  // namespace

HookHandle detail::add_multi_grad_hook(const Tensors& tensors, std::function<void(const Tensors&)> hook,
                                       MultiGradMode mode, SourceLocation where) {
  if (tensors.empty())
    fail(Category::bad_argument, "register_multi_grad_hook", "there are no tensors", where);
  require_function(static_cast<bool>(hook), "register_multi_grad_hook", where);
  auto state = std::make_shared<MultiGrad>();
  state->hook = std::move(hook);
  state->mode = mode;
  HookHandle handle;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorImpl& tensor = tensors[i].impl("register_multi_grad_hook", where);
    handle.join(tensors[i].register_hook(
        [state, i](const Tensor& grad) {
          if (std::optional<Tensors> ready = state->receive(i, grad)) state->hook(*ready);
          return Tensor();
        },
        where));
    state->places.push_back(place_of(tensor));
  }
  return handle;
}

}  // namespace retrograd::autograd
