// Sort and topk on a device, and orders of keys: from a Call to the plain data of cuda/kernels/sort_call.h.
#include "cuda/kernels/sort.h"

#include <optional>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"
#include "ops/sort.h"

namespace retrograd::cuda {
namespace {

constexpr int64_t kMostNarrow = (int64_t{1} << 32) - 1;  // numbers below fit beside a key of 32 bits

void run(SortCall& c, std::string_view op) {
  const int64_t bytes = c.room() * (c.is_wide ? 16 : 8);
  const Scratch first(bytes, op);
  std::optional<Scratch> second;
  c.entries[0] = first.data();
  if (c.runs() > 1) c.entries[1] = second.emplace(bytes, op).data();
  Gpu& gpu = Gpu::current();
  gpu.launchers().sort->sort(c, gpu.compute().handle());
  gpu.launched(op);
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
  for (int d = 0; d < x.rank(); ++d)
    if (d != dim) c.lines.add(x.shape()[d].raw(), {x.strides()[d], values.strides()[d]});
  c.lines.finish();
  c.length = x.shape()[dim].raw();
  c.x_step = x.strides()[dim];
  c.result_step = values.strides()[dim];
  c.count = values.shape()[dim].raw();
  c.descending = a.descending;
  c.is_wide = c.width == 8 || c.length >= kMostNarrow;
  c.values = outputs[0]->data();
  c.places = static_cast<int64_t*>(outputs[1]->data());
  run(c, call.op->name);
}

}  // namespace

void sort_places(const int64_t* keys, int64_t n, int64_t most, int64_t* order, std::string_view op) {
  SortCall c;
  c.x = keys;
  c.element = static_cast<Element>(kInt64);
  c.width = 8;
  c.lines.finish();
  c.length = c.count = n;
  c.x_step = c.result_step = 1;
  c.is_plain = n < kMostNarrow && most < kMostNarrow;
  c.is_wide = !c.is_plain;
  c.places = order;
  run(c, op);
}

void add_sort_kernels(KernelTable& table) { table.set(&ops::info<ops::Sort>, sort); }

}  // namespace retrograd::cuda
