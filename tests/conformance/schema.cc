// The fields of every object of the format, as tables; a field whose name ends in ? may be omitted.
#include "tests/conformance/schema.h"

#include <algorithm>
#include <set>
#include <span>
#include <sstream>

#include "tests/conformance/signature.h"

namespace retrograd::conformance {
namespace {

struct Kind {
  std::string_view name;
  std::string_view fields;  // separated by blanks
};

constexpr Kind kCases[] = {
    {"program", "name kind? tags? modes? event_modes? inputs ops outputs? cotangents? expect? tolerance?"},
    {"optim", "name kind tags? modes? optimizer groups params steps objective? expect tolerance?"},
    {"train", "name kind tags? modes? inputs ops loss optimizer groups n_steps clip? lr? expect tolerance?"},
};

constexpr Kind kStatements[] = {
    {"backward", "do roots cotangents? inputs? retain_graph? create_graph?"},
    {"grad", "do roots cotangents? inputs out retain_graph? create_graph? allow_unused?"},
    {"no_grad", "do body"},
    {"enable_grad", "do body"},
    {"requires_grad", "do var value"},
    {"retain_grad", "do var"},
    {"get_grad", "do var out"},
    {"set_grad", "do var value"},
    {"check", "do values? grads? undefined? requires_grad? is_leaf?"},
    {"expect_error", "do category also? body"},
    {"mark", "do text"},
    {"tensor_hook", "do var id action save?"},
    {"post_accumulate_grad_hook", "do var id action save?"},
    {"node_pre_hook", "do var id action"},
    {"node_post_hook", "do var id action"},
    {"multi_grad_hook", "do vars mode id"},
    {"saved_tensors_hooks", "do id kind pack? unpack? qscale? body"},
    {"remove_hook", "do id"},
    {"checkpoint", "do body out early_stop?"},
};

constexpr Kind kActions[] = {
    {"log", "kind"},        {"scale", "kind factor"}, {"add", "kind value"}, {"replace", "kind tensor"},
    {"mul", "kind tensor"}, {"clear", "kind"},        {"sgd", "kind lr"},
};

[[noreturn]] void refuse(const std::string& path, std::string_view text) {
  throw BadManifest((path.empty() ? std::string() : path + ": ") + std::string(text));
}

void check_fields(const Json& object, const std::string& path, std::string_view fields) {
  if (!object.is_object()) refuse(path, "not an object");
  std::vector<std::string> known;
  std::istringstream words{std::string(fields)};
  for (std::string field; words >> field;) {
    const bool may_miss = field.back() == '?';
    if (may_miss) field.pop_back();
    if (!may_miss && !object.contains(field)) refuse(path, "missing field \"" + field + "\"");
    known.push_back(std::move(field));
  }
  for (const auto& [name, value] : object.items())
    if (std::ranges::find(known, name) == known.end()) refuse(path, "unknown field \"" + name + "\"");
}

const Kind& find_kind(std::span<const Kind> kinds, const std::string& name, const std::string& path) {
  for (const Kind& kind : kinds)
    if (kind.name == name) return kind;
  refuse(path, "the format has no \"" + name + "\"");
}

void check_op(const Json& call, const std::string& path) {
  check_fields(call, path, "op in attrs? out? label?");
  const std::string& op = call["op"].get_ref<const std::string&>();
  const Signature* signature = find_signature(op);
  if (!signature) refuse(path, "the format has no op \"" + op + "\"");
  const Json& in = call["in"];
  if (!in.is_array()) refuse(path, "\"in\" is no list");
  if (writes_to_first(op) && (in.empty() || !in[0].is_string()))
    refuse(path, op + " has nothing to write to");
  if (!call.contains("attrs")) return;
  for (const auto& [name, value] : call["attrs"].items()) {
    const Parameter* parameter = signature->find(name);
    if (!parameter || !parameter->may_be_attribute()) refuse(path, op + " has no attribute \"" + name + "\"");
  }
}

// Bodies nest a few levels deep, never with the size of a graph.
void check_statements(const Json& statements, const std::string& path) {
  if (!statements.is_array()) refuse(path, "no list of statements");
  for (size_t i = 0; i < statements.size(); ++i) {
    const Json& statement = statements[i];
    const std::string here = path + "[" + std::to_string(i) + "]";
    if (statement.contains("op")) {
      check_op(statement, here);
      continue;
    }
    if (!statement.contains("do")) refuse(here, "neither an op nor a statement");
    const Kind& kind = find_kind(kStatements, statement["do"], here);
    check_fields(statement, here, kind.fields);
    if (statement.contains("action")) {
      const Json& action = statement["action"];
      if (!action.contains("kind")) refuse(here, "an action without kind");
      check_fields(action, here + ".action", find_kind(kActions, action["kind"], here).fields);
    }
    if (!statement.contains("body")) continue;
    if (kind.name == "expect_error" && statement["body"].empty()) refuse(here, "nothing can be refused");
    check_statements(statement["body"], here + ".body");
  }
}

void check_expectations(const Json& expect) {
  check_fields(expect, "expect", "outputs? grads? second_order? jvp? events? run_counts?");
  if (const Json* second = find(expect, "second_order"))
    check_fields(*second, "expect.second_order", "v grads cotangent_grads");
  if (const Json* jvp = find(expect, "jvp")) check_fields(*jvp, "expect.jvp", "tangents outputs");
}

}  // namespace

void check_manifest(const Json& manifest) {
  check_fields(manifest, "", "format suite seed? oracle? tensors tolerance cases");
  const Json& cases = manifest["cases"];
  if (!cases.is_array() || cases.empty()) refuse("cases", "there are none");
  std::set<std::string> names;
  for (const Json& test_case : cases)
    if (!names.insert(test_case.value("name", "?")).second)
      refuse("cases", "two are named \"" + test_case.value("name", "?") + "\"");
}

void check_case(const Json& test_case) {
  const std::string kind = test_case.value("kind", "program");
  check_fields(test_case, "", find_kind(kCases, kind, "kind").fields);
  if (const Json* inputs = find(test_case, "inputs"))
    for (const Json& input : *inputs) {
      check_fields(input, "inputs", "name tensor requires_grad? layout?");
      if (input.contains("layout")) check_fields(input["layout"], "inputs.layout", "strides offset storage");
    }
  if (test_case.contains("ops")) check_statements(test_case["ops"], "ops");
  if (kind == "program" && test_case.contains("expect")) check_expectations(test_case["expect"]);
  if (test_case.contains("tolerance")) check_fields(test_case["tolerance"], "tolerance", "rtol atol");
}

}  // namespace retrograd::conformance
