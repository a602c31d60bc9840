// for_each_field: the fields of an attribute struct, for code that treats all alike or selects some by type.
//
//   for_each_field(op, attrs, [&](std::string_view name, Scalar& number) { ... });   the numbers only
//   for_each_field(op, attrs, Fields{[](auto, Dim& d) { ... }, [](auto, Shape& s) { ... }});
#pragma once

#include <type_traits>
#include <utility>

#include "engine/op.h"

namespace retrograd::inline v0::ir {

template <class F>
class EachField final : public AttrVisitor {
 public:
  explicit EachField(F f) : f_(std::move(f)) {}
  void field(std::string_view name, bool& value) override { call(name, value); }
  void field(std::string_view name, int64_t& value) override { call(name, value); }
  void field(std::string_view name, Dim& value) override { call(name, value); }
  void field(std::string_view name, Scalar& value) override { call(name, value); }
  void field(std::string_view name, Shape& value) override { call(name, value); }
  void field(std::string_view name, IntList& value) override { call(name, value); }
  void field(std::string_view name, ScalarType& value) override { call(name, value); }
  void field(std::string_view name, Device& value) override { call(name, value); }

 private:
  template <class T>
  void call(std::string_view name, T& value) {
    if constexpr (std::is_invocable_v<F&, std::string_view, T&>) f_(name, value);
  }
  F f_;
};

/// Several callables as one.
template <class... F>
struct Fields : F... {
  using F::operator()...;
};
template <class... F>
Fields(F...) -> Fields<F...>;

/// Calls f(name, value) for every field whose type it takes, in order; value is a reference.
template <class F>
void for_each_field(const OpInfo& op, void* attrs, F f) {
  if (!attrs || !op.visit_attrs) return;
  EachField<F> visitor(std::move(f));
  op.visit_attrs(attrs, visitor);
}

/// The attribute `scalar`, which stands for the operand that is null.
inline Scalar scalar_operand(const OpInfo& op, void* attrs) {
  Scalar found;
  for_each_field(op, attrs, [&](std::string_view name, Scalar& value) {
    if (name == "scalar") found = value;
  });
  return found;
}

}  // namespace retrograd::ir
