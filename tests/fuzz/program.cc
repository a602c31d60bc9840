// The text of programs.
#include "tests/fuzz/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace fuzz {
namespace {

constexpr std::string_view kNames[] = {
    "leaf",     "op",   "view",        "in_place",    "detach",       "open",
    "close",    "hook", "remove_hook", "retain_grad", "pair_on_slot", "requires_grad",
    "backward", "grad", "read_grad",   "clear_grad",  "drop"};
static_assert(std::size(kNames) == kKinds);

template <class List, class F>
std::string joined(const List& list, F&& text) {
  std::string all;
  for (const auto& entry : list) all += (all.empty() ? "" : ",") + text(entry);
  return all;
}

std::string text_of(Ref ref) {
  return ref.output ? fmt::format("v{}.{}", ref.step, ref.output) : fmt::format("v{}", ref.step);
}

std::string text_of(Int i) {
  return i.palette < 0 ? std::to_string(i.value) : std::string(1, static_cast<char>('A' + i.palette));
}

}  // namespace

std::string_view to_string(Kind kind) { return kNames[static_cast<size_t>(kind)]; }

bool Step::has(std::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string to_string(const Step& step) {
  const bool is_row = step.kind == Kind::op || step.kind == Kind::view;
  std::string text = fmt::format("v{} = {}", step.id, is_row ? step.name : to_string(step.kind));
  if (!is_row && !step.name.empty()) text += fmt::format(" {}", step.name);
  if (!step.operands.empty() || !step.inputs.empty()) {
    text += "(" + joined(step.operands, [](Ref r) { return text_of(r); });
    if (!step.inputs.empty()) text += "; " + joined(step.inputs, [](Ref r) { return text_of(r); });
    text += ")";
  }
  if (!step.ints.empty() || step.kind == Kind::leaf)
    text += fmt::format(" [{}]", joined(step.ints, [](Int i) { return text_of(i); }));
  for (const double number : step.numbers) text += fmt::format(" {}", number);
  for (const std::string_view word : step.words) text += fmt::format(" {}", word);
  return text;
}

std::string to_string(const Program& program) {
  std::string text = fmt::format("# seed {}; ", program.seed);
  for (size_t i = 0; i < program.palette.size(); ++i)
    text += fmt::format("{} = {} ", static_cast<char>('A' + i), program.palette[i]);
  text += "\n";
  for (const Step& step : program.steps) text += to_string(step) + "\n";
  return text;
}

}  // namespace fuzz
