// Canaries: a runner that accepts everything would pass every suite. Here are valid cases with changes, each of which
// must make the case fail, at the named place.
//
// A change is a JSON merge patch of the case (RFC 7396) or new values for the tensors of the suite. The last test
// compares the list of ops with the document.
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "io/state_dict.h"
#include "ops/creation.h"
#include "tests/conformance/case_runner.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/op_list.h"
#include "tests/test_folder.h"

using namespace retrograd;
using namespace retrograd::conformance;

namespace {

constexpr double kInf = INFINITY, kNan = NAN;

StateDict tensors() {
  return {{"x", tensor({1, 2, 3}, {kFloat64})},
          {"one", tensor({1, 1, 1}, {kFloat64})},
          {"two", tensor({2, 2, 2}, {kFloat64})},
          {"zero", zeros({3}, {kFloat64})},
          {"short", zeros({2}, {kFloat64})},
          {"stepped", tensor({0.5, 1.5, 2.5}, {kFloat64})},
          {"quarter", tensor({0.25, 0.5, 0.75}, {kFloat64})},
          {"x2", tensor({1, 4, 9}, {kFloat64})},
          {"2x", tensor({2, 4, 6}, {kFloat64})},
          {"special", tensor({kInf, -kInf, kNan}, {kFloat64})},
          {"infinite", tensor({kInf, kInf, kInf}, {kFloat64})},
          {"other infinity", tensor({-kInf, -kInf, -kInf}, {kFloat64})},
          {"nan", tensor({kNan, kNan, kNan}, {kFloat64})},
          {"near", tensor({1, 4, 9 + 1e-3}, {kFloat64})},
          {"x2 float", tensor({1, 4, 9}, {kFloat32})},
          {"x2 row", tensor({1, 4, 9}, {1, 3}, {kFloat64})},
          {"counts", tensor({1, 2, 3}, {kInt64})},
          {"other counts", tensor({1, 2, 4}, {kInt64})},
          {"counts as int32", tensor({1, 2, 3}, {kInt32})}};
}

Suite suite_of(const Json& test_case) {
  save(tensors(), testing::in_test_folder("canary.safetensors"));
  const Json manifest = {{"format", "retrograd-conformance/1"},
                         {"suite", "canary"},
                         {"tensors", "canary.safetensors"},
                         {"tolerance", {{"float64", {1e-7, 1e-9}}}},
                         {"cases", {test_case}}};
  std::ofstream(testing::in_test_folder("canary.json")) << manifest;
  return Suite(testing::in_test_folder("canary.json"));
}

CaseResult result_of(const Json& test_case, Mode mode = Mode::eager) {
  const Suite suite = suite_of(test_case);
  return run_case(suite, suite.cases()[0], mode);
}

struct Change {
  const char* patch;  // to the sound case
  const char* what;   // where the failure is reported
};

void must_fail(const Json& sound, const Change& change, Mode mode) {
  CAPTURE(change.patch, to_string(mode));
  Json broken = sound;
  broken.merge_patch(Json::parse(change.patch));
  const CaseResult result = result_of(broken, mode);
  REQUIRE(result.verdict == CaseResult::Verdict::fail);
  CHECK(result.failures.at(0).what == change.what);
}

// The sound case passes in all modes, and none of the changes does in the modes that compare what they change.
void check_canaries(const char* text, std::span<const Change> changes,
                    std::initializer_list<Mode> modes = {Mode::eager, Mode::traced, Mode::compiled}) {
  const Json sound = Json::parse(text);
  for (Mode mode : kModes) {
    const CaseResult result = result_of(sound, mode);
    CAPTURE(to_string(mode), result.failures.empty() ? "" : result.failures[0].text);
    REQUIRE(result.verdict == CaseResult::Verdict::pass);
  }
  for (Mode mode : modes)
    for (const Change& change : changes) must_fail(sound, change, mode);
}

// ---- elements ----

struct Pair {
  double got, want;
  bool agree;
};

constexpr Pair kPairs[] = {
    {1, 1, true},         {1, 1 + 1e-3, true},  {1, 1.1, false},        {0, -0.0, true},
    {kInf, kInf, true},   {-kInf, -kInf, true}, {kNan, kNan, true},     {kInf, -kInf, false},
    {-kInf, kInf, false}, {1, kInf, false},     {1, -kInf, false},      {1, kNan, false},
    {kInf, 1, false},     {-kInf, 1, false},    {kNan, 1, false},       {kNan, kInf, false},
    {kInf, kNan, false},  {1e308, kInf, false}, {-1e308, 1e308, false}, {kInf, 1e308, false},
};

TEST_CASE("A floating element agrees with its own infinity, with nan, or with a number that is near") {
  for (ScalarType dtype : {kFloat64, kFloat32, kBFloat16})
    for (const Pair& pair : kPairs) {
      if (dtype != kFloat64 && std::abs(pair.got) == 1e308) continue;
      if (dtype != kFloat64 && std::abs(pair.want) == 1e308) continue;
      CAPTURE(name(dtype), pair.got, pair.want);
      const auto text =
          difference(tensor({7, pair.got}, {dtype}), tensor({7, pair.want}, {dtype}), {1e-2, 1e-2});
      CHECK(text.has_value() != pair.agree);
    }
}

TEST_CASE("Integers agree when they are equal, beyond what a double tells apart too") {
  const int64_t large = (int64_t{1} << 53);
  for (int64_t off : {int64_t{0}, int64_t{1}})
    CHECK(difference(full({1}, large + off, {kInt64}), full({1}, large, {kInt64}), {1, 1}).has_value() ==
          (off != 0));
}

// ---- cases with outputs ----

// f(x) = x * x and g(x) = x + x, which is not differentiated.
constexpr const char* kDerivatives = R"({"name": "c",
  "inputs": [{"name": "x", "tensor": "x", "requires_grad": true}],
  "ops": [{"op": "mul", "in": ["x", "x"], "out": ["y"]}, {"op": "add", "in": ["x", "x"], "out": ["z"]}],
  "outputs": ["y", "z"], "cotangents": ["one", null],
  "expect": {"outputs": ["x2", "2x"], "grads": {"x": "2x"},
    "second_order": {"v": {"x": "one"}, "grads": {"x": "two"}, "cotangent_grads": ["2x", null]},
    "jvp": {"tangents": {"x": "one"}, "outputs": ["2x", "two"]}}})";

