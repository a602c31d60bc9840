// See engine/function.h. apply() runs forward, then emits a call of the function's op whose results already exist: the
// tape, forward mode and stale views treat it like any other op.
#include "engine/function.h"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/basic_ops.h"
#include "engine/batching.h"
#include "engine/bookkeeping.h"
#include "engine/driver.h"
#include "engine/inplace.h"
#include "engine/recording.h"

namespace retrograd::inline v0 {

// State of a backward or jvp that runs on this thread, for requests to its context. All backwards through a record
// share its context, so the context cannot hold this state.
struct FunctionCall::Run {
  const AutogradContext* context;
  RuleContext* rule = nullptr;      // saved tensors are unpacked on request,
  const Tensors* values = nullptr;  // or are here
  const Record* record = nullptr;
  // Gradients of these arguments; null: those that the backward wants.
  const std::vector<bool>* wanted = nullptr;
  CurrentBackward* backward = CurrentBackward::innermost();
  Run* outer;

  static Run*& innermost() {
    static constinit thread_local Run* run = nullptr;
    return run;
  }
  static const Run& of(const AutogradContext* context, std::string_view what) {
    for (Run* run = innermost(); run; run = run->outer)
      if (run->context == context) return *run;
    throw Error(Category::bad_argument, std::string(what) + ": it is only there in backward");
  }
  /// The saved tensors in the order in which they were given, as a rule or a tangent sees them.
  template <class Context>
  static Tensors saved(const AutogradContext& context, Context& rule) {
    Tensors saved;
    for (const AutogradContext::SavedPlace& place : context.saved_)
      saved.push_back(place.index < 0   ? Tensor()
                      : place.is_result ? rule.out(place.index)
                                        : rule.in(place.index).tensor());
    return saved;
  }
  Run(const AutogradContext* c, RuleContext* r, const Tensors* v, const Record* rec,
      const std::vector<bool>* w = nullptr)
      : context(c), rule(r), values(v), record(rec), wanted(w), outer(innermost()) {
    innermost() = this;
  }
  bool wants(size_t i) const {
    if (!record || i >= context->arguments_) return false;
    if (wanted) return (*wanted)[i];
    const Edge& edge = record->edge(static_cast<int>(i));
    return backward ? backward->wants(edge) : static_cast<bool>(edge);
  }
  ~Run() { innermost() = outer; }
  Run(const Run&) = delete;
};

Tensors AutogradContext::get_saved_variables() const {
  const FunctionCall::Run& run = FunctionCall::Run::of(this, "get_saved_variables");
  if (!run.rule) return *run.values;
  return FunctionCall::Run::saved(*this, *run.rule);
}

bool AutogradContext::needs_input_grad(size_t i) const {
  return FunctionCall::Run::of(this, "needs_input_grad").wants(i);
}

void AutogradContext::mark_non_differentiable(const Tensors& results) {
  for (const Tensor& r : results) non_differentiable_.push_back(r.get());
}

void FunctionCall::visit(void* p, AttrVisitor& v) {
  Attrs& a = *static_cast<Attrs*>(p);
  v.field("saved", a.layout);
  v.field("materialize_grads", a.materialize);
  for (int i = 0; i < a.numbers; ++i) v.field("number", a.number[static_cast<size_t>(i)]);
}

SaveSet FunctionCall::saves(const Call& call, uint64_t) { return call.attrs_as<Attrs>().saves; }

void FunctionCall::give_results(const Call& call, Tensor* results) {
  std::ranges::copy(*call.attrs_as<Attrs>().results, results);
}

namespace {

int index_in(const Tensors& tensors, const TensorImpl* cell) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].get() == cell) return static_cast<int>(i);
  return -1;
}

int index_of(const std::vector<const Tensor*>& arguments, const TensorImpl* cell) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] && arguments[i]->get() == cell) return static_cast<int>(i);
  return -1;
}

