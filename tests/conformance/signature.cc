// The reader of the list of ops.
#include "tests/conformance/signature.h"

#include <map>
#include <sstream>

#include "tests/conformance/op_list.h"

namespace retrograd::conformance {
namespace {

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos
             ? ""
             : std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// "other:N", "keepdim=false", "max:N=null".
Parameter parse_parameter(std::string text) {
  Parameter parameter;
  if (const size_t equals = text.find('='); equals != std::string::npos) {
    parameter.has_default = true;
    parameter.default_value = Json::parse(text.substr(equals + 1));
    text.resize(equals);
  }
  const size_t colon = text.find(':');
  parameter.name = text.substr(0, colon);
  if (colon == std::string::npos) return parameter;
  const std::string mark = text.substr(colon + 1);
  parameter.mark = mark == "T"    ? Parameter::Mark::tensor
                   : mark == "T?" ? Parameter::Mark::optional_tensor
                   : mark == "N"  ? Parameter::Mark::tensor_or_number
                                  : Parameter::Mark::tensors;
  return parameter;
}

// The parts between commas, except for those within brackets: "dims=[0,1]" is one.
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

using SignatureMap = std::map<std::string, Signature, std::less<>>;

// Lines are "name name ... (parameter, ...) -> results".
SignatureMap parse_ops(std::string_view text) {
  SignatureMap map;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t open = line.find('('), close = line.find(')');
    if (open == std::string::npos) continue;
    Signature signature;
    for (const std::string& one : split_at_commas(line.substr(open + 1, close - open - 1)))
      signature.parameters.push_back(parse_parameter(trimmed(one)));
    std::istringstream names(line.substr(0, open));
    for (std::string name; names >> name;) map.emplace(name, signature);
  }
  return map;
}

// The ops that exist only as in-place forms, which the list gives without the underscore.
bool only_in_place(std::string_view base) { return base == "fill" || base == "copy" || base == "zero"; }

const SignatureMap& signatures() {
  static const SignatureMap map = [] {
    SignatureMap all = parse_ops(kOps);
    all.merge(parse_ops(kMoreOps));
    return all;
  }();
  return map;
}

}  // namespace

const Parameter* Signature::find(std::string_view name) const {
  for (const Parameter& parameter : parameters)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

std::string_view in_place_base(std::string_view op) {
  if (op.empty() || op.back() != '_' || signatures().contains(op)) return {};
  return op.substr(0, op.size() - 1);
}

bool writes_to_first(const std::string& op) { return !in_place_base(op).empty() || op == "setitem_"; }

const Signature* find_signature(std::string_view op) {
  const std::string_view base = in_place_base(op);
  if (base.empty() && only_in_place(op)) return nullptr;
  const auto it = signatures().find(base.empty() ? op : base);
  return it == signatures().end() ? nullptr : &it->second;
}

}  // namespace retrograd::conformance
