// See tracer/function/saved_values.h.
#include "tracer/function/saved_values.h"

#include "tracer/function/function_recorder.h"

namespace retrograd::inline v0 {

int32_t SavedValues::index_of(const Tensor& tensor, const Record* user) {
  bool has_history = tensor.requires_grad();
  for (int i = 0; user && i < user->slots; ++i)
    if (const Slot& slot = user->slot(i); slot.value() == tensor.get())
      has_history = slot.is_result || user->edge(slot.index);
  const ir::ValueId value = of_.read(tensor, has_history);
  if (is_finished_ && !numbers_.contains(value))
    throw FixedSizesNeeded("at other sizes its backward uses other values");
  const auto [it, fresh] = numbers_.try_emplace(value, static_cast<int32_t>(numbers_.size()));
  if (!fresh) return it->second;
  const Root* const root = tensor.impl().has_layout() ? &of_.memory().root_of(tensor.impl()) : nullptr;
  const bool lies_in_input = root && root->is_written && root->seen >= 0;
  locations_.push_back(lies_in_input ? of_.memory().location_of(tensor) : Location());
  return it->second;
}

std::vector<ir::ValueId> SavedValues::values() const {
  std::vector<ir::ValueId> values(numbers_.size());
  for (const auto& [value, number] : numbers_) values[static_cast<size_t>(number)] = value;
  return values;
}

void SavedValues::finish(RecordedFunction& out) {
  const std::vector<bool> is_overwritten = of_.memory().overwritten_inputs();
  const std::vector<ir::ValueId> shown = of_.memory().shown_values();
  out.saved.resize(numbers_.size());
  for (const auto& [value, number] : numbers_) {
    const Location& location = locations_[static_cast<size_t>(number)];
    const bool is_old = is_overwritten[static_cast<size_t>(shown[static_cast<size_t>(value)])];
    out.saved[static_cast<size_t>(number)] = {of_.outputs().add(value, is_old && !location.defined()),
                                              location};
  }
  is_finished_ = true;
}

}  // namespace retrograd
