// See nn/any_module.h and nn/sequential.h.
#include "nn/sequential.h"

#include <fmt/format.h>

#include "nn/class_name.h"

namespace retrograd::inline v0::nn {
namespace detail {

void fail_arguments(const Module& module, Anys given, size_t wanted) {
  std::string types;
  for (const std::any& value : given) types += (types.empty() ? "" : ", ") + class_name(value.type());
  fail(Category::bad_argument, module.name(),
       fmt::format("its forward is given {} arguments ({}) and takes {}", given.size(), types, wanted));
}

void fail_argument(const Module& module, size_t number, const std::type_info& given,
                   const std::type_info& wanted) {
  fail(Category::bad_argument, module.name(),
       fmt::format("argument {} of its forward is a {}, a {} is needed. Hint: in a Sequential, the result of "
                   "the module "
                   "before is the only argument",
                   number, class_name(given), class_name(wanted)));
}

void fail_result(const std::type_info& given, const std::type_info& wanted) {
  fail(Category::bad_argument, "forward",
       fmt::format("the result is a {}. Hint: call forward<...>, with its class, not with {}",
                   class_name(given), class_name(wanted)));
}

}  // namespace detail

void AnyModule::refuse_class(const std::type_info& wanted) const {
  fail(Category::bad_argument, "AnyModule",
       fmt::format("the module is a {}, not a {}", ptr()->name(), detail::class_name(wanted)));
}

Sequential::Sequential(Module* parent, std::string name, std::initializer_list<NamedAnyModule> modules)
    : Module(parent, std::move(name)) {
  for (const NamedAnyModule& module : modules) push_back(module);
}

void Sequential::push_back(NamedAnyModule module) {
  register_module(module.name().empty() ? std::to_string(size()) : module.name(), module.module().ptr());
  items_.push_back(std::move(module.module()));
}

const AnyModule& Sequential::item(size_t i) const {
  if (i >= size())
    fail(Category::index_out_of_range, "Sequential", fmt::format("there is no module {} of {}", i, size()));
  return items_[i];
}

Tensor Sequential::forward(Operand x) const {
  const std::any given[] = {detail::to_any(x)};
  return detail::result_as<Tensor>(run(given, x.where()));
}

std::any Sequential::run(detail::Anys given, SourceLocation where) const {
  if (is_empty()) fail(Category::bad_argument, "Sequential", "there is no module to call", where);
  const CallScope scope(where);
  std::any result = items_[0].call(given);
  for (size_t i = 1; i < size(); ++i) result = items_[i].call({&result, 1});
  return result;
}

std::unique_ptr<Module> Sequential::clone() const {
  auto copy = std::make_unique<Sequential>();
  const auto children = named_children();
  detail::ModuleCopies copies;
  for (size_t i = 0; i < size(); ++i)
    copy->push_back(children[i].key(), items_[i].with(copies.of(items_[i].ptr())));
  copy->take_values_of(*this);
  return copy;
}

}  // namespace retrograd::nn
