// ModuleDict: modules by name, in order of insertion: PyTorch's ModuleDict. What is done with them is written where the
// dict is used.
//
//   nn::ModuleDict heads{this, "heads"};
//   heads.emplace<nn::Linear>("age", 64, 1);
//   Tensor y = heads.at<nn::Linear>("age")(x);
//
// Data: none of its own: the modules are its registered children.
#pragma once

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

class ModuleDict : public Module {
 public:
  using Items = OrderedDict<std::string, std::shared_ptr<Module>>;
  using Module::Module;

  /// Adds M(args...), or M(nullptr, "", args...) for a class that takes a parent. Error(bad_argument) for a key that is
  /// there already, is empty or has a dot.
  template <class M, class... Args>
  M& emplace(const std::string& key, Args&&... args) {
    std::shared_ptr<M> made = detail::make_root<M>(std::forward<Args>(args)...);
    insert(key, made);
    return *made;
  }
  void insert(const std::string& key, std::shared_ptr<Module> module) {
    register_module(key, std::move(module));
  }
  template <class M>
  void insert(const std::string& key, const ModuleHolder<M>& holder) {
    register_module(key, holder.ptr());
  }
  /// Inserts all modules of `other`, in place of those that have the same keys.
  void update(const Items& other);
  void update(const ModuleDict& other);
  /// Takes a module out. Error(bad_argument) when there is none.
  std::shared_ptr<Module> pop(const std::string& key);
  void clear() { unregister_all(); }

  // Error(bad_argument) for a key that is not there, or a module that is no M.
  std::shared_ptr<Module> ptr(const std::string& key) const;
  std::shared_ptr<Module> operator[](const std::string& key) const { return ptr(key); }
  template <class M>
  std::shared_ptr<M> ptr(const std::string& key) const {
    std::shared_ptr<M> module = std::dynamic_pointer_cast<M>(ptr(key));
    if (!module) fail(Category::bad_argument, "ModuleDict", "\"" + key + "\" is of another class");
    return module;
  }
  template <class M>
  M& at(const std::string& key) const {
    return *ptr<M>(key);
  }
  bool contains(const std::string& key) const;
  size_t size() const { return children().size(); }
  bool is_empty() const { return size() == 0; }
  Items items() const;
  std::vector<std::string> keys() const;
  std::vector<std::shared_ptr<Module>> values() const { return children(); }

  std::unique_ptr<Module> clone() const override;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
