// See engine/function.h.
#include "engine/function.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "ops/shape_ops.h"

namespace retrograd {
namespace {

// Attributes of a user's function: the live context, and which values its record keeps.
struct FunctionAttrs {
  AutogradContext* context;
  SaveSet saves;
};

uint64_t hash_numbers(const std::map<std::string, Scalar>& numbers, uint64_t seed) {
  for (const auto& [name, scalar] : numbers) {
    const Number n = scalar.number();
    seed = XXH3_64bits_withSeed(name.data(), name.size(), seed);
    const uint64_t words[] = {static_cast<uint64_t>(n.kind), static_cast<uint64_t>(n.i)};
    seed = XXH3_64bits_withSeed(words, sizeof words, seed);
  }
  return seed;
}

// A result that is an argument, or shares a cell with another result, gets a cell of its own: it will have its own edge.
void separate(Tensors& results) {
  for (Tensor& r : results) {
    if (!r.defined()) continue;
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(r.impl());
    r = Tensor(std::move(cell));
  }
}

}  // namespace

void AutogradContext::mark_non_differentiable(const Tensors& results) {
  for (const Tensor& r : results) non_differentiable_.push_back(r.get());
}

Tensors AutogradContext::get_saved_variables() {
  if (!context_) throw Error(Category::bad_argument, "get_saved_variables: it is only there in backward");
  Tensors out;
  for (const SavedPlace& place : saved_)
    out.push_back(place.index < 0 ? Tensor() : place.is_result ? context_->out(place.index) : context_->in(place.index).tensor());
  return out;
}

Tensors FunctionCall::apply(const OpInfo& op, const std::vector<const Tensor*>& arguments, const Forward& forward, SourceLocation where) {
  auto context = std::make_shared<AutogradContext>();
  Tensors results;
  {
    NoGradGuard no_grad;
    results = forward(context.get());
  }
  uint64_t wants = 0;
  std::vector<TensorImpl*> operands;
  for (const Tensor* a : arguments) operands.push_back(a ? a->get() : nullptr);
  for (size_t i = 0; i < operands.size() && i < 64; ++i)
    if (operands[i] && operands[i]->requires_grad) wants |= uint64_t{1} << i;
  if (!wants || !GradMode::is_enabled()) return results;
  std::vector<bool> differentiable;
  for (const Tensor& r : results)
    differentiable.push_back(r.defined() && is_floating(r.dtype()) &&
                             std::find(context->non_differentiable_.begin(), context->non_differentiable_.end(), r.get()) ==
                                 context->non_differentiable_.end());
  const Tensors before = results;
  separate(results);
  FunctionAttrs attrs{context.get(), {}};
  for (const Tensor& t : context->to_save_) {
    AutogradContext::SavedPlace place{false, -1};
    if (t.defined()) {
      const auto result = std::find_if(before.begin(), before.end(), [&](const Tensor& r) { return r.is_same(t); });
      auto operand = std::find(operands.begin(), operands.end(), t.get());
      place.is_result = result != before.end() && operand == operands.end();
      if (!place.is_result && operand == operands.end()) operand = operands.insert(operands.end(), t.get());
      place.index = static_cast<int>(place.is_result ? result - before.begin() : operand - operands.begin());
      if (place.index >= 64) fail(Category::bad_argument, op.name, "more than 64 tensors are saved", where);
      (place.is_result ? attrs.saves.results : attrs.saves.operands) |= uint64_t{1} << place.index;
    }
    context->saved_.push_back(place);
  }
  OpInfo with_saves = op;  // only for making the record: which values are kept is known per call, not per op
  with_saves.attrs_size = sizeof(FunctionAttrs);
  with_saves.saves = [](const Call& call, uint64_t) { return call.attrs_as<FunctionAttrs>().saves; };
  const Call call{&with_saves, operands, &attrs, effective_location(where), static_cast<int>(results.size())};
  RefPtr<Record> record = Record::make(call, results.data(), wants);
  record->structure_hash = hash_numbers(context->saved_data, record->structure_hash ^ reinterpret_cast<uintptr_t>(&op));
  record->op = &op;
  context->to_save_.clear();
  record->need_hooks().owned = context;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!differentiable[i]) continue;
    results[i].impl().grad_fn = record;
    results[i].impl().output_nr = static_cast<uint32_t>(i);
    results[i].impl().requires_grad = true;
  }
  return results;
}

void FunctionCall::run_backward(RuleContext& rule, Backward backward) {
  AutogradContext& context = *rule.record().need_hooks().owned_as<AutogradContext>();
  struct Bind {  // the context answers get_saved_variables while backward runs
    AutogradContext& context;
    RuleContext* outer;
    ~Bind() { context.context_ = outer; }
  } bind{context, std::exchange(context.context_, &rule)};
  Tensors grads;
  for (int i = 0; i < rule.outputs(); ++i) grads.push_back(context.materialize_ && rule.out_type(i).dtype != ScalarType::Undefined ? rule.grad_or_zeros(i) : rule.grad(i));
  Tensors given;
  {
    CallScope::Suspend users_own_lines;
    given = backward(&context, grads);
  }
  const int arguments = rule.operands();
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) continue;
    if (static_cast<int>(i) >= arguments || !rule.has_operand(static_cast<int>(i)))
      fail(Category::bad_argument, "function", fmt::format("backward gave a gradient for argument {}, which is no tensor argument", i), rule.where());
    const TensorType wanted = rule.type(static_cast<int>(i));
    if (!(given[i].impl().type() == wanted))
      fail(Category::cotangent_mismatch, "function",
           fmt::format("backward gave {} for argument {}, which is {}", describe(given[i]), i, to_string(wanted)), rule.where());
    if (rule.needs(static_cast<int>(i))) rule.give(static_cast<int>(i), given[i]);
  }
}

}  // namespace retrograd