// The argument in whose memory a result lies; -1: none.
int argument_shown_by(const Tensor& result, const std::vector<const Tensor*>& arguments) {
  if (!result.defined() || !result.impl().storage()) return -1;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] && arguments[i]->defined() && arguments[i]->impl().storage() == result.impl().storage())
      return static_cast<int>(i);
  return -1;
}

// The tensor whose memory the result shows and which others can see, too: an argument, or the base of a view. A base
// that nobody else holds does not count.
RefPtr<TensorImpl> base_of(const Tensor& result, const std::vector<const Tensor*>& arguments) {
  const RefPtr<TensorImpl>& base = result.impl().base;
  if (base) return base->is_unique() ? RefPtr<TensorImpl>() : base;
  return index_of(arguments, result.get()) >= 0 ? result.ref() : RefPtr<TensorImpl>();
}

// A write through the result would give the base a history without the function's backward, so it is refused.
void make_function_view(TensorImpl& result, RefPtr<TensorImpl> base) {
  result.is_function_view = true;
  result.set_made_at_version(result.storage()->version());
  if (base->meta && base->meta->epoch) result.need_meta().base_epoch = base->meta->epoch;
  result.base = std::move(base);
}

// A result that is an argument, or shares a cell with another result, gets a cell of its own, since it will have its
// own edge.
Tensors separate(const FunctionCall::Ran& ran, const std::vector<const Tensor*>& arguments) {
  Tensors own;
  for (const Tensor& r : ran.results) {
    if (!r.defined()) {
      own.push_back(r);
      continue;
    }
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(r.impl());
    const bool is_dirty =
        std::ranges::any_of(ran.dirty, [&](const auto& d) { return d.first.get() == r.get(); });
    if (RefPtr<TensorImpl> base = is_dirty ? nullptr : base_of(r, arguments))
      make_function_view(*cell, std::move(base));
    own.push_back(Tensor(std::move(cell)));
  }
  return own;
}

// Raises the version of a tensor that was written to, also when no op did it, so that earlier uses of it notice the
// write.
void note_write(const Tensor& dirty, const std::vector<const Tensor*>& arguments,
                const std::vector<uint32_t>& versions, SourceLocation where) {
  if (!dirty.defined() || !dirty.impl().storage()) return;
  const int i = index_of(arguments, dirty.get());
  if (i < 0 || dirty.version() == versions[static_cast<size_t>(i)])
    dirty.impl().storage()->bump_version(effective_location(where));
}

TensorType type_of(const Tensor* t) { return t && t->defined() ? t->impl().type() : TensorType{}; }

constinit thread_local FunctionCall::Observer* current_observer = nullptr;

// Of a value that is no number.
uint64_t hash_of(const SavedValue& value) {
  if (value.isString()) return XXH3_64bits(value.toStringRef().data(), value.toStringRef().size());
  const IntArray& list = value.toIntVector();
  return ~XXH3_64bits(list.data(), list.size() * sizeof(int64_t));
}

}  // namespace

Tensors FunctionCall::Observer::record(const Of& function, const std::vector<const Tensor*>&,
                                       const ForwardOf&, const Signature&, const AutogradContext&) {
  throw InternalError(std::string(function.op->name) + " has no observer that records it");
}
const FunctionCall::Signature& FunctionCall::Observer::expected(const Of& function,
                                                                const std::vector<TensorType>&) {
  throw InternalError(std::string(function.op->name) + " has no observer that records it");
}
FunctionCall::Observer* FunctionCall::Observer::current() { return current_observer; }
FunctionCall::Observer::Scope::Scope(Observer* observer)
    : outer_(std::exchange(current_observer, observer)) {}
FunctionCall::Observer::Scope::~Scope() { current_observer = outer_; }

