// Containers: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict; AnyModule; Functional, a function as a
// module. They are those of retrograd::nn, made from what they hold:
//
//   nn::Sequential body(nn::Linear(64, 128), nn::ReLU());
//   nn::Sequential named({{"fc", nn::Linear(64, 128)}, {"act", nn::ReLU()}});
//   nn::ModuleList list(nn::Linear(3, 4), nn::Dropout(0.5));
//   nn::Functional twice([](torch::Tensor x) { return x * 2; });
//
// A tensor of a ParameterList or ParameterDict is trained if it requires a gradient, as in libtorch.
#pragma once

#include "nn/module_dict.h"
#include "nn/module_list.h"
#include "nn/parameter_list.h"
#include "nn/sequential.h"
#include "nn/shape_layers.h"
#include "torch/nn/cloneable.h"
#include "torch/nn/names.h"

#pragma GCC visibility push(default)
namespace torch::nn {

namespace rn = retrograd::nn;

class AnyModule : public rn::AnyModule {
 public:
  using rn::AnyModule::AnyModule;
  AnyModule() = default;
  AnyModule(const rn::AnyModule& any) : rn::AnyModule(any) {}

  using rn::AnyModule::get;
  /// The module in a holder: get<Linear>().
  template <class Holder>
  requires requires { typename Holder::ContainedType; }
  Holder get() const { return ptr<typename Holder::ContainedType>(); }
};

/// A module and its name.
class NamedAnyModule : public rn::NamedAnyModule {
 public:
  NamedAnyModule(std::string name, AnyModule module)
      : rn::NamedAnyModule(std::move(name), std::move(module)) {}
};

namespace detail {

/// Arguments of a container that are what it holds, and not another container of its class.
template <class Self, class... Items>
concept ItemsOf = sizeof...(Items) > 0 && !(std::derived_from<std::remove_cvref_t<Items>, Self> && ...);

}  // namespace detail

class SequentialImpl : public detail::SharedClone<SequentialImpl, rn::Sequential> {
 public:
  SequentialImpl() = default;
  template <class... Modules>
  requires detail::ItemsOf<SequentialImpl, Modules...>
  explicit SequentialImpl(Modules&&... modules) {
    (push_back(AnyModule(std::forward<Modules>(modules))), ...);
  }
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (const NamedAnyModule& module : modules) push_back(module);
  }
  explicit SequentialImpl(const OrderedDict<std::string, AnyModule>& modules) {
    for (const auto& item : modules) push_back(item.key(), item.value());
  }
  void pretty_print(std::ostream& out) const override;

 private:
  friend class detail::Remade<SequentialImpl, rn::Sequential>;
  std::unique_ptr<Module> remade() const;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> modules)
      : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

class ModuleListImpl : public detail::SharedClone<ModuleListImpl, rn::ModuleList<>> {
 public:
  ModuleListImpl() = default;
  template <class... Modules>
  requires detail::ItemsOf<ModuleListImpl, Modules...>
  explicit ModuleListImpl(const Modules&... modules) { (push_back(modules), ...); }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  void pretty_print(std::ostream& out) const override;

 private:
  friend class detail::Remade<ModuleListImpl, rn::ModuleList<>>;
  std::unique_ptr<Module> remade() const;
};
TORCH_MODULE(ModuleList);

namespace detail {

/// Goes through the items of a dict as they were when it began.
template <class Value>
class ItemIterator {
 public:
  using Items = OrderedDict<std::string, Value>;
  ItemIterator(std::shared_ptr<const Items> items, size_t place) : items_(std::move(items)), place_(place) {}
  const typename Items::Item& operator*() const { return (*items_)[place_]; }
  const typename Items::Item* operator->() const { return &**this; }
  ItemIterator& operator++() { return ++place_, *this; }
  friend bool operator==(const ItemIterator& a, const ItemIterator& b) { return a.place_ == b.place_; }

