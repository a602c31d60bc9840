// Evaluation is one run of the program; the functions below it take one each.
#include "tests/conformance/derivative_form.h"

#include "engine/autograd.h"
#include "ops/arithmetic.h"
#include "ops/reduce.h"
#include "tests/conformance/interpreter.h"
#include "tests/conformance/twin.h"
#include "tracer/function/compile.h"

namespace retrograd::conformance {
namespace {

/// The program's inputs and outputs in one evaluation.
class Evaluation {
 public:
  Evaluation(const Json& test_case, Comparison& comparison, Differentiator& differentiator,
             const Units* units = nullptr)
      : case_(test_case),
        suite_(comparison.suite()),
        comparison_(comparison),
        differentiator_(differentiator),
        interpreter_(comparison, differentiator, units) {}

  void bind(const Json& input, const Tensor& leaf) {
    interpreter_.names().bind(input["name"], leaf);
    if (leaf.requires_grad()) variables_.push_back(leaf), variable_names_.push_back(input["name"]);
  }
  void run() {
    interpreter_.run(case_["ops"]);
    outputs_ = interpreter_.names().get_all(case_["outputs"]);
  }

  /// Runs the whole program as one function, which is recorded once. Throws NeedsValues.
  void run_compiled(FunctionCache& compiled) {
    Tensors leaves;
    for (const Json& input : case_["inputs"]) {
      leaves.push_back(suite_.leaf(input, true));
      bind(input, leaves.back());
    }
    outputs_ = compiled.run([this](const Tensors& given) { return program(given); }, leaves);
  }
  Tensors twin() {
    return twin_of(case_, suite_, [this](const Tensors& larger) { program(larger); });
  }
  /// Throws NeedsValues.
  void run_twin(FunctionCache& compiled, const Tensors& larger) {
    compiled.run([this](const Tensors& given) { return program(given); }, larger);
  }
  /// Binds fresh leaves to the inputs and runs.
  void run_on_leaves() {
    for (const Json& input : case_["inputs"]) bind(input, suite_.leaf(input, true));
    run();
  }

  /// The gradients of the outputs with a cotangent, with respect to the inputs that require one; undefined
  /// where there is none.
  Tensors gradients(const Tensors& cotangents, bool create_graph) {
    Backward request;
    request.create_graph = create_graph;
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (!cotangents[i].defined() || !outputs_[i].requires_grad()) continue;
      request.roots.push_back(outputs_[i]);
      request.cotangents.push_back(cotangents[i]);
    }
    if (request.roots.empty()) return Tensors(variables_.size());
    return differentiator_.grad(request, variables_, true);
  }

  /// The case's cotangents; undefined for null.
  Tensors cotangents() const {
    Tensors list;
    const Json* keys = find(case_, "cotangents");
    if (!keys) return list;
    if (keys->size() != outputs_.size()) throw BadManifest("outputs and cotangents differ in number");
    for (const Json& key : *keys) list.push_back(key.is_null() ? Tensor() : suite_.tensor(key));
    return list;
  }

  const Tensors& outputs() const { return outputs_; }
  const Tensors& variables() const { return variables_; }
  const std::vector<std::string>& variable_names() const { return variable_names_; }

 private:
  Tensors program(const Tensors& given) {
    Interpreter inside(comparison_, differentiator_);
    for (size_t i = 0; i < given.size(); ++i) inside.names().bind(case_["inputs"][i]["name"], given[i]);
    inside.run(case_["ops"]);
    return inside.names().get_all(case_["outputs"]);
  }

  const Json& case_;
  const Suite& suite_;
  Comparison& comparison_;
  Differentiator& differentiator_;
  Interpreter interpreter_;
  Tensors outputs_, variables_;
  std::vector<std::string> variable_names_;
};

/// Compares the results for each variable with the keys of an object {input: key|null}.
void compare_variables(const std::string& what, const Evaluation& e, const Tensors& got, const Json& wanted,
                       Comparison& comparison) {
  const std::vector<std::string>& names = e.variable_names();
  if (wanted.size() != names.size())
    throw BadManifest(what + " does not list the inputs that require a gradient");
  for (size_t i = 0; i < names.size(); ++i)
    comparison.gradient(what + "." + names[i], got[i], e.variables()[i], wanted.at(names[i]));
}

void compare_first_order(const Json& test_case, Evaluation& e, Comparison& comparison) {
  const Json& expect = test_case["expect"];
  if (const Json* outputs = find(expect, "outputs"))
    for (size_t i = 0; i < e.outputs().size(); ++i)
      comparison.exactly("outputs[" + std::to_string(i) + "]", e.outputs()[i], outputs->at(i));
  comparison.log().enter("grads");
  if (const Json* grads = find(expect, "grads"))
    compare_variables("grads", e, e.gradients(e.cotangents(), false), *grads, comparison);
}

/// sum of <gradient, v> over the inputs that have both; undefined when none has.
Tensor inner_product(const Evaluation& e, const Tensors& gradients, const Json& v, const Suite& suite) {
  Tensor sum_of_all;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Json* key = find(v, e.variable_names()[i].c_str());
    if (!key || !gradients[i].defined()) continue;
    const Tensor term = sum(mul(gradients[i], suite.tensor(*key)));
    sum_of_all = sum_of_all.defined() ? add(sum_of_all, term) : term;
  }
  return sum_of_all;
}

