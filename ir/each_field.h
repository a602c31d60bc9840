// for_each_field: the fields of an attribute struct, for code that treats them alike or wants a few of them.
#pragma once

#include <utility>

#include "ir/op.h"

namespace retrograd::ir {

template <class F>
class EachField final : public AttrVisitor {
 public:
  explicit EachField(F f) : f_(std::move(f)) {}
  void field(std::string_view name, bool& value) override { f_(name, value); }
  void field(std::string_view name, int64_t& value) override { f_(name, value); }
  void field(std::string_view name, Dim& value) override { f_(name, value); }
  void field(std::string_view name, Scalar& value) override { f_(name, value); }
  void field(std::string_view name, Shape& value) override { f_(name, value); }
  void field(std::string_view name, IntList& value) override { f_(name, value); }
  void field(std::string_view name, ScalarType& value) override { f_(name, value); }

 private:
  F f_;
};

/// Calls f(name, value) for every field, in order; value is a reference of the field's type.
template <class F>
void for_each_field(const OpInfo& op, void* attrs, F f) {
  if (!attrs || !op.visit_attrs) return;
  EachField<F> visitor(std::move(f));
  op.visit_attrs(attrs, visitor);
}

}  // namespace retrograd::ir