// Finds where saved tensors are. A tensor that is neither an argument nor a result becomes an operand after the
// arguments.
void FunctionCall::place_saved(const Of& function, Ran& ran, const std::vector<const Tensor*>& arguments) {
  AutogradContext& context = *ran.context;
  for (const Tensor& t : context.to_save_) {
    AutogradContext::SavedPlace place{false, -1};
    if (t.defined()) {
      const int argument = index_of(arguments, t.get()), result = index_in(ran.results, t.get());
      place.is_result = argument < 0 && result >= 0;
      if (!place.is_result && argument < 0 && index_in(ran.others, t.get()) < 0) ran.others.push_back(t);
      place.index = place.is_result ? result
                    : argument >= 0 ? argument
                                    : static_cast<int>(arguments.size()) + index_in(ran.others, t.get());
      if (place.index >= 64)
        fail(Category::bad_argument, function.op->name,
             "arguments, and saved tensors that are none, are more than 64 together", function.where);
    }
    context.saved_.push_back(place);
  }
  context.to_save_.clear();
}

FunctionCall::Ran FunctionCall::run_forward(const Of& function, const std::vector<const Tensor*>& arguments,
                                            const Forward& forward) {
  Emitter& emitter = Emitter::current();
  Ran ran;
  ran.context = std::make_shared<AutogradContext>();
  AutogradContext& context = *ran.context;
  context.backward_ = function.backward;
  context.autocast_ = function.autocast;
  context.arguments_ = arguments.size();
  std::vector<uint32_t> versions;
  versions.reserve(arguments.size());
  for (const Tensor* a : arguments)
    versions.push_back(a && a->defined() && a->impl().storage() ? a->version() : 0);
  {
    NoGradGuard no_grad;
    const detail::AutocastAs as_around_the_call(function.autocast);
    const Observer::Scope is_one_call(nullptr);
    Emitter::Scope plain(emitter.is_symbolic() ? emitter : plain_emitter());
    ran.results = forward(&context);
  }
  for (const Tensor& d : context.dirty_) {
    note_write(d, arguments, versions, function.where);
    ran.dirty.emplace_back(d, index_in(ran.results, d.get()));
    if (ran.dirty.back().second < 0)
      fail(Category::bad_argument, function.op->name, "a tensor that is marked dirty must be a result, too",
           function.where);
  }
  context.dirty_.clear();
  place_saved(function, ran, arguments);
  return ran;
}

FunctionCall::Signature FunctionCall::signature_of(const Of& function,
                                                   const std::vector<const Tensor*>& arguments,
                                                   const Ran& ran) {
  const AutogradContext& context = *ran.context;
  Signature s{function.op, {}, {}, {}, context.saved_, {}, {}, {}, context.materialize_};
  for (const Tensor* a : arguments) s.arguments.push_back(type_of(a));
  for (const Tensor& r : ran.results) s.results.push_back(type_of(&r));
  for (const Tensor& o : ran.others) s.others.push_back(type_of(&o));
  for (const auto& [tensor, result] : ran.dirty)
    s.dirty.emplace_back(index_of(arguments, tensor.get()), result);
  for (size_t i = 0; i < ran.results.size(); ++i)
    if (std::ranges::count(context.non_differentiable_, ran.results[i].get()))
      s.non_differentiable.push_back(static_cast<int>(i));
  for (size_t i = 0; i < ran.results.size(); ++i)
    if (const int argument = argument_shown_by(ran.results[i], arguments);
        argument >= 0 && std::ranges::count(s.dirty, argument, &std::pair<int, int>::first) == 0)
      s.shown.emplace_back(static_cast<int>(i), argument);
  return s;
}

