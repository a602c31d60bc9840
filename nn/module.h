// Module: a tree of named parameters. Members register themselves by name, in the order in which they are declared:
//
//   struct Net : nn::Module {
//     nn::Linear fc1{this, "fc1", 64, 128};
//     nn::Linear fc2{this, "fc2", 128, 10};
//     Tensor forward(Operand x) { return fc2(relu(fc1(x))); }
//   };
//
// libtorch's way works, too, and both mix: fc1 = register_module("fc1", ...), w = register_parameter("w", ...).
//
// Data: a module knows its children and its tensors. Members that were declared as above are known by their addresses:
// a Parameter or a Buffer is a Tensor that registers itself with its module. Hence they live where they were declared,
// and leave their parent when they are destroyed, also when its construction fails half-way. A child that was
// registered is shared, possibly by several parents; of a tensor that was registered the module owns a handle, and the
// program has others. What recorded functions and hooks refer to is in a ModuleState (nn/module_hooks.h).
// A name is a path with dots ("blocks.0.ln1.weight"), as in PyTorch, so a saved state loads there under the same keys.
// A tensor or module that is reached by two names is one parameter, under the first of them, as in PyTorch; a state has
// it under both.
// A module's forward takes an Operand and opens a CallScope with its location: errors name the line that called the
// outermost module. Its operator() goes through call(), which runs hooks.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "engine/emitter.h"
#include "io/state_dict.h"
#include "nn/module_holder.h"
#include "nn/module_hooks.h"
#include "nn/ordered_dict.h"
#include "nn/parameter.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace nn {

namespace detail {
class Substitution;
}

class Module : public std::enable_shared_from_this<Module> {
 public:
  Module();
  /// A child of `parent` (null: a root). Error(bad_argument) for a name that is empty, taken, or has a dot.
  Module(Module* parent, std::string name);
  /// A root that name() calls by this name.
  explicit Module(std::string name);
  virtual ~Module();
  /// Another module with the same registered children and tensors, and no hooks. Error(unsupported) when members were
  /// declared in it, since these are not registered with the copy: clone() copies such a module.
  Module(const Module& other);
  Module& operator=(const Module&) = delete;

