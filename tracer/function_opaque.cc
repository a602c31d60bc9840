// Opaque functions of the user's (engine/function.h) in a recorded function: see tracer/function_recorder.h.
//
// What such a function gives is known only when it has been called, so a function that calls one runs as it is at first, and what was
// seen is kept (Rehearsal in tracer/compile.cc). Then the call is a node `function`, whose results have the types that were seen, and of its
// record the ordinary rule makes a node `function_backward`. The context, which forward makes anew in each run, travels from one to the other as
// a parcel. Where backward gave no gradient before, though one is wanted, nothing goes on from there. A run in which the function
// gives something else is an error: what comes behind it cannot be changed any more.
// Results are handed on row-major. An argument that forward marks as dirty is copied before it, and has a new value then.
#include <algorithm>

#include <fmt/format.h>

#include "engine/function.h"
#include "ops/shape_ops.h"
#include "tracer/function_recorder.h"

namespace retrograd {
namespace {

class FunctionCode final : public HostCode {
 public:
  FunctionCode(const FunctionCall::Of& function, FunctionCall::ForwardOf forward,
               FunctionCall::Signature signature)
      : function_(function), forward_(std::move(forward)), signature_(std::move(signature)) {
    types = {parcel_type()};
    for (const auto* list : {&signature_.results, &signature_.others})
      for (const TensorType& type : *list)
        if (type.dtype != ScalarType::Undefined) types.push_back(type);
  }

  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    const Tensors given = arguments(operands);
    FunctionCall::Ran ran = call(given);
    give(ran, ran.results, results);
  }

  // The record is made as if the function were called here.
  void replay(std::span<TensorImpl* const> operands, Tensor* results) override {
    const Tensors given = arguments(operands);
    FunctionCall::Ran ran = call(given);
    ran.dirty.clear();
    const Tensors linked = FunctionCall::link(function_, pointers(given), ran);
    give(ran, linked, results);
  }

 private:
  Tensors arguments(std::span<TensorImpl* const> operands) const {
    Tensors given;
    size_t next = 0;
    for (const TensorType& type : signature_.arguments)
      given.push_back(type.dtype == ScalarType::Undefined ? Tensor() : shown(*operands[next++]));
    for (const auto& [argument, result] : signature_.dirty) {
      Tensor& t = given[static_cast<size_t>(argument)];
      t = clone(t);
    }
    return given;
  }
  std::vector<const Tensor*> pointers(const Tensors& given) const {
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : given) pointers.push_back(t.defined() ? &t : nullptr);
    return pointers;
  }
  FunctionCall::Ran call(const Tensors& given) const {
    FunctionCall::Ran ran = FunctionCall::run_forward(
        function_, pointers(given), [&](AutogradContext* context) { return forward_(context, given); });
    if (!(FunctionCall::signature_of(function_, pointers(given), ran) == signature_))
      fail(Category::unsupported, function_.op->name,
           "it gives or saves something else than when the function around it was recorded. Hint: leave it "
           "out of "
           "the compiled function",
           function_.where);
    return ran;
  }
  static void give(const FunctionCall::Ran& ran, const Tensors& made, Tensor* results) {
    *results++ = make_parcel(ran.context);
    for (const Tensor& t : made)
      if (t.defined()) *results++ = row_major(t);
    for (const Tensor& t : ran.others) *results++ = row_major(t);
  }
  static Tensor row_major(const Tensor& t) { return contiguous(shown(t.impl())); }

  const FunctionCall::Of function_;
  const FunctionCall::ForwardOf forward_;
  const FunctionCall::Signature signature_;
};

class FunctionBackwardCode final : public HostCode {
 public:
  FunctionBackwardCode(Record& record, std::vector<bool> is_given,
                       std::shared_ptr<std::atomic<uint64_t>> missing)
      : record_(&record),
        wanted_(FunctionCall::wanted(record)),
        is_given_(std::move(is_given)),
        missing_(missing->load()),
        known_missing_(std::move(missing)) {
    for (int i = 0; i < record.operands; ++i)
      if (is_wanted(i)) types.push_back(record.operand_type(i));
    if (types.empty()) types = {parcel_type()};  // a node has a result
  }
  /// Whether it is a result.
  bool is_wanted(int i) const { return wants(i) && !(i < 64 && missing_ >> i & 1); }

  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    auto& context = *static_cast<AutogradContext*>(open_parcel(*operands[0]).get());
    Tensors held;
    std::vector<TensorImpl*> given;
    size_t next = 1;
    for (const bool is_there : is_given_) {
      held.push_back(is_there ? shown(*operands[next++]) : Tensor());
      given.push_back(held.back().get());
    }
    results[0] = seen(*operands[0]);
    Tensors out(record_->operands);
    FunctionCall::call_backward(context, *record_, given, out.data(), &wanted_);
    for (int i = 0; i < record_->operands; ++i) {
      const Tensor& gradient = out[static_cast<size_t>(i)];
      if (wants(i) && gradient.defined() != is_wanted(i)) fail_unlike(i, gradient.defined());
      if (is_wanted(i)) *results++ = shown(gradient.impl());
    }
  }

 private:
  bool wants(int i) const {
    return static_cast<size_t>(i) < wanted_.size() && wanted_[static_cast<size_t>(i)];
  }
  // The next call of the function around it is recorded with what has been learnt.
  [[noreturn]] void fail_unlike(int argument, bool is_given) const {
    if (argument < 64) known_missing_->fetch_xor(uint64_t{1} << argument);
    fail(Category::unsupported, record_->op->name,
         fmt::format(
             "backward gives {} for argument {}, unlike before: a recorded function cannot change what "
             "lies behind it. Hint: give zeros, or mark the function as is_traceable",
             is_given ? "a gradient" : "no gradient", argument),
         record_->where());
  }

  const RefPtr<Record> record_;     // of the recorded tape
  const std::vector<bool> wanted_;  // gradients of arguments, by the backward that was recorded
  const std::vector<bool> is_given_;
  const uint64_t missing_;
  const std::shared_ptr<std::atomic<uint64_t>> known_missing_;
};

}  // namespace

