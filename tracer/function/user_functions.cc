// See tracer/function/user_functions.h.
#include "tracer/function/user_functions.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tracer/function/function_recorder.h"
#include "tracer/function/opaque_value.h"

namespace retrograd::inline v0 {
namespace {

// Calls an opaque custom function and hands on its results.
class FunctionCode final : public HostCode {
 public:
  FunctionCode(const FunctionCall::Of& function, FunctionCall::ForwardOf forward,
               FunctionCall::Signature signature)
      : function_(function), forward_(std::move(forward)), signature_(std::move(signature)) {
    types = {opaque_value_type()};
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
           "it gives or saves something else than when the enclosing function was recorded. Hint: leave it "
           "out of the compiled function",
           function_.where);
    return ran;
  }
  static void give(const FunctionCall::Ran& ran, const Tensors& made, Tensor* results) {
    *results++ = make_opaque_value(ran.context);
    for (const Tensor& t : made)
      if (t.defined()) *results++ = row_major(t);
    for (const Tensor& t : ran.others) *results++ = row_major(t);
  }
  static Tensor row_major(const Tensor& t) { return contiguous(shown(t.impl())); }

  const FunctionCall::Of function_;
  const FunctionCall::ForwardOf forward_;
  const FunctionCall::Signature signature_;
};

// Calls the backward of an opaque custom function and hands on its gradients.
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
    if (types.empty()) types = {opaque_value_type()};  // a node has a result
  }
  /// Whether the gradient of argument i is a result.
  bool is_wanted(int i) const { return wants(i) && !(i < 64 && missing_ >> i & 1); }

  void run(std::span<TensorImpl* const> operands, Tensor* results) override {
    auto& context = *static_cast<AutogradContext*>(opaque_content(*operands[0]).get());
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
  // The next call of the enclosing function is recorded with the observed set of missing gradients.
  [[noreturn]] void fail_unlike(int argument, bool is_given) const {
    if (argument < 64) known_missing_->fetch_xor(uint64_t{1} << argument);
    fail(Category::unsupported, record_->op->name,
         fmt::format(
             "backward gives {} for argument {}, unlike before: a recorded function cannot change what "
             "comes after it. Hint: give zeros, or mark the function as is_traceable",
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

const FunctionCall::Signature& UserFunctions::expected(const FunctionCall::Of& function,
                                                       const std::vector<TensorType>& arguments) {
  if (of_.sizes().count()) {
    needs_fixed_sizes_ = true;
    check_known();
  }
  const size_t number = seen_++;
  if (!known_ || number >= known_->size() || (*known_)[number].signature.op != function.op ||
      (*known_)[number].signature.arguments != arguments) {
    needs_dry_run_ = true;
    throw DryRunNeeded();
  }
  const FunctionCall::Signature& s = (*known_)[number].signature;
  const auto refuse = [&](std::string_view why) {
    fail(Category::unsupported, function.op->name, why, function.where);
  };
  if (s.results.size() + s.others.size() >= kMaxOutputs)
    refuse("an opaque function in a recorded one returns and saves at most 7 tensors besides its arguments");
  if (std::ranges::none_of(s.arguments, [](const TensorType& t) { return t.dtype != ScalarType::Undefined; }))
    refuse("an opaque function in a recorded one needs a tensor among its arguments");
  for (const auto& [argument, result] : s.dirty)
    if (argument < 0) refuse("an opaque function in a recorded one marks only arguments as dirty");
  return s;
}

Tensors UserFunctions::record(const FunctionCall::Of& function, const std::vector<const Tensor*>& arguments,
                              const FunctionCall::ForwardOf& forward,
                              const FunctionCall::Signature& signature, const AutogradContext& context) {
  of_.host().before_code();
  std::vector<ir::ValueId> operands;
  for (const Tensor* a : arguments)
    if (a && a->defined()) operands.push_back(of_.value_of(*a));
  ir::ValueId next = of_.host().emit(ops::function, operands,
                                     RefPtr<HostCode>::adopt(new FunctionCode(function, forward, signature)),
                                     effective_location(function.where));
  const auto missing = (*known_)[seen_ - 1].missing;
  opaque_calls_[&context] = {of_.memory().computed(opaque_value_type(), next++), missing};
  of_.depends_on([missing, before = missing->load()] { return missing->load() == before; },
                 "backward of an opaque function returns other gradients");
  Tensors given;
  for (const auto* list : {&signature.results, &signature.others})
    for (const TensorType& type : *list)
      given.push_back(type.dtype == ScalarType::Undefined ? Tensor() : of_.memory().computed(type, next++));
  for (const auto& [result, argument] : signature.shown)
    shown_.emplace(given[static_cast<size_t>(result)].impl().storage().get(),
                   arguments[static_cast<size_t>(argument)]->impl().storage().get());
  return given;
}

void UserFunctions::check_known() const {
  if (needs_fixed_sizes_)
    throw FixedSizesNeeded("it calls an opaque function, whose results at other sizes are not known");
  if (needs_dry_run_ || (known_ && seen_ != known_->size())) throw DryRunNeeded();
}

void UserFunctions::check_write(const Storage* memory, SourceLocation where) const {
  const auto is_part = [&](const auto& shown) { return shown.first == memory || shown.second == memory; };
  if (std::ranges::any_of(shown_, is_part))
    of_.cannot_record(
        "write", "the tensor lies in memory that a result of an opaque function shares with its argument",
        where);
}

void UserFunctions::check_results(const Tensors& results) const {
  const auto is_seen = [&](const Storage* memory) {
    const Root* const root = of_.memory().find(memory);
    return (root && (root->input >= 0 || root->seen >= 0)) ||
           std::ranges::any_of(
               results, [&](const Tensor& t) { return t.defined() && t.impl().storage().get() == memory; });
  };
  for (const Tensor& r : results) {
    if (!r.defined()) continue;
    for (auto it = shown_.find(r.impl().storage().get()); it != shown_.end(); it = shown_.find(it->second))
      if (is_seen(it->second))
        throw NotRecordable("it returns a tensor that an opaque function made as a view of another");
  }
}

// For a record whose function is a node; null for one that was traced.
const UserFunctions::OpaqueCall* UserFunctions::find(const Record& record) const {
  if (record.op->host_backward != FunctionCall::run_backward) return nullptr;
  const auto it = opaque_calls_.find(static_cast<const FunctionCall::Attrs*>(record.attrs())->context);
  if (it != opaque_calls_.end()) return &it->second;
  return of_.forward() ? of_.forward()->functions().find(record) : nullptr;
}

void UserFunctions::emit_backward(const Call& call, Tensor* results) {
  Record& record = *call.attrs_as<FunctionBackwardAttrs>().record;
  const OpaqueCall* known = find(record);
  if (!known) return call.op->run_on_host(call, results);
  if (GradMode::is_enabled())
    of_.cannot_record(record.op->name, "backward of an opaque function with create_graph", record.where());
  of_.host().before_code();
  std::vector<ir::ValueId> operands{of_.value_of(known->context)};
  std::vector<bool> is_given;
  for (TensorImpl* x : call.operands) {
    is_given.push_back(x);
    if (x) operands.push_back(of_.value_of(Tensor(RefPtr<TensorImpl>(x))));
  }
  auto* code = new FunctionBackwardCode(record, std::move(is_given), known->missing);
  ir::ValueId next =
      of_.host().emit(ops::function_backward, operands, RefPtr<HostCode>::adopt(code), call.where);
  for (int i = 0; i < call.outputs; ++i)
    if (code->is_wanted(i)) results[i] = of_.make(record.operand_type(i), next++);
}

// ---- traceable functions ------------------------------------------------------------------------------------------

// Emits the results of a function that has run. A result that is an argument passed on gets a separate value.
void UserFunctions::emit_traceable(const Call& call, Tensor* results) {
  call.op->run_on_host(call, results);
  if (of_.forward()) return;
  std::vector<ir::ValueId> operands, values;
  for (TensorImpl* x : call.operands)
    operands.push_back(x ? of_.value_of(Tensor(RefPtr<TensorImpl>(x))) : ir::kNoValue);
  for (int i = 0; i < call.outputs; ++i) {
    values.push_back(of_.value_of(results[i]));
    if (!results[i].defined()) continue;
    of_.note_made(results[i]);
    if (std::ranges::count(operands, values.back()) == 0) continue;
    TensorImpl* handed_on = results[i].get();
    const TensorType type = handed_on->type();
    values.back() = of_.append({&ops::info<ops::Alias>, {&handed_on, 1}, nullptr, call.where, 1}, {&type, 1})
                        .first_result;
    handed_on->value_id = values.back();
  }
  const bool is_users = call.op->host_backward == FunctionCall::run_backward;
  if (!is_users || !call.attrs_as<FunctionCall::Attrs>().traceable || !GradMode::is_enabled()) return;
  traceable_calls_.push_back({of_.graph().nodes().size(), call.op, call.attrs_as<FunctionCall::Attrs>(),
                              call.where, std::move(operands), std::move(values),
                              Tensors(results, results + call.outputs)});
}

// The results that have a gradient, and the context, are known once the record has been made.
void UserFunctions::finish(RecordedFunction& out) {
  for (RecordedFunction::TraceableCall& call : traceable_calls_) {
    for (const Tensor& t : std::exchange(call.made, {})) {
      const Record* const record = t.defined() ? t.impl().grad_fn.get() : nullptr;
      call.is_differentiable.push_back(record);
      if (record && record->op == call.op) call.context = record->hooks->owned;
    }
    if (call.context) out.traceable_calls.push_back(std::move(call));
  }
  traceable_calls_.clear();
  known_ = nullptr;
}

}  // namespace retrograd
