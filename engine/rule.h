// The arguments of a derivative rule: RuleContext in reverse mode, TangentContext in forward mode.
//
// A rule gets a saved value only through its context, which emits `unpack` at the first request. So unpack is always a
// node, runs once per record and backward, and as late as possible. Both contexts provide in(i), out(i), attrs<A>() and
// type(i), so that a formula written against "a context" serves both. A rule may not read data or branch on values;
// sizes and numbers it branches on become guards.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/tape.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// A short list of tensors; the first few without allocation.
class TensorList {
 public:
  explicit TensorList(int size)
      : size_(static_cast<size_t>(size)), data_(size_ <= kInline ? few_ : new Tensor[size_]), few_{} {}
  ~TensorList() {
    if (size_ > kInline)
      delete[] data_;
    else
      std::destroy_n(few_, size_);  // the elements after these were never assigned
  }
  TensorList(const TensorList&) = delete;
  int size() const { return static_cast<int>(size_); }
  Tensor* data() { return data_; }
  Tensor& operator[](int i) { return data_[i]; }
  std::span<Tensor> span() { return {data_, size_}; }

 private:
  static constexpr size_t kInline = 4;
  size_t size_;
  Tensor* data_;
  union {
    Tensor few_[kInline];
  };
};

class RuleContext {
 public:
  RuleContext(Record& record, Emitter& emitter, const Tensor* grads)
      : record_(record), emitter_(emitter), grads_(grads), values_(record.slots), given_(record.operands) {}

  /// The gradient of result i; undefined when it received none.
  const Tensor& grad(int i = 0) const { return grads_[i]; }
  /// The same with zeros in place of undefined.
  Tensor grad_or_zeros(int i) const;
  bool needs(int i) const { return static_cast<bool>(record_.edge(i)); }
  /// Operand i as saved (or the number that stands for it).
  Operand in(int i) {
    if (is_number(i)) return Operand(number(), record_.where());
    return Operand(value(record_.slot_of_operand(i)), record_.where());
  }
  /// Result i as saved.
  const Tensor& out(int i = 0) { return value(record_.slot_of_result(i)); }
  template <class A>
  const A& attrs() const {
    return *static_cast<const A*>(attrs_ptr());
  }
  int operands() const { return record_.operands; }
  int outputs() const { return record_.outputs; }
  Record& record() const { return record_; }
  /// Type of operand i and of result i; sizes may be symbols.
  TensorType type(int i) const { return emitter_.type_of(record_, i); }
  TensorType out_type(int i = 0) const { return emitter_.type_of(record_, record_.operands + i); }
  /// Whether operand i is repeated to the shape of the result, with which it broadcasts. This depends on ranks and on
  /// sizes that are 1, so the answer is the same for every record with this structure.
  bool is_repeated(int i) const;
  bool has_operand(int i) const { return record_.has_operand(i); }
  SourceLocation where() const { return record_.where(); }
  const OpInfo& op() const { return *record_.op; }

  /// Passes the gradient of operand i on; an undefined one is allowed.
  void give(int i, Tensor gradient) { given_[i] = std::move(gradient); }

  std::span<Tensor> given() { return given_.span(); }
  /// After the rule: releases the unpacked values.
  void drop_values() {
    for (Tensor& value : values_.span()) value.reset();
  }
  /// Emits the unpack of every hooked slot that the rule did not ask for: each pack has its unpack.
  void unpack_the_rest() {
    if (record_.was_packed) unpack_packed();
  }

 private:
  bool is_number(int i) const { return record_.op->has_scalar_operand && !has_operand(i); }
  Scalar number() const;
  const void* attrs_ptr() const { return emitter_.attrs_of(record_); }
  const Tensor& value(int slot);
  void unpack_packed();

  Record& record_;
  Emitter& emitter_;
  const Tensor* grads_;
  TensorList values_, given_;
};

/// Forward mode: operands and results are available; tangents of operands may be undefined (zero).
class TangentContext {
 public:
  TangentContext(const Call& call, const Tensor* results, std::span<const Tensor> tangents)
      : call_(call),
        results_(results),
        tangents_(tangents),
        held_(static_cast<int>(call.operands.size())),
        given_(call.outputs) {}

  const Tensor& tangent(int i) const { return tangents_[i]; }
  Tensor tangent_or_zeros(int i) const;
  bool needs(int i) const { return tangents_[i].defined(); }
  Operand in(int i);
  const Tensor& out(int i = 0) const { return results_[i]; }
  template <class A>
  const A& attrs() const {
    return call_.attrs_as<A>();
  }
  int operands() const { return static_cast<int>(call_.operands.size()); }
  TensorType type(int i) const { return call_.operands[i]->type(); }
  TensorType out_type(int i = 0) const { return results_[i].impl().type(); }
  /// Whether operand i is repeated to the shape of the result, with which it broadcasts. This depends on ranks and on
  /// sizes that are 1, so the answer is the same for every record with this structure.
  bool is_repeated(int i) const;
  bool has_operand(int i) const { return call_.operands[i] != nullptr; }
  SourceLocation where() const { return call_.where; }
  const Call& call() const { return call_; }

  void give(int i, Tensor tangent) { given_[i] = std::move(tangent); }
  std::span<Tensor> given() { return given_.span(); }

 private:
  const Call& call_;
  const Tensor* results_;
  std::span<const Tensor> tangents_;
  TensorList held_;  // operands handed out
  TensorList given_;
};

}  // namespace retrograd
#pragma GCC visibility pop
