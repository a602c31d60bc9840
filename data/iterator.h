// Iterator: the batches of an epoch, one after the other.
//
// An input iterator: copies share one position. The first batch is fetched when it is first asked for. What fetching
// throws leaves the position where it was, and the next increment goes on behind the batch that failed.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "engine/error.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data {

template <class Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;

  /// The end of every loader.
  Iterator() = default;
  /// Begins with next(), which gives nothing at the end.
  explicit Iterator(std::function<std::optional<Batch>()> next)
      : position_(std::make_shared<Position>(std::move(next))) {}

  /// Error(bad_argument) at the end.
  Iterator& operator++() {
    checked();
    position_->batch = position_->next();
    return *this;
  }
  Batch& operator*() const { return checked(); }
  Batch* operator->() const { return &checked(); }

  /// Iterators are equal when both are at the end, or copies of one.
  friend bool operator==(const Iterator& a, const Iterator& b) {
    return a.position_ == b.position_ || (a.is_at_end() && b.is_at_end());
  }

 private:
  struct Position {
    explicit Position(std::function<std::optional<Batch>()> next) : next(std::move(next)) {}
    std::function<std::optional<Batch>()> next;
    std::optional<Batch> batch;
    bool is_begun = false;
  };

  bool is_at_end() const {
    if (!position_) return true;
    if (!position_->is_begun) {
      position_->batch = position_->next();
      position_->is_begun = true;
    }
    return !position_->batch;
  }
  Batch& checked() const {
    if (is_at_end()) fail(Category::bad_argument, "data loader", "its iterator is at the end");
    return *position_->batch;
  }

  std::shared_ptr<Position> position_;  // null: the end
};

}  // namespace retrograd::inline v0::data
#pragma GCC visibility pop
