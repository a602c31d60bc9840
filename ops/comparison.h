// Comparisons and logic: two operands of any dtypes, broadcast and promoted, give bool. NaN is unequal to
// everything and counts as true.
#pragma once

#include "ops/elementwise.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
namespace ops {

struct Eq : Comparison {
  static constexpr std::string_view name = "eq", doc = "a == b";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return a == b;
  }
};

struct Ne : Comparison {
  static constexpr std::string_view name = "ne", doc = "a != b";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return a != b;
  }
};

struct Lt : Comparison {
  static constexpr std::string_view name = "lt", doc = "a < b";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return a < b;
  }
};

struct Le : Comparison {
  static constexpr std::string_view name = "le", doc = "a <= b";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return a <= b;
  }
};

struct Gt : Comparison {
  static constexpr std::string_view name = "gt", doc = "a > b";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return a > b;
  }
};

struct Ge : Comparison {
  static constexpr std::string_view name = "ge", doc = "a >= b";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return a >= b;
  }
};

struct LogicalAnd : Comparison {
  static constexpr std::string_view name = "logical_and", doc = "both are nonzero";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return (a != 0) & (b != 0);
  }
};

struct LogicalOr : Comparison {
  static constexpr std::string_view name = "logical_or", doc = "one is nonzero";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return (a != 0) | (b != 0);
  }
};

struct LogicalXor : Comparison {
  static constexpr std::string_view name = "logical_xor", doc = "exactly one is nonzero";
  template <class V>
  RG_HD static auto fwd(V a, V b, const Attrs&) {
    return (a != 0) ^ (b != 0);
  }
};

using ComparisonOps = OpList<Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr, LogicalXor>;

}  // namespace ops

/// Any dtypes that promote; at most one operand is a number.
inline constexpr ops::Function<ops::Eq> eq;
inline constexpr ops::Function<ops::Ne> ne;
inline constexpr ops::Function<ops::Lt> lt;
inline constexpr ops::Function<ops::Le> le;
inline constexpr ops::Function<ops::Gt> gt;
inline constexpr ops::Function<ops::Ge> ge;
inline constexpr ops::Function<ops::LogicalAnd> logical_and;
inline constexpr ops::Function<ops::LogicalOr> logical_or;
inline constexpr ops::Function<ops::LogicalXor> logical_xor;

}  // namespace retrograd
#pragma GCC visibility pop
