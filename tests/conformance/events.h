// The list of strings that a case logs, and its canonical form (suites/FORMAT.md, section 6), in which it is
// compared: the order of pack events of one op call, of unpack events of one, and of hooks at different
// leaves is open.
#pragma once

#include <string>
#include <vector>

namespace retrograd::conformance {

class EventLog {
 public:
  /// An event whose place is fixed.
  void add(std::string text) { events_.push_back({std::move(text), Kind::fixed, {}}); }
  /// "pack h LABEL" or "unpack h LABEL", and the type that follows.
  void add_saved(const std::string& group, const std::string& type) {
    events_.push_back({group + " " + type, Kind::saved, group});
  }
  /// Of a tensor hook or a post-accumulate hook on a leaf.
  void add_leaf(std::string text, std::string leaf) {
    events_.push_back({std::move(text), Kind::leaf, std::move(leaf)});
  }
  /// Of a multi hook with a leaf among its tensors.
  void add_leaf_multi(std::string text, std::string id) {
    events_.push_back({std::move(text), Kind::leaf_multi, std::move(id)});
  }

  std::vector<std::string> canonical() const;

 private:
  enum class Kind { fixed, saved, leaf, leaf_multi };
  struct Event {
    std::string text;
    Kind kind;
    std::string key;  // saved: the group; leaf: its name; leaf_multi: the id
    bool is_leaf() const { return kind == Kind::leaf || kind == Kind::leaf_multi; }
  };
  std::vector<Event> events_;
};

/// The label of the op call that runs on this thread, which pack hooks read; empty outside of one.
class CallLabel {
 public:
  explicit CallLabel(const std::string& label) : previous_(current_) { current_ = &label; }
  ~CallLabel() { current_ = previous_; }
  CallLabel(const CallLabel&) = delete;
  static std::string current() { return current_ ? *current_ : std::string(); }

 private:
  static inline thread_local constinit const std::string* current_ = nullptr;
  const std::string* previous_;
};

}  // namespace retrograd::conformance