  // ---- The tree. `recurse`: also of all modules below.
  /// Parameters of this module, then of its children, in order of declaration.
  Tensors parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  int64_t parameter_count() const;  ///< elements of all parameters
  /// The same of buffers, also those that are not persistent.
  Tensors buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  /// A pointer to a registered module shares it. One to a module that is a member of another object shares that, if it
  /// is shared itself; otherwise it is a plain pointer.
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;
  /// This module and all below, each before its children.
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = "",
                                                                  bool include_self = true) const;
  /// Calls f(module), or f(name, module), for this module and all below; it takes them as Module& or as shared_ptr.
  template <class F>
  void apply(const F& f, const std::string& name_prefix = "") {
    each_module(name_prefix, [&](const std::string& name, const auto& module) { visit(f, name, module); });
  }
  template <class F>
  void apply(const F& f, const std::string& name_prefix = "") const {
    each_module(name_prefix, [&](const std::string& name, const auto& module) {
      visit(f, name, std::shared_ptr<const Module>(module));
    });
  }

  // ---- Registration, libtorch's way. Error(bad_argument) for a name that is empty, taken, or has a dot.
  /// Errors: bad_argument when the tensor was computed with a gradient, requires_grad_forbidden for integers. An
  /// undefined tensor takes the name and is not listed. The module keeps a handle of its own, as the caller does:
  /// functional_call cannot replace the caller's, and fails.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor, bool persistent = true);
  /// A child, which may have other parents. Error(bad_argument) for none, and for a cycle.
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, const ModuleHolder<M>& holder);
  /// Error(bad_argument) when there is no such child.
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    replace_child(name, module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, const ModuleHolder<M>& holder);
  void unregister_module(const std::string& name);

  // ---- Modes.
  /// Switches the behaviour that differs between training and use (dropout), in this module and its children.
  virtual void train(bool on = true);
  void eval() { train(false); }
  /// A recorded function that reads it is recorded again when it changes.
  bool is_training() const;
  /// Of all parameters.
  void requires_grad_(bool on = true);
  /// Drops all gradients, or fills existing ones with zeros.
  virtual void zero_grad(bool set_to_none = true);

  // ---- Values.
  /// Moves parameters, their gradients, and buffers to a device, or converts floating ones to a floating dtype, all or
  /// nothing. They stay the same tensors: all handles refer to the new values. Views of them, and the state of an
  /// optimizer, stay as they were. Errors: bad_argument when there is no such device, dtype_mismatch for a dtype that
  /// is not floating. A call never returns before values can be used: non_blocking has no effect.
  void to(Device device, bool non_blocking = false, SourceLocation where = SourceLocation::current());
  void to(ScalarType dtype, bool non_blocking = false, SourceLocation where = SourceLocation::current());
  void to(Device device, ScalarType dtype, bool non_blocking = false,
          SourceLocation where = SourceLocation::current());

  /// Parameters and persistent buffers, detached: they share the memory of the module.
  StateDict state_dict() const;
  /// Copies `state` into parameters and persistent buffers, converting dtypes; all or nothing. Errors: bad_argument for
  /// a key that is missing or, when strict, unknown; shape_mismatch.
  void load_state_dict(const StateDict& state, bool strict = true,
                       SourceLocation where = SourceLocation::current());
  /// The same with an archive that takes or has a state (torch/serialize.h).
  template <class Archive>
  void save(Archive& archive) const {
    archive.write(state_dict());
  }
  template <class Archive>
  void load(Archive& archive) {
    load_state_dict(archive.state_dict());
  }

  /// A root of the same class and options, with copies of all values, and no hooks. Error(unsupported) unless the class
  /// implements it: `return clone_as<Net>(arguments of its constructor);`
  virtual std::unique_ptr<Module> clone() const;

  // ---- Hooks (nn/module_hooks.h), called by call(), in order of registration.
  /// f(module, inputs), with the tensors among the inputs: before forward. May return Tensors (or a Tensor, of one) to
  /// replace them.
  template <class F>
  RemovableHandle register_forward_pre_hook(F&& f, bool prepend = false) {
    return add_hook(HookKind::forward_pre, detail::input_hook(std::forward<F>(f)), prepend);
  }
  /// f(module, inputs, result), with the result as Tensors or, of one, as a Tensor: after forward. May return what
  /// replaces the result.
  template <class F>
  RemovableHandle register_forward_hook(F&& f, bool prepend = false) {
    return add_hook(HookKind::forward, detail::result_hook(std::forward<F>(f)), prepend);
  }
  /// f(module, grad_input, grad_output): in a backward, when the gradients of the module's inputs are there; undefined
  /// for an input that requires none. May return what replaces grad_input. When no input requires a gradient, it is
  /// called with the gradients of the results, and replaces nothing.
  template <class F>
  RemovableHandle register_full_backward_hook(F&& f, bool prepend = false) {
    return add_hook(HookKind::backward, detail::result_hook(std::forward<F>(f)), prepend);
  }
  /// f(module, grad_output): in a backward, before the module's own. May return what replaces grad_output.
  template <class F>
  RemovableHandle register_full_backward_pre_hook(F&& f, bool prepend = false) {
    return add_hook(HookKind::backward_pre, detail::input_hook(std::forward<F>(f)), prepend);
  }
  /// module.forward(inputs...) with the module's hooks. `module` is the object in its own class. A recorded function
  /// that calls it is recorded again when hooks are added or removed.
  template <class M, class... Inputs>
  static auto call(M& module, const Inputs&... inputs);

  // ---- What it is.
  /// This module as an M, or null; M may be a class or a ModuleHolder.
  template <class M>
  auto* as() {
    return dynamic_cast<typename detail::Held<M>::Type*>(this);
  }
  template <class M>
  const auto* as() const {
    return dynamic_cast<const typename detail::Held<M>::Type*>(this);
  }
  /// The name given to the constructor, else that of the class without namespaces.
  std::string name() const;
  /// One line for this module, without its children: "Linear(in_features=64, out_features=10, bias=false)".
  virtual void pretty_print(std::ostream& out) const;

 protected:
  /// For clone(): an M made of these arguments, with the values and modes of this module. Draws no random numbers.
  template <class M, class... Args>
  std::unique_ptr<Module> clone_as(const Args&... arguments) const {
    const detail::KeptRandomState kept;
    std::unique_ptr<M> copy = detail::make_root<M>(arguments...);
    copy->Module::take_values_of(*this);
    return copy;
  }
  /// Forgets a tensor. Error(bad_argument) when there is none of this name.
  void unregister_tensor(const std::string& name);
  /// Forgets all children and tensors, as a class of libtorch does before it makes them again.
  void unregister_all();
  /// Takes the values and modes of `source`, which has the same names.
  void take_values_of(const Module& source);

 private:
  friend class Parameter;
  friend class Buffer;
  friend class detail::Substitution;
  friend class detail::HookedCall;
  friend class Parametrizer;
  enum class Kind : uint8_t { parameter, buffer, unsaved };  // unsaved: a buffer that is not persistent
  struct Member {
    std::string name;
    Tensor* tensor;
    Kind kind;
    std::shared_ptr<Tensor> handle = {};  // of a registered one; null of one that was declared
  };
  using Members = std::vector<Member>;
  struct Child {
    std::string name;
    Module* module;
    std::shared_ptr<Module> shared = {};  // null of one that was declared
  };
  struct Place {
    std::string name;
    std::shared_ptr<Module> module;
  };

  void check_name(std::string_view name) const;
  void add(std::string name, Tensor& member, Kind kind);
  Tensor& add_handle(std::string name, Tensor tensor, Kind kind);
  void keep_handle(const Tensor& member);  // what it holds stays registered, the member does not
  void check_child(const std::shared_ptr<Module>& module) const;
  void add_child(std::string name, std::shared_ptr<Module> module);
  void replace_child(const std::string& name, std::shared_ptr<Module> module);
  std::vector<Child>::iterator find_child(const std::string& name);
  RemovableHandle add_hook(HookKind kind, detail::HookFunction f, bool prepend);

  void each_module(const std::string& name_prefix,
                   const std::function<void(const std::string&, const std::shared_ptr<Module>&)>& f) const;
  std::shared_ptr<Module> pointer() const;
  std::vector<Place> places(bool recurse = true) const;  // under all names; this module first
  Members members(bool recurse = true) const;            // by full names, under all of them; defined ones
  OrderedDict<std::string, Tensor> named(bool (*is_wanted)(Kind), bool recurse) const;
  std::vector<std::pair<std::string, Tensor>> in_state() const;
  void convert(const std::function<Tensor(const Tensor&)>& convert, SourceLocation where);
  // A function that is recorded now is recorded again when this field of the state changes; `what` says why.
  template <class T>
  void depends_on(T detail::ModuleState::*field, std::string_view what) const;
  bool is_plain() const {  // no hooks run
    if (retrograd::detail::current_emitter) [[unlikely]]
      depends_on(&detail::ModuleState::hook_changes, "hooks of a module were added or removed");
    return !state_->has_hooks;
  }

  template <class F, class P>
  static void visit(const F& f, const std::string& name, const P& module) {
    if constexpr (std::is_invocable_v<const F&, decltype(*module)>)
      f(*module);
    else if constexpr (std::is_invocable_v<const F&, const P&>)
      f(module);
    else if constexpr (std::is_invocable_v<const F&, const std::string&, decltype(*module)>)
      f(name, *module);
    else
      f(name, module);
  }

  Members members_;
  std::vector<Child> children_;
  Module* parent_ = nullptr;  // in which it was declared
  std::shared_ptr<detail::ModuleState> state_;
};

/// The module and all below, an indented line each, as PyTorch prints them.
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace nn
}  // namespace retrograd
#pragma GCC visibility pop

#include "nn/call.h"
