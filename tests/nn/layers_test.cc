// All layers of one list (layer_cases.cc): results, gradients, buffers and names of the state against PyTorch's numbers
// (layer_numbers.json, written by layer_numbers.py, which says how inputs are made); the same bits when the backward is
// traced and when a call is recorded as a compiled function or a step; texts; clones.
//
// Not tested here: random layers, forms in place and errors (layer_options_test.cc), and the functions of the layers
// (tests/ops).
#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/errors.h"
#include "tests/nn/layer_case.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using nlohmann::json;
using rg::Tensor;
using rg::Tensors;
using rg::testing::CalledLayer;
using rg::testing::LayerCase;

namespace {

const json& all_numbers() {
  static const json numbers = json::parse(std::ifstream("tests/nn/layer_numbers.json"));
  return numbers;
}

Tensor formula(const rg::Shape& shape, const std::function<double(int64_t)>& f) {
  std::vector<double> values;
  for (int64_t i = 0, n = rg::zeros(shape).numel(); i < n; ++i) values.push_back(f(i));
  return rg::tensor(values, shape, rg::kFloat64);
}

// Input k from its description.
Tensor input(const std::string& spec, int k) {
  std::istringstream in(spec);
  std::string kind;
  in >> kind;
  std::vector<int64_t> sizes;
  for (int64_t size; in >> size;) sizes.push_back(size);
  if (kind == "=") return rg::tensor(sizes, {static_cast<int64_t>(sizes.size())});
  const rg::Shape shape(sizes);
  const auto wave = [k](int64_t i) {
    return 1.5 * std::cos(0.37 * static_cast<double>(i) + k) + 0.01 * static_cast<double>(i);
  };
  switch (std::tolower(kind[0])) {
    case 'x': return formula(shape, wave);
    case 'p':
      return formula(shape,
                     [k](int64_t i) { return 0.5 + 0.45 * std::sin(0.7 * static_cast<double>(i) + k); });
    case 's': return formula(shape, [](int64_t i) { return i % 3 == 0 ? -1.0 : 1.0; });
    case 'l': return rg::log_softmax(formula(shape, wave), -1);
    default: {
      const int64_t classes = std::stoll(kind.substr(1));
      return formula(shape, [&](int64_t i) { return static_cast<double>((7 * i + 3 * k) % classes); })
          .to(rg::kInt64);
    }
  }
}

Tensors inputs_of(const json& numbers) {
  Tensors inputs;
  for (const std::string spec : numbers["inputs"])
    inputs.push_back(input(spec, static_cast<int>(inputs.size())));
  return inputs;
}

// Which inputs require a gradient.
std::vector<bool> wanted(const json& numbers) {
  std::vector<bool> all;
  for (const std::string spec : numbers["inputs"]) all.push_back(std::isupper(spec[0]) != 0);
  return all;
}

void fill(const nn::Module& module) {
  const rg::NoGradGuard no_grad;
  int k = 0;
  for (const Tensor& p : module.parameters()) {
    p.copy_(
        formula(p.sym_sizes(), [k](int64_t i) { return 0.5 * std::sin(0.7 * static_cast<double>(i) + k); }));
    ++k;
  }
}

CalledLayer filled(const LayerCase& c) {
  CalledLayer layer = c.make();
  layer.module->to(rg::kFloat64);
  fill(*layer.module);
  return layer;
}

// A call and its gradients: {result, those of the inputs that want one, those of the parameters that got one}.
struct Program {
  const CalledLayer& layer;
  std::vector<bool> wanted;

