// Sequential: modules that are called one after the other, each with the result of the one before.
//
//   nn::Sequential body{this, "body"};
//   body.emplace_back<nn::Linear>(64, 128);
//   body.emplace_back<nn::ReLU>();
//   Tensor y = body(x);
//
// Data: the modules, which are shared children named "0", "1", ... unless they are given names.
// Limits: the first module may take any arguments and give any result; what is between fits or is an
// Error(bad_argument) (nn/any_module.h).
#pragma once

#include "nn/any_module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

class Sequential : public Module {
 public:
  using Module::Module;
  /// With these modules: {{"fc", module}, {"act", module}}, or {module, module}.
  Sequential(Module* parent, std::string name, std::initializer_list<NamedAnyModule> modules);

  /// Appends M(args...), or M(nullptr, "", args...) for a class that takes a parent.
  template <class M, class... Args>
  M& emplace_back(Args&&... args) {
    std::shared_ptr<M> made = detail::make_root<M>(std::forward<Args>(args)...);
    push_back(made);
    return *made;
  }
  /// A std::shared_ptr, a holder, an AnyModule, a module that can be copied, or a NamedAnyModule of one.
  void push_back(NamedAnyModule module);
  void push_back(std::string name, AnyModule module) { push_back({std::move(name), std::move(module)}); }
  /// Appends the modules of another container.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  /// Error(bad_argument) when there are no modules.
  Tensor forward(Operand x) const;
  template <class R = Tensor, class... More>
  R forward(Operand first, const More&... more) const {
    const std::array<std::any, 1 + sizeof...(More)> given{detail::to_any(first), detail::to_any(more)...};
    return detail::result_as<R>(run(given, first.where()));
  }
  /// With a first argument that is no tensor.
  template <class R = Tensor, class First, class... More>
  requires(!std::is_convertible_v<const First&, Operand>) R forward(const First& first, const More&... more)
  const {
    const std::array<std::any, 1 + sizeof...(More)> given{detail::to_any(first), detail::to_any(more)...};
    return detail::result_as<R>(run(given, {}));
  }
  Tensor operator()(Operand x) const { return call(*this, x); }
  template <class... More>
  Tensor operator()(Operand first, const More&... more) const {
    return call(*this, first, more...);
  }

  // Errors: index_out_of_range beyond the end, bad_argument for a module that is no M.
  std::shared_ptr<Module> ptr(size_t i) const { return item(i).ptr(); }
  std::shared_ptr<Module> operator[](size_t i) const { return ptr(i); }
  template <class M>
  std::shared_ptr<M> ptr(size_t i) const {
    return item(i).ptr<M>();
  }
  template <class M>
  M& at(size_t i) const {
    return item(i).get<M>();
  }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  std::unique_ptr<Module> clone() const override;

 private:
  const AnyModule& item(size_t i) const;
  std::any run(detail::Anys given, SourceLocation where) const;

  std::vector<AnyModule> items_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
