// See nn/module_dict.h and nn/parameter_list.h.
#include <algorithm>

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

void ModuleDict::update(const ModuleDict& other) { update(other.items()); }

ModuleDict::Items ModuleDict::items() const { return named_children(); }
std::vector<std::string> ModuleDict::keys() const { return items().keys(); }
bool ModuleDict::contains(const std::string& key) const { return items().contains(key); }
std::shared_ptr<Module> ModuleDict::ptr(const std::string& key) const { return items()[key]; }

std::shared_ptr<Module> ModuleDict::pop(const std::string& key) {
  std::shared_ptr<Module> module = ptr(key);
  unregister_module(key);
  return module;
}

std::unique_ptr<Module> ModuleDict::clone() const {
  auto copy = std::make_unique<ModuleDict>();
  detail::ModuleCopies copies;
  for (const auto& item : items()) copy->insert(item.key(), copies.of(item.value()));
  copy->take_values_of(*this);
  return copy;
}

namespace {

std::unique_ptr<Parameter> make_parameter(Module* owner, const std::string& name, const Tensor& value,
                                          bool requires_grad) {
  if (!value.defined() || !value.is_leaf())
    throw Error(Category::bad_argument,
                fmt::format("{}: \"{}\" is {}. Hint: a parameter is a leaf; detach() gives one",
                            owner->name(), name, value.defined() ? "computed with a gradient" : "undefined"));
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
    fail(Category::index_out_of_range, "ParameterList",
         fmt::format("there is no parameter {} of {}", i, size()));
  return i;
}

std::unique_ptr<Module> ParameterList::clone() const {
  auto copy = std::make_unique<ParameterList>();
  for (const Parameter& p : *this) copy->append(p.detach());
  copy->take_values_of(*this);
  return copy;
}

Parameter& ParameterDict::insert(const std::string& key, const Tensor& value, bool requires_grad) {
  items_.push_back({key, make_parameter(this, key, value, requires_grad)});
  return *items_.back().parameter;
}

void ParameterDict::update(const OrderedDict<std::string, Tensor>& other) {
  for (const auto& item : other) {
    if (contains(item.key())) pop(item.key());
    insert(item.key(), item.value(), item.value().requires_grad());
  }
}

bool ParameterDict::contains(const std::string& key) const {
  return std::ranges::count(items_, key, &Item::key);
}

size_t ParameterDict::place_of(const std::string& key) const {
  const auto at = std::ranges::find(items_, key, &Item::key);
  if (at == items_.end())
    fail(Category::bad_argument, "ParameterDict", fmt::format("there is no \"{}\"", key));
  return static_cast<size_t>(at - items_.begin());
}

Tensor ParameterDict::pop(const std::string& key) {
  const size_t place = place_of(key);
  const Tensor value = *items_[place].parameter;
  unregister_tensor(key);
  items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(place));
  return value;
}

void ParameterDict::clear() {
  unregister_all();
  items_.clear();
}

OrderedDict<std::string, Tensor> ParameterDict::items() const {
  OrderedDict<std::string, Tensor> all;
  for (const Item& item : items_) all.insert(item.key, *item.parameter);
  return all;
}
std::vector<std::string> ParameterDict::keys() const { return items().keys(); }
Tensors ParameterDict::values() const { return items().values(); }

std::unique_ptr<Module> ParameterDict::clone() const {
  auto copy = std::make_unique<ParameterDict>();
  for (const auto& item : items()) copy->insert(item.key(), item.value().detach());
  copy->take_values_of(*this);
  return copy;
}

}  // namespace retrograd::nn
