// See tracer/function/function_inputs.h.
#include "tracer/function/function_inputs.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "ops/views.h"
#include "tracer/function/function_recorder.h"

namespace retrograd::inline v0 {

void StandIns::add(StandIn made) {
  const size_t number = all_.size();
  originals_.emplace(made.stands_for, number);
  tensors_.emplace(made.tensor.get(), number);
  if (made.leaf.defined()) leaves_.emplace(made.leaf.get(), number);
  all_.push_back(std::move(made));
}

void StandIns::sort() {
  std::vector<StandIn> all = std::exchange(all_, {});
  std::ranges::sort(
      all, {}, [](const StandIn& s) { return std::pair(s.argument < 0, std::max(s.argument, s.base_of)); });
  originals_.clear(), tensors_.clear(), leaves_.clear();
  for (StandIn& s : all) add(std::move(s));
}

// ---- arguments ----------------------------------------------------------------------------------------------------

// Inputs and stand-ins are in the order of arguments, whichever of these are views. Roots are not: a base comes before
// its views.
Tensors FunctionInputs::arguments(const Tensors& given) {
  const std::vector<size_t> first = first_of_each(given);
  for (size_t i = 0; i < given.size(); ++i) {
    numbers_.push_back(first[i] == i ? next() : numbers_[first[i]]);
    if (first[i] != i) continue;
    of_.graph().add_tensor_input(of_.sizes().count() ? of_.sizes().type(i) : given[i].impl().type());
    inputs_.push_back({.argument = static_cast<int>(i)});
  }
  const auto base_of = [](const Tensor& t) { return t.impl().base.get(); };
  const auto each = [&](auto&& wanted, auto&& make) {
    for (size_t i = 0; i < given.size(); ++i)
      if (wanted(given[i])) make(given[i].impl(), static_cast<int>(i));
  };
  const auto as_argument = [&](TensorImpl& cell, int i) { stand_in(cell, i, -1); };
  std::unordered_set<const TensorImpl*> bases;
  for (const Tensor& g : given) bases.insert(base_of(g));
  each([&](const Tensor& t) { return bases.contains(t.get()); }, as_argument);
  each(base_of, [&](TensorImpl& cell, int i) { stand_in(*cell.base, -1, i); });
  each([&](const Tensor& t) { return !base_of(t); }, as_argument);
  each(base_of, [&](TensorImpl& cell, int i) {
    stand_in(cell, i, -1).impl().base = stand_in(*cell.base, -1, i).ref();
  });
  stand_ins_.sort();
  Tensors made;
  for (const Tensor& g : given) made.push_back(stand_ins_.standing_for(g.get())->tensor);
  return made;
}

Tensor FunctionInputs::stand_in(TensorImpl& like, int argument, int base_of) {
  if (const StandIn* const known = stand_ins_.standing_for(&like)) return known->tensor;
  const int32_t number = argument >= 0 ? numbers_[static_cast<size_t>(argument)] : -1;
  const ir::ValueId value =
      argument >= 0 ? of_.graph().inputs()[static_cast<size_t>(number)].value : ir::kNoValue;
  Tensor made = of_.make(argument >= 0 ? of_.graph().type(value) : like.type(), value);
  TensorImpl& cell = made.impl();
  std::copy_n(like.strides(), cell.rank(), cell.mutable_strides());
  if (argument >= 0 && of_.sizes().count()) of_.sizes().set_strides(static_cast<size_t>(argument), cell);
  cell.set_offset(like.offset());
  cell.is_multi_output_view = like.is_multi_output_view;
  cell.is_no_grad_view = like.is_no_grad_view;
  cell.is_function_view = like.is_function_view;
  Root& root = root_of_argument(like, cell, number, base_of);
  if (argument >= 0) ++root.arguments;
  if (argument >= 0 && root.seen < 0) {
    root.seen = number;
    root.seen_offset = cell.offset();
  }
  StandIn stand_in{&like, made, {}, argument, base_of, number, {}};
  link(stand_in);
  stand_ins_.add(std::move(stand_in));
  return made;
}

// The first stand-in in a memory creates its root.
Root& FunctionInputs::root_of_argument(TensorImpl& like, TensorImpl& cell, int32_t number, int base_of) {
  RefPtr<Storage>& memory = argument_memory_[like.storage().get()];
  const bool is_first = !memory;
  if (is_first) {
    memory = memory_without_data(like.storage()->nbytes());
    if (like.storage()->is_inference()) memory->mark_inference();
  }
  cell.set_storage(memory);
  if (!is_first) return *of_.memory().find(memory.get());
  Root& root = of_.memory().new_root(cell, cell.value_id);
  root.cell = root.as_input = geometry_of_cell(cell);
  root.input = number;
  root.base_of = base_of;
  of_.memory().begin_outside(root, like.storage().get());
  return root;
}

// Sets the place in the recorded tape. A view of which only the base has a gradient has no gradient of its own,
// though it counts as having one. A view that is out of date has no leaf: its use is refused where it would need a
// gradient.
void FunctionInputs::link(StandIn& made) {
  const TensorImpl& like = *made.stands_for;
  TensorImpl& cell = made.tensor.impl();
  cell.requires_grad = like.requires_grad;
  if (!like.requires_grad && !(like.base && like.base->requires_grad)) return;
  const bool is_refused = is_outdated(like);
  if (like.requires_grad && like.is_leaf() && !is_refused) {
    made.leaf = made.tensor;
    if (!like.meta) return;
    AutogradMeta& meta = cell.need_meta();
    meta.grad = like.meta->grad;
    if (!like.meta->has_hooks()) return;
    meta.tensor_hooks = like.meta->tensor_hooks;
    meta.pre_hooks = like.meta->pre_hooks;
    meta.post_hooks = like.meta->post_hooks;
    meta.post_accumulate_hooks = like.meta->post_accumulate_hooks;
    return;
  }
  const Tensor leaf = of_.make(cell.type(), ir::kNoValue);
  leaf.impl().requires_grad = true;
  if (is_refused)
    cell.set_made_at_version(cell.storage()->version() - 1);
  else
    made.leaf = leaf;
  if (!like.requires_grad) return;
  TensorImpl* operand = leaf.get();
  cell.grad_fn = Record::make({&ops::info<ops::Alias>, {&operand, 1}, nullptr, {}, 1}, &made.tensor, 1);
  cell.output_nr = 0;
  made.history = cell.grad_fn;
}

int FunctionInputs::argument_of(const TensorImpl& cell) const {
  const StandIn* const s = stand_ins_.of_tensor(&cell);
  return s ? s->argument : -1;
}

int32_t FunctionInputs::input_of(const Tensor& stand_in) {
  const StandIn& s = *stand_ins_.of_tensor(stand_in.get());
  if (s.argument >= 0) return s.input;
  Root& root = of_.memory().root_of(stand_in.impl());
  need_input(root);
  if (root.base_of == s.base_of) return root.input;
  const auto known = std::ranges::find(inputs_, s.base_of, &RecordedFunction::Input::base_of);
  if (known != inputs_.end()) return static_cast<int32_t>(known - inputs_.begin());
  of_.graph().add_tensor_input(stand_in.impl().type());  // its memory begins as another tensor's
  inputs_.push_back({.base_of = s.base_of});
  return next() - 1;
}

void FunctionInputs::need_input(Root& root) {
  if (root.input >= 0 || root.base_of < 0) return;
  root.input = next();
  root.value = of_.graph().add_tensor_input(root.as_input->type());
  inputs_.push_back({.base_of = root.base_of});
}

// ---- others -------------------------------------------------------------------------------------------------------

Root& FunctionInputs::capture(TensorImpl& cell) {
  Root& root = from_outside(cell);
  of_.hold(*inputs_.back().captured);
  return root;
}

Root& FunctionInputs::capture_grad(TensorImpl& grad, TensorImpl& leaf, int argument) {
  Root& root = from_outside(grad);
  root.is_gradient = true;
  RecordedFunction::Input& input = inputs_.back();
  input.grad_of_argument = argument;
  if (argument < 0) input.grad_of = of_.hold(leaf);
  return root;
}

Root& FunctionInputs::from_outside(TensorImpl& cell) {
  const bool has_own_gradient = cell.requires_grad && cell.is_leaf();
  TensorImpl& base = cell.base && !has_own_gradient ? *cell.base : cell;
  if (base.graph)
    of_.refuse(
        Category::bad_argument,
        "a value of another recording was used, which has no data here. Hint: return it from that function");
  if (base.grad_fn)
    of_.refuse(Category::unsupported,
               fmt::format("a recorded function uses a tensor from outside, {}, that has a history. Hint: "
                           "make it an argument, or detach it",
                           to_string(base.type())));
  Root& root = of_.memory().new_root(base, of_.graph().add_tensor_input(base.type()));
  root.cell = root.as_input = geometry_of_cell(base);
  root.input = root.seen = next();
  root.seen_offset = base.offset();
  of_.memory().begin_outside(root, base.storage().get());
  inputs_.push_back({.captured = &base});
  return root;
}

ir::ValueId FunctionInputs::of_saved(int32_t number, const TensorType& type) {
  const auto [it, fresh] = saved_.try_emplace(number, ir::kNoValue);
  if (!fresh) return it->second;
  inputs_.push_back({.saved = number});
  return it->second = of_.graph().add_tensor_input(type);
}

Tensor FunctionInputs::cotangent(const TensorType& type, int result) {
  inputs_.push_back({.argument = result});
  return of_.memory().computed(type, of_.graph().add_tensor_input(type));
}

int32_t FunctionInputs::add_hook(Hook* hook, TensorImpl* leaf) {
  inputs_.push_back({.hook = RefPtr<Hook>(hook), .leaf = leaf ? of_.hold(*leaf) : nullptr});
  return of_.graph().add_handle(ir::Input::Kind::hook, {});
}

int32_t FunctionInputs::add_code(RefPtr<HostCode> code) {
  inputs_.push_back({.code = std::move(code)});
  return of_.graph().add_handle(ir::Input::Kind::code, {});
}

std::vector<std::pair<Tensor, int32_t>> FunctionInputs::captured_leaves() const {
  std::vector<std::pair<Tensor, int32_t>> leaves;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (TensorImpl* const captured = inputs_[i].captured; captured && captured->requires_grad)
      leaves.emplace_back(RefPtr<TensorImpl>(captured), static_cast<int32_t>(i));
  return leaves;
}

std::vector<bool> FunctionInputs::have_gradient() const {
  const ir::Graph& graph = of_.graph();
  std::vector<bool> has(static_cast<size_t>(graph.value_count()));
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].captured && graph.inputs()[i].value != ir::kNoValue)
      has[static_cast<size_t>(graph.inputs()[i].value)] = inputs_[i].captured->requires_grad;
  for (const StandIn& s : stand_ins_)
    if (s.leaf.defined() && s.tensor.impl().value_id != ir::kNoValue)
      has[static_cast<size_t>(s.tensor.impl().value_id)] = true;
  return has;
}

std::vector<RecordedFunction::Input> FunctionInputs::take() {
  for (RecordedFunction::Input& input : inputs_)
    if (input.grad_of || input.grad_of_argument >= 0) input.captured = nullptr;
  return std::move(inputs_);
}

}  // namespace retrograd