FunctionCall::Attrs FunctionCall::attrs_of(const Of& function, const Ran& ran) {
  AutogradContext& context = *ran.context;
  Attrs attrs{&context, nullptr, {}, 0, context.materialize_, function.traceable, 0, {}};
  std::vector<uint64_t> words;
  for (const AutogradContext::SavedPlace& place : context.saved_) {
    if (place.index >= 0)
      (place.is_result ? attrs.saves.results : attrs.saves.operands) |= uint64_t{1} << place.index;
    words.push_back(static_cast<uint64_t>(place.index + 1) << 1 | uint64_t{place.is_result});
  }
  if (context.autocast_ != ScalarType::Undefined) words.push_back(static_cast<uint64_t>(context.autocast_));
  if (function.traceable)
    for (const auto& [key, value] : context.saved_data) {
      words.push_back(XXH3_64bits(key.data(), key.size()));
      if (!value.is_number()) words.push_back(hash_of(value));
    }
  attrs.layout = static_cast<int64_t>(XXH3_64bits(words.data(), words.size() * 8));
  if (!function.traceable) return attrs;
  for (const auto& [key, value] : context.saved_data) {
    if (!value.is_number()) continue;
    if (attrs.numbers == Attrs::kNumbers)
      fail(Category::bad_argument, function.op->name,
           fmt::format("a traceable function saves at most {} numbers", Attrs::kNumbers), function.where);
    attrs.number[static_cast<size_t>(attrs.numbers++)] = value;
  }
  return attrs;
}

Tensors FunctionCall::link(const Of& function, const std::vector<const Tensor*>& arguments, const Ran& ran) {
  std::vector<TensorImpl*> operands;
  for (const Tensor* a : arguments) operands.push_back(a ? a->get() : nullptr);
  for (const Tensor& t : ran.others) operands.push_back(t.get());
  Attrs attrs = attrs_of(function, ran);
  const Tensors computed = separate(ran, arguments);
  attrs.results = &computed;
  Tensors out(ran.results.size());
  Emitter::current().emit(
      {function.op, operands, &attrs, effective_location(function.where), static_cast<int>(out.size())},
      out.data());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].defined()) continue;
    TensorImpl& cell = out[i].impl();
    if (cell.grad_fn) cell.grad_fn->need_hooks().owned = ran.context;
    if (std::ranges::count(ran.context->non_differentiable_, ran.results[i].get())) {
      cell.grad_fn.reset();
      cell.requires_grad = false;
    }
    if (!cell.grad_fn && cell.base && cell.base->requires_grad) cell.forget_base();  // it is detached
  }
  for (const auto& [written, index] : ran.dirty) {
    Tensor& result = out[static_cast<size_t>(index)];
    take_over_history(written, result, function.op->name, function.where);
    result = written;
  }
  return out;
}

Tensors FunctionCall::apply(const Of& function, const std::vector<const Tensor*>& arguments,
                            const Forward& forward) {
  Ran ran = run_forward(function, arguments, forward);
  if (Observer* observer = Observer::current(); observer && !function.traceable) {
    ran.context->missing_ = std::make_shared<std::atomic<uint64_t>>(0);
    observer->called(signature_of(function, arguments, ran), ran.context->missing_);
  }
  return link(function, arguments, ran);
}

// A tensor that forward writes to gets its new value from the node.
Tensors FunctionCall::apply_recorded(const Of& function, const std::vector<const Tensor*>& arguments,
                                     const ForwardOf& forward) {
  if (std::ranges::any_of(arguments,
                          [](const Tensor* a) { return a && a->defined() && is_batched(a->impl()); }))
    refuse_recording(function.op->name, "code of the user runs inside of vmap", function.where);
  Observer& observer = *Observer::current();
  std::vector<TensorType> types;
  for (const Tensor* a : arguments) types.push_back(type_of(a));
  const Signature& signature = observer.expected(function, types);
  Ran ran;
  ran.context = std::make_shared<AutogradContext>();
  ran.context->backward_ = function.backward;
  ran.context->autocast_ = function.autocast;
  ran.context->arguments_ = arguments.size();
  ran.context->saved_ = signature.saved;
  ran.context->materialize_ = signature.materialize;
  ran.results = observer.record(function, arguments, forward, signature, *ran.context);
  ran.others.assign(ran.results.begin() + static_cast<std::ptrdiff_t>(signature.results.size()),
                    ran.results.end());
  ran.results.resize(signature.results.size());
  for (int i : signature.non_differentiable)
    ran.context->non_differentiable_.push_back(ran.results[static_cast<size_t>(i)].get());
  for (const auto& [argument, result] : signature.dirty)
    ran.dirty.emplace_back(*arguments[static_cast<size_t>(argument)], result);
  Tensors out = link(function, arguments, ran);
  for (const auto& [written, result] : ran.dirty)
    recorded_function()->write(written.impl(), ran.results[static_cast<size_t>(result)], function.where);
  return out;
}

