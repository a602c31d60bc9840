// See ops/optimizer_steps.h.
#include "ops/optimizer_steps.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "engine/recording.h"
#include "engine/runner.h"

namespace retrograd::inline v0::ops {
namespace {

std::vector<TensorImpl*> cells_of(std::span<const Tensor> tensors) {
  std::vector<TensorImpl*> cells;
  cells.reserve(tensors.size());
  for (const Tensor& t : tensors) cells.push_back(t.get());
  return cells;
}

// Operands that become results: all but the gradient and found_inf.
std::vector<TensorImpl*> updated(std::span<TensorImpl* const> operands, size_t arity) {
  std::vector<TensorImpl*> targets;
  targets.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && i % arity < arity - 2) targets.push_back(operands[i]);
  return targets;
}

}  // namespace

void UpdateOp::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& p = *call.operands[0];
  if (!may_be_updated(p.dtype()))
    fail_call(call, Category::dtype_mismatch, "parameters are float32, float64, bfloat16 or float16");
  const auto is_narrow = [](ScalarType dtype) { return may_be_updated(dtype) && element_size(dtype) == 2; };
  const size_t grad = call.operands.size() - 2, master = grad - 1;
  const TensorImpl& g = *call.operands[grad];
  if (call.operands[master] && !is_narrow(p.dtype()))
    fail_call(call, Category::dtype_mismatch, "only a parameter of 16 bits has master values");
  const ScalarType of_state = call.operands[master] ? kFloat32 : p.dtype();
  const auto is = [&](const TensorImpl& x, ScalarType dtype) {
    return x.dtype() == dtype && x.device() == p.device() && x.shape() == p.shape();
  };
  const auto differs = [&](const TensorImpl* x) { return x && !is(*x, of_state); };
  const bool is_of_param =
      is(g, p.dtype()) || (p.dtype() == kFloat32 && is_narrow(g.dtype()) && is(g, g.dtype()));
  if (!is_of_param || std::ranges::any_of(call.operands.subspan(1, master), differs))
    fail_call(call, Category::shape_mismatch, "parameter, state and gradient have different types");
  if (const TensorImpl* found_inf = call.operands.back();
      found_inf && (found_inf->dtype() != kFloat32 || found_inf->shape().rank() != 0))
    fail_call(call, Category::shape_mismatch, "found_inf is no float32 number");
  if (call.outputs != std::ranges::count_if(call.operands.first(grad), std::identity()))
    fail_call(call, Category::bad_argument,
              "it gives a result for each operand but the gradient and found_inf");
  for (int i = 0; i < call.outputs; ++i)
    outputs[i]->set_type(i == 0 ? p.dtype() : of_state, p.device(), p.shape());
}

UpdateList::UpdateList(const OpInfo& op, SourceLocation where, Tensor found_inf)
    : op_(op),
      arity_(static_cast<size_t>(op.arity)),
      where_(effective_location(where)),
      is_recorded_(Emitter::current().values() != Emitter::Values::computed),
      found_inf_(std::move(found_inf)) {}

void UpdateList::add(std::span<const Tensor> operands, std::span<const Scalar> numbers,
                     std::span<const bool> flags, const Tensor& master) {
  RG_ASSERT(operands.size() + 2 == arity_ && numbers.size_bytes() + flags.size() <= op_.attrs_size);
  numbers_ = numbers.size();
  operands_.insert(operands_.end(), operands.begin(), operands.end() - 1);
  operands_.insert(operands_.end(), {master, operands.back(), found_inf_});
  attrs_.resize(attrs_.size() + op_.attrs_size);
  std::byte* const to = attrs_.data() + attrs_.size() - op_.attrs_size;
  std::uninitialized_copy(numbers.begin(), numbers.end(), reinterpret_cast<Scalar*>(to));
  std::uninitialized_copy(flags.begin(), flags.end(), reinterpret_cast<bool*>(to + numbers.size_bytes()));
}

// Updates that agree in numbers, flags, dtypes, device, and the operands that are omitted.
bool UpdateList::may_join(size_t a, size_t b) {
  const auto left = operands(a, a + 1), right = operands(b, b + 1);
  const auto numbers = [&](size_t i) {
    return std::span(reinterpret_cast<const Scalar*>(attrs(i)), numbers_);
  };
  const auto flags = [&](size_t i) {
    return std::span(attrs(i), op_.attrs_size).subspan(numbers_ * sizeof(Scalar));
  };
  const size_t grad = arity_ - 2;
  return !is_recorded_ && left[0].dtype() == right[0].dtype() && left[grad].dtype() == right[grad].dtype() &&
         left[0].device() == right[0].device() &&
         std::ranges::equal(left, right, {}, &Tensor::defined, &Tensor::defined) &&
         std::ranges::equal(numbers(a), numbers(b)) && std::ranges::equal(flags(a), flags(b));
}

// No step reads or writes memory that another one writes, and none writes the same memory twice.
bool UpdateList::is_independent(std::span<const Tensor> operands) const {
  std::vector<const Storage*> written, read;
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].defined())
      (i % arity_ >= arity_ - 2 ? read : written).push_back(operands[i].impl().storage().get());
  std::ranges::sort(written);
  return std::ranges::adjacent_find(written) == written.end() &&
         std::ranges::none_of(read, [&](const Storage* s) { return std::ranges::binary_search(written, s); });
}

// A node whose results are written to its operands.
void UpdateList::record(size_t update) {
  const std::vector<TensorImpl*> cells = cells_of(operands(update, update + 1)),
                                 targets = updated(cells, arity_);
  Tensor results[kMaxOutputs];
  Emitter::current().emit({&op_, cells, attrs(update), where_, static_cast<int>(targets.size())}, results);
  for (size_t i = 0; i < targets.size(); ++i) recorded_function()->write(*targets[i], results[i], where_);
}

void UpdateList::launch(size_t begin, size_t end) {
  const std::vector<TensorImpl*> cells = cells_of(operands(begin, end)), targets = updated(cells, arity_);
  const Call call{&op_, cells, attrs(begin), where_, static_cast<int>(targets.size())};
  Executor& executor = executor_of(targets[0]->device());
  for (TensorImpl* t : targets) t->storage()->will_be_written();
  executor.launch(executor.find(&op_), call, targets.data());
  for (TensorImpl* t : targets) t->storage()->bump_version(call.where);
}

void UpdateList::run(const std::function<void(size_t)>& done) {
  const size_t all = operands_.size() / arity_;
  size_t made = 0;
  try {
    if (is_recorded_) {
      for (size_t i = 0; i < all; ++i) record(i);
      return;
    }
    for (size_t begin = 0, end = 0; begin < all; begin = end) {
      ++end;
      while (end < all && may_join(begin, end)) ++end;
      const size_t together = is_independent(operands(begin, end)) ? end - begin : 1;
      while (made < end) {
        launch(made, made + together);
        for (const size_t last = made + together; made < last; ++made)
          if (done) done(made);
      }
    }
  } catch (Exception& e) {
    if (made > 0) e.add_context(fmt::format("when {} of {} parameters had been updated", made, all));
    throw;
  }
}

}  // namespace retrograd::ops
