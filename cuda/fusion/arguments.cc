// See cuda/fusion/arguments.h.
#include "cuda/fusion/arguments.h"

#include <algorithm>
#include <cstring>

#include "cuda/kernels/reduce.h"
// The parameter structs of kernels, which have the same layout for all targets.
#define RG_TARGET parameters
#include "cuda/kernels/strided.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

constexpr int kMostElements = 32;  // that a thread reads and writes: they are in registers at the same time

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

bool by_strides(Access a) { return a != Access::dense && a != Access::number; }

}  // namespace

Placement::Placement(const Group& group, TensorImpl* const* inputs, TensorImpl* const* outputs)
    : group_(group), outputs_(outputs) {
  const int rank = group.shape.rank();
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    const TensorImpl& x = *inputs[k];
    for (int d = 0; d < rank; ++d) {
      const int own = d - (rank - x.rank());
      strides_[k][static_cast<size_t>(d)] = own < 0 || x.shape()[own].raw() == 1 ? 0 : x.strides()[own];
    }
    address_[k] = reinterpret_cast<uintptr_t>(x.data());
  }
  choose(false);
}

void Placement::generalize() { choose(true); }

void Placement::choose(bool any_layout) {
  const size_t inputs = group_.inputs.size();
  variant_.inputs.assign(inputs, Access::run);
  for (size_t k = 0; k < inputs && !any_layout; ++k)
    if (is_number(k))
      variant_.inputs[k] = Access::number;
    else if (is_dense(k))
      variant_.inputs[k] = Access::dense;
  merge_dims();
  variant_.pack = any_layout ? 1 : widest_pack();
  while (!allows(variant_.pack)) variant_.pack /= 2;
  for (size_t k = 0; k < inputs; ++k)
    if (by_strides(variant_.inputs[k])) variant_.inputs[k] = access(k, variant_.pack);
}

bool Placement::is_number(size_t k) const {
  const auto rank = static_cast<size_t>(group_.shape.rank());
  return std::ranges::all_of(std::span(strides_[k]).first(rank), [](int64_t s) { return s == 0; });
}

bool Placement::is_dense(size_t k) const {
  int64_t stride = 1;
  for (int d = group_.shape.rank() - 1; d >= 0; --d) {
    const int64_t size = group_.shape[d].raw();
    if (size != 1 && strides_[k][static_cast<size_t>(d)] != stride) return false;
    stride *= size;
  }
  return true;
}

// The common dims of the inputs with strides; at least one.
void Placement::merge_dims() {
  rank_ = 0;
  const auto each = [&](auto f) {
    for (size_t k = 0; k < group_.inputs.size(); ++k)
      if (by_strides(variant_.inputs[k])) f(k);
  };
  for (int d = 0; d < group_.shape.rank(); ++d) {
    const int64_t size = group_.shape[d].raw();
    if (size == 1) continue;
    const auto at = static_cast<size_t>(d);
    bool merges = rank_ > 0;
    each([&](size_t k) { merges = merges && merged_[k][rank_ - 1] == size * strides_[k][at]; });
    if (!merges) size_[rank_++] = 1;
    size_[rank_ - 1] *= size;
    each([&](size_t k) { merged_[k][rank_ - 1] = strides_[k][at]; });
  }
  if (rank_ > 0) return;
  size_[rank_++] = 1;
  each([&](size_t k) { merged_[k][0] = 0; });
}

// By the widest type that is read or written, 16 bytes; less if there are many.
int Placement::widest_pack() const {
  if (group_.reduces != FusedRole::none) return 1;
  size_t widest = 2;
  int sides = 0;
  const auto see = [&](ScalarType dtype) {
    widest = std::max(widest, element_size(dtype));
    ++sides;
  };
  for (size_t k = 0; k < group_.inputs.size(); ++k)
    if (variant_.inputs[k] != Access::number) see(group_.inputs[k].dtype);
  for (size_t o = 0; o < group_.outputs.size(); ++o) see(group_.output(o).type.dtype);
  int pack = static_cast<int>(16 / widest);
  while (pack > 1 && pack * sides > kMostElements) pack /= 2;
  return pack;
}

