// The signatures of the format's ops: which parameters an op has, in which order, and their defaults when a call omits
// them.
#pragma once

#include <string_view>
#include <vector>

#include "tests/conformance/json.h"

namespace retrograd::conformance {

struct Parameter {
  enum class Mark {
    attribute,         // no mark
    tensor,            // T
    optional_tensor,   // T?
    tensor_or_number,  // N
    tensors,           // T*: all entries of `in` that are left
  };

  std::string name;
  Mark mark = Mark::attribute;
  bool has_default = false;
  Json default_value = {};

  bool may_be_attribute() const { return mark == Mark::attribute || mark == Mark::tensor_or_number; }
};

struct Signature {
  std::vector<Parameter> parameters;
  const Parameter* find(std::string_view name) const;
};

/// The signature of an op of the format, in-place forms included ("add_" has that of "add"); null for any
/// other name.
const Signature* find_signature(std::string_view op);

/// "add" for the in-place form "add_"; empty for a name that is an op of its own, or none ("add",
/// "setitem_").
std::string_view in_place_base(std::string_view op);

/// Whether it writes to its first tensor: an in-place form, or "setitem_".
bool writes_to_first(const std::string& op);

}  // namespace retrograd::conformance
