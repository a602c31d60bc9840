// The name and the text of a module. See nn/module.h.
#include <cxxabi.h>

#include <cstdlib>
#include <ostream>
#include <typeinfo>

#include "nn/module.h"

namespace retrograd::inline v0::nn {

// "retrograd::v0::nn::ModuleList<Block>" -> "ModuleList": neither namespaces nor template arguments.
std::string Module::name() const {
  if (!state_->name.empty()) return state_->name;
  const char* const mangled = typeid(*this).name();
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr), std::free);
  std::string name = text ? text.get() : mangled;
  if (name.ends_with('>')) {
    size_t open = 0, at = name.size();
    do open += (name[--at] == '>') ? 1 : (name[at] == '<') ? -1 : 0;
    while (open);
    name.resize(at);
  }
  const size_t scope = name.rfind("::");
  return scope == name.npos ? name : name.substr(scope + 2);
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
