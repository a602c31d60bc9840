// Entries for hooks. Their results are random too: a tensor of another type, nothing, too many gradients; some throw.
// They run in any backward that reaches them later in the round.
#include "tests/fuzz/api_failure.h"
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::Scalar;

void add_tensor_hooks(ApiTable& t) {
  add(
      t, "register_hook", +[](Tensor x, Scalar factor, bool traceable) {
        x.register_hook([factor](const Tensor& g) { return g * factor; }).set_traceable(traceable);
      });
  add(
      t, "register_hook that answers", +[](Arguments& a, Tensor x, Tensor answer) {
        x.register_hook(
            [lent = a.lend({answer})](const Tensor&) { return lent->empty() ? Tensor() : lent->front(); });
      });
  add(
      t, "register_hook that throws",
      +[](Tensor x) { x.register_hook([](const Tensor&) -> Tensor { throw HookFailure(); }); });
  add(
      t, "register_hook that writes", +[](Tensor x, Scalar factor) {
        x.register_hook([factor](const Tensor& g) { return g.mul_(factor); });
      });
  add(
      t, "register_hook that is removed",
      +[](Tensor x) { x.register_hook([](const Tensor& g) { return g; }).remove(); });
  add(
      t, "register_hook with a backward inside", +[](Arguments& a, Tensor x, Tensor y) {
        x.register_hook([lent = a.lend({y})](const Tensor& g) {
          const rg::EnableGradGuard on;
          const Tensor z = g.detach().requires_grad_();
          for (const Tensor& other : *lent) rg::sum(z * other.detach()).backward();
          return z.grad();
        });
      });
  add(
      t, "register_hook with a callback", +[](Tensor x) {
        x.register_hook([](const Tensor&) {
          rg::autograd::queue_callback([] {});
          return Tensor();
        });
      });
  add(
      t, "queue_callback", +[] {  // outside of a backward
        try {
          rg::autograd::queue_callback([] {});
        } catch (const rg::Error&) {
        }
      });
  add(
      t, "register_multi_grad_hook", +[](Tensors x, bool any) {
        rg::autograd::register_multi_grad_hook(
            x, [](const Tensors&) {},
            any ? rg::autograd::MultiGradMode::any : rg::autograd::MultiGradMode::all);
      });
}

void add_leaf_hooks(ApiTable& t) {
  add(
      t, "register_post_accumulate_grad_hook",
      +[](Tensor x) { x.register_post_accumulate_grad_hook([](const Tensor& leaf) { leaf.set_grad({}); }); });
  add(
      t, "register_post_accumulate_grad_hook that writes", +[](Tensor x) {
        x.register_post_accumulate_grad_hook([](const Tensor& leaf) {
          const rg::NoGradGuard no_grad;
          leaf.add_(leaf.grad(), -0.25);
        });
      });
  add(
      t, "register_accumulate_grad_prehook", +[](Arguments& a, Tensor x, Tensors answer) {
        x.register_accumulate_grad_prehook([lent = a.lend(answer)](const Tensors&) { return *lent; });
      });
  add(
      t, "register_accumulate_grad_posthook", +[](Arguments& a, Tensor x, Tensors answer) {
        x.register_accumulate_grad_posthook(
            [lent = a.lend(answer)](const Tensors&, const Tensors&) { return *lent; });
      });
}

void add_node_hooks(ApiTable& t) {
  add(
      t, "register_prehook", +[](Arguments& a, Tensor x, Tensors answer) {
        x.grad_fn().register_prehook(
            [lent = a.lend(answer)](const Tensors& g) { return lent->empty() ? g : *lent; });
      });
  add(
      t, "Node::register_hook", +[](Arguments& a, Tensor x, Tensors answer) {
        x.grad_fn().register_hook(
            [lent = a.lend(answer)](const Tensors& g, const Tensors&) { return lent->empty() ? g : *lent; });
      });
  add(
      t, "register_saved_tensor_hooks", +[](Tensor x, int64_t slot, rg::ScalarType dtype) {
        const auto pair = rg::saved_tensor_hooks([dtype](const Tensor& s) { return s.to(dtype); },
                                                 [](const Tensor& s) { return s.to(rg::kFloat32); });
        x.grad_fn().register_saved_tensor_hooks(static_cast<int>(slot), pair);
      });
  add(
      t, "register_saved_tensor_hooks that recomputes", +[](Arguments& a, Tensor x, int64_t slot, Tensor y) {
        const auto made = [lent = a.lend({y})] { return lent->empty() ? Tensor() : rg::tanh(lent->front()); };
        x.grad_fn().register_saved_tensor_hooks(static_cast<int>(slot), rg::recompute(made));
      });
}

}  // namespace

void add_hook_api(ApiTable& table) {
  add_tensor_hooks(table);
  add_leaf_hooks(table);
  add_node_hooks(table);
}

}  // namespace fuzz
