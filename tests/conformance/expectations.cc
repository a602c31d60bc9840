// One function per part of `expect`.
#include "tests/conformance/expectations.h"

#include <algorithm>
#include <set>

#include "tests/conformance/differentiator.h"
#include "tests/conformance/optimizer_cases.h"

namespace retrograd::conformance {
namespace {

using Names = std::set<std::string>;

[[noreturn]] void refuse(const std::string& what, const std::string& text) {
  throw BadManifest("expect." + what + ": " + text);
}

Names names_of_inputs(const Json& test_case, bool differentiable) {
  Names names;
  for (const Json& input : test_case["inputs"])
    if (!differentiable || optional_bool(input, "requires_grad").value_or(false)) names.insert(input["name"]);
  return names;
}

void check_names(const Json& object, const Names& known, const std::string& what) {
  for (const auto& [name, value] : object.items())
    if (!known.contains(name)) refuse(what, "\"" + name + "\" is not among the inputs that it may name");
}

void check_length(const Json& list, const Json& outputs, const std::string& what) {
  if (!list.is_array() || list.size() != outputs.size())
    refuse(what, "it has " + std::to_string(list.size()) + " entries for " + std::to_string(outputs.size()) +
                     " outputs");
}

void check_second_order(const Json& second, const Json& test_case) {
  const Json& cotangents = test_case["cotangents"];
  check_names(second["v"], names_of_inputs(test_case, true), "second_order.v");
  check_length(second["cotangent_grads"], test_case["outputs"], "second_order.cotangent_grads");
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (cotangents[i].is_null() && !second["cotangent_grads"][i].is_null())
      refuse("second_order.cotangent_grads", "a gradient of a cotangent that is null");
}

void check_derivative_form(const Json& expect, const Json& test_case) {
  const Json& outputs = test_case["outputs"];
  for (const char* part : {"events", "run_counts"})
    if (expect.contains(part)) refuse(part, "a case with outputs does not compare it");
  if (const Json* values = find(expect, "outputs")) check_length(*values, outputs, "outputs");
  if ((expect.contains("grads") || expect.contains("second_order")) && !test_case.contains("cotangents"))
    refuse("grads", "there are no cotangents");
  if (const Json* cotangents = find(test_case, "cotangents"))
    check_length(*cotangents, outputs, "cotangents");
  if (const Json* second = find(expect, "second_order")) check_second_order(*second, test_case);
  if (const Json* jvp = find(expect, "jvp")) {
    check_names((*jvp)["tangents"], names_of_inputs(test_case, false), "jvp.tangents");
    check_length((*jvp)["outputs"], outputs, "jvp.outputs");
  }
}

void collect_labels(const Json& statements, Names& labels) {
  for (const Json& s : statements) {
    if (const Json* body = find(s, "body")) collect_labels(*body, labels);
    if (const Json* label = find(s, "label")) labels.insert(label->get<std::string>());
  }
}

void check_statement_form(const Json& expect, const Json& test_case) {
  for (const char* part : {"outputs", "grads", "second_order", "jvp"})
    if (expect.contains(part)) refuse(part, "a case without outputs does not compare it");
  if (const Json* events = find(expect, "events"))
    if (!events->is_array()) refuse("events", "not a list");
  if (const Json* counts = find(expect, "run_counts")) {
    Names labels;
    collect_labels(test_case["ops"], labels);
    if (!counts->is_object() || counts->empty()) refuse("run_counts", "it counts nothing");
    for (const auto& [label, count] : counts->items())
      if (!labels.contains(label)) refuse("run_counts", "no op call has the label \"" + label + "\"");
  }
}

}  // namespace

bool are_modes(const Json& modes) {
  return modes.is_array() && !modes.empty() && std::ranges::all_of(modes, [](const Json& mode) {
           return std::ranges::any_of(kModes, [&](Mode known) { return mode == to_string(known); });
         });
}

void check_expectations(const Json& test_case) {
  for (const char* field : {"modes", "event_modes"})
    if (const Json* modes = find(test_case, field); modes && !are_modes(*modes))
      throw BadManifest(std::string(field) + ": not a list of modes: " + modes->dump());
  const Json* expect = find(test_case, "expect");
  if (!expect && test_case.contains("outputs")) throw BadManifest("it compares nothing");
  if (!expect) return;
  if (test_case.value("kind", "program") != "program") return check_optimizer_expectations(test_case);
  if (test_case.contains("outputs"))
    check_derivative_form(*expect, test_case);
  else
    check_statement_form(*expect, test_case);
}

}  // namespace retrograd::conformance
