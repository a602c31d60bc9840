// See tracer/plan/null_executor.h.
#include "tracer/plan/null_executor.h"

#include <cstring>

#include <fmt/format.h>

#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
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

// Notes the calls that it gets.
class NullExecutor::Graph final : public LaunchGraph {
 public:
  explicit Graph(NullExecutor& executor) : executor_(executor), number_(executor.graphs_++) {}
  void begin() override { note(fmt::format("record graph {}", number_)); }
  void end() override { note("end"); }
  void cancel() noexcept override { note("cancel"); }
  void start() override { note(fmt::format("start graph {}", number_)); }

 private:
  void note(std::string line) {
    executor_.note_freed();
    executor_.lines_.push_back(std::move(line));
  }
  NullExecutor& executor_;
  const int number_;
};

std::unique_ptr<LaunchGraph> NullExecutor::new_graph() { return std::make_unique<Graph>(*this); }

// There is only one memory; the op that copies between two memories stands for a read by the host.
std::string_view NullExecutor::host_work(const OpInfo& op, const void*, std::span<const TensorType>,
                                         std::span<const TensorType>) const {
  return &op == &ops::info<ops::ToDevice> ? "the host waits for what it reads" : "";
}

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

RefPtr<Storage> NullExecutor::allocate_memory(int64_t bytes) {
  note_freed();
  RefPtr<Storage> memory = Storage::allocate(bytes);
  std::memset(memory->data(), 0, static_cast<size_t>(bytes));
  arena_ = static_cast<const std::byte*>(memory->data());
  arena_bytes_ = bytes;
  live_bytes_ = memory::stats().live_bytes;
  lines_.push_back(fmt::format("arena of {} bytes", bytes));
  return memory;
}

// Offset of the first result in the arena; empty: elsewhere.
std::string NullExecutor::place(const Call& call, TensorImpl* const* outputs) const {
  const auto* data = call.outputs ? static_cast<const std::byte*>(outputs[0]->data()) : nullptr;
  return data && data >= arena_ && data < arena_ + arena_bytes_ ? fmt::format(" at {}", data - arena_) : "";
}

void NullExecutor::launch(Kernel kernel, const Call& call, TensorImpl* const* outputs, std::span<std::byte>) {
  note_freed();
  std::string types;
  for (int i = 0; i < call.outputs; ++i) types += (i ? ", " : " ") + to_string(outputs[i]->type());
  const int over = overwritten_operand(call, outputs);
  lines_.push_back(fmt::format("launch {}#{}{}{}{}", call.op->name, launches_++, types, place(call, outputs),
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
