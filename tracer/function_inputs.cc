// The inputs of a recorded function: stand-ins of arguments, tensors from outside, cotangents. See tracer/function_recorder.h; start reading at
// arguments.
//
// The stand-ins of arguments that share memory share a storage, hence a root, which begins as the base among them, or as the first of them. As
// long as nothing is written there each argument has the value of its own input. The base of an argument becomes an input when it is needed.
#include <algorithm>

#include <fmt/format.h>

#include "engine/inplace.h"
#include "ops/views.h"
#include "tracer/function_recorder.h"

namespace retrograd {

// ---- arguments -------------------------------------------------------------------------------------------------------------------------

Tensors FunctionRecorder::arguments(const Tensors& given) {
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
  Tensors made;
  for (const Tensor& g : given) made.push_back(stand_ins_.standing_for(g.get())->tensor);
  return made;
}

Tensor FunctionRecorder::stand_in(TensorImpl& like, int argument, int base_of) {
  if (const StandIn* const known = stand_ins_.standing_for(&like)) return known->tensor;
  const auto number = static_cast<int32_t>(argument >= 0 ? inputs_.size() : -1);
  Tensor made = make(like.type(), argument >= 0 ? graph_.add_tensor_input(like.type()) : ir::kNoValue);
  TensorImpl& cell = made.impl();
  std::copy_n(like.strides(), cell.rank(), cell.mutable_strides());
  cell.set_storage_offset(like.storage_offset());
  cell.is_multi_output_view = like.is_multi_output_view;
  cell.is_no_grad_view = like.is_no_grad_view;
  cell.is_function_view = like.is_function_view;
  RefPtr<Storage>& memory = argument_memory_[like.storage().get()];
  const bool is_first = !memory;
  if (is_first) memory = memory_without_data(like.storage()->nbytes());
  cell.set_storage(memory);
  if (argument >= 0) inputs_.push_back({.argument = argument});
  Root& root = is_first ? new_root(cell, cell.value_id) : roots_.at(memory.get());
  if (is_first) {
    root.cell = root.as_input = present_geometry(cell);
    root.input = number;
    root.base_of = base_of;
    ++roots_outside_[root.outside = like.storage().get()];
  }
  if (argument >= 0) ++root.arguments;
  if (argument >= 0 && root.seen < 0) {
    root.seen = number;
    root.seen_offset = cell.storage_offset();
  }
  StandIn stand_in{&like, made, {}, argument, base_of, number, {}};
  link_stand_in(stand_in);
  stand_ins_.add(std::move(stand_in));
  return made;
}

// The place in the recorded tape. A view whose base alone has a gradient has none of its own, though it counts as having one. One that is out of
// date has no leaf: where a gradient would go there, its use is refused.
void FunctionRecorder::link_stand_in(StandIn& made) {
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
  const Tensor leaf = make(like.type(), ir::kNoValue);
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

int32_t FunctionRecorder::input_of(const Tensor& stand_in) {
  const StandIn& s = *stand_ins_.of_tensor(stand_in.get());
  if (s.argument >= 0) return s.input;
  Root& root = root_of(stand_in.impl());
  need_input(root);
  if (root.base_of == s.base_of) return root.input;
  const auto known = std::ranges::find(inputs_, s.base_of, &RecordedFunction::Input::base_of);
  if (known == inputs_.end()) {  // its memory begins as that of another tensor
    graph_.add_tensor_input(stand_in.impl().type());
    inputs_.push_back({.base_of = s.base_of});
    return static_cast<int32_t>(inputs_.size()) - 1;
  }
  return static_cast<int32_t>(known - inputs_.begin());
}

void FunctionRecorder::need_input(Root& root) {
  if (root.input >= 0 || root.base_of < 0) return;
  root.input = static_cast<int32_t>(inputs_.size());
  root.value = graph_.add_tensor_input(root.as_input->type());
  inputs_.push_back({.base_of = root.base_of});
}

Tensor FunctionRecorder::cotangent(const TensorType& type, int result) {
  inputs_.push_back({.argument = result});
  return computed(type, graph_.add_tensor_input(type));
}

// ---- tensors from outside ------------------------------------------------------------------------------------------------------------

FunctionRecorder::Root& FunctionRecorder::capture(TensorImpl& cell) {
  TensorImpl& base = cell.base ? *cell.base : cell;
  if (base.graph)
    refuse(
        Category::bad_argument,
        "a value of another recording was used, which has no data here. Hint: return it from that function");
  if (base.grad_fn)
    refuse(Category::unsupported,
           fmt::format("a recorded function uses a tensor from outside, {}, that has a history. Hint: "
                       "make it an argument, or detach it",
                       to_string(base.type())));
  Root& root = new_root(base, graph_.add_tensor_input(base.type()));
  root.cell = root.as_input = present_geometry(base);
  root.input = root.seen = static_cast<int32_t>(inputs_.size());
  root.seen_offset = base.storage_offset();
  ++roots_outside_[root.outside = base.storage().get()];
  inputs_.push_back({.captured = Tensor(RefPtr<TensorImpl>(&base))});
  return root;
}

std::vector<std::pair<Tensor, int32_t>> FunctionRecorder::captured_leaves() const {
  std::vector<std::pair<Tensor, int32_t>> leaves;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].captured.defined() && inputs_[i].captured.requires_grad())
      leaves.emplace_back(inputs_[i].captured, static_cast<int32_t>(i));
  return leaves;
}

}  // namespace retrograd
