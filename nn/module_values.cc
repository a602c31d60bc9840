// The values of a module: conversion, saved state, copies. See nn/module.h.
#include <algorithm>
#include <map>
#include <set>
#include <typeinfo>

#include <fmt/format.h>

#include "nn/class_name.h"
#include "nn/module.h"

namespace retrograd::inline v0::nn {

void Module::to(Device device, bool, SourceLocation where) {
  convert([&](const Tensor& x) { return x.to(device, where); }, where);
}

static void check_floating(ScalarType dtype, SourceLocation where) {
  if (!is_floating(dtype))
    fail(Category::dtype_mismatch, "Module::to",
         fmt::format("parameters have gradients, and {} is not a floating dtype", name(dtype)), where);
}

void Module::to(ScalarType dtype, bool, SourceLocation where) {
  check_floating(dtype, where);
  convert([&](const Tensor& x) { return is_floating(x.dtype()) ? x.to(dtype, where) : x; }, where);
}

void Module::to(Device device, ScalarType dtype, bool, SourceLocation where) {
  check_floating(dtype, where);
  convert(
      [&](const Tensor& x) {
        const Tensor there = x.to(device, where);
        return is_floating(x.dtype()) ? there.to(dtype, where) : there;
      },
      where);
}

void Module::convert(const std::function<Tensor(const Tensor&)>& convert, SourceLocation where) {
  NoGradGuard no_grad;
  struct Converted {
    Tensor member, value, grad;
  };
  std::vector<Converted> all;
  std::set<const TensorImpl*> seen;
  for (const Member& m : members()) {
    if (!seen.insert(m.tensor->get()).second) continue;
    const Tensor grad = m.tensor->grad();
    all.push_back({*m.tensor, convert(m.tensor->detach()), grad.defined() ? convert(grad) : grad});
  }
  for (const auto& [member, value, grad] : all) {
    member.impl().alias(value.impl());
    if (grad.defined()) member.set_grad(grad, where);
  }
}

std::vector<std::pair<std::string, Tensor>> Module::in_state() const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (Member& m : members())
    if (m.kind != Kind::unsaved) all.emplace_back(std::move(m.name), *m.tensor);
  return all;
}

StateDict Module::state_dict() const {
  StateDict state;
  for (const auto& [name, tensor] : in_state()) state.emplace(name, tensor.detach());
  return state;
}

void Module::load_state_dict(const StateDict& state, bool strict, SourceLocation where) {
  const auto own = in_state();
  const auto refuse = [&](Category category, const std::string& text) {
    fail(category, "load_state_dict", text, where);
  };
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : own) {
    names.insert(name);
    const auto it = state.find(name);
    if (it == state.end()) refuse(Category::bad_argument, fmt::format("the state has no \"{}\"", name));
    if (it->second.sizes() != tensor.sizes())
      refuse(Category::shape_mismatch,
             fmt::format("{} for \"{}\", which is {}", describe(it->second), name, describe(tensor)));
  }
  if (strict)
    for (const auto& [name, tensor] : state)
      if (!names.contains(name))
        refuse(Category::bad_argument,
               fmt::format("the module has no \"{}\". Hint: strict = false passes over it", name));
  NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) tensor.copy_(state.find(name)->second);
}

std::unique_ptr<Module> Module::clone() const {
  throw Error(
      Category::unsupported,
      fmt::format("clone: {0} does not implement it. Hint: override clone(): return clone_as<{0}>(arguments "
                  "of its constructor)",
                  name()));
}

std::shared_ptr<Module> detail::ModuleCopies::of(const std::shared_ptr<Module>& module) {
  for (const auto& [original, copy] : known_)
    if (original == module) return copy;
  known_.emplace_back(module, module->clone());
  return known_.back().second;
}

// A copy has the same class and options, so the same names in the same order, unless members were added from outside.
void Module::take_values_of(const Module& source) {
  const std::type_info &made = typeid(*this), &wanted = typeid(source);
  if (made != wanted)
    throw Error(Category::unsupported,
                fmt::format("clone: {0} inherits clone() of {1}. Hint: override clone(): return "
                            "clone_as<{0}>(arguments of its constructor)",
                            detail::class_name(wanted), detail::class_name(made)));
  const Members own = members(), given = source.members();
  const std::vector<Place> own_places = places(), given_places = source.places();
  if (!std::ranges::equal(own, given, {}, &Member::name, &Member::name) ||
      !std::ranges::equal(own_places, given_places, {}, &Place::name, &Place::name))
    throw Error(
        Category::unsupported,
        source.name() + ": clone() made a module with other members. Hint: clone() makes all of them");
  NoGradGuard no_grad;
  std::map<const TensorImpl*, Tensor> copies;  // a tensor with several names is one in the copy
  for (size_t i = 0; i < own.size(); ++i) {
    Tensor& to = *own[i].tensor;
    const Tensor& from = *given[i].tensor;
    const auto [copy, is_first] = copies.emplace(from.get(), to);
    if (is_first) {
      to.impl().alias(from.detach().clone().impl());
      to.requires_grad_(from.requires_grad());
    } else if (!to.is_same(copy->second)) {
      if (own[i].handle)
        throw Error(Category::unsupported,
                    source.name() + ": clone() separates tensors that are shared: " + own[i].name);
      to = copy->second;
    }
  }
  for (size_t i = 0; i < own_places.size(); ++i)
    own_places[i].module->state_->is_training = given_places[i].module->state_->is_training;
}

}  // namespace retrograd::nn
