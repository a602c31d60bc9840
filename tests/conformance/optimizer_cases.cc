// OptimizerUnderTest makes the optimizer that a case names; the two kinds of case follow.
#include "tests/conformance/optimizer_cases.h"

#include <map>

#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/linalg.h"
#include "ops/matmul.h"
#include "optim/clip_grad.h"
#include "optim/optimizers.h"
#include "tests/conformance/interpreter.h"
#include "tracer/function/compile.h"

namespace retrograd::conformance {
namespace {

/// The optimizer of a case over its parameters, by name.
class OptimizerUnderTest {
 public:
  using Params = std::map<std::string, Tensor>;

  OptimizerUnderTest(const Json& test_case, const Params& params) {
    const std::string& kind = test_case["optimizer"].get_ref<const std::string&>();
    static const std::map<std::string, void (OptimizerUnderTest::*)(const Json&, const Params&)> makers = {
        {"sgd", &OptimizerUnderTest::make<optim::SGD>},
        {"adam", &OptimizerUnderTest::make<optim::Adam>},
        {"adamw", &OptimizerUnderTest::make<optim::AdamW>},
        {"adamax", &OptimizerUnderTest::make<optim::Adamax>},
        {"nadam", &OptimizerUnderTest::make<optim::NAdam>},
        {"radam", &OptimizerUnderTest::make<optim::RAdam>},
        {"adagrad", &OptimizerUnderTest::make<optim::Adagrad>},
        {"adadelta", &OptimizerUnderTest::make<optim::Adadelta>},
        {"rmsprop", &OptimizerUnderTest::make<optim::RMSprop>},
        {"rprop", &OptimizerUnderTest::make<optim::Rprop>},
        {"asgd", &OptimizerUnderTest::make<optim::ASGD>},
    };
    const auto maker = makers.find(kind);
    if (maker == makers.end()) throw Unsupported("op=" + kind);
    (this->*maker->second)(test_case["groups"], params);
    counts_unseen_ = kind == "sgd";
  }

  optim::Optimizer& operator*() const { return *optimizer_; }
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
  void make(const Json& groups, const Params& params) {
    std::vector<typename Optimizer::Group> made;
    for (const Json& group : groups) {
      typename Optimizer::Options options;
      size_t known = 1;  // "params"
      options.visit([&]<class T>(std::string_view name, T& option, auto&&...) {
        if (const Json* given = find(group, std::string(name).c_str())) option = given->get<T>(), ++known;
      });
      if (known != group.size()) throw Unsupported("an option of " + group.dump());
      // PyTorch fills the sums with its constructor's value; one in a group has no effect there.
      if constexpr (std::is_same_v<Optimizer, optim::Adagrad>) options.initial_accumulator_value = 0;
      Tensors members;
      for (const Json& name : group.at("params")) {
        members.push_back(params.at(name));
        names_.push_back(name);
      }
      made.push_back({members, options});
    }
    optimizer_ = std::make_unique<Optimizer>(std::move(made));
  }

