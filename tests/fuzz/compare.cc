// Comparing runs; see compare.h.
#include "tests/fuzz/compare.h"

#include <fmt/format.h>

#include "tests/fuzz/generator.h"
#include "tests/ir/round_trip.h"

namespace fuzz {
namespace {

using Lines = std::vector<std::string>;

/// Hands each call on. Backwards into any but the eager emitter run node by node.
class Through final : public rg::Emitter {
 public:
  void emit(const rg::Call& call, Tensor* results) override { rg::eager_emitter().emit(call, results); }
  std::string name() const override { return "Through"; }
  Values values() const override { return Values::computed; }
};

struct Run {
  Lines lines;
  std::string fault;
};

Run run(const Program& program, rg::CompiledBackward* compiled, const Options& options, bool values,
        bool node_by_node = false) {
  Through through;
  std::optional<rg::CompiledBackwardScope> scope;
  std::optional<rg::Emitter::Scope> emitter;
  if (compiled) scope.emplace(*compiled);
  if (node_by_node) emitter.emplace(through);
  Run result;
  Machine machine(program, values, compiled ? nullptr : options.coverage);
  if (compiled && options.check_graphs)
    machine.after_backward = [&] {
      if (const auto graph = compiled->graph(); graph && result.fault.empty())
        result.fault = ir_test::fault_of(*graph);
    };
  machine.run();
  result.lines = machine.lines();
  if (machine.broken() && result.fault.empty())
    result.fault = "an exception that is none of the library's, or a bug of it";
  return result;
}

std::string first_difference(const Lines& eager, const Lines& other) {
  size_t i = 0;
  while (i < eager.size() && i < other.size() && eager[i] == other[i]) ++i;
  std::string text;
  for (size_t k = i < 3 ? 0 : i - 3; k < i; ++k) text += "    " + eager[k] + "\n";
  for (size_t k = i; k < std::min(i + 3, eager.size()); ++k) text += "  eager " + eager[k] + "\n";
  for (size_t k = i; k < std::min(i + 3, other.size()); ++k) text += "  other " + other[k] + "\n";
  return text;
}

/// The runs, one after the other; with `values` more details on known differences.
std::optional<std::string> compare(const Program& program, const Options& options, bool values) {
  rg::CompiledBackward compiled;
  const auto check = [&](const Program& p, std::string_view what, int times,
                         bool node_by_node) -> std::optional<std::string> {
    const Run eager = run(p, nullptr, options, values);
    if (!eager.fault.empty())
      return fmt::format("{}, eager: {}\n{}", what, eager.fault, first_difference(eager.lines, {}));
    for (int i = 0; i < times; ++i) {
      const Run traced = run(p, &compiled, options, values, node_by_node);
      if (traced.lines != eager.lines)
        return fmt::format("{}, traced run {}:\n{}", what, i, first_difference(eager.lines, traced.lines));
      if (!traced.fault.empty()) return fmt::format("{}, graph: {}", what, traced.fault);
    }
    return {};
  };
  if (auto found = check(program, "as made", 2, false)) return found;
  const Program other = at_other_sizes(program), changed = with_one_change(program);
  if (auto found = check(other, "at other sizes", 1, false)) return found;
  if (auto found = check(changed, "with one change", 1, false)) return found;
  if (auto found = check(program, "as made again", 1, false)) return found;
  return check(program, "node by node", 1, true);
}

}  // namespace

std::optional<std::string> difference(const Program& program, const Options& options) {
  const int64_t before = rg::memory::stats().live_tensors;
  const std::optional<std::string> found = compare(program, options, false);
  if (found) return compare(program, {options.check_graphs}, true).value_or(*found);
  const int64_t left = rg::memory::stats().live_tensors - before;
  if (left != 0) return fmt::format("leak, of {} tensors", left);
  return {};
}

}  // namespace fuzz
