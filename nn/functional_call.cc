// See nn/functional_call.h.
#include "nn/functional_call.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace retrograd::inline v0::nn::detail {

// All is checked, and all memory allocated, before the first tensor is replaced.
Substitution::Substitution(const Module& module, const ParameterValues& values) {
  Module::Members members = module.members();  // a tensor may have several names
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, "functional_call", text, values.where_);
  };
  std::unordered_map<const TensorImpl*, const Tensor*> wanted;  // what takes the place of a tensor
  const auto want = [&](const std::string& name, const Tensor& own, const Tensor& value) {
    if (!value.defined()) refuse(fmt::format("an undefined tensor for \"{}\"", name));
    const auto at = wanted.emplace(own.get(), &value).first;
    if (!at->second->is_same(value)) refuse(fmt::format("\"{}\" is given two values, under two names", name));
  };
  if (const std::optional<Tensors>& in_order = values.in_order_) {
    const auto parameters = module.named_parameters();
    if (in_order->size() != parameters.size())
      refuse(fmt::format("{} tensors for {} parameters", in_order->size(), parameters.size()));
    for (size_t i = 0; i < parameters.size(); ++i)
      want(parameters[i].key(), parameters[i].value(), (*in_order)[i]);
  }
  for (const auto& [name, value] : values.by_name_) {
    const auto at = std::ranges::find(members, name, &Module::Member::name);
    if (at == members.end()) refuse(fmt::format("the module has no parameter or buffer \"{}\"", name));
    want(name, *at->tensor, value);
  }
  std::erase_if(members, [&](const Module::Member& m) { return !wanted.contains(m.tensor->get()); });
  for (const Module::Member& m : members)
    if (m.handle)
      refuse(fmt::format(
          "\"{}\" was registered as a handle, of which the module's code has its own, which would not "
          "change. Hint: declare it as an nn::Parameter or nn::Buffer",
          m.name));
  own_.reserve(members.size());
  for (const Module::Member& m : members)
    own_.emplace_back(m.tensor, std::exchange(*m.tensor, *wanted.at(m.tensor->get())));
}

Substitution::~Substitution() {
  for (auto& [member, own] : own_) *member = std::move(own);
}

}  // namespace retrograd::nn::detail
