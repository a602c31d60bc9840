// The name and the text of a module. See nn/module.h.
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <ostream>

#include "nn/class_name.h"
#include "nn/module.h"

namespace retrograd::inline v0::nn {

std::string detail::class_name(const std::type_info& type) {
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), std::free);
  std::string name = text ? text.get() : type.name();
  if (name.ends_with('>')) {
    size_t open = 0, at = name.size();
    do open += (name[--at] == '>') ? 1 : (name[at] == '<') ? -1 : 0;
    while (open);
    name.resize(at);
  }
  const size_t scope = name.rfind("::");
  return scope == name.npos ? name : name.substr(scope + 2);
}

std::string Module::name() const {
  return state_->name.empty() ? detail::class_name(typeid(*this)) : state_->name;
}

void Module::pretty_print(std::ostream& out) const { out << name() << (children_.empty() ? "()" : ""); }

namespace {

void print_tree(std::ostream& out, const Module& module, const std::string& indent) {
  module.pretty_print(out);
  const auto children = module.named_children();
  if (children.is_empty()) return;
  out << "(\n";
  for (const auto& child : children) {
    out << indent << "  (" << child.key() << "): ";
    print_tree(out, *child.value(), indent + "  ");
    out << '\n';
  }
  out << indent << ')';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Module& module) {
  print_tree(out, module, "");
  return out;
}

}  // namespace retrograd::nn
