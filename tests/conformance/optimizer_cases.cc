// OptimizerUnderTest makes the optimizer that a case names; the two kinds of case follow.
#include "tests/conformance/optimizer_cases.h"

#include <map>

#include "optim/adamw.h"
#include "optim/clip_grad.h"
#include "optim/sgd.h"
#include "tests/conformance/interpreter.h"
#include "tracer/function/compile.h"

namespace retrograd::conformance {
namespace {

template <class T>
void read(const Json& group, const char* field, T& value) {
  if (const Json* given = find(group, field)) value = given->get<T>();
}

void read_options(const Json& group, optim::SGDOptions& o) {
  read(group, "momentum", o.momentum), read(group, "dampening", o.dampening);
  read(group, "nesterov", o.nesterov);
}
void read_options(const Json& group, optim::AdamWOptions& o) {
  read(group, "betas", o.betas), read(group, "eps", o.eps), read(group, "amsgrad", o.amsgrad);
}

/// The optimizer of a case over its parameters, by name.
class OptimizerUnderTest {
 public:
  OptimizerUnderTest(const Json& test_case, const std::map<std::string, Tensor>& params) {
    const std::string& kind = test_case["optimizer"].get_ref<const std::string&>();
    if (kind == "sgd")
      make<optim::SGD>(test_case["groups"], params);
    else if (kind == "adamw")
      make<optim::AdamW>(test_case["groups"], params);
    else
      throw Unsupported("op=" + kind);
    counts_unseen_ = kind == "sgd";
  }

  optim::Optimizer& operator*() const { return *optimizer_; }
  void set_lr(size_t group, double lr) const { set_lr_(group, lr); }
  const std::vector<std::string>& names() const { return names_; }
  /// The state by PyTorch's names, of one parameter. Its SGD counts no steps.
  std::map<std::string, Tensor> state_of(size_t param) const {
    std::map<std::string, Tensor> state;
    const std::string prefix = std::to_string(param) + ".";
    for (const auto& [key, value] : optimizer_->state_dict())
      if (key.starts_with(prefix) && !(counts_unseen_ && key == prefix + "step"))
        state.emplace(key.substr(prefix.size()), value);
    return state;
  }

 private:
  template <class Optimizer>
  void make(const Json& groups, const std::map<std::string, Tensor>& params) {
    std::vector<typename Optimizer::Group> made;
    for (const Json& group : groups) {
      typename Optimizer::Options options;
      read(group, "lr", options.lr), read(group, "weight_decay", options.weight_decay);
      read(group, "maximize", options.maximize);
      read_options(group, options);
      Tensors members;
      for (const Json& name : group.at("params")) {
        members.push_back(params.at(name));
        names_.push_back(name);
      }
      made.push_back({members, options});
    }
    auto optimizer = std::make_unique<Optimizer>(std::move(made));
    set_lr_ = [o = optimizer.get()](size_t group, double lr) { o->groups().at(group).options.lr = lr; };
    optimizer_ = std::move(optimizer);
  }

