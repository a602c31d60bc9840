// ModuleList<T>: modules of class T, or derived from it, named "0", "1", ...: PyTorch's ModuleList. What is done with
// them is written where the list is used: `for (const auto& block : blocks) x = (*block)(x);`. ModuleList<> is a list
// of any modules.
//
// Data: the modules, which are shared children.
#pragma once

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

template <class T = Module>
class ModuleList : public Module {
 public:
  using Module::Module;

  /// Appends U(args...), or U(nullptr, "", args...) for a class that takes a parent.
  template <class U = T, class... Args>
  U& emplace_back(Args&&... args) {
    std::shared_ptr<U> made = detail::make_root<U>(std::forward<Args>(args)...);
    push_back(made);
    return *made;
  }
  void push_back(std::shared_ptr<T> module) {
    register_module(std::to_string(size()), module);
    items_.push_back(std::move(module));
  }
  template <class U>
  void push_back(const ModuleHolder<U>& holder) {
    push_back(std::shared_ptr<T>(holder.ptr()));
  }
  /// Before item i; at size(), as push_back.
  void insert(size_t i, std::shared_ptr<T> module) {
    if (i != size()) checked(i);
    items_.reserve(size() + 1);
    register_module(std::to_string(size()), module);
    items_.insert(items_.begin() + static_cast<std::ptrdiff_t>(i), std::move(module));
    for (; i < size(); ++i) replace_module(std::to_string(i), items_[i]);
  }
  template <class U>
  void insert(size_t i, const ModuleHolder<U>& holder) {
    insert(i, std::shared_ptr<T>(holder.ptr()));
  }
  /// Appends the modules of another container.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  // Errors: index_out_of_range beyond the end, bad_argument for an item that is no U.
  T& operator[](size_t i) { return *items_[checked(i)]; }
  const T& operator[](size_t i) const { return *items_[checked(i)]; }
  template <class U>
  U& at(size_t i) const {
    return *ptr<U>(i);
  }
  std::shared_ptr<T> ptr(size_t i) const { return items_[checked(i)]; }
  template <class U>
  std::shared_ptr<U> ptr(size_t i) const {
    const std::shared_ptr<U> module = std::dynamic_pointer_cast<U>(ptr(i));
    if (!module)
      fail(Category::bad_argument, "ModuleList",
           "module " + std::to_string(i) + " is of another class: " + items_[i]->name());
    return module;
  }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }

  const std::vector<std::shared_ptr<T>>& items() const { return items_; }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  std::unique_ptr<Module> clone() const override {
    auto copy = std::make_unique<ModuleList>();
    detail::ModuleCopies copies;
    for (const auto& item : items_) copy->push_back(std::dynamic_pointer_cast<T>(copies.of(item)));
    copy->take_values_of(*this);
    return copy;
  }

 private:
  size_t checked(size_t i) const {
    if (i >= items_.size())
      fail(Category::index_out_of_range, "ModuleList", "there is no module " + std::to_string(i));
    return i;
  }

  std::vector<std::shared_ptr<T>> items_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