 private:
  std::shared_ptr<const Items> items_;  // null at the end
  size_t place_;
};

/// A container of retrograd::nn with the iteration of libtorch's, over items with key() and value().
template <class Self, class Base, class Value>
class ByItems : public SharedClone<Self, Base> {
 public:
  ItemIterator<Value> begin() const {
    return {std::make_shared<const OrderedDict<std::string, Value>>(static_cast<const Self&>(*this).items()),
            0};
  }
  ItemIterator<Value> end() const { return {nullptr, this->size()}; }
  bool empty() const { return this->is_empty(); }
};

}  // namespace detail

class ModuleDictImpl : public detail::ByItems<ModuleDictImpl, rn::ModuleDict, std::shared_ptr<Module>> {
 public:
  using List = std::vector<std::pair<std::string, std::shared_ptr<Module>>>;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const Items& modules) { update(modules); }
  explicit ModuleDictImpl(const List& modules) { update(modules); }
  using rn::ModuleDict::update;
  void update(const List& modules);
  void pretty_print(std::ostream& out) const override;

 private:
  friend class detail::Remade<ModuleDictImpl, rn::ModuleDict>;
  std::unique_ptr<Module> remade() const;
};
TORCH_MODULE(ModuleDict);

class ParameterListImpl : public detail::ByItems<ParameterListImpl, rn::ParameterList, Tensor> {
 public:
  ParameterListImpl() = default;
  template <std::convertible_to<Tensor>... Tensors>
  requires(sizeof...(Tensors) > 0) explicit ParameterListImpl(const Tensors&... parameters) {
    (append(parameters), ...);
  }
  void append(const Tensor& parameter) { rn::ParameterList::append(parameter, parameter.requires_grad()); }
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& item : container) append(item);
  }
  template <class Container>
  void operator+=(const Container& container) {
    extend(container);
  }
  Tensor& at(size_t i) { return (*this)[i]; }
  const Tensor& at(size_t i) const { return (*this)[i]; }
  // named_parameters() has a tensor with two places once.
  OrderedDict<std::string, Tensor> items() const {
    OrderedDict<std::string, Tensor> all;
    for (size_t i = 0; i < this->size(); ++i) all.insert(std::to_string(i), (*this)[i]);
    return all;
  }
  void pretty_print(std::ostream& out) const override;

 private:
  friend class detail::Remade<ParameterListImpl, rn::ParameterList>;
  std::unique_ptr<Module> remade() const;
};
TORCH_MODULE(ParameterList);

class ParameterDictImpl : public detail::ByItems<ParameterDictImpl, rn::ParameterDict, Tensor> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) { update(parameters); }
  Tensor& insert(const std::string& key, const Tensor& parameter) {
    return rn::ParameterDict::insert(key, parameter, parameter.requires_grad());
  }
  using rn::ParameterDict::update;
  void update(const ParameterDictImpl& other) { update(other.items()); }
  Tensor& get(const std::string& key) { return (*this)[key]; }
  const Tensor& get(const std::string& key) const { return (*this)[key]; }
  void pretty_print(std::ostream& out) const override;

 private:
  friend class detail::Remade<ParameterDictImpl, rn::ParameterDict>;
  std::unique_ptr<Module> remade() const;
};
TORCH_MODULE(ParameterDict);

/// f(x, arguments...) as a module.
class FunctionalImpl : public detail::SharedClone<FunctionalImpl, rn::Functional> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImpl(Function function);
  template <class F, class... Args>
  requires(!std::derived_from<F, FunctionalImpl>) explicit FunctionalImpl(F f, Args... arguments)
      : FunctionalImpl(
            Function([f, arguments...](const Tensor& x) -> Tensor { return f(x, arguments...); })) {}
  void pretty_print(std::ostream& out) const override;

 private:
  friend class detail::Remade<FunctionalImpl, rn::Functional>;
  std::unique_ptr<Module> remade() const { return std::make_unique<FunctionalImpl>(function_); }

  Function function_;
};
TORCH_MODULE(Functional);

}  // namespace torch::nn
#pragma GCC visibility pop
