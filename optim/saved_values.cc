// See optim/saved_values.h.
#include "optim/saved_values.h"

#include <fmt/format.h>

#include "ops/creation.h"

namespace retrograd::inline v0::optim::detail {

Tensor SavedValues::find(std::string_view key) {
  const auto it = rest_.find(key);
  if (it == rest_.end()) return {};
  const Tensor value = it->second;
  rest_.erase(it);
  return value;
}

Tensor SavedValues::take(std::string_view key) {
  const Tensor value = find(key);
  if (!value.defined()) refuse(fmt::format("there is no \"{}\"", key));
  return value;
}

std::vector<double> SavedValues::list(std::string_view key, size_t size) {
  std::vector<double> values = take(key).to_vector();
  if (values.size() != size) refuse(fmt::format("\"{}\" has {} numbers, not {}", key, values.size(), size));
  return values;
}

StateDict SavedValues::part(std::string_view prefix) {
  StateDict found;
  for (auto it = rest_.begin(); it != rest_.end();) {
    const std::string_view key = it->first;
    const bool is_part = key.starts_with(prefix) && key.substr(prefix.size()).starts_with('.');
    if (is_part) found.emplace(key.substr(prefix.size() + 1), it->second);
    it = is_part ? rest_.erase(it) : std::next(it);
  }
  return found;
}

void SavedValues::end() const {
  if (!rest_.empty()) refuse(fmt::format("\"{}\" is not a state of {}", rest_.begin()->first, owner_));
}

void SavedValues::refuse(const std::string& text) const {
  fail(Category::bad_argument, "load_state_dict", text, where_);
}

Tensor list_of(const std::vector<double>& values) {
  return tensor(values, {static_cast<int64_t>(values.size())}, {kFloat64});
}

}  // namespace retrograd::optim::detail
