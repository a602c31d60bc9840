// OrderedDict: values by key, in order of insertion. What Module's named_...() give, and what the containers take. The
// interface is libtorch's.
//
//   for (const auto& item : net.named_parameters()) print(item.key(), item.value());
//   net.named_parameters()["fc.weight"]
//
// Data: the items in order, and the place of each key among them. A key is there once. Erasing is linear.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/error.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    Value& operator*() noexcept { return pair_.second; }
    const Value& operator*() const noexcept { return pair_.second; }
    Value* operator->() noexcept { return &pair_.second; }
    const Value* operator->() const noexcept { return &pair_.second; }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  /// `key_description` is what errors call a key.
  explicit OrderedDict(std::string key_description = "Key") : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict() {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  const std::string& key_description() const noexcept { return key_description_; }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  bool contains(const Key& key) const noexcept { return index_.contains(key); }

  /// Null when the key is not there.
  Value* find(const Key& key) noexcept {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &items_[at->second].value();
  }
  const Value* find(const Key& key) const noexcept { return const_cast<OrderedDict*>(this)->find(key); }

  /// Error(bad_argument) for a key that is not there.
  Value& operator[](const Key& key) {
    if (Value* const value = find(key)) return *value;
    refuse(key, "is not there");
  }
  const Value& operator[](const Key& key) const { return (*const_cast<OrderedDict*>(this))[key]; }
  /// Error(index_out_of_range) beyond the end.
  Item& operator[](size_t index) {
    if (index >= items_.size())
      fail(Category::index_out_of_range, "OrderedDict",
           "there is no item " + std::to_string(index) + " of " + std::to_string(items_.size()));
    return items_[index];
  }
  const Item& operator[](size_t index) const { return (*const_cast<OrderedDict*>(this))[index]; }

  /// The first and the last item, of a dict that is not empty.
  Item& front() { return items_.front(); }
  const Item& front() const { return items_.front(); }
  Item& back() { return items_.back(); }
  const Item& back() const { return items_.back(); }
  Iterator begin() { return items_.begin(); }
  ConstIterator begin() const { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator end() const { return items_.end(); }
  const std::vector<Item>& items() const noexcept { return items_; }

  /// Error(bad_argument) for a key that is there already.
  Value& insert(Key key, Value value) {
    if (!index_.emplace(key, items_.size()).second) refuse(key, "is there already");
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }
  /// Inserts all items of `other`; none when a key is there already.
  void update(const OrderedDict& other) {
    for (const Item& item : other)
      if (contains(item.key())) refuse(item.key(), "is there already");
    for (const Item& item : other.items()) insert(item.key(), item.value());
  }
  /// Error(bad_argument) for a key that is not there.
  void erase(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) refuse(key, "is not there");
    const size_t place = at->second;
    index_.erase(at);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(place));
    for (auto& [later, i] : index_) i -= i > place;
  }
  void clear() {
    index_.clear();
    items_.clear();
  }
  void reserve(size_t count) {
    index_.reserve(count);
    items_.reserve(count);
  }

  std::vector<Key> keys() const {
    std::vector<Key> all;
    for (const Item& item : items_) all.push_back(item.key());
    return all;
  }
  std::vector<Value> values() const {
    std::vector<Value> all;
    for (const Item& item : items_) all.push_back(item.value());
    return all;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> all;
    for (const Item& item : items_) all.push_back(item.pair());
    return all;
  }

 private:
  [[noreturn]] void refuse(const Key& key, const char* what) const {
    std::string text = key_description_;
    if constexpr (std::is_convertible_v<Key, std::string>) text += " \"" + std::string(key) + "\"";
    fail(Category::bad_argument, "OrderedDict", text + " " + what);
  }

  std::string key_description_;
  std::vector<Item> items_;
  std::unordered_map<Key, size_t> index_;
};

}  // namespace retrograd
#pragma GCC visibility pop