Tensors FunctionCall::gradients(const AutogradContext& context, const Record& record,
                                std::span<TensorImpl* const> given) {
  Tensors grads;
  for (int i = 0; i < record.outputs; ++i) {
    TensorImpl* g = given[static_cast<size_t>(i)];
    const TensorType type = record.output_type(i);
    if (g)
      grads.push_back(Tensor(RefPtr<TensorImpl>(g)));
    else
      grads.push_back(context.materialize_ && type.dtype != ScalarType::Undefined
                          ? basic::zeros(type, record.where())
                          : Tensor());
  }
  return grads;
}

// Leaves one gradient per argument: undefined ones beyond the arguments are dropped, as in PyTorch.
void FunctionCall::check(const AutogradContext& context, const Record& record, Tensors& given,
                         const std::function<TensorType(int)>& type_of) {
  const size_t arguments = context.arguments_;
  if (given.size() < arguments)
    fail(Category::bad_argument, record.op->name,
         fmt::format(
             "backward gave {} gradients, forward has {} arguments. Hint: give one for each argument, in "
             "order, and an undefined tensor where there is none",
             given.size(), arguments),
         record.where());
  for (size_t i = arguments; i < given.size(); ++i)
    if (given[i].defined())
      fail(Category::bad_argument, record.op->name,
           fmt::format(
               "backward gave {} as gradient {}, counted from 0, but forward has {} arguments. Hint: give "
               "one gradient for each argument; a list of tensors counts as many as it has",
               describe(given[i]), i, arguments),
           record.where());
  given.resize(arguments);
  for (size_t i = 0; i < arguments; ++i) {
    if (!given[i].defined()) continue;
    const TensorType wanted = type_of(static_cast<int>(i));
    if (wanted.dtype == ScalarType::Undefined)
      fail(
          Category::bad_argument, record.op->name,
          fmt::format("backward gave a gradient for argument {}, which is no tensor. Hint: give an undefined "
                      "tensor there",
                      i),
          record.where());
    if (!(given[i].impl().type() == wanted))
      fail(Category::cotangent_mismatch, record.op->name,
           fmt::format("backward gave {} for argument {}, which is {}", describe(given[i]), i,
                       to_string(wanted)),
           record.where());
  }
}

void FunctionCall::vjp_traceable(RuleContext& rule) {
  const Attrs attrs = rule.attrs<Attrs>();  // while recording: with symbols for numbers
  AutogradContext context = *attrs.context;
  int next = 0;
  for (auto& [key, value] : context.saved_data)
    if (value.is_number()) value = attrs.number[static_cast<size_t>(next++)];
  Tensors grads, given;
  for (int i = 0; i < rule.outputs(); ++i)
    grads.push_back(context.materialize_ && rule.out_type(i).dtype != ScalarType::Undefined
                        ? rule.grad_or_zeros(i)
                        : rule.grad(i));
  {
    CallScope::Suspend users_own_lines;
    Run run(&context, &rule, nullptr, &rule.record());
    const detail::AutocastAs as_in_forward(context.autocast_);
    given = context.backward_(&context, grads);
  }
  check(context, rule.record(), given, [&](int i) { return rule.type(i); });
  for (int i = 0; i < static_cast<int>(given.size()); ++i)
    if (rule.needs(i)) rule.give(i, std::move(given[static_cast<size_t>(i)]));
}

