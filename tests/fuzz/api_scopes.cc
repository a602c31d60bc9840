// Scopes of the library in which the fuzzer makes some of its calls: without gradients, with saved tensors packed, in
// forward mode, with captured backwards, with an allocation that fails. Arguments are drawn inside.
#include "tests/fuzz/api_failure.h"
#include "tests/fuzz/api_table.h"
#include "tests/test_folder.h"

namespace fuzz {
namespace {

using Call = std::function<void()>;

struct Scope {
  std::string_view name;
  void (*open)(Arguments& a, const Call& call);
};

template <class Guard>
void in(Arguments&, const Call& call) {
  const Guard guard;
  call();
}

void with_pair(rg::RefPtr<rg::SavedTensorHooks> pair, const Call& call) {
  const rg::SavedTensorHooksGuard guard(std::move(pair));
  call();
}

void in_dual_level(Arguments& a, const Call& call) {
  rg::autograd::DualLevel level;
  struct Entered {
    Arguments& a;
    ~Entered() { a.level = nullptr; }
  } entered{a};
  a.level = &level;
  call();
  for (const Tensor& t : a.results()) (void)level.tangent(t);
}

void with_failing_allocation(Arguments& a, const Call& call) {
  struct Disarmed {
    ~Disarmed() { rg::memory::fail_allocation_after(0); }
  } disarmed;
  rg::memory::fail_allocation_after(a.random.between(1, 6));
  call();
}

constexpr Scope kScopes[] = {
    {"NoGradGuard", in<rg::NoGradGuard>},
    {"EnableGradGuard", in<rg::EnableGradGuard>},
    {"DetectAnomalyGuard", in<rg::autograd::DetectAnomalyGuard>},
    {"AllowMutationOnSavedTensors", in<rg::AllowMutationOnSavedTensors>},
    {"CompiledBackwardScope",
     [](Arguments& a, const Call& call) {
       const rg::CompiledBackwardScope scope(a.compiled);
       call();
     }},
    {"DisableSavedTensorHooks",
     [](Arguments&, const Call& call) {
       const rg::DisableSavedTensorHooks disabled("not here");
       call();
     }},
    {"DualLevel", in_dual_level},
    {"two DualLevels",
     [](Arguments& a, const Call& call) {
       const rg::autograd::DualLevel outer;
       in_dual_level(a, call);
     }},
    {"a failing allocation", with_failing_allocation},
    {"a failing allocation", with_failing_allocation},
    {"save_as_half", [](Arguments&, const Call& call) { with_pair(rg::save_as_half(), call); }},
    {"save_as_fp8", [](Arguments&, const Call& call) { with_pair(rg::save_as_fp8(), call); }},
    {"save_as_int8", [](Arguments&, const Call& call) { with_pair(rg::save_as_int8(), call); }},
    {"save_on_cpu",
     [](Arguments& a, const Call& call) { with_pair(rg::save_on_cpu(false, a.pool()), call); }},
    {"save_on_cpu, pinned",
     [](Arguments& a, const Call& call) {
       with_pair(rg::save_on_cpu(true, a.pool(), {.nodes = 3, .room_bytes = 1000}), call);
     }},
    {"save_to_file",
     [](Arguments&, const Call& call) {
       with_pair(rg::save_to_file(rg::testing::in_test_folder("")), call);
     }},
    {"recompute",
     [](Arguments& a, const Call& call) {
       const Tensor value = a.random.pick(a.pool());
       with_pair(rg::recompute(value, [copy = value.detach().clone()] { return copy; }), call);
     }},
    {"a traceable pair",
     [](Arguments&, const Call& call) {
       with_pair(rg::saved_tensor_hooks([](const Tensor& t) { return t.to(rg::kFloat64); },
                                        [](const Tensor& t) { return t.to(rg::kFloat32); }, true),
                 call);
     }},
    {"a pair that throws",
     [](Arguments&, const Call& call) {
       with_pair(rg::saved_tensor_hooks([](const Tensor& t) { return t; },
                                        [](const Tensor&) -> Tensor { throw HookFailure(); }),
                 call);
     }},
    {"a pair of another tensor",
     [](Arguments& a, const Call& call) {
       with_pair(
           rg::saved_tensor_hooks([lent = a.lend({a.random.pick(a.pool())})](const Tensor&) { return lent; },
                                  [](const std::shared_ptr<const Tensors>& lent) {
                                    return lent->empty() ? Tensor() : lent->front();
                                  }),
           call);
     }},
};

}  // namespace

void call_in_some_scope(const ApiFunction& function, Arguments& a) {
  if (!a.random.chance(0.2)) {
    a.begin(function.name, function.pattern);
    return function.call(a);
  }
  const Scope& scope = a.random.pick(kScopes);
  scope.open(a, [&] {
    a.begin(function.name, function.pattern);
    a.say_before(std::string("in ") + std::string(scope.name) + ": ");
    function.call(a);
  });
}

}  // namespace fuzz