TEST_CASE("Canaries: outputs and gradients") {
  const Change changes[] = {
      {R"({"expect": {"outputs": ["near", "2x"]}})", "outputs[0]"},
      {R"({"expect": {"outputs": ["x2", "x2"]}})", "outputs[1]"},
      {R"({"expect": {"outputs": ["infinite", "2x"]}})", "outputs[0]"},
      {R"({"expect": {"outputs": ["nan", "2x"]}})", "outputs[0]"},
      {R"({"expect": {"outputs": ["x2 float", "2x"]}})", "outputs[0]"},
      {R"({"expect": {"outputs": ["x2 row", "2x"]}})", "outputs[0]"},
      {R"({"expect": {"outputs": ["counts", "2x"]}})", "outputs[0]"},
      {R"({"expect": {"outputs": ["x2"]}})", "case"},
      {R"({"expect": {"outputs": ["x2", "2x", "2x"]}})", "case"},
      {R"({"expect": {"outputs": ["x2", "no such key"]}})", "ops[1]"},
      {R"({"expect": {"grads": {"x": "x2"}}})", "grads.x"},
      {R"({"expect": {"grads": {"x": "infinite"}}})", "grads.x"},
      {R"({"expect": {"grads": {"x": "zero"}}})", "grads.x"},
      {R"({"expect": {"grads": {"x": ""}}})", "grads"},
      {R"({"expect": {"grads": {"z": "2x"}}})", "grads"},
      {R"({"expect": {"grads": {"x": null}}})", "grads"},
      {R"({"cotangents": ["infinite", null]})", "grads.x"},
      {R"({"cotangents": ["one"]})", "case"},
      {R"({"cotangents": null})", "case"},
      {R"({"outputs": null, "cotangents": null})", "case"},
      {R"({"expect": {"events": ["hook h"]}})", "case"},
      {R"({"expect": {"run_counts": {"m": 1}}})", "case"},
      {R"({"expect": {"output": ["x2", "2x"]}})", "case"},
      {R"({"expect": null})", "case"},
      {R"({"outputs": [], "cotangents": [], "expect": null})", "case"},
      {R"({"unknown": 1})", "case"},
      {R"({"modes": []})", "case"},
      {R"({"modes": ["eagre"]})", "case"},
      {R"({"event_modes": "eager"})", "case"},
      {R"({"ops": [{"op": "mul", "in": ["x", "x"], "out": ["y"], "with": 1}]})", "case"},
      {R"({"ops": [{"op": "mul", "in": ["x", "x"], "out": ["y"], "attrs": {"b": 1}}]})", "case"},
      {R"({"ops": [{"op": "mul_of", "in": ["x", "x"], "out": ["y"]}]})", "case"},
      {R"({"ops": [{"op": "mul", "in": ["x", "x"], "out": ["y", "z"]}]})", "ops[0]"},
  };
  check_canaries(kDerivatives, changes);
}

