// See nn/module_dict.h and nn/parameter_list.h.
#include <fmt/format.h>

#include "nn/module_dict.h"
#include "nn/parameter_list.h"

namespace retrograd::inline v0::nn {

void ModuleDict::update(const Items& other) {
  for (const auto& item : other)
    if (contains(item.key()))
      replace_module(item.key(), item.value());
    else
      insert(item.key(), item.value());
}

std::shared_ptr<Module> ModuleDict::pop(const std::string& key) {
  std::shared_ptr<Module> module = ptr(key);
  unregister_module(key);
  return module;
}

std::unique_ptr<Module> ModuleDict::clone() const {
  auto copy = std::make_unique<ModuleDict>();
  for (const auto& item : items()) copy->insert(item.key(), std::shared_ptr<Module>(item.value()->clone()));
  copy->take_values_of(*this);
  return copy;
}

namespace {

std::unique_ptr<Parameter> make_parameter(Module* owner, const std::string& name, const Tensor& value,
                                          bool requires_grad) {
  if (!value.defined() || !value.is_leaf())
    throw Error(Category::bad_argument,
                fmt::format("{}: \"{}\" is {}. Hint: a parameter is a leaf; detach() gives one", owner->name(), name,
                            value.defined() ? "computed with a gradient" : "undefined"));
  auto parameter = std::make_unique<Parameter>(owner, name, value);
  if (!requires_grad) parameter->requires_grad_(false);
  return parameter;
}

}  // namespace

Parameter& ParameterList::append(const Tensor& value, bool requires_grad) {
  items_.push_back(make_parameter(this, std::to_string(size()), value, requires_grad));
  return *items_.back();
}

size_t ParameterList::checked(size_t i) const {
  if (i >= size())
    fail(Category::index_out_of_range, "ParameterList", fmt::format("there is no parameter {} of {}", i, size()));
  return i;
}

std::unique_ptr<Module> ParameterList::clone() const {
  auto copy = std::make_unique<ParameterList>();
  for (const Parameter& p : *this) copy->append(p.detach());
  copy->take_values_of(*this);
  return copy;
}

Parameter& ParameterDict::insert(const std::string& key, const Tensor& value, bool requires_grad) {
  return *items_.insert(key, make_parameter(this, key, value, requires_grad));
}

void ParameterDict::update(const OrderedDict<std::string, Tensor>& other) {
  for (const auto& item : other) {
    if (contains(item.key())) pop(item.key());
    insert(item.key(), item.value(), item.value().requires_grad());
  }
}

Tensor ParameterDict::pop(const std::string& key) {
  const Tensor value = *items_[key];
  unregister_tensor(key);
  items_.erase(key);
  return value;
}

void ParameterDict::clear() {
  unregister_all();
  items_.clear();
}

OrderedDict<std::string, Tensor> ParameterDict::items() const {
  OrderedDict<std::string, Tensor> all;
  for (const auto& item : items_) all.insert(item.key(), *item.value());
  return all;
}

std::unique_ptr<Module> ParameterDict::clone() const {
  auto copy = std::make_unique<ParameterDict>();
  for (const auto& item : items()) copy->insert(item.key(), item.value().detach());
  copy->take_values_of(*this);
  return copy;
}

}  // namespace retrograd::nn
