// See tracer/observe/memory_certificate.h.
#include "tracer/observe/memory_certificate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace retrograd::inline v0 {
namespace {

std::string numbers_text(std::string_view what, const std::vector<int32_t>& numbers) {
  return numbers.empty() ? "" : fmt::format(" {} {}", what, fmt::join(numbers, " "));
}

std::string operation_text(const MemoryCertificate::Run& run) {
  return fmt::format("{} at {}", run.op, to_string(run.where));
}

std::string run_text(const MemoryCertificate& certificate, size_t number) {
  const MemoryCertificate::Run& run = certificate.runs[number];
  std::string makes, over;
  for (int32_t v : run.makes)
    makes += fmt::format(" {} ({})", v, certificate.values[static_cast<size_t>(v)].bytes);
  for (const MemoryCertificate::Overlay& o : run.overlays)
    over += fmt::format(" {} over {}", o.result, o.operand);
  return fmt::format("  {:>5}{:>14}  task {}, {}:{}{}{}{}{}\n", number, run.held_bytes, run.task,
                     operation_text(run), numbers_text("reads", run.reads),
                     makes.empty() ? "" : " makes" + makes, numbers_text("unused", run.unused),
                     over.empty() ? "" : " may lie" + over,
                     run.scratch_bytes ? fmt::format(" scratch ({})", run.scratch_bytes) : "");
}

}  // namespace

std::string MemoryCertificate::text() const {
  if (runs.empty()) return "no runs\n";
  std::string text = "runs, bytes held during each, values by number with their bytes:\n";
  for (size_t i = 0; i < runs.size(); ++i) text += run_text(*this, i);
  text += fmt::format("held at the peak of {} bytes, run {}:\n", peak_bytes, peak_run);
  const auto line = [&](std::string_view name, int64_t bytes, const std::string& what) {
    text += fmt::format("  {:>5}{:>14}  {}\n", name, bytes, what);
  };
  for (int32_t v : held) {
    const Value& value = values[static_cast<size_t>(v)];
    line(std::to_string(v), value.bytes, fmt::format("{} at {}", value.op, to_string(value.where)));
  }
  line("", runs[static_cast<size_t>(peak_run)].scratch_bytes, "scratch");
  text += fmt::format("lower bound {} bytes, {}\n", lower_bound_bytes,
                      operation_text(runs[static_cast<size_t>(widest_run)]));
  if (besides_bytes) text += fmt::format("held besides {} bytes\n", besides_bytes);
  return text;
}

}  // namespace retrograd
