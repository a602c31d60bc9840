// See nn/functional_call.h.
#include "nn/functional_call.h"

#include <algorithm>

#include <fmt/format.h>

namespace retrograd::inline v0::nn::detail {

// All is checked, and all memory allocated, before the first tensor is replaced.
Substitution::Substitution(const Module& module, const ParameterValues& values) {
  Module::Members members = module.members();
  const auto refuse = [&](const std::string& text) {
    fail(Category::bad_argument, "functional_call", text, values.where_);
  };
  std::vector<std::pair<Tensor*, const Tensor*>> wanted;
  const auto want = [&](const Module::Member& member, const Tensor& value) {
    if (!value.defined()) refuse(fmt::format("an undefined tensor for \"{}\"", member.name));
    wanted.emplace_back(member.tensor, &value);
  };
  if (const std::optional<Tensors>& in_order = values.in_order_) {
    std::erase_if(members, [](const auto& m) { return m.kind != Module::Kind::parameter; });
    if (in_order->size() != members.size())
      refuse(fmt::format("{} tensors for {} parameters", in_order->size(), members.size()));
    for (size_t i = 0; i < members.size(); ++i) want(members[i], (*in_order)[i]);
  }
  for (const auto& [name, value] : values.by_name_) {
    const auto at = std::ranges::find(members, name, &Module::Member::name);
    if (at == members.end()) refuse(fmt::format("the module has no parameter or buffer \"{}\"", name));
    want(*at, value);
  }
  own_.reserve(wanted.size());
  for (const auto& [member, value] : wanted) own_.emplace_back(member, std::exchange(*member, *value));
}

Substitution::~Substitution() {
  for (auto& [member, own] : own_) *member = std::move(own);
}

}  // namespace retrograd::nn::detail