  std::unique_ptr<optim::Optimizer> optimizer_;
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
      for (size_t g = 0; g < lr->size(); ++g) (*optimizer).param_group(g).set_lr((*lr)[g]);
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

// L-BFGS on a quadratic function: f(p) = p . A p / 2 - b . p.
void run_lbfgs(const Json& test_case, Mode mode, Comparison& comparison) {
  const Json& expect = test_case["expect"];
  const Tensor p = comparison.suite().tensor(test_case["params"].at("p0")).requires_grad_();
  const Tensor a = comparison.suite().tensor(test_case["objective"].at("A"));
  const Tensor b = comparison.suite().tensor(test_case["objective"].at("b"));
  const Json& group = test_case["groups"].at(0);
  optim::LBFGSOptions options;
  const auto read = [&](const char* name, auto& option) {
    if (const Json* given = find(group, name)) option = given->get<std::decay_t<decltype(option)>>();
  };
  read("lr", options.lr), read("max_iter", options.max_iter), read("history_size", options.history_size);
  read("tolerance_grad", options.tolerance_grad), read("tolerance_change", options.tolerance_change);
  if (const Json* most = find(group, "max_eval"); most && !most->is_null())
    options.max_eval = most->get<int64_t>();
  if (const Json* search = find(group, "line_search_fn"); search && !search->is_null()) {
    if (*search != "strong_wolfe") throw Unsupported("line_search_fn=" + search->dump());
    options.line_search_fn = optim::LineSearchFn::strong_wolfe;
  }
  optim::LBFGS optimizer({p}, options);

  const auto objective = [&](const Tensors&) -> Tensors {
    const Tensor flat = p.reshape({-1});
    return {dot(flat, matmul(a, flat)) / 2 - dot(b.reshape({-1}), flat)};
  };
  const auto differentiator = make_differentiator(compiles(mode) ? Mode::eager : mode);
  FunctionCache plan(FunctionKind::step);
  int64_t evaluations = 0;
  const auto closure = [&] {
    ++evaluations;
    const auto evaluate = [&](const Tensors&) -> Tensors {
      p.set_grad({});
      const Tensor loss = objective({})[0];
      differentiator->backward({{loss}, {}, {}, false}, {});
      return {loss.detach()};
    };
    return (compiles(mode) ? plan.run(evaluate, {}) : evaluate({}))[0];
  };
  for (size_t s = 0; s < test_case["steps"].size(); ++s) {
    const std::string at = "[" + std::to_string(s) + "]";
    const Tensor loss = optimizer.step(closure);
    compare_params("params" + at, expect["params"].at(s), {{"p0", p}}, comparison);
    comparison.number("loss" + at, loss, expect["loss"].at(s));
    comparison.number("evals" + at, scalar_tensor(evaluations, {kInt64}), expect["evals"].at(s));
  }
}

void run_train(const Json& test_case, Mode mode, Comparison& comparison) {
  std::map<std::string, Tensor> leaves, params;
  for (const Json& input : test_case["inputs"])
    leaves.emplace(input["name"], comparison.suite().leaf(input, true));
  for (const Json& group : test_case["groups"])
    for (const Json& name : group.at("params")) params.emplace(name, leaves.at(name));
  const OptimizerUnderTest optimizer(test_case, params);
  const auto differentiator = make_differentiator(mode == Mode::step ? Mode::eager : mode);
  std::optional<Units> units;
  UnitCaches caches;
  if (compiles(mode) && mode != Mode::step) units.emplace(test_case["ops"]);
  FunctionCache whole(FunctionKind::step), update(FunctionKind::step);
  const auto step_optimizer = [&](const Tensors&) -> Tensors {
    clip(find(test_case, "clip"), (*optimizer).parameters());
    (*optimizer).step();
    return {};
  };
  const auto train = [&](const Tensors&) -> Tensors {
    (*optimizer).zero_grad();
    Interpreter interpreter(comparison, *differentiator, units ? &*units : nullptr, &caches);
    for (const auto& [name, leaf] : leaves) interpreter.names().bind(name, leaf);
    interpreter.run(test_case["ops"]);
    const Tensor loss = interpreter.names().get(test_case["loss"]);
    differentiator->backward({{loss}, {}, {}, false}, {});
    if (units)
      update.run(step_optimizer, {});
    else
      step_optimizer({});
    return {loss.detach()};
  };
  const Json& expect = test_case["expect"];
  for (size_t s = 0; s < test_case["n_steps"].get<size_t>(); ++s) {
    if (const Json* lr = find(test_case, "lr")) (*optimizer).set_lr(lr->at(s));
    const Tensor loss = (mode == Mode::step ? whole.run(train, {}) : train({}))[0];
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
  else if (test_case["optimizer"] == "lbfgs")
    run_lbfgs(test_case, mode, comparison);
  else
    run_optim(test_case, mode, comparison);
}

}  // namespace retrograd::conformance