void FunctionCall::vjp_opaque(RuleContext& rule) {
  Record& record = rule.record();
  const AutogradContext& context = *static_cast<Attrs*>(record.attrs())->context;
  Tensors held;
  for (int i = 0; i < rule.outputs(); ++i) held.push_back(rule.grad(i));
  for (Tensor& value : Run::saved(context, rule)) held.push_back(std::move(value));
  std::vector<TensorImpl*> operands;
  for (const Tensor& t : held) operands.push_back(t.get());
  FunctionBackwardAttrs attrs{{}, &record};
  TensorList results(record.operands);
  Emitter::current().emit({&ops::function_backward, operands, &attrs, record.where(), record.operands},
                          results.data());
  for (int i = 0; i < record.operands; ++i) rule.give(i, results[i]);
}

int FunctionCall::arguments(const Record& record) {
  if (record.op->host_backward != run_backward) return record.operands;
  return static_cast<int>(static_cast<Attrs*>(record.attrs())->context->arguments_);
}

void FunctionCall::run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results) {
  call_backward(*static_cast<Attrs*>(record.attrs())->context, record, operands, results);
}

std::vector<bool> FunctionCall::wanted(const Record& record) {
  CurrentBackward* backward = CurrentBackward::innermost();
  std::vector<bool> wanted;
  for (int i = 0; i < arguments(record); ++i)
    wanted.push_back(backward ? backward->wants(record.edge(i)) : static_cast<bool>(record.edge(i)));
  return wanted;
}

void FunctionCall::call_backward(AutogradContext& context, const Record& record,
                                 std::span<TensorImpl* const> operands, Tensor* results,
                                 const std::vector<bool>* wanted) {
  const Tensors grads = gradients(context, record, operands.first(record.outputs));
  Tensors saved, given;
  std::vector<bool> is_wanted;
  for (TensorImpl* x : operands.subspan(record.outputs))
    saved.push_back(x ? Tensor(RefPtr<TensorImpl>(x)) : Tensor());
  {
    CallScope::Suspend users_own_lines;
    const UnknownLayouts off(false);
    Run run(&context, nullptr, &saved, &record, wanted);
    const detail::AutocastAs as_in_forward(context.autocast_);
    given = context.backward_(&context, grads);
    for (size_t i = 0; i < given.size(); ++i) is_wanted.push_back(run.wants(i));
  }
  if (context.missing_)
    for (size_t i = 0; i < std::min<size_t>(given.size(), 64); ++i)
      if (is_wanted[i] && !given[i].defined()) *context.missing_ |= uint64_t{1} << i;
  check(context, record, given, [&](int i) { return record.operand_type(i); });
  // A post-hook sees no gradient that this backward does not want, whatever the function gave.
  for (size_t i = 0; i < given.size(); ++i)
    if (is_wanted[i]) results[i] = std::move(given[i]);
}

void FunctionCall::jvp(TangentContext& rule, Backward jvp) {
  AutogradContext& context = *rule.attrs<Attrs>().context;
  Tensors tangents;
  const Tensors saved = Run::saved(context, rule);
  for (int i = 0; i < rule.operands(); ++i) tangents.push_back(rule.tangent(i));
  CallScope::Suspend users_own_lines;
  Run run(&context, nullptr, &saved, nullptr);
  const detail::AutocastAs as_in_forward(context.autocast_);
  Tensors given = jvp(&context, tangents);
  const Call& call = rule.call();
  if (static_cast<int>(given.size()) != call.outputs)
    fail_call(call, Category::bad_argument,
              fmt::format("jvp gave {} tangents, forward has {} results", given.size(), call.outputs));
  for (int i = 0; i < call.outputs; ++i) {
    Tensor& tangent = given[static_cast<size_t>(i)];
    if (tangent.defined() && rule.out(i).defined() && !(tangent.impl().type() == rule.out_type(i)))
      fail_call(call, Category::cotangent_mismatch,
                fmt::format("jvp gave {} for result {}, which is {}", describe(tangent), i,
                            to_string(rule.out_type(i))));
    rule.give(i, std::move(tangent));
  }
}

}  // namespace retrograd