void compare_second_order(const Json& expected, Evaluation& e, Comparison& comparison,
                          Differentiator& differentiator) {
  comparison.log().enter("second_order");
  const Tensors cotangents = e.cotangents();
  Tensors wanted = e.variables();
  for (const Tensor& cotangent : cotangents)
    if (cotangent.defined()) wanted.push_back(cotangent.requires_grad_());
  const Tensor s = inner_product(e, e.gradients(cotangents, true), expected["v"], comparison.suite());
  const bool constant = !s.defined() || !s.requires_grad();
  const Tensors got =
      constant ? Tensors(wanted.size()) : differentiator.grad({{s}, {}, {}, false}, wanted, true);

  compare_variables("second_order.grads", e, got, expected["grads"], comparison);
  size_t next = e.variables().size();
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (cotangents[i].defined())
      comparison.gradient("second_order.cotangent_grads[" + std::to_string(i) + "]", got[next++],
                          cotangents[i], expected["cotangent_grads"].at(i));
}

void compare_jvp(const Json& test_case, Evaluation& e, Comparison& comparison) {
  const Json& expected = test_case["expect"]["jvp"];
  autograd::DualLevel level;
  for (const Json& input : test_case["inputs"]) {
    const Tensor leaf = comparison.suite().leaf(input, false);
    const Json* tangent = find(expected["tangents"], input["name"].get_ref<const std::string&>().c_str());
    e.bind(input, tangent ? level.make_dual(leaf, comparison.suite().tensor(*tangent)) : leaf);
  }
  e.run();
  for (size_t i = 0; i < e.outputs().size(); ++i)
    if (const Json& key = expected["outputs"].at(i); !key.is_null())
      comparison.gradient("jvp.outputs[" + std::to_string(i) + "]", level.tangent(e.outputs()[i]),
                          e.outputs()[i], key);
}

// Records the program with larger inputs, if it runs with them.
bool record_twin(const Json& test_case, FunctionCache& compiled, Comparison& comparison,
                 Differentiator& differentiator) {
  Evaluation evaluation(test_case, comparison, differentiator);
  const Tensors larger = evaluation.twin();
  if (!larger.empty()) evaluation.run_twin(compiled, larger);
  return !larger.empty();
}

/// Twice, so that the second call runs the recording of the first; in units if an op must read values. With `dynamic`,
/// sizes are symbols.
void compare_compiled(const Json& test_case, bool dynamic, Comparison& comparison,
                      Differentiator& differentiator) {
  FunctionCache compiled(FunctionKind::function,
                         {.dynamic = dynamic ? DynamicSizes::always : DynamicSizes::never});
  bool has_twin = false;
  for (int i = 0; i < 2; ++i) {
    try {
      if (dynamic && i == 0) has_twin = record_twin(test_case, compiled, comparison, differentiator);
      Evaluation e(test_case, comparison, differentiator);
      e.run_compiled(compiled);
      compare_first_order(test_case, e, comparison);
    } catch (const NeedsValues&) {
      const Units units(test_case["ops"]);
      Evaluation e(test_case, comparison, differentiator, &units);
      e.run_on_leaves();
      return compare_first_order(test_case, e, comparison);
    }
  }
  const int64_t captures = compiled.stats().captures;
  if (captures > (has_twin ? 2 : 1)) comparison.log().fail("captures", compiled.last_capture_reason());
  if (has_twin) comparison.log().note_twin(captures == 1 ? CaseLog::Twin::serves : CaseLog::Twin::runs);
}

}  // namespace

void run_derivative_form(const Json& test_case, Mode mode, Comparison& comparison,
                         Differentiator& differentiator) {
  if (compiles(mode)) return compare_compiled(test_case, mode == Mode::dynamic, comparison, differentiator);
  const Json& expect = test_case["expect"];
  {
    Evaluation e(test_case, comparison, differentiator);
    e.run_on_leaves();
    compare_first_order(test_case, e, comparison);
  }
  if (const Json* second = find(expect, "second_order"); second) {
    Evaluation e(test_case, comparison, differentiator);
    e.run_on_leaves();
    compare_second_order(*second, e, comparison, differentiator);
  }
  if (expect.contains("jvp") && mode == Mode::eager) {
    Evaluation e(test_case, comparison, differentiator);
    compare_jvp(test_case, e, comparison);
  }
}

}  // namespace retrograd::conformance
