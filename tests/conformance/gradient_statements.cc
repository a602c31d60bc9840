// Statements about gradients: backward, grad, the content of .grad, and check.
#include "tests/conformance/interpreter.h"

namespace retrograd::conformance {
namespace {

Backward request(const Json& statement, const Environment& names) {
  Backward r;
  r.roots = names.get_all(statement["roots"]);
  if (const Json* cotangents = find(statement, "cotangents")) r.cotangents = names.get_all(*cotangents);
  r.retain_graph = optional_bool(statement, "retain_graph");
  r.create_graph = optional_bool(statement, "create_graph").value_or(false);
  return r;
}

std::string text(bool value) { return value ? "true" : "false"; }

}  // namespace

void Interpreter::backward(const Json& statement, const std::string&) {
  std::optional<Tensors> inputs;
  if (const Json* listed = find(statement, "inputs")) inputs = names_.get_all(*listed);
  differentiator_.backward(request(statement, names_), inputs);
}

void Interpreter::grad(const Json& statement, const std::string&) {
  const Tensors inputs = names_.get_all(statement["inputs"]);
  const bool allow_unused = optional_bool(statement, "allow_unused").value_or(false);
  const Tensors grads = differentiator_.grad(request(statement, names_), inputs, allow_unused);
  const Json& out = statement["out"];
  if (out.size() > grads.size()) throw BadManifest("grad gives fewer results than `out` names");
  for (size_t i = 0; i < out.size(); ++i)
    if (!out[i].is_null()) names_.bind(out[i], grads[i]);
}

void Interpreter::requires_grad(const Json& statement, const std::string&) {
  names_.get(statement["var"]).requires_grad_(statement["value"].get<bool>());
}

void Interpreter::retain_grad(const Json& statement, const std::string&) {
  names_.get(statement["var"]).retain_grad();
}

void Interpreter::get_grad(const Json& statement, const std::string&) {
  names_.bind(statement["out"], names_.get(statement["var"]).grad());
}

void Interpreter::set_grad(const Json& statement, const std::string&) {
  const Json& value = statement["value"];
  names_.get(statement["var"]).set_grad(value.is_null() ? Tensor() : names_.get(value));
}

void Interpreter::check(const Json& statement, const std::string& path) {
  const std::string here = path + ".check.";
  CaseLog& log = comparison_.log();
  const auto each = [&](const char* field, auto&& look) {
    const Json* listed = find(statement, field);
    if (!listed) return;
    for (const auto& [name, want] : listed->items()) look(here + field + "." + name, name, want);
  };
  const auto flag = [&](const std::string& what, bool got, bool want) {
    log.compared();
    if (got != want) log.fail(what, "want " + text(want) + " got " + text(got));
  };
  each("values", [&](const auto& what, const auto& name, const Json& key) {
    comparison_.exactly(what, names_.get(name), key);
  });
  each("grads", [&](const auto& what, const auto& name, const Json& key) {
    comparison_.exactly(what, names_.get(name).grad(), key);
  });
  each("requires_grad", [&](const auto& what, const auto& name, bool want) {
    flag(what, names_.get(name).requires_grad(), want);
  });
  each("is_leaf",
       [&](const auto& what, const auto& name, bool want) { flag(what, names_.get(name).is_leaf(), want); });
  if (const Json* undefined = find(statement, "undefined"))
    for (const Json& name : *undefined)
      flag(here + "undefined." + name.get<std::string>(), names_.is_undefined(name), true);
}

}  // namespace retrograd::conformance