// Memory without strides must be at multiples of a pack, and packs must not extend over the last dim.
bool Placement::allows(int pack) const {
  if (pack == 1) return true;
  const auto is_aligned = [&](uintptr_t address, ScalarType dtype) {
    return address % (static_cast<size_t>(pack) * element_size(dtype)) == 0;
  };
  for (size_t o = 0; o < group_.outputs.size(); ++o)
    if (!is_aligned(reinterpret_cast<uintptr_t>(outputs_[o]->data()), group_.output(o).type.dtype))
      return false;
  for (size_t k = 0; k < group_.inputs.size(); ++k) {
    const Access a = variant_.inputs[k];
    if (a == Access::dense && !is_aligned(address_[k], group_.inputs[k].dtype)) return false;
    if (by_strides(a) && size_[rank_ - 1] % pack != 0) return false;
  }
  return true;
}

Access Placement::access(size_t k, int pack) const {
  if (pack == 1) return Access::run;
  const std::span<const int64_t> stride = std::span(merged_[k]).first(rank_);
  if (stride.back() == 0) return Access::repeated;
  const bool is_aligned =
      address_[k] % (static_cast<size_t>(pack) * element_size(group_.inputs[k].dtype)) == 0;
  const bool in_step =
      std::all_of(stride.begin(), stride.end() - 1, [&](int64_t s) { return s % pack == 0; });
  return stride.back() == 1 && is_aligned && in_step ? Access::run : Access::gathered;
}

// ---- the bytes ----

void Arguments::add(const void* bytes, size_t size) {
  RG_ASSERT(size_ + padded(size) <= kMost);
  std::memcpy(bytes_.data() + size_, bytes, size);
  size_ += padded(size);
}

template <int Sides>
void Arguments::add_grid(const Placement& p) {
  parameters::StridedGrid<Sides> grid(p.group().numel);
  for (size_t d = 0; d < p.rank(); ++d) {
    int64_t stride[Sides] = {};
    int side = 0;
    for (size_t k = 0; k < p.group().inputs.size(); ++k)
      if (by_strides(p.variant().inputs[k])) stride[side++] = p.stride(k, d);
    grid.add(p.size(d), stride);
  }
  add(&grid, sizeof grid);
}

Arguments::Arguments(const Placement& p, TensorImpl* const* inputs, TensorImpl* const* outputs,
                     const void* const* attrs, std::span<void* const> partials) {
  const Group& g = p.group();
  if (g.reduces == FusedRole::none) add(&g.numel, sizeof g.numel);
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    const void* data = inputs[k]->data();
    add(&data, sizeof data);
  }
  for (size_t o = 0; o < g.outputs.size(); ++o) {
    void* data = outputs[o]->data();
    if (g.output(o).role == FusedRole::elementwise) add(&data, sizeof data);
  }
  const auto sides = std::ranges::count_if(p.variant().inputs, by_strides);
  [&]<int... S>(std::integer_sequence<int, S...>) { ((sides == S + 1 ? add_grid<S + 1>(p) : void()), ...); }
  (std::make_integer_sequence<int, kMostInputs>());
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    if (!g.nodes[n].reducing) continue;
    ReduceCall call = reduce_call(g, g.nodes[n]);
    const auto o =
        static_cast<size_t>(std::ranges::find(g.outputs, static_cast<int32_t>(n)) - g.outputs.begin());
    call.out = outputs[o]->data();
    if (call.splits > 1) call.partials = partials[reductions_.size()];
    reductions_.push_back(size_);
    add(&call, sizeof call);
  }
  for (size_t n = 0; n < g.nodes.size(); ++n)
    if (const Group::Node& node = g.nodes[n]; node.attrs_size > 0)
      add(static_cast<const std::byte*>(attrs[n]) + node.attrs_offset, node.attrs_size);
}

bool has_room(const Group& g) {
  size_t bytes = 8 + 8 * (g.inputs.size() + g.outputs.size()) + sizeof(parameters::StridedGrid<kMostInputs>);
  for (const Group::Node& n : g.nodes) bytes += padded(n.attrs_size) + (n.reducing ? sizeof(ReduceCall) : 0);
  return bytes <= Arguments::kMost;
}

ReduceCall reduce_call(const Group& g, const Group::Node& node) {
  const auto dims = [](int64_t size, int64_t stride) {
    Dims d{size, 1, {}, {}};
    d.size[0] = size;
    d.stride[0] = size == 1 ? 0 : stride;
    return d;
  };
  ReduceCall call;
  call.element = static_cast<Element>(g.type_of(node.operands[0]).dtype);
  call.out_element = static_cast<Element>(node.type.dtype);
  call.finish = node.reducing->finish;
  call.rows = dims(g.rows, g.row_step);
  call.along = dims(g.length, g.step);
  cut(call);
  return call;
}

}  // namespace retrograd::cuda::fusion
