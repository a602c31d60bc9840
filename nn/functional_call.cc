// See nn/functional_call.h.
#include "nn/functional_call.h"

#include <algorithm>

#include <fmt/format.h>

namespace retrograd::inline v0::nn::detail {

// All is checked, and all memory allocated, before the first parameter is replaced.
Substitution::Substitution(const Module& module, const ParameterValues& values) {
  const Module::Members members = module.members();
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, "functional_call", text, values.where_);
  };
  std::vector<std::pair<Parameter*, const Tensor*>> wanted;
  const auto want = [&](const std::string& name, Parameter* parameter, const Tensor& value) {
    if (!value.defined()) refuse(fmt::format("an undefined tensor for \"{}\"", name));
    wanted.emplace_back(parameter, &value);
  };
  if (const std::optional<Tensors>& in_order = values.in_order_) {
    if (in_order->size() != members.size())
      refuse(fmt::format("{} tensors for {} parameters", in_order->size(), members.size()));
    for (size_t i = 0; i < members.size(); ++i) want(members[i].first, members[i].second, (*in_order)[i]);
  }
  for (const auto& [name, value] : values.by_name_) {
    const auto at = std::ranges::find(members, name, &Module::Members::value_type::first);
    if (at == members.end()) refuse(fmt::format("the module has no parameter \"{}\"", name));
    want(name, at->second, value);
  }
  own_.reserve(wanted.size());
  for (const auto& [parameter, value] : wanted)
    own_.emplace_back(parameter, std::exchange(static_cast<Tensor&>(*parameter), *value));
}

Substitution::~Substitution() {
  for (auto& [parameter, own] : own_) static_cast<Tensor&>(*parameter) = std::move(own);
}

}  // namespace retrograd::nn::detail
