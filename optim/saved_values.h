// SavedValues: takes the entries of a saved state one by one, so that what is left over at the end does not belong there.
// Its errors are those of load_state_dict: Error(bad_argument) for a missing or unknown key.
#pragma once

#include <optional>

#include "io/state_dict.h"

namespace retrograd::inline v0::optim::detail {

class SavedValues {
 public:
  /// `owner`, for messages: "this optimizer".
  SavedValues(const StateDict& state, std::string_view owner, SourceLocation where)
      : rest_(state), owner_(owner), where_(where) {}

  /// Undefined if there is none.
  Tensor find(std::string_view key);
  Tensor take(std::string_view key);
  double number(std::string_view key) { return take(key).item<double>(where_); }
  int64_t count(std::string_view key) { return take(key).item<int64_t>(where_); }
  /// `size` numbers.
  std::vector<double> list(std::string_view key, size_t size);
  template <class T>
  std::optional<T> find_number(std::string_view key) {
    const Tensor value = find(key);
    return value.defined() ? std::optional<T>(value.item<T>(where_)) : std::nullopt;
  }
  /// The entries "<prefix>.*", without the prefix.
  StateDict part(std::string_view prefix);
  bool empty() const { return rest_.empty(); }
  const StateDict& rest() const { return rest_; }
  SourceLocation where() const { return where_; }
  void end() const;
  [[noreturn]] void refuse(const std::string& text) const;

 private:
  StateDict rest_;
  std::string_view owner_;
  SourceLocation where_;
};

/// A tensor with a number for each.
Tensor list_of(const std::vector<double>& values);

}  // namespace retrograd::optim::detail
