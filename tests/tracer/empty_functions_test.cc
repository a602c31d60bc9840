// Functions that are kept to be called later are refused when they are empty, and nothing has been registered.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;
using rg::Category;

template <class F>
void refused(F f) {
  CHECK(category_of(f) == Category::bad_argument);
  CHECK_THAT(error_of(f), Catch::Contains("empty") && Catch::Contains("empty_functions_test.cc"));
}

using Look = void (*)(const Tensor&);
using OnTensor = std::function<Tensor(const Tensor&)>;
using OnLists = std::function<Tensors(const Tensors&)>;
using OnTwoLists = std::function<Tensors(const Tensors&, const Tensors&)>;

}  // namespace

TEST_CASE("empty hooks") {
  const Tensor x = leaf({2}), y = x * x;
  for (const Tensor& t : {x, y}) {
    refused([&] { t.register_hook(OnTensor()); });
    refused([&] { t.register_hook(std::function<void(Tensor)>()); });  // of another type than the hook's
    refused([&] { t.register_hook(Look(nullptr)); });
  }
  refused([&] { x.register_post_accumulate_grad_hook(std::function<void(const Tensor&)>()); });
  refused([&] { x.register_post_accumulate_grad_hook(Look(nullptr)); });
  refused([&] { x.register_accumulate_grad_prehook(OnLists()); });
  refused([&] { x.register_accumulate_grad_posthook(OnTwoLists()); });
  refused([&] { y.grad_fn().register_prehook(OnLists()); });
  refused([&] { y.grad_fn().register_hook(OnTwoLists()); });
  refused([&] { ag::register_multi_grad_hook({x}, std::function<void(const Tensors&)>()); });
  y.backward();
  CHECK(values(x.grad()) == std::vector<double>{4});
}

TEST_CASE("empty callbacks, pairs, functions to differentiate, and recomputed values") {
  const Tensor x = leaf({2}), y = x * x;
  y.register_hook([](const Tensor&) { refused([] { ag::queue_callback(std::function<void()>()); }); });
  y.backward({}, true);
  const auto same = [](const Tensor& t) { return t; };
  refused([&] { rg::SavedTensorHooksGuard guard{rg::RefPtr<rg::SavedTensorHooks>()}; });
  refused([&] { rg::SavedTensorHooksGuard guard(OnTensor(), same); });
  refused([&] { rg::saved_tensor_hooks(same, OnTensor()); });
  refused([&] { y.grad_fn().register_saved_tensor_hooks(0, {}); });
  refused([&] { rg::recompute(std::function<Tensor()>()); });
  refused([&] { rg::recompute(x, std::function<Tensor()>()); });
  refused([&] { ag::vjp({}, {x}); });
  refused([&] { ag::jvp({}, {x}, {x}); });
  refused([&] { ag::jacobian({}, {x}); });
  refused([&] { ag::hessian({}, {x}); });
  refused([&] { ag::hvp({}, {x}, {x}); });
  refused([&] { ag::vhp({}, {x}, {x}); });
}
