// See torch/nn/modules/container.h.
#include "torch/nn/modules/container.h"

#include <ostream>

namespace torch::nn {

std::unique_ptr<Module> SequentialImpl::remade() const {
  auto copy = std::make_unique<SequentialImpl>();
  const std::vector<std::string> names = named_children().keys();
  rn::detail::ModuleCopies copies;
  for (size_t i = 0; i < size(); ++i) {
    const rn::AnyModule& item = begin()[static_cast<std::ptrdiff_t>(i)];
    copy->push_back(names[i], item.with(copies.of(item.ptr())));
  }
  copy->take_values_of(*this);
  return copy;
}

std::unique_ptr<Module> ModuleListImpl::remade() const {
  auto copy = std::make_unique<ModuleListImpl>();
  rn::detail::ModuleCopies copies;
  for (const auto& module : *this) copy->push_back(copies.of(module));
  copy->take_values_of(*this);
  return copy;
}

void ModuleDictImpl::update(const List& modules) {
  Items items;
  for (const auto& [key, module] : modules) items.insert(key, module);
  update(items);
}

std::unique_ptr<Module> ModuleDictImpl::remade() const {
  auto copy = std::make_unique<ModuleDictImpl>();
  rn::detail::ModuleCopies copies;
  for (const auto& item : *this) copy->insert(item.key(), copies.of(item.value()));
  copy->take_values_of(*this);
  return copy;
}

std::unique_ptr<Module> ParameterListImpl::remade() const {
  auto copy = std::make_unique<ParameterListImpl>();
  for (const auto& item : *this) copy->append(item.value().detach());
  copy->take_values_of(*this);
  return copy;
}

std::unique_ptr<Module> ParameterDictImpl::remade() const {
  auto copy = std::make_unique<ParameterDictImpl>();
  for (const auto& item : *this) copy->insert(item.key(), item.value().detach());
  copy->take_values_of(*this);
  return copy;
}

FunctionalImpl::FunctionalImpl(Function function)
    : SharedClone(nullptr, "", function), function_(std::move(function)) {}

// Containers have the names of their holders in a text: those of the classes end with Impl.

static void print_container(std::ostream& out, std::string_view name, bool is_empty) {
  out << name << (is_empty ? "()" : "");
}
void SequentialImpl::pretty_print(std::ostream& out) const {
  print_container(out, "Sequential", children().empty());
}
void ModuleListImpl::pretty_print(std::ostream& out) const {
  print_container(out, "ModuleList", children().empty());
}
void ModuleDictImpl::pretty_print(std::ostream& out) const {
  print_container(out, "ModuleDict", children().empty());
}
void ParameterListImpl::pretty_print(std::ostream& out) const { print_container(out, "ParameterList", true); }
void ParameterDictImpl::pretty_print(std::ostream& out) const { print_container(out, "ParameterDict", true); }
void FunctionalImpl::pretty_print(std::ostream& out) const { print_container(out, "Functional", true); }

}  // namespace torch::nn
