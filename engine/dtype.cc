// Names and promotion of element types. The table of names is in the order of ScalarType.
//
// Promotion needs no table of pairs: two equal types give themselves, float8 gives nothing else, the higher
// category wins, and inside a category the types form a chain by width, except that float16 and bfloat16,
// which do not contain each other, meet at float32.
#include "engine/dtype.h"

#include <array>

#include "engine/named_call.h"

namespace retrograd::inline v0 {
namespace {

struct Names {
  std::string_view name;
  std::string_view short_name;
};

constexpr std::array<Names, kScalarTypeCount + 1> kNames = {{
    {"float64", "f64"},
    {"float32", "f32"},
    {"float16", "f16"},
    {"bfloat16", "bf16"},
    {"float8_e4m3fn", "f8e4m3"},
    {"float8_e5m2", "f8e5m2"},
    {"int64", "i64"},
    {"int32", "i32"},
    {"uint8", "u8"},
    {"bool", "bool"},
    {"undefined", "undefined"},
}};

const Names& names(ScalarType dtype) { return kNames.at(static_cast<size_t>(dtype)); }

// `higher` and `lower` are priorities: the first decides alone unless the second is of a higher category.
ScalarType combine_classes(ScalarType higher, ScalarType lower) {
  if (higher == ScalarType::Undefined) return lower;
  if (lower == ScalarType::Undefined || type_category(higher) >= type_category(lower)) return higher;
  return promote_types(higher, lower);
}

}  // namespace

std::string_view name(ScalarType dtype) { return names(dtype).name; }

std::string_view short_name(ScalarType dtype) { return names(dtype).short_name; }

std::optional<ScalarType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    if (text == name(dtype) || text == short_name(dtype)) return dtype;
  }
  return std::nullopt;
}

constinit std::atomic<ScalarType> detail::default_dtype{kFloat32};

void set_default_dtype(ScalarType dtype, SourceLocation where) {
  if (!is_floating(dtype) || is_float8(dtype))
    fail(Category::bad_argument, "set_default_dtype",
         std::string(name(dtype)) + " is not float64, float32, float16 or bfloat16", where);
  detail::default_dtype.store(dtype, std::memory_order_relaxed);
}

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (a == ScalarType::Undefined || b == ScalarType::Undefined) return ScalarType::Undefined;
  if (is_float8(a) || is_float8(b)) return ScalarType::Undefined;
  if (type_category(a) != type_category(b)) return type_category(a) > type_category(b) ? a : b;
  if (element_size(a) == element_size(b)) return kFloat32;  // float16 with bfloat16
  return element_size(a) > element_size(b) ? a : b;
}

void TypePromotion::add_scalar(TypeCategory category) {
  switch (category) {
    case TypeCategory::Bool: return join(scalar_, kBool);
    case TypeCategory::Integral: return join(scalar_, kInt64);
    case TypeCategory::Floating: return join(scalar_, get_default_dtype());
  }
}

ScalarType TypePromotion::result() const {
  if (impossible_) return ScalarType::Undefined;
  return combine_classes(dimensioned_, combine_classes(zero_dim_, scalar_));
}

void TypePromotion::join(ScalarType& priority_class, ScalarType dtype) {
  if (dtype == ScalarType::Undefined) return;
  if (priority_class == ScalarType::Undefined) {
    priority_class = dtype;
    return;
  }
  const ScalarType promoted = promote_types(priority_class, dtype);
  if (promoted == ScalarType::Undefined)
    impossible_ = true;
  else
    priority_class = promoted;
}

void throw_undefined_dtype() {
  fail_somewhere(Category::bad_argument, "dtype: an element type is needed, but this one is undefined");
}

}  // namespace retrograd
