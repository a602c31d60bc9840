// ParameterList and ParameterDict: parameters by number and by name, as PyTorch's.
//
//   nn::ParameterList scales{this, "scales"};
//   scales.append(ones({4}));
//   Tensor y = x * scales[0];
//
// Data: the parameters, at addresses that stay, so that functional_call reaches them.
#pragma once

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

class ParameterList : public Module {
 public:
  using Module::Module;

  /// Appends a parameter that is this tensor. Errors as of Module::register_parameter; bad_argument for an undefined
  /// tensor.
  Parameter& append(const Tensor& value, bool requires_grad = true);
  /// Appends tensors: a Tensors, or another list.
  template <class Container>
  void extend(const Container& container) {
    for (const Tensor& value : container) append(value, value.requires_grad());
  }
  /// Error(index_out_of_range) beyond the end.
  Parameter& operator[](size_t i) { return *items_[checked(i)]; }
  const Parameter& operator[](size_t i) const { return *items_[checked(i)]; }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }

  class Iterator {
   public:
    using Place = std::vector<std::unique_ptr<Parameter>>::const_iterator;
    explicit Iterator(Place place) : place_(place) {}
    const Parameter& operator*() const { return **place_; }
    Iterator& operator++() { return ++place_, *this; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Place place_;
  };
  Iterator begin() const { return Iterator(items_.begin()); }
  Iterator end() const { return Iterator(items_.end()); }

  std::unique_ptr<Module> clone() const override;

 private:
  size_t checked(size_t i) const;

  std::vector<std::unique_ptr<Parameter>> items_;
};

class ParameterDict : public Module {
 public:
  using Module::Module;

  /// Adds a parameter that is this tensor. Errors as of ParameterList::append, and bad_argument for a key that is there
  /// already, is empty or has a dot.
  Parameter& insert(const std::string& key, const Tensor& value, bool requires_grad = true);
  /// Inserts all tensors of `other`, in place of those that have the same keys.
  void update(const OrderedDict<std::string, Tensor>& other);
  /// Takes a parameter out. Error(bad_argument) when there is none.
  Tensor pop(const std::string& key);
  void clear();

  /// Error(bad_argument) for a key that is not there.
  Parameter& operator[](const std::string& key) { return *items_[place_of(key)].parameter; }
  const Parameter& operator[](const std::string& key) const { return *items_[place_of(key)].parameter; }
  bool contains(const std::string& key) const;
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  OrderedDict<std::string, Tensor> items() const;
  std::vector<std::string> keys() const;
  Tensors values() const;

  std::unique_ptr<Module> clone() const override;

 private:
  struct Item {
    std::string key;
    std::unique_ptr<Parameter> parameter;
  };
  size_t place_of(const std::string& key) const;

  std::vector<Item> items_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
