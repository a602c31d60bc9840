// Texts of a MemoryReport: see tracer/observe/memory_report.h.
#include "tracer/observe/memory_report.h"

#include <fmt/format.h>

namespace retrograd::inline v0 {
namespace {

constexpr size_t kMostValues = 30;

using Action = MemoryReport::Value::Action;

std::string action_text(const MemoryReport::Value& value) {
  if (value.action == Action::saved) return "saved";
  return value.times > 1 ? fmt::format("computed again {} times", value.times) : "computed again";
}

std::string value_text(const MemoryReport::Value& value) {
  return fmt::format("  {:>14} bytes  {} at {}: {}, {:.2f} % of the time; {}\n", value.bytes, value.op,
                     to_string(value.where), action_text(value), 100 * value.share, value.reason);
}

// Those that are inputs are one line: they do not count.
std::string values_text(const std::vector<MemoryReport::Value>& values) {
  std::string lines;
  size_t shown = 0, hidden = 0, inputs = 0;
  int64_t bytes_hidden = 0, bytes_of_inputs = 0;
  for (const MemoryReport::Value& value : values) {
    if (value.action == Action::input)
      ++inputs, bytes_of_inputs += value.bytes;
    else if (shown < kMostValues)
      ++shown, lines += value_text(value);
    else
      ++hidden, bytes_hidden += value.bytes;
  }
  if (hidden) lines += fmt::format("  and {} more: {} bytes\n", hidden, bytes_hidden);
  if (inputs) lines += fmt::format("  inputs, which do not count: {}, {} bytes\n", inputs, bytes_of_inputs);
  return lines;
}

}  // namespace

std::string MemoryReport::text() const {
  const auto line = [&](std::string_view what, int64_t bytes) {
    return fmt::format("  {:<18}{:>14} bytes\n", what, bytes);
  };
  std::string text =
      "memory that a run adds:\n" + line("budget", budget_bytes) + line("eager", eager_bytes) +
      line("order alone", ordered_bytes) + line("planned", planned_bytes) +
      line("lower bound", lower_bound_bytes) +
      fmt::format("  {:<18}{:>14.1f} % of all operations\n", "computed again", 100 * recomputed_share);
  if (!values.empty()) text += "values that are held across the widest point, or computed again:\n";
  return text + values_text(values);
}

std::string MemoryReport::json() const {
  std::string points;
  for (const Point& p : pareto)
    points += fmt::format("{}\n    {{\"bytes\": {}, \"recomputed_share\": {}}}", points.empty() ? "" : ",",
                          p.bytes, p.recomputed_share);
  return fmt::format(
      "{{\n  \"budget_bytes\": {},\n  \"eager_bytes\": {},\n  \"ordered_bytes\": {},\n  \"planned_bytes\": "
      "{},\n"
      "  \"lower_bound_bytes\": {},\n  \"recomputed_share\": {},\n  \"pareto\": [{}\n  ]\n}}\n",
      budget_bytes, eager_bytes, ordered_bytes, planned_bytes, lower_bound_bytes, recomputed_share, points);
}

}  // namespace retrograd
