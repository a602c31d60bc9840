// See tracer/null_executor.h.
#include "tracer/null_executor.h"

#include <cstring>

#include <fmt/format.h>

namespace retrograd {
namespace {

// The first operand whose memory the results are written to, or -1.
int overwritten_operand(const Call& call, TensorImpl* const* outputs) {
  for (size_t k = 0; k < call.operands.size(); ++k)
    for (int i = 0; i < call.outputs; ++i)
      if (call.operands[k] && call.operands[k]->storage() == outputs[i]->storage())
        return static_cast<int>(k);
  return -1;
}

}  // namespace

Kernel NullExecutor::find(const OpInfo*) const {
  return [](const Call&, TensorImpl* const*) {};
}

void NullExecutor::note_freed() {
  const int64_t live = memory::stats().live_bytes;
  if (live < live_bytes_) lines_.push_back(fmt::format("free {} bytes", live_bytes_ - live));
  live_bytes_ = live;
}

void NullExecutor::allocate(TensorImpl& cell) {
  note_freed();
  cell.allocate();
  std::memset(cell.data(), 0, static_cast<size_t>(cell.storage()->nbytes()));
  live_bytes_ = memory::stats().live_bytes;
  ++allocations_;
  lines_.push_back(fmt::format("allocate {}", to_string(cell.type())));
}

void NullExecutor::launch(Kernel kernel, const Call& call, TensorImpl* const* outputs) {
  note_freed();
  std::string types;
  for (int i = 0; i < call.outputs; ++i) types += (i ? ", " : " ") + to_string(outputs[i]->type());
  const int over = overwritten_operand(call, outputs);
  lines_.push_back(fmt::format("launch {}#{}{}{}", call.op->name, launches_++, types,
                               over < 0 ? "" : fmt::format(" over operand {}", over)));
  kernel(call, outputs);
}

std::string NullExecutor::text() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

void NullExecutor::clear() {
  lines_.clear();
  allocations_ = launches_ = 0;
  live_bytes_ = memory::stats().live_bytes;
}

}  // namespace retrograd
