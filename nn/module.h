// Module: a tree of named parameters. Members register themselves by name, in the order in which they are declared:
//
//   struct Net : nn::Module {
//     nn::Linear fc1{this, "fc1", 64, 128};
//     nn::Linear fc2{this, "fc2", 128, 10};
//     Tensor forward(Operand x) { return fc2(relu(fc1(x))); }
//   };
//
// Data: a module knows its children, its parameters and its buffers by their addresses. A Parameter or a Buffer is a
// Tensor that registers itself with its module. Hence modules and these are neither copied nor moved: they live where
// they were declared, or in a ModuleList. A name is a path with dots ("blocks.0.ln1.weight"), as in PyTorch, so a saved
// state loads there under the same keys. A parameter used in two places (a tied head) is registered once and read from
// both.
// A destroyed module leaves its parent, also when its own construction fails half-way.
// A module's forward takes an Operand and opens a CallScope with its location: errors name the line that called the
// outermost module.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/state_dict.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

namespace nn {

class Module;
namespace detail {
class Substitution;
}

/// A leaf that requires a gradient and belongs to a module.
class Parameter : public Tensor {
 public:
  /// An undefined value is a disabled option (a bias): it is not registered.
  Parameter(Module* owner, std::string name, const Tensor& value);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;
};

/// A tensor that belongs to a module and is not trained: running statistics, the state between two parts of a sequence.
/// It moves and is converted with the module, and is part of its state_dict() if it is `persistent`.
class Buffer : public Tensor {
 public:
  /// An undefined value is a disabled option: it is not registered.
  Buffer(Module* owner, std::string name, const Tensor& value, bool persistent = true);
  Buffer(const Buffer&) = delete;
  /// Takes the values, and the history if there is one, into its memory. So it stays the same tensor, and a recorded
  /// function reads and writes it in each run. For another shape, dtype or device it gets new memory; that is an
  /// Error(shape_mismatch) for a value with a history, and in a recorded function.
  Buffer& operator=(const Tensor& value);
  Buffer& operator=(const Buffer& value) { return *this = static_cast<const Tensor&>(value); }
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

class Module {
 public:
  Module() = default;
  /// A child of `parent` (null: a root). Error(bad_argument) for a name that is empty, taken, or has a dot.
  Module(Module* parent, std::string name);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// Parameters of this module, then of its children, in order of declaration.
  Tensors parameters() const;
  std::vector<NamedTensor> named_parameters() const;
  int64_t parameter_count() const;  ///< elements of all parameters
  /// The same of buffers, also those that are not persistent.
  Tensors buffers() const;
  std::vector<NamedTensor> named_buffers() const;

  /// Switches the behaviour that differs between training and use (dropout), in this module and its children.
  void train(bool on = true);
  void eval() { train(false); }
  /// A recorded function that reads it is recorded again when it changes.
  bool is_training() const;

  /// Drops all gradients, or fills existing ones with zeros.
  void zero_grad(bool set_to_none = true);

  /// Moves parameters, their gradients, and buffers to a device, or converts floating ones to a floating dtype, all or
  /// nothing. They stay the same tensors: all handles refer to the new values. Views of them, and the state of an
  /// optimizer, stay as they were. Errors: bad_argument when there is no such device, dtype_mismatch for a dtype that
  /// is not floating.
  void to(Device device, SourceLocation where = SourceLocation::current());
  void to(ScalarType dtype, SourceLocation where = SourceLocation::current());

  /// Parameters and persistent buffers, detached: they share the memory of the module.
  StateDict state_dict() const;
  /// Copies `state` into parameters and persistent buffers, converting dtypes; all or nothing. Errors: bad_argument for
  /// a key that is missing or, when strict, unknown; shape_mismatch.
  void load_state_dict(const StateDict& state, bool strict = true,
                       SourceLocation where = SourceLocation::current());

 private:
  friend class Parameter;
  friend class Buffer;
  friend class detail::Substitution;
  enum class Kind : uint8_t { parameter, buffer, unsaved };  // unsaved: a buffer that is not persistent
  struct Member {
    std::string name;
    Tensor* tensor;
    Kind kind;
  };
  using Members = std::vector<Member>;

  void check_name(std::string_view name) const;
  void add(std::string name, Tensor& member, Kind kind);
  void collect(const std::string& prefix, Members& out) const;
  Members members() const;  // by full names
  std::vector<NamedTensor> named(bool (*is_wanted)(Kind)) const;
  std::vector<NamedTensor> in_state() const;
  void convert(const std::function<Tensor(const Tensor&)>& convert, SourceLocation where);

  Members members_;
  std::vector<std::pair<std::string, Module*>> children_;
  Module* parent_ = nullptr;
  std::shared_ptr<bool> training_ = std::make_shared<bool>(true);
};

/// A list of modules of one type, named "0", "1", ...
template <class T>
class ModuleList : public Module {
 public:
  using Module::Module;

  /// Appends T(this, its number, args...).
  template <class... Args>
  T& emplace_back(Args&&... args) {
    items_.push_back(std::make_unique<T>(this, std::to_string(items_.size()), std::forward<Args>(args)...));
    return *items_.back();
  }
  /// Error(index_out_of_range) beyond the end.
  T& operator[](size_t i) { return *items_[checked(i)]; }
  const T& operator[](size_t i) const { return *items_[checked(i)]; }
  size_t size() const { return items_.size(); }

  /// The modules, in order: `for (auto& block : blocks.items()) x = (*block)(x);`
  const std::vector<std::unique_ptr<T>>& items() const { return items_; }

 private:
  size_t checked(size_t i) const {
    if (i >= items_.size())
      fail(Category::index_out_of_range, "ModuleList", "there is no module " + std::to_string(i));
    return i;
  }

  std::vector<std::unique_ptr<T>> items_;
};

}  // namespace nn
}  // namespace retrograd
#pragma GCC visibility pop