TEST_CASE("Canaries: null where there is a gradient, zeros where there is none") {
  // JSON merge patches take null for a removal, so these are written out.
  Json broken = Json::parse(kDerivatives);
  broken["expect"]["grads"]["x"] = nullptr;
  CHECK(result_of(broken).failures.at(0).what == "grads.x");

  Json constant = Json::parse(kDerivatives);
  constant["ops"][0] = Json::parse(R"({"op": "detach", "in": ["x"], "out": ["y"]})");
  constant["expect"] = Json::parse(R"({"outputs": ["x", "2x"], "grads": {"x": "zero"}})");
  CHECK(result_of(constant).verdict == CaseResult::Verdict::pass);
  for (const char* wrong : {"one", "infinite", "nan", "short"}) {
    constant["expect"]["grads"]["x"] = wrong;
    CAPTURE(wrong);
    CHECK(result_of(constant).verdict == CaseResult::Verdict::fail);
  }
}

TEST_CASE("Canaries: second derivatives") {
  const Change changes[] = {
      {R"({"expect": {"second_order": {"grads": {"x": "2x"}}}})", "second_order.grads.x"},
      {R"({"expect": {"second_order": {"grads": {"x": "nan"}}}})", "second_order.grads.x"},
      {R"({"expect": {"second_order": {"v": {"x": "two"}}}})", "second_order.grads.x"},
      {R"({"expect": {"second_order": {"v": {"y": "one"}}}})", "case"},
      {R"({"expect": {"second_order": {"cotangent_grads": ["x2", null]}}})",
       "second_order.cotangent_grads[0]"},
      {R"({"expect": {"second_order": {"cotangent_grads": ["2x", "2x"]}}})", "case"},
      {R"({"expect": {"second_order": {"cotangent_grads": ["2x"]}}})", "case"},
      {R"({"expect": {"second_order": {"w": 1}}})", "case"},
  };
  check_canaries(kDerivatives, changes, {Mode::eager, Mode::traced});
}

TEST_CASE("Canaries: forward mode") {
  const Change changes[] = {
      {R"({"expect": {"jvp": {"outputs": ["x2", "two"]}}})", "jvp.outputs[0]"},
      {R"({"expect": {"jvp": {"outputs": ["2x", "infinite"]}}})", "jvp.outputs[1]"},
      {R"({"expect": {"jvp": {"outputs": ["2x"]}}})", "case"},
      {R"({"expect": {"jvp": {"tangents": {"x": "two"}}}})", "jvp.outputs[0]"},
      {R"({"expect": {"jvp": {"tangents": {"q": "two"}}}})", "case"},
  };
  check_canaries(kDerivatives, changes, {Mode::eager});
}

TEST_CASE("Canaries: integers are compared without a tolerance") {
  const Change changes[] = {{R"({"expect": {"outputs": ["other counts"]}})", "outputs[0]"},
                            {R"({"expect": {"outputs": ["counts as int32"]}})", "outputs[0]"},
                            {R"({"expect": {"outputs": ["x"]}})", "outputs[0]"}};
  check_canaries(R"({"name": "c", "inputs": [{"name": "n", "tensor": "counts"}],
                     "ops": [{"op": "mul", "in": ["n"], "attrs": {"other": 1}, "out": ["m"]}], "outputs": ["m"],
                     "tolerance": {"rtol": 10, "atol": 10}, "expect": {"outputs": ["counts"]}})",
                 changes);
}

TEST_CASE("Canaries: infinities and nans") {
  const Change changes[] = {{R"({"expect": {"outputs": ["infinite"]}})", "outputs[0]"},
                            {R"({"expect": {"outputs": ["other infinity"]}})", "outputs[0]"},
                            {R"({"expect": {"outputs": ["nan"]}})", "outputs[0]"},
                            {R"({"expect": {"outputs": ["zero"]}})", "outputs[0]"}};
  check_canaries(R"({"name": "c", "inputs": [{"name": "x", "tensor": "special"}],
                     "ops": [{"op": "mul", "in": ["x"], "attrs": {"other": 1.0}, "out": ["y"]}], "outputs": ["y"],
                     "tolerance": {"rtol": 10, "atol": 10}, "expect": {"outputs": ["special"]}})",
                 changes);
}