  std::unique_ptr<optim::Optimizer> optimizer_;
  std::function<void(size_t, double)> set_lr_;
  std::vector<std::string> names_;  // of the parameters, in order of the groups
  bool counts_unseen_ = false;
};

// Clips over all parameters; returns the norm, or an undefined tensor if none is requested.
Tensor clip(const Json* how, const Tensors& params) {
  if (!how) return {};
  if (how->at("kind") == "value") {
    optim::clip_grad_value_(params, how->at("clip_value").get<double>());
    return {};
  }
  const double norm_type = how->contains("norm_type") ? to_scalar(how->at("norm_type")).to_double() : 2;
  return optim::clip_grad_norm_(params, to_scalar(how->at("max_norm")).to_double(), norm_type).tensor();
}

void compare_params(const std::string& what, const Json& wanted, const std::map<std::string, Tensor>& params,
                    Comparison& comparison) {
  if (wanted.size() != params.size()) throw BadManifest(what + " does not list the parameters");
  for (const auto& [name, key] : wanted.items()) comparison.exactly(what + "." + name, params.at(name), key);
}

void compare_state(const Json& wanted, const OptimizerUnderTest& optimizer, Comparison& comparison) {
  for (size_t i = 0; i < optimizer.names().size(); ++i) {
    std::map<std::string, Tensor> got = optimizer.state_of(i);
    const std::string what = "state." + optimizer.names()[i];
    if (const Json* of_param = find(wanted, optimizer.names()[i].c_str()))
      for (const auto& [name, key] : of_param->items()) {
        const Tensor value = got.contains(name) ? got.at(name) : Tensor();
        got.erase(name);
        if (key.is_string())
          comparison.exactly(what + "." + name, value, key);
        else
          comparison.number(what + "." + name, value, key);
      }
    for (const auto& [name, value] : got) comparison.number(what + "." + name, value, nullptr);
  }
}

void run_optim(const Json& test_case, Mode mode, Comparison& comparison) {
  std::map<std::string, Tensor> params;
  Tensors all;
  for (const auto& [name, key] : test_case["params"].items())
    all.push_back(params.emplace(name, comparison.suite().tensor(key).requires_grad_()).first->second);
  const OptimizerUnderTest optimizer(test_case, params);
  std::map<std::string, FunctionCache> plans;  // by which parameters have a gradient, and the clipping
  const Json& expect = test_case["expect"];
  for (size_t s = 0; s < test_case["steps"].size(); ++s) {
    const Json& step = test_case["steps"][s];
    const std::string at = "[" + std::to_string(s) + "]";
    comparison.log().enter("steps" + at);
    if (const Json* lr = find(step, "lr"))
      for (size_t g = 0; g < lr->size(); ++g) optimizer.set_lr(g, (*lr)[g]);
    Tensors with_gradient, gradients;
    std::string structure = step.contains("clip") ? step["clip"].dump() : "";
    for (const auto& [name, key] : step.at("grads").items()) {
      params.at(name).set_grad({});
      if (key.is_null()) continue;
      with_gradient.push_back(params.at(name)), gradients.push_back(comparison.suite().tensor(key));
      structure += " " + name;
    }
    const auto function = [&](const Tensors& given) -> Tensors {
      for (size_t i = 0; i < given.size(); ++i) with_gradient[i].set_grad(given[i]);
      const Tensor norm = clip(find(step, "clip"), all);
      (*optimizer).step();
      return norm.defined() ? Tensors{norm} : Tensors{};
    };
    const Tensors norm =
        compiles(mode)
            ? plans.try_emplace(structure, FunctionKind::step).first->second.run(function, gradients)
            : function(gradients);
    compare_params("params" + at, expect["params"].at(s), params, comparison);
    if (const Json* norms = find(expect, "total_norm"))
      comparison.number("total_norm" + at, norm.empty() ? Tensor() : norm[0], norms->at(s));
  }
  if (const Json* state = find(expect, "state")) compare_state(*state, optimizer, comparison);
}

void run_train(const Json& test_case, Mode mode, Comparison& comparison) {
  std::map<std::string, Tensor> leaves, params;
  for (const Json& input : test_case["inputs"])
    leaves.emplace(input["name"], comparison.suite().leaf(input, true));
  for (const Json& group : test_case["groups"])
    for (const Json& name : group.at("params")) params.emplace(name, leaves.at(name));
  const OptimizerUnderTest optimizer(test_case, params);
  const auto differentiator = make_differentiator(compiles(mode) ? Mode::eager : mode);
  const auto train = [&](const Tensors&) -> Tensors {
    (*optimizer).zero_grad();
    Interpreter interpreter(comparison, *differentiator);
    for (const auto& [name, leaf] : leaves) interpreter.names().bind(name, leaf);
    interpreter.run(test_case["ops"]);
    const Tensor loss = interpreter.names().get(test_case["loss"]);
    differentiator->backward({{loss}, {}, {}, false}, {});
    clip(find(test_case, "clip"), (*optimizer).parameters());
    (*optimizer).step();
    return {loss.detach()};
  };
  FunctionCache plan(FunctionKind::step);
  const Json& expect = test_case["expect"];
  for (size_t s = 0; s < test_case["n_steps"].get<size_t>(); ++s) {
    if (const Json* lr = find(test_case, "lr")) (*optimizer).set_lr(lr->at(s));
    const Tensor loss = (compiles(mode) ? plan.run(train, {}) : train({}))[0];
    comparison.number("loss[" + std::to_string(s) + "]", loss, expect["loss"].at(s));
  }
  compare_params("params", expect["params"], params, comparison);
}

}  // namespace

void check_optimizer_expectations(const Json& test_case) {
  const Json& expect = test_case["expect"];
  const bool trains = test_case["kind"] == "train";
  const size_t steps = trains ? test_case["n_steps"].get<size_t>() : test_case["steps"].size();
  for (const auto& [name, value] : expect.items()) {
    if (name == "evals" || name == "state" || (trains && name == "params")) continue;
    if (name != "params" && name != "loss" && name != "total_norm")
      throw BadManifest("expect: unknown field \"" + name + "\"");
    if (!value.is_array() || value.size() != steps)
      throw BadManifest("expect." + name + ": not an entry for each of " + std::to_string(steps) + " steps");
  }
  if (steps == 0 || !expect.contains("params") || (trains && !expect.contains("loss")))
    throw BadManifest("expect: nothing is compared");
  if (const Json* state = find(expect, "state"); state && !trains)
    for (const auto& [name, value] : state->items())
      if (!test_case["params"].contains(name))
        throw BadManifest("expect.state: no parameter \"" + name + "\"");
}

void run_optimizer_case(const Json& test_case, Mode mode, Comparison& comparison) {
  if (test_case["kind"] == "train")
    run_train(test_case, mode, comparison);
  else
    run_optim(test_case, mode, comparison);
}

}  // namespace retrograd::conformance
