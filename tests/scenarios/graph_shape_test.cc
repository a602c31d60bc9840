// The shape of captured graphs: the positions of unpacks, hooks and accumulations. The tests check the structure, not
// the text. Not tested here: printing and parsing (tests/ir), recomputation.
#include <algorithm>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

/// "unpack", "hook", "accumulate_grad", ... in the order of the graph, those named in `of` only.
Events effects(CompiledBackward& compiled, const Events& of) {
  const auto graph = compiled.graph();
  Events found;
  for (const ir::Node& node : graph->nodes())
    if (std::find(of.begin(), of.end(), node.op->name) != of.end()) found.emplace_back(node.op->name);
  return found;
}

/// The records that unpacks belong to, and whether the node after each unpack uses it.
std::pair<Events, bool> unpacks(CompiledBackward& compiled) {
  const auto graph = compiled.graph();
  Events records;
  bool all_used_at_once = true;
  for (size_t i = 0; i < graph->nodes().size(); ++i) {
    const ir::Node& node = graph->nodes()[i];
    if (node.op->name != "unpack") continue;
    records.emplace_back(graph->origin(node.origin).op);
    const auto operands = graph->operands(graph->nodes().at(i + 1));
    all_used_at_once &= std::find(operands.begin(), operands.end(), node.first_result) != operands.end();
  }
  return {records, all_used_at_once};
}

}  // namespace

TEST_CASE("S106, hook 26 sin, cos, their product: four unpacks, each right before its user") {
  CompiledBackward compiled = compile_backward();
  const Tensor x = some_leaf({3});
  {
    SavedTensorHooksGuard guard(identity_hooks());
    const Tensor y = sin(x), z = cos(y);
    compiled(sum(y * z));
  }
  const auto [records, all_used_at_once] = unpacks(compiled);
  INFO(compiled.graph()->print());
  CHECK(records == Events{"mul", "mul", "cos", "sin"});
  CHECK(all_used_at_once);
  CHECK(compiled.stats().captures == 1);
  const Tensor plain = some_leaf({3}), y = sin(plain), z = cos(y);
  sum(y * z).backward();
  CHECK(same_bits(x.grad(), plain.grad()));
}

TEST_CASE("S106, hook 26 slots without hooks are unpacked at the same places") {
  CompiledBackward compiled = compile_backward();
  const Tensor x = some_leaf({3}), y = sin(x), z = cos(y);
  compiled(sum(y * z));
  const auto [records, all_used_at_once] = unpacks(compiled);
  CHECK(records == Events{"mul", "mul", "cos", "sin"});
  CHECK(all_used_at_once);
}

TEST_CASE("S76 effects in a graph: a leaf accumulates right after its last consumer") {
  CompiledBackward compiled = compile_backward();
  const Tensor x = some_leaf({2, 3}), w = some_leaf({3, 2}), b = some_leaf({2});
  const Tensor h = mm(x, w), y = h + b, z = exp(y);
  z.register_hook(times(2));
  w.register_post_accumulate_grad_hook([](const Tensor&) {});
  compiled(sum(z));
  INFO(compiled.graph()->print());
  CHECK(effects(compiled, {"unpack", "hook", "accumulate_grad"}) ==
        Events{"hook", "unpack",           // z: its hook, its result
               "accumulate_grad",          // b
               "unpack", "unpack",         // mm
               "accumulate_grad", "hook",  // w and its post-accumulate hook
               "accumulate_grad"});        // x
}

TEST_CASE("roots in the order of their records and in the opposite one are two structures") {
  CompiledBackward compiled = compile_backward();
  const Tensor x = some_leaf({6});
  const Tensors parts = split(x, 1);
  for (const size_t first : {5, 2, 4, 2}) {
    x.set_grad({});
    compiled.backward({parts[first], parts[3]}, {full({1}, 2.0), full({1}, 7.0)}, true);
    std::vector<double> expected(6);
    expected[first] = 2, expected[3] = 7;
    CHECK(values(x.grad()) == expected);
  }
  CHECK(compiled.stats().captures == 2);
}

}  // namespace retrograd::scenario