  Tensors operator()(const Tensors& arguments) const {
    Tensors inputs, leaves;
    for (size_t i = 0; i < arguments.size(); ++i) {
      inputs.push_back(arguments[i].detach());
      if (wanted[i]) leaves.push_back(inputs.back().requires_grad_());
    }
    const size_t count = leaves.size();
    for (const Tensor& p : layer.module->parameters()) leaves.push_back(p);
    const Tensor y = layer.call(inputs);
    Tensors all{y.detach()};
    if (leaves.empty()) return all;
    const Tensor i = rg::arange(y.sym_numel(), rg::TensorOptions(rg::kFloat64));
    const Tensor mark = rg::reshape(rg::sin(i * 0.9 + 1.0), y.sym_sizes());
    const Tensors gradients = rg::autograd::grad({rg::sum(y * mark)}, leaves, {}, {}, false, true);
    for (size_t i = 0; i < gradients.size(); ++i)
      if (i < count || gradients[i].defined()) all.push_back(gradients[i]);
    return all;
  }
};

void check_number(const Tensor& x, const json& expected) {
  const std::vector<int64_t> shape = expected[0];
  CHECK(x.sizes() == shape);
  double sum = 0, i = 0;
  for (const double v : x.detach().to_vector()) sum += v * std::cos(0.5 * i++);
  CHECK(sum == Approx(expected[1].get<double>()).epsilon(1e-9).margin(1e-9));
}

TEST_CASE("numbers are PyTorch's") {
  for (const LayerCase& c : rg::testing::layer_cases()) {
    INFO(c.name);
    const json& numbers = all_numbers().at(c.name);
    const CalledLayer layer = filled(c);
    const Tensors inputs = inputs_of(numbers);
    const Program program{layer, wanted(numbers)};
    program(inputs);
    Tensors results = program(inputs);
    check_number(results[0], numbers["output"]);
    size_t next = 1;
    for (const json& expected : numbers["gradients"]) check_number(results.at(next++), expected);
    REQUIRE(results.size() == next + numbers["parameters"].size());
    for (const auto& p : layer.module->named_parameters())
      if (const auto found = numbers["parameters"].find(p.key()); found != numbers["parameters"].end())
        check_number(results[next++], *found);
    for (const auto& b : layer.module->named_buffers())
      check_number(b.value(), numbers["buffers"].at(b.key()));

    std::vector<std::string> keys;
    for (const auto& [key, value] : layer.module->state_dict()) keys.push_back(key);
    CHECK(keys == numbers["keys"].get<std::vector<std::string>>());
    layer.module->eval();
    check_number(layer.call(inputs), numbers["eval"]);
  }
}

TEST_CASE("each set of numbers has a case") {
  std::map<std::string, int> cases;
  for (const LayerCase& c : rg::testing::layer_cases()) ++cases[c.name];
  for (const auto& [name, numbers] : all_numbers().items()) {
    INFO(name);
    CHECK(cases[name] == 1);
  }
}

// What three calls give, and the buffers after each.
using Calls = std::vector<Tensors>;

template <class F>
Calls three_calls(const CalledLayer& layer, const Tensors& inputs, const F& call) {
  Calls calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(call(inputs));
    for (const Tensor& b : layer.module->buffers()) calls.back().push_back(b.clone());
  }
  return calls;
}

void check_same(const Calls& got, const Calls& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(got[i].size() == expected[i].size());
    for (size_t j = 0; j < expected[i].size(); ++j) CHECK(rg::testing::same_bits(got[i][j], expected[i][j]));
  }
}

TEST_CASE("traced backwards and recorded calls give the same bits") {
  for (const LayerCase& c : rg::testing::layer_cases()) {
    INFO(c.name);
    const json& numbers = all_numbers().at(c.name);
    const Tensors inputs = inputs_of(numbers);
    const CalledLayer eager = filled(c);
    const Calls expected = three_calls(eager, inputs, Program{eager, wanted(numbers)});
    {
      const CalledLayer layer = filled(c);
      rg::CompiledBackward compiled;
      const rg::CompiledBackwardScope scope(compiled);
      check_same(three_calls(layer, inputs, Program{layer, wanted(numbers)}), expected);
      CHECK((compiled.stats().hits > 0) == (numbers["gradients"].size() + numbers["parameters"].size() > 0));
    }
    const CalledLayer layer = filled(c), sized = filled(c), stepped = filled(c);
    auto function =
        rg::compile([program = Program{layer, wanted(numbers)}](const Tensors& x) { return program(x); });
    check_same(three_calls(layer, inputs, function), expected);
    CHECK(function.stats().eager == 0);
    auto dynamic =
        rg::compile([program = Program{sized, wanted(numbers)}](const Tensors& x) { return program(x); },
                    {.dynamic = rg::DynamicSizes::always});
    check_same(three_calls(sized, inputs, dynamic), expected);
    CHECK(dynamic.stats().eager == 0);
    auto step = rg::compile_step(
        [program = Program{stepped, wanted(numbers)}](const Tensors& x) { return program(x); });
    check_same(three_calls(stepped, inputs, step), expected);
    CHECK(step.stats().eager == 0);
  }
}

TEST_CASE("a clone has the values, in memory of its own, and the text") {
  for (const LayerCase& c : rg::testing::layer_cases()) {
    if (c.text.empty()) continue;  // a layer of the tests
    INFO(c.name);
    const CalledLayer layer = filled(c);
    layer.module->eval();
    const Tensors inputs = inputs_of(all_numbers().at(c.name));
    const Tensor expected = layer.call(inputs);
    const std::unique_ptr<nn::Module> clone = layer.module->clone();
    {
      const rg::NoGradGuard no_grad;
      for (const Tensor& p : layer.module->parameters()) p.fill_(0.5);
      for (const Tensor& b : layer.module->buffers()) b.fill_(1);
    }
    CHECK(rg::testing::same_bits(c.call_of(*clone)(inputs), expected));
    for (const nn::Module* module : {layer.module.get(), clone.get()}) {
      std::ostringstream text;
      module->pretty_print(text);
      CHECK(text.str() == c.text);
    }
  }
}

TEST_CASE("errors name the caller's line") {
  const nn::Conv2d conv(nullptr, "", 2, 3, 3);
  std::string text;
  const int line = __LINE__ + 1;
  CHECK(rg::category_of([&] { conv(rg::zeros({2, 2})); }, &text) == rg::Category::bad_dim);
  CHECK(text.find("layers_test.cc:" + std::to_string(line)) != std::string::npos);
}

}  // namespace
