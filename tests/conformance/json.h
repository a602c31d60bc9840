// JSON in the runner, and common conversions of it.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/symbols.h"
#include "tests/conformance/outcome.h"

namespace retrograd::conformance {

using Json = nlohmann::json;

/// The member of `object`, or null when it is not there.
inline const Json* find(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it == object.end() ? nullptr : &*it;
}

/// A boolean member that may be left out.
inline std::optional<bool> optional_bool(const Json& object, const char* field) {
  const Json* value = find(object, field);
  return value ? std::optional(value->get<bool>()) : std::nullopt;
}

/// A number: with a point or an exponent, "inf", "-inf" and "nan" are floating, all others integers.
inline Scalar to_scalar(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (value == "inf") return inf;
  if (value == "-inf") return -inf;
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw BadManifest("not a number: " + value.dump());
}

}  // namespace retrograd::conformance