// ---- cases of statements ----

constexpr const char* kStatements = R"({"name": "c",
  "inputs": [{"name": "x", "tensor": "x", "requires_grad": true}],
  "ops": [{"op": "mul", "in": ["x", "x"], "out": ["y"], "label": "m"},
          {"do": "tensor_hook", "var": "x", "id": "h", "action": {"kind": "log"}},
          {"op": "sum", "in": ["y"], "out": ["s"]},
          {"do": "backward", "roots": ["s"]},
          {"do": "mark", "text": "done"},
          {"do": "check", "values": {"y": "x2"}, "grads": {"x": "2x"}, "requires_grad": {"y": true}, "is_leaf": {"y": false}},
          {"do": "expect_error", "category": "bad_dim", "also": ["unused_input"], "body": [{"op": "sum", "in": ["y"], "attrs": {"dim": 7}}]}],
  "expect": {"events": ["hook h", "mark done"], "run_counts": {"m": 1}}, "event_modes": ["eager", "traced", "compiled"]})";

Json with(Json test_case, const char* pointer, const char* value) {
  test_case[Json::json_pointer(pointer)] = Json::parse(value);
  return test_case;
}

struct Replacement {
  const char* pointer;
  const char* value;
  const char* what;
};

void check_replacements(const char* text, std::span<const Replacement> replacements) {
  const Json sound = Json::parse(text);
  for (Mode mode : kModes) {
    const CaseResult result = result_of(sound, mode);
    CAPTURE(to_string(mode),
            result.failures.empty() ? "" : result.failures[0].what + result.failures[0].text);
    REQUIRE(result.verdict == CaseResult::Verdict::pass);
    for (const Replacement& r : replacements) {
      CAPTURE(r.pointer, r.value);
      const CaseResult broken = result_of(with(sound, r.pointer, r.value), mode);
      REQUIRE(broken.verdict == CaseResult::Verdict::fail);
      CHECK(broken.failures.at(0).what == r.what);
    }
  }
}

constexpr Replacement kReplacements[] = {
    {"/ops/5/values/y", R"("x")", "ops[5].check.values.y"},
    {"/ops/5/values/y", R"("infinite")", "ops[5].check.values.y"},
    {"/ops/5/values/y", R"("no such key")", "ops[5]"},
    {"/ops/5/values/w", R"("x")", "ops[5]"},
    {"/ops/5/grads/x", R"("zero")", "ops[5].check.grads.x"},
    {"/ops/5/grads/x", "null", "ops[5].check.grads.x"},
    {"/ops/5/grads/y", R"("zero")", "ops[5].check.grads.y"},
    {"/ops/5/requires_grad/y", "false", "ops[5].check.requires_grad.y"},
    {"/ops/5/is_leaf/y", "true", "ops[5].check.is_leaf.y"},
    {"/ops/5/undefined", R"(["y"])", "ops[5].check.undefined.y"},
    {"/ops/5/undefined", R"(["w"])", "ops[5]"},
    {"/ops/5/unknown", "1", "case"},
    {"/ops/6/category", R"("shape_mismatch")", "ops[6].expect_error"},
    {"/ops/6/body/0/attrs/dim", "0", "ops[6].expect_error"},
    {"/ops/6/body", "[]", "case"},
    {"/ops/6/body/1", R"({"op": "sum", "in": ["y"]})", "ops[6].expect_error"},
    {"/expect/events/0", R"("hook g")", "events[0]"},
    {"/expect/events/2", R"("mark done")", "events[2]"},
    {"/expect/events", R"(["hook h"])", "events[1]"},
    {"/expect/events", "[]", "events[0]"},
    {"/expect/events", "{}", "case"},
    {"/expect/run_counts/m", "2", "run_counts.m"},
    {"/expect/run_counts/m", "0", "run_counts.m"},
    {"/expect/run_counts/n", "0", "case"},
    {"/expect/run_counts", "{}", "case"},
    {"/expect/outputs", R"(["x"])", "case"},
    {"/ops/3/do", R"("backwards")", "case"},
    {"/ops/3/graph", "true", "case"},
    {"/ops/1/action/factor", "2", "case"},
};

TEST_CASE("Canaries: statements, events and counts") { check_replacements(kStatements, kReplacements); }

// ---- optimizers ----

