// See tracer/plan/attr_table.h.
#include "tracer/plan/attr_table.h"

#include <algorithm>
#include <cstring>

#include "engine/each_field.h"
#include "ir/replay.h"

namespace retrograd::inline v0 {

StepAttrs AttrTable::add(const ir::Node& node, std::span<const Number> values) {
  if (!node.attrs) return {};
  std::vector<std::byte> copy;
  const void* concrete = ir::concrete_attrs(*node.op, node.attrs, values, copy);
  fixed_.push_back(std::make_unique<std::byte[]>(node.op->attrs_size));
  std::memcpy(fixed_.back().get(), concrete, node.op->attrs_size);
  StepAttrs attrs;
  attrs.fixed = fixed_.back().get();
  find_patches(node, attrs);
  return attrs;
}

void AttrTable::find_patches(const ir::Node& node, StepAttrs& attrs) {
  const size_t begin = initial_.size();
  ir::for_each_field(*node.op, node.attrs, [&](auto, Scalar& number) {
    if (!number.is_symbolic()) return;
    const auto offset = reinterpret_cast<const char*>(&number) - static_cast<const char*>(node.attrs);
    patches_.push_back({static_cast<uint32_t>(begin + static_cast<size_t>(offset)), number.id()});
    attrs.is_patched = true;
  });
  if (!attrs.is_patched) return;
  const auto* bytes = static_cast<const std::byte*>(attrs.fixed);
  initial_.insert(initial_.end(), bytes, bytes + node.op->attrs_size);
  initial_.resize((initial_.size() + 15) / 16 * 16);
  attrs.patched_at = begin;
}

void AttrTable::fill_in(std::vector<std::byte>& block, std::span<const Number> numbers) const {
  for (const Patch& p : patches_)
    *reinterpret_cast<Scalar*>(block.data() + p.at) = Scalar(numbers[static_cast<size_t>(p.expression)]);
}

std::span<const AttrTable::Patch> AttrTable::patches(const StepAttrs& attrs, size_t bytes) const {
  if (!attrs.is_patched) return {};
  const auto begin = std::ranges::lower_bound(patches_, attrs.patched_at, {}, &Patch::at);
  auto end = begin;
  while (end != patches_.end() && end->at < attrs.patched_at + bytes) ++end;
  return {begin, end};
}

}  // namespace retrograd
