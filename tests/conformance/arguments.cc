// Resolution of a call's operands and attributes, and their conversions.
#include "tests/conformance/arguments.h"

#include <algorithm>

namespace retrograd::conformance {
namespace {

[[noreturn]] void refuse(const Argument& argument, std::string_view wanted) {
  throw BadManifest("\"" + argument.parameter->name + "\" is not " + std::string(wanted) + ": " +
                    argument.value.dump());
}

}  // namespace

Arguments::Arguments(std::string_view op, const Signature& signature, const Tensors& in, const Json& attrs)
    : op_(op) {
  size_t next = 0;
  for (const Parameter& parameter : signature.parameters) {
    Argument& argument = arguments_.emplace_back();
    argument.parameter = &parameter;
    if (parameter.mark == Parameter::Mark::tensors) {
      argument.tensors.assign(in.begin() + static_cast<int64_t>(std::min(next, in.size())), in.end());
      next = in.size();
      continue;
    }
    if (parameter.mark != Parameter::Mark::attribute && next < in.size()) argument.tensor = in[next++];
    const bool has_value = attrs.contains(parameter.name);
    argument.given = has_value || argument.tensor.defined();
    if (has_value && argument.tensor.defined())
      throw BadManifest(op_ + ": \"" + parameter.name + "\" is given twice");
    argument.value = has_value ? attrs[parameter.name] : parameter.default_value;
    const bool needed = parameter.mark != Parameter::Mark::optional_tensor && !parameter.has_default;
    if (needed && !argument.given) throw BadManifest(op_ + ": missing \"" + parameter.name + "\"");
  }
  if (next < in.size()) throw BadManifest(op_ + ": too many operands");
}

bool Arguments::has(std::string_view name) const {
  return std::ranges::any_of(arguments_, [&](const Argument& a) { return a.parameter->name == name; });
}

const Argument& Arguments::operator[](std::string_view name) const {
  for (const Argument& argument : arguments_)
    if (argument.parameter->name == name) return argument;
  throw BadManifest(op_ + ": no parameter \"" + std::string(name) + "\"");
}

void Arguments::refuse_from(size_t first) const {
  for (size_t i = first; i < arguments_.size(); ++i)
    if (arguments_[i].given) throw Unsupported("op=" + op_ + " with " + arguments_[i].parameter->name);
}

Arguments Arguments::on(const Tensor& self) const {
  Arguments changed = *this;
  const auto takes_tensor = [](const Argument& a) { return a.parameter->mark != Parameter::Mark::attribute; };
  std::ranges::find_if(changed.arguments_, takes_tensor)->tensor = self;
  return changed;
}

namespace detail {

template <>
Operand convert(const Argument& argument) {
  if (argument.value.is_null()) return argument.tensor;
  return to_scalar(argument.value);
}

template <>
Tensor convert(const Argument& argument) {
  if (!argument.value.is_null()) refuse(argument, "a tensor");
  return argument.tensor;
}

template <>
Tensors convert(const Argument& argument) {
  return argument.tensors;
}

template <>
std::span<const Tensor> convert(const Argument& argument) {
  return argument.tensors;
}

template <>
Scalar convert(const Argument& argument) {
  return to_scalar(argument.value);
}

template <>
double convert(const Argument& argument) {
  return to_scalar(argument.value).to_double();
}

template <>
int64_t convert(const Argument& argument) {
  if (!argument.value.is_number_integer()) refuse(argument, "an integer");
  return argument.value.get<int64_t>();
}

template <>
int convert(const Argument& argument) {
  return static_cast<int>(convert<int64_t>(argument));
}

template <>
Dim convert(const Argument& argument) {
  return convert<int64_t>(argument);
}

template <>
bool convert(const Argument& argument) {
  if (!argument.value.is_boolean()) refuse(argument, "a boolean");
  return argument.value.get<bool>();
}

template <>
std::string_view convert(const Argument& argument) {
  if (argument.value.is_null()) return {};
  if (!argument.value.is_string()) refuse(argument, "a string");
  return argument.value.get_ref<const std::string&>();
}

template <>
LossReduction convert(const Argument& argument) {
  return convert<std::string_view>(argument);
}

template <>
std::string convert(const Argument& argument) {
  return std::string(convert<std::string_view>(argument));
}

template <>
IntArray convert(const Argument& argument) {
  if (argument.value.is_null()) return {};
  if (!argument.value.is_array()) return {convert<int64_t>(argument)};
  for (const Json& one : argument.value)
    if (!one.is_number_integer()) refuse(argument, "a list of integers");
  return argument.value.get<IntArray>();
}

template <>
IntList convert(const Argument& argument) {
  return convert<IntArray>(argument);
}

template <>
Shape convert(const Argument& argument) {
  return convert<IntArray>(argument);
}

template <>
std::vector<double> convert(const Argument& argument) {
  if (argument.value.is_null()) return {};
  if (argument.value.is_number()) return {argument.value.get<double>()};
  return argument.value.get<std::vector<double>>();
}

template <>
ScalarType convert(const Argument& argument) {
  const std::string_view text = convert<std::string_view>(argument);
  if (text.empty()) return ScalarType::Undefined;
  const std::optional<ScalarType> dtype = parse_dtype(text);
  if (!dtype) refuse(argument, "a dtype");
  return *dtype;
}

template <>
Json convert(const Argument& argument) {
  return argument.value;
}

}  // namespace detail
}  // namespace retrograd::conformance
