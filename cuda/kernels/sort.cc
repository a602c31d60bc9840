// Sort and topk on a device, and orders of keys: converts a Call to the plain data of cuda/kernels/sort_call.h.
#include "cuda/kernels/sort.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/sort_call.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"
#include "ops/sort.h"

namespace retrograd::inline v0::cuda {
namespace {

// Lines of this length are sorted one by one: they fill the device, and keys are shorter. Groups of shorter ones have
// at most kMostOfGroup elements, which bounds the memory that they need.
constexpr int64_t kLongLine = int64_t{1} << 20, kMostOfGroup = int64_t{1} << 25;

void choose(const SortCall& c, std::string_view op) {
  Gpu& gpu = Gpu::current();
  std::optional<Scratch> memory[2];
  SortRound round;
  round.length = c.length;
  for (int side = 0;; side = 1 - side) {
    const int64_t tiles = round.tiles(), next = tiles * c.count;
    round.to = nullptr;
    if (tiles > 1) round.to = memory[side].emplace(c.lines.numel * next * c.entry_bytes(), op).data();
    gpu.launchers().sort->choose(c, round, gpu.compute().handle());
    gpu.launched(op);
    if (tiles == 1) return;
    round.from = round.to;
    round.length = next;
  }
}

void sort_groups(const SortCall& c, std::string_view op) {
  Gpu& gpu = Gpu::current();
  const SortLaunchers& launchers = *gpu.launchers().sort;
  const int64_t lines = c.lines.numel;
  const int64_t most = c.length >= kLongLine ? 1 : std::min(lines, kMostOfGroup / c.length);
  SortGroup group;
  group.lines = most;
  group.line_bits = std::bit_width(static_cast<uint64_t>(most - 1));
  group.room_bytes = std::max<int64_t>(1, launchers.room(c, group));
  const int64_t n = most * c.length, key_bytes = group.key_bytes(c);
  const Scratch keys(2 * n * key_bytes, op), numbers(2 * n * 4, op), room(group.room_bytes, op);
  for (int side = 0; side < 2; ++side) {
    group.keys[side] = static_cast<char*>(keys.data()) + side * n * key_bytes;
    group.numbers[side] = static_cast<uint32_t*>(numbers.data()) + side * n;
  }
  group.room = room.data();
  for (; group.first < lines; group.first += most) {
    group.lines = std::min(most, lines - group.first);
    gpu.health().check(launchers.sort(c, group, gpu.compute().handle()), op);
    gpu.launched(op);
  }
}

void partition(const SortCall& c, std::string_view op) {
  Gpu& gpu = Gpu::current();
  const auto launcher = gpu.launchers().sort->partition;
  size_t bytes = 0;
  gpu.health().check(launcher(nullptr, bytes, c, nullptr, nullptr, nullptr), op);
  const Scratch places(4 * c.length, op), front(8, op),
      room(std::max<int64_t>(1, static_cast<int64_t>(bytes)), op);
  gpu.health().check(launcher(room.data(), bytes, c, static_cast<uint32_t*>(places.data()),
                              static_cast<int64_t*>(front.data()), gpu.compute().handle()),
                     op);
  gpu.launched(op);
}

void run(const Call& call, const SortCall& c) {
  if (c.length >= kMostOfLine)
    fail_call(call, Category::unsupported, "a line of 2^32 - 1 elements or more on a device");
  if (c.chooses()) return choose(c, call.op->name);
  c.partitions() ? partition(c, call.op->name) : sort_groups(c, call.op->name);
}

void sort(const Call& call, TensorImpl* const* outputs) {
  const ops::Sort::Attrs& a = call.attrs_as<ops::Sort::Attrs>();
  const TensorImpl &x = *call.operands[0], &values = *outputs[0];
  if (values.numel().raw() == 0) return;
  const int dim = static_cast<int>(a.dim);
  SortCall c;
  c.x = x.data();
  c.element = static_cast<Element>(x.dtype());
  c.width = static_cast<int>(element_size(x.dtype()));
  c.bits = x.dtype() == kBool ? 1 : 8 * c.width;
  for (int d = 0; d < x.rank(); ++d)
    if (d != dim) c.lines.add(x.shape()[d].raw(), {x.strides()[d], values.strides()[d]});
  c.lines.finish();
  c.length = x.shape()[dim].raw();
  c.x_step = x.strides()[dim];
  c.result_step = values.strides()[dim];
  c.count = values.shape()[dim].raw();
  c.descending = a.descending;
  c.values = outputs[0]->data();
  c.places = static_cast<int64_t*>(outputs[1]->data());
  run(call, c);
}

}  // namespace

void sort_places(const Call& call, const int64_t* keys, int64_t n, int64_t most, int64_t* order) {
  SortCall c;
  c.x = keys;
  c.element = static_cast<Element>(kInt64);
  c.width = 8;
  c.bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(most))));
  c.lines.finish();
  c.length = c.count = n;
  c.x_step = c.result_step = 1;
  c.is_plain = true;
  c.places = order;
  run(call, c);
}

void add_sort_kernels(KernelTable& table) { table.set(&ops::info<ops::Sort>, sort); }

}  // namespace retrograd::cuda