const FunctionCall::Signature& FunctionRecorder::expected(const FunctionCall::Of& function,
                                                          const std::vector<TensorType>& arguments) {
  const size_t number = functions_seen_++;
  if (!known_ || number >= known_->size() || (*known_)[number].signature.op != function.op ||
      (*known_)[number].signature.arguments != arguments) {
    needs_rehearsal_ = true;
    throw RehearsalNeeded();
  }
  const FunctionCall::Signature& s = (*known_)[number].signature;
  const auto refuse = [&](std::string_view why) {
    fail(Category::unsupported, function.op->name, why, function.where);
  };
  if (s.results.size() + s.others.size() >= kMaxOutputs)
    refuse("an opaque function in a recorded one gives and saves at most 7 tensors beside its arguments");
  if (std::ranges::none_of(s.arguments, [](const TensorType& t) { return t.dtype != ScalarType::Undefined; }))
    refuse("an opaque function in a recorded one needs a tensor among its arguments");
  for (const auto& [argument, result] : s.dirty)
    if (argument < 0) refuse("an opaque function in a recorded one marks only arguments as dirty");
  return s;
}

Tensors FunctionRecorder::record(const FunctionCall::Of& function,
                                 const std::vector<const Tensor*>& arguments,
                                 const FunctionCall::ForwardOf& forward,
                                 const FunctionCall::Signature& signature, const AutogradContext& context) {
  before_code();
  std::vector<ir::ValueId> operands;
  for (const Tensor* a : arguments)
    if (a && a->defined()) operands.push_back(value_of(*a));
  ir::ValueId next = emit_host(host::function, operands,
                               RefPtr<HostCode>::adopt(new FunctionCode(function, forward, signature)),
                               effective_location(function.where));
  const auto missing = (*known_)[functions_seen_ - 1].missing;
  opaque_calls_[&context] = {computed(parcel_type(), next++), missing};
  depends_on([missing, before = missing->load()] { return missing->load() == before; },
             "backward of an opaque function gives other gradients");
  Tensors given;
  for (const auto* list : {&signature.results, &signature.others})
    for (const TensorType& type : *list)
      given.push_back(type.dtype == ScalarType::Undefined ? Tensor() : computed(type, next++));
  for (const auto& [result, argument] : signature.shown)
    shown_by_opaque_.emplace(given[static_cast<size_t>(result)].impl().storage().get(),
                             arguments[static_cast<size_t>(argument)]->impl().storage().get());
  return given;
}

void FunctionRecorder::check_shown(const Tensors& results) const {
  const auto is_seen = [&](const Storage* memory) {
    const auto root = roots_.find(memory);
    return (root != roots_.end() && (root->second.input >= 0 || root->second.seen >= 0)) ||
           std::ranges::any_of(
               results, [&](const Tensor& t) { return t.defined() && t.impl().storage().get() == memory; });
  };
  for (const Tensor& r : results) {
    if (!r.defined()) continue;
    for (auto it = shown_by_opaque_.find(r.impl().storage().get()); it != shown_by_opaque_.end();
         it = shown_by_opaque_.find(it->second))
      if (is_seen(it->second))
        throw NotRecordable("it gives a tensor that an opaque function made as a view of another");
  }
}

// Of a record whose function is a node; null of one that was recorded through.
const FunctionRecorder::OpaqueCall* FunctionRecorder::opaque_call(const Record& record) const {
  if (record.op->host_backward != FunctionCall::run_backward) return nullptr;
  const auto it = opaque_calls_.find(static_cast<const FunctionCall::Attrs*>(record.attrs())->context);
  if (it != opaque_calls_.end()) return &it->second;
  return forward_ ? forward_->opaque_call(record) : nullptr;
}

void FunctionRecorder::emit_function_backward(const Call& call, Tensor* results) {
  Record& record = *call.attrs_as<FunctionBackwardAttrs>().record;
  const OpaqueCall* known = opaque_call(record);
  if (!known) return call.op->run_on_host(call, results);
  if (GradMode::is_enabled())
    cannot_record(record.op->name, "backward of an opaque function with create_graph", record.where());
  before_code();
  std::vector<ir::ValueId> operands{value_of(known->parcel)};
  std::vector<bool> is_given;
  for (TensorImpl* x : call.operands) {
    is_given.push_back(x);
    if (x) operands.push_back(value_of(Tensor(RefPtr<TensorImpl>(x))));
  }
  auto* code = new FunctionBackwardCode(record, std::move(is_given), known->missing);
  ir::ValueId next = emit_host(host::function_backward, operands, RefPtr<HostCode>::adopt(code), call.where);
  for (int i = 0; i < call.outputs; ++i)
    if (code->is_wanted(i)) results[i] = without_layout(record.operand_type(i), next++);
}

}  // namespace retrograd
