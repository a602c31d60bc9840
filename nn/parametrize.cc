// See nn/parametrize.h.
#include "nn/parametrize.h"

#include <algorithm>

#include <fmt/format.h>

namespace retrograd::inline v0::nn {

namespace {

using utils::parametrize::Parametrization;

constexpr const char* kChild = "parametrizations";

// The originals of one parameter, and what computes it.
class ParametrizationList : public Module {
 public:
  ParametrizationList(std::shared_ptr<Parametrization> parametrization, Tensors originals, Tensor* parameter)
      : parametrization_(register_module("0", std::move(parametrization))), parameter_(parameter) {
    for (const Tensor& original : originals) {
      const std::string name =
          originals.size() == 1 ? "original" : fmt::format("original{}", originals_.size());
      originals_.push_back(std::make_unique<Parameter>(this, name, original.detach()));
    }
  }
  Tensor value() const {
    Tensors originals;
    for (const auto& original : originals_) originals.push_back(*original);
    return parametrization_->forward(originals);
  }
  // The module's own handle of the parameter.
  Tensor& parameter() const { return *parameter_; }
  const Parameter* only_original() const { return originals_.size() == 1 ? originals_[0].get() : nullptr; }

  RemovableHandle enter, leave;

 private:
  const std::shared_ptr<Parametrization> parametrization_;
  Tensor* const parameter_;
  std::vector<std::unique_ptr<Parameter>> originals_;
};

std::shared_ptr<ParametrizationList> find_list(const Module& module, const std::string& name) {
  const auto children = module.named_children();
  if (!children.contains(kChild)) return nullptr;
  const auto lists = children[kChild]->named_children();
  return lists.contains(name) ? std::dynamic_pointer_cast<ParametrizationList>(lists[name]) : nullptr;
}

}  // namespace

// What needs the private members of Module.
class Parametrizer {
 public:
  Parametrizer(Module& module, const std::string& name, std::string_view op, SourceLocation where)
      : module_(module), name_(name), op_(op), where_(where) {}

  void add(const std::shared_ptr<Parametrization>& parametrization) {
    if (!parametrization) refuse("there is no parametrization in the pointer");
    if (find_list(module_, name_)) refuse("it is parametrized already");
    const auto member = std::ranges::find(module_.members_, name_, &Module::Member::name);
    if (member == module_.members_.end() || member->kind != Module::Kind::parameter)
      refuse("the module has no such parameter");
    if (member->handle)
      refuse(
          "it was registered as a handle, of which the module's code has its own. Hint: declare it as an "
          "nn::Parameter");
    const Tensor before = *member->tensor;
    const auto list = std::make_shared<ParametrizationList>(
        parametrization, parametrization->right_inverse(before.detach()), member->tensor);
    parametrization->train(module_.is_training());
    check_value(before, list->value());
    lists().register_module(name_, list);
    module_.members_.erase(member);
    list->parameter() = Tensor();
    add_hooks(*list);
  }

  void remove(bool leave_parametrized) {
    const std::shared_ptr<ParametrizationList> list = needed_list();
    if (!leave_parametrized && !list->only_original())
      refuse("it has several originals. Hint: leave_parametrized = true keeps its present value");
    const NoGradGuard no_grad;
    Tensor value = leave_parametrized ? list->value().clone() : list->only_original()->detach();
    list->enter.remove(), list->leave.remove();
    lists().unregister_module(name_);
    if (lists().children().empty()) module_.unregister_module(kChild);
    value.requires_grad_();
    list->parameter() = std::move(value);
    module_.add(name_, list->parameter(), Module::Kind::parameter);
  }

  std::shared_ptr<ParametrizationList> needed_list() const {
    std::shared_ptr<ParametrizationList> list = find_list(module_, name_);
    if (!list) refuse("it is not parametrized");
    return list;
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    fail(Category::bad_argument, op_, fmt::format("\"{}\" of {}: {}", name_, module_.name(), text), where_);
  }
  void check_value(const Tensor& before, const Tensor& now) const {
    if (now.sizes() != before.sizes() || now.dtype() != before.dtype())
      fail(Category::shape_mismatch, op_,
           fmt::format("\"{}\" is {}, and the parametrization gives {}", name_, describe(before),
                       describe(now)),
           where_);
  }
  Module& lists() {
    const auto children = module_.named_children();
    if (const auto* const there = children.find(kChild)) return **there;
    return *module_.register_module(kChild, std::make_shared<Module>("ModuleDict"));
  }
  // The list is a child of the module, so it lives as long as these hooks.
  void add_hooks(ParametrizationList& list) {
    ParametrizationList* const of = &list;
    list.enter = module_.add_hook(
        HookKind::forward_pre,
        [of](Module&, const Tensors&, const Tensors&) { return of->parameter() = of->value(), Tensors(); },
        false);
    list.leave = module_.add_hook(
        HookKind::leave,
        [of](Module&, const Tensors&, const Tensors&) { return of->parameter() = Tensor(), Tensors(); },
        false);
  }

  Module& module_;
  const std::string& name_;
  const std::string_view op_;
  const SourceLocation where_;
};

namespace utils::parametrize {

void register_parametrization(Module& module, const std::string& name,
                              std::shared_ptr<Parametrization> parametrization, SourceLocation where) {
  Parametrizer(module, name, "register_parametrization", where).add(parametrization);
}

bool is_parametrized(const Module& module, const std::string& name) {
  return name.empty() ? module.named_children().contains(kChild) : find_list(module, name) != nullptr;
}

Tensor value(Module& module, const std::string& name, SourceLocation where) {
  return Parametrizer(module, name, "value", where).needed_list()->value();
}

void remove_parametrizations(Module& module, const std::string& name, bool leave_parametrized,
                             SourceLocation where) {
  Parametrizer(module, name, "remove_parametrizations", where).remove(leave_parametrized);
}

}  // namespace utils::parametrize
}  // namespace retrograd::nn
