// The names of a program and the tensors that they are bound to.
#pragma once

#include <map>
#include <string>

#include "engine/tensor.h"
#include "tests/conformance/json.h"

namespace retrograd::conformance {

class Environment {
 public:
  /// Binds a name, once; an undefined tensor gives a name that check may list under `undefined` and nothing
  /// else may use.
  void bind(const std::string& name, const Tensor& tensor) {
    if (!names_.emplace(name, tensor).second) throw BadManifest("\"" + name + "\" is bound twice");
  }
  /// Binds the name of a `save`, as often as its hook runs.
  void rebind(const std::string& name, const Tensor& tensor) { names_[name] = tensor; }

  /// The tensor of a name.
  const Tensor& get(const Json& name) const {
    const Tensor& tensor = find(name);
    if (!tensor.defined()) throw BadManifest(name.dump() + " is undefined");
    return tensor;
  }
  bool is_undefined(const Json& name) const { return !find(name).defined(); }

  /// The tensors of a list of names; undefined for null.
  Tensors get_all(const Json& names) const {
    Tensors tensors;
    for (const Json& name : names) tensors.push_back(name.is_null() ? Tensor() : get(name));
    return tensors;
  }

 private:
  const Tensor& find(const Json& name) const {
    const auto it = name.is_string() ? names_.find(name.get_ref<const std::string&>()) : names_.end();
    if (it == names_.end()) throw BadManifest("no tensor is named " + name.dump());
    return it->second;
  }

  std::map<std::string, Tensor> names_;
};

}  // namespace retrograd::conformance
