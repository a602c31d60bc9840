// See engine/dual.h. The public level scope is defined here, too.
#include "engine/dual.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/autograd.h"
#include "engine/basic_ops.h"
#include "engine/inplace.h"
#include "engine/rule.h"

namespace retrograd::inline v0 {

Tensor tangent_of(const TensorImpl& cell, uint64_t level) {
  if (cell.meta)
    for (const Tangent& t : cell.meta->tangents)
      if (t.level == level) return t.value;
  return {};
}

void set_tangent(TensorImpl& cell, uint64_t level, Tensor tangent) {
  auto& tangents = cell.need_meta().tangents;
  for (Tangent& t : tangents)
    if (t.level == level) {
      t.value = std::move(tangent);
      return;
    }
  tangents.push_back({level, std::move(tangent)});
}

// Gives the tangent to the slot in which a record keeps this result of its own.
void Dual::note_in_slots(TensorImpl& result, const Tensor& tangent) {
  Record* record = result.grad_fn.get();
  const int nr = record ? record->slot_of_result(static_cast<int>(result.output_nr)) : -1;
  if (nr < 0) return;
  Slot& slot = record->slot(nr);
  if (slot.value())
    set_tangent(*slot.value(), level_, tangent);
  else if (slot.packed())
    slot.packed()->tangents.push_back({level_, tangent});
}

// Cells refer to their tangents, tangents to records, records to slots with cells: a reference cycle if a record keeps
// a cell that its tangent depends on. So the end of a level drops its tangents from the cells that got one and from all
// slots that are reached through the tangents' records. When an allocation fails, nothing has changed, and the second
// try often finds the memory. If it fails, too, the tangents stay.
Dual::~Dual() {
  bool is_done = false;
  for (int tries = 0; tries < 2 && !is_done; ++tries) {
    try {
      forget_tangents();
      is_done = true;
    } catch (const std::bad_alloc&) {
    }
  }
}

void Dual::forget_tangents() {
  std::vector<RefPtr<Record>> reached;
  std::unordered_set<const Record*> seen;
  const auto reach = [&](Record* record) {
    if (record && seen.insert(record).second) reached.emplace_back(record);
  };
  for (const RefPtr<TensorImpl>& cell : cells_)
    if (const Tensor tangent = tangent_of(*cell, level_); tangent.defined())
      reach(tangent.impl().grad_fn.get());
  for (size_t k = 0; k < reached.size(); ++k)
    for (int i = 0; i < reached[k]->operands; ++i) reach(reached[k]->edge(i).record());

  const auto for_lists = [&](const auto& f) {  // of tangents
    for (const RefPtr<TensorImpl>& cell : cells_)
      if (cell->meta) f(cell->meta->tangents);
    for (const RefPtr<Record>& record : reached)
      for (int i = 0; i < record->slots; ++i) {
        Slot& slot = record->slot(i);
        if (slot.value() && slot.value()->meta) f(slot.value()->meta->tangents);
        if (slot.packed()) f(slot.packed()->tangents);
      }
  };
  const auto is_ours = [this](const Tangent& t) { return t.level == level_; };
  size_t count = 0;
  for_lists(
      [&](const auto& tangents) { count += static_cast<size_t>(std::ranges::count_if(tangents, is_ours)); });
  Tensors gone;  // dropped when no list holds them any more
  gone.reserve(count);
  for_lists([&](auto& tangents) {
    for (Tangent& t : tangents)
      if (is_ours(t)) gone.push_back(std::move(t.value));
    std::erase_if(tangents, is_ours);
  });
}

void Dual::emit(const Call& call, Tensor* results) {
  if (!is_open()) return below().emit(call, results);
  if (!detail::is_autocast(*call.op)) return emit_as_given(call, results);
  const detail::CastCall cast(call, *this);
  emit_as_given(cast.call(), results);
}

void Dual::emit_as_given(const Call& call, Tensor* results) {
  const int n = static_cast<int>(call.operands.size());
  TensorList tangents(n);
  bool any = false;
  for (int i = 0; i < n; ++i) {
    if (call.operands[i]) refresh_view(*call.operands[i]);
    if (call.operands[i]) tangents[i] = tangent_of(*call.operands[i], level_);
    any |= tangents[i].defined();
  }
  below().emit(call, results);
  if (!any || call.op->is(Trait::bookkeeping)) return;
  if (!call.op->jvp) {
    if (call.op->vjp) fail_call(call, Category::unsupported, "it has no derivative in forward mode");
    return;
  }
  Emitter::Scope scope(below());
  const detail::AutocastOff no_casts;
  TangentContext context(call, results, tangents.span());
  call.op->jvp(context);
  for (int i = 0; i < call.outputs; ++i) {
    const Tensor& tangent = context.given()[i];
    if (!results[i].defined() || !tangent.defined()) continue;
    // First, so that no cell has a tangent without being in the list.
    if (tangent.impl().grad_fn) cells_.push_back(results[i].ref());
    set_tangent(results[i].impl(), level_, tangent);
    note_in_slots(results[i].impl(), tangent);
  }
}

namespace autograd {
namespace {
constinit std::atomic<uint64_t> next_level{1};
// Each op goes through the emitters of all levels.
constexpr int kMostLevels = 256;
}  // namespace

DualLevel::DualLevel(SourceLocation where) {
  if (Emitter::Layer::count() >= kMostLevels)
    fail(Category::unsupported, "DualLevel", fmt::format("more than {} levels are open", kMostLevels), where);
  if (Emitter::current().values() == Emitter::Values::of_backward)
    fail(Category::unsupported, "DualLevel", "forward mode cannot be opened while a backward is recorded",
         where);
  level_ = next_level.fetch_add(1);
  layer_ = RefPtr<Emitter::Layer>::adopt(new Dual(level_));
  layer_->open();
}

DualLevel::~DualLevel() { layer_->end(); }

Tensor DualLevel::make_dual(const Tensor& primal, const Tensor& tangent, SourceLocation where) {
  if (!(primal.impl("make_dual", where).type() == tangent.impl("make_dual", where).type()))
    fail(Category::cotangent_mismatch, "make_dual",
         fmt::format("primal {} and tangent {} have different types", describe(primal), describe(tangent)),
         where);
  Tensor dual = basic::alias(Operand(primal, where));
  dual.impl().is_no_grad_view = false;
  set_tangent(dual.impl(), level_, tangent);
  return dual;
}

Tensor DualLevel::tangent(const Tensor& tensor, SourceLocation where) const {
  TensorImpl& cell = tensor.impl("tangent", where);
  refresh_view(cell);
  return tangent_of(cell, level_);
}

JvpResult jvp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& tangents,
              SourceLocation where) {
  require_function(static_cast<bool>(f), "jvp", where);
  if (inputs.size() != tangents.size())
    fail(Category::bad_argument, "jvp",
         fmt::format("{} inputs but {} tangents", inputs.size(), tangents.size()), where);
  DualLevel level(where);
  Tensors duals;
  for (size_t i = 0; i < inputs.size(); ++i)
    duals.push_back(tangents[i].defined() ? level.make_dual(inputs[i], tangents[i], where) : inputs[i]);
  JvpResult result;
  result.outputs = f(duals);
  for (const Tensor& y : result.outputs) result.tangents.push_back(y.defined() ? level.tangent(y) : Tensor());
  return result;
}

}  // namespace autograd
}  // namespace retrograd