constexpr Replacement kOptimReplacements[] = {
    {"/expect/params/0/p0", R"("x")", "params[0].p0"},
    {"/expect/params/0/p0", R"("infinite")", "params[0].p0"},
    {"/expect/params/0", "{}", "steps[0]"},
    {"/expect/params", "[]", "case"},
    {"/expect/total_norm/0", "1.5", "total_norm[0]"},
    {"/expect/total_norm/0", R"("inf")", "total_norm[0]"},
    {"/expect/total_norm/0", R"("nan")", "total_norm[0]"},
    {"/expect/total_norm/0", "null", "total_norm[0]"},
    {"/expect/total_norm/1", "1.5", "case"},
    {"/expect/state/p0/momentum_buffer", R"("x")", "state.p0.momentum_buffer"},
    {"/expect/state/p0", "{}", "state.p0.momentum_buffer"},
    {"/expect/state/p0/exp_avg", R"("x")", "state.p0.exp_avg"},
    {"/expect/state/p1", "{}", "case"},
    {"/expect/states", "{}", "case"},
    {"/steps/0/grads/p0", R"("two")", "params[0].p0"},
};

TEST_CASE("Canaries: steps of an optimizer") {
  check_replacements(R"({"name": "c", "kind": "optim", "optimizer": "sgd", "params": {"p0": "x"},
                         "groups": [{"params": ["p0"], "lr": 0.5, "momentum": 0.9}],
                         "steps": [{"grads": {"p0": "one"}, "clip": {"kind": "norm", "max_norm": 100.0, "norm_type": 2.0}}],
                         "expect": {"params": [{"p0": "stepped"}], "total_norm": [1.7320508075688772],
                                    "state": {"p0": {"momentum_buffer": "one"}}}})",
                     kOptimReplacements);
}

constexpr Replacement kTrainReplacements[] = {
    {"/expect/loss/1", "3.6", "loss[1]"},       {"/expect/loss/0", R"("inf")", "loss[0]"},
    {"/expect/loss/0", R"("nan")", "loss[0]"},  {"/expect/loss/0", "null", "loss[0]"},
    {"/expect/loss/2", "1.0", "case"},          {"/expect", R"({"params": {"p": "quarter"}})", "case"},
    {"/expect/params/p", R"("x")", "params.p"}, {"/expect/params/p", R"("infinite")", "params.p"},
    {"/groups/0/lr", "0.5", "loss[1]"},
};

TEST_CASE("Canaries: a training") {
  check_replacements(
      R"({"name": "c", "kind": "train", "inputs": [{"name": "p", "tensor": "x", "requires_grad": true}],
                         "ops": [{"op": "mul", "in": ["p", "p"], "out": ["y"]}, {"op": "sum", "in": ["y"], "out": ["s"]}],
                         "loss": "s", "optimizer": "sgd", "groups": [{"params": ["p"], "lr": 0.25}], "n_steps": 2,
                         "expect": {"loss": [14.0, 3.5], "params": {"p": "quarter"}}})",
      kTrainReplacements);
}

TEST_CASE("Canaries: a case that compares nothing") {
  Json nothing = Json::parse(kStatements);
  nothing.erase("expect");
  nothing["ops"] =
      Json::parse(R"([{"op": "mul", "in": ["x", "x"], "out": ["y"]}, {"do": "check", "values": {}}])");
  for (Mode mode : kModes) CHECK(result_of(nothing, mode).verdict == CaseResult::Verdict::fail);
}

TEST_CASE("What cannot be run is neither passed nor failed") {
  CHECK(result_of(Json::parse(kStatements), Mode::step).verdict == CaseResult::Verdict::unsupported);
}

TEST_CASE("A suite without cases, or with two of one name, is refused") {
  Json manifest = {{"format", "retrograd-conformance/1"},
                   {"suite", "canary"},
                   {"tensors", "canary.safetensors"},
                   {"tolerance", Json::object()}};
  const Json test_case = Json::parse(kDerivatives);
  save(tensors(), testing::in_test_folder("canary.safetensors"));
  for (const Json& cases : {Json::array(), Json::object(), Json::array({test_case, test_case})}) {
    manifest["cases"] = cases;
    std::ofstream(testing::in_test_folder("canary.json")) << manifest;
    CHECK_THROWS_AS(Suite(testing::in_test_folder("canary.json")), BadManifest);
  }
}

// ---- lists ----

TEST_CASE("The list of ops is the document's") {
  std::ifstream file("tests/conformance/suites/FORMAT.md");
  std::stringstream document;
  document << file.rdbuf();
  CHECK(document.str().find("```ops" + std::string(kOps) + "```") != std::string::npos);
  CHECK(document.str().find("```ops-more" + std::string(kMoreOps) + "```") != std::string::npos);
}

}  // namespace
