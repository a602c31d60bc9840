// Type rules, layouts and transposes of ops/shape_ops.h.
#include "ops/shape_ops.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/batching.h"
#include "ops/reduce.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

void same_type(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

void typed(const Call& call, TensorImpl* const* outputs, const Shape& shape) {
  const TensorImpl& x = *call.operands[0];
  outputs[0]->set_type(x.dtype(), x.device(), shape);
}

}  // namespace

void Alias::infer(const Call& call, TensorImpl* const* outputs) { same_type(call, outputs); }

void Alias::layout(const Call& call, TensorImpl& output) {
  const TensorImpl& x = *call.operands[0];
  std::copy_n(x.strides(), x.rank(), output.mutable_strides());
  output.set_storage_offset(x.storage_offset());
}

void Clone::infer(const Call& call, TensorImpl* const* outputs) { same_type(call, outputs); }

void Contiguous::run_on_host(const Call& call, Tensor* results) {
  TensorImpl& x = *call.operands[0];
  if (x.is_contiguous()) {
    results[0] = Tensor(TensorImpl::make());
    results[0].impl().alias(x);
    return;
  }
  Call copy = call;
  copy.op = &info<Clone>;
  eager_runner().emit(copy, results);
}

void To::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  const ScalarType dtype = call.attrs_as<Attrs>().dtype;
  if (dtype == ScalarType::Undefined) fail_call(call, Category::bad_argument, "the dtype is undefined");
  outputs[0]->set_type(dtype, x.device(), x.shape());
}

Tensor To::transpose(RuleContext& c, int, const Tensor& g) { return to(g, c.type(0).dtype); }

void ToDevice::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl& x = *call.operands[0];
  outputs[0]->set_type(x.dtype(), call.attrs_as<Attrs>().device, x.shape());
}

Tensor ToDevice::transpose(RuleContext& c, int, const Tensor& g) { return to(g, c.type(0).device); }

void Expand::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& from = call.operands[0]->shape();
  const Shape& size = call.attrs_as<Attrs>().size;
  check_sizes(call, size);
  const int skip = size.rank() - from.rank();
  bool fits = skip >= 0;
  for (int i = 0; fits && i < from.rank(); ++i) fits = from[i].raw() == 1 || from[i] == size[i + skip];
  if (!fits)
    fail_call(call, Category::shape_mismatch, fmt::format("it cannot be expanded to {}", to_string(size)));
  typed(call, outputs, size);
}

void Expand::layout(const Call& call, TensorImpl& output) {
  const TensorImpl& x = *call.operands[0];
  const int skip = output.rank() - x.rank();
  for (int i = 0; i < output.rank(); ++i) {
    const bool repeated = i < skip || (x.shape()[i - skip].raw() == 1 && output.shape()[i].raw() != 1);
    output.set_stride(i, repeated ? Dim(0) : x.stride(i - skip));
  }
  output.set_storage_offset(x.storage_offset());
}

void Expand::batch(BatchContext& c) {
  Attrs attrs{c.with_batch(c.out_type().shape)};
  const Tensor x = align(c.value(0), attrs.size.rank(), c.where());
  c.give(c.run({&x, 1}, &attrs));
}

Tensor Expand::transpose(RuleContext& c, int, const Tensor& g) {
  return sum_to(g, c.type(0).shape, c.where());
}

void Reshape::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& size = call.attrs_as<Attrs>().size;
  check_sizes(call, size);
  if (!(call.operands[0]->numel() == size.numel()))
    fail_call(call, Category::shape_mismatch,
              fmt::format("it does not have as many elements as {}", to_string(size)));
  typed(call, outputs, size);
}

// Dims of the new shape are matched, from the back, with runs of old dims that are contiguous in memory (PyTorch:
// computeStride).
void Reshape::layout(const Call& call, TensorImpl& output) {
  const TensorImpl& x = *call.operands[0];
  output.set_storage_offset(x.storage_offset());
  const Shape &from = x.shape(), &to = output.shape();
  if (x.is_contiguous() || from.numel().raw() == 0) {
    contiguous_strides(to, output.mutable_strides());
    return;
  }
  int at = to.rank() - 1;
  Dim base = x.rank() ? x.stride(x.rank() - 1) : Dim(1), old_run = 1, new_run = 1;
  for (int d = x.rank() - 1; d >= 0; --d) {
    old_run *= from[d];
    const bool run_ends = d == 0 || (from[d - 1].raw() != 1 && !(x.stride(d - 1) == old_run * base));
    if (!run_ends) continue;
    while (at >= 0 && (new_run < old_run || to[at].raw() == 1)) {
      output.set_stride(at, new_run * base);
      new_run *= to[at--];
    }
    if (!(new_run == old_run))
      fail_call(call, Category::view_incompatible, "its layout does not allow this view. Hint: reshape");
    if (d > 0) {
      base = x.stride(d - 1);
      old_run = new_run = 1;
    }
  }
  if (at >= 0)
    fail_call(call, Category::view_incompatible, "its layout does not allow this view. Hint: reshape");
}

void Reshape::batch(BatchContext& c) {
  Attrs attrs{c.with_batch(c.out_type().shape)};
  const Tensor x = c.value(0);
  c.give(c.run({&x, 1}, &attrs));
}

Tensor Reshape::transpose(RuleContext& c, int, const Tensor& g) { return reshape_to(g, c.type(0).shape); }

void Reshape::jvp(TangentContext& c) { c.give(0, reshape_to(c.tangent(0), c.out_type().shape)); }

void Permute::infer(const Call& call, TensorImpl* const* outputs) {
  const Shape& from = call.operands[0]->shape();
  const IntList& dims = call.attrs_as<Attrs>().dims;
  IntList sorted = dims;
  std::sort(sorted.values, sorted.values + sorted.count);
  check_dims(call, sorted);
  if (dims.size() != from.rank()) fail_call(call, Category::bad_dim, "not every dim has a place");
  Shape shape = from;
  for (int i = 0; i < dims.size(); ++i) shape[i] = from[static_cast<int>(dims[i])];
  typed(call, outputs, shape);
}

void Permute::layout(const Call& call, TensorImpl& output) {
  const TensorImpl& x = *call.operands[0];
  const IntList& dims = call.attrs_as<Attrs>().dims;
  for (int i = 0; i < dims.size(); ++i) output.mutable_strides()[i] = x.strides()[dims[i]];
  output.set_storage_offset(x.storage_offset());
}

void Permute::batch(BatchContext& c) {
  Attrs attrs{{0}};
  for (int64_t d : c.attrs<Attrs>().dims) attrs.dims.push_back(d + 1);
  const Tensor x = c.value(0);
  c.give(c.run({&x, 1}, &attrs));
}

Tensor Permute::transpose(RuleContext& c, int, const Tensor& g) {
  const IntList& dims = c.attrs<Attrs>().dims;
  IntArray inverse(static_cast<size_t>(dims.size()));
  for (int i = 0; i < dims.size(); ++i) inverse[static_cast<size_t>(dims[i])] = i;
  return permute(g, inverse);
}

}  // namespace ops

namespace {

// A size list with at most one -1 as a shape of `numel` elements.
Shape infer_size(Shape shape, Dim numel, std::string_view op, SourceLocation where) {
  int unknown = -1;
  Dim known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i].raw() == -1 && unknown < 0)
      unknown = i;
    else if (shape[i].hint() < 0)
      fail(Category::bad_argument, op, fmt::format("size {} is not allowed here", to_string(shape[i])), where);
    else
      known *= shape[i];
  }
  if (unknown >= 0) {
    if (known.hint() == 0 || numel.hint() % known.hint() != 0)
      fail(Category::shape_mismatch, op,
           fmt::format("{} elements do not fit into shape {}", to_string(numel), to_string(shape)), where);
    shape[unknown] = numel / known;
  }
  return shape;
}

}  // namespace

Tensor alias(Operand x) { return ops::emit<ops::Alias>({x.tensor().get()}, {}, x.where()); }

Tensor detach(Operand x) {
  Tensor out = ops::emit<ops::Detach>({x.tensor().get()}, {}, x.where());
  out.impl().forget_base();
  return out;
}

Tensor clone(Operand x) { return ops::emit<ops::Clone>({x.tensor().get()}, {}, x.where()); }

Tensor contiguous(Operand x) {
  const TensorImpl& impl = x.defined_tensor("contiguous").impl();
  if (!impl.has_layout()) return ops::emit<ops::Contiguous>({x.tensor().get()}, {}, x.where());
  return impl.is_contiguous() ? x.tensor() : clone(x);
}

Tensor to(Operand x, ScalarType dtype) {
  const NamedCall call("to", x.where());
  if (x.tensor().dtype() == dtype) return x.tensor();
  return ops::emit<ops::To>({x.tensor().get()}, {dtype}, x.where());
}

Tensor to(Operand x, Device device) {
  const NamedCall call("to", x.where());
  if (x.tensor().device() == device) return x.tensor();
  const Tensor dense = contiguous(x);
  return ops::emit<ops::ToDevice>({dense.get()}, {device}, x.where());
}

Tensor expand_to(Operand x, const Shape& shape) {
  if (x.defined_tensor("expand").impl().shape() == shape) return x.tensor();
  return ops::emit<ops::Expand>({x.tensor().get()}, {shape}, x.where());
}

Tensor expand(Operand x, const Shape& size) {
  const NamedCall call("expand", x.where());
  const Shape& from = x.tensor().impl().shape();
  Shape shape = size;
  const int skip = shape.rank() - from.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    if (size[i].hint() >= 0) continue;
    if (size[i].raw() != -1 || i < skip)
      fail(Category::bad_argument, "expand", fmt::format("size {} is not allowed at dim {}", to_string(size[i]), i),
           x.where());
    shape[i] = from[i - skip];
  }
  return ops::emit<ops::Expand>({x.tensor().get()}, {shape}, x.where());
}

Tensor view(Operand x, const Shape& size) {
  const NamedCall call("view", x.where());
  const Shape shape = infer_size(size, x.tensor().impl().numel(), "view", x.where());
  return ops::emit<ops::Reshape>({x.tensor().get()}, {shape}, x.where());
}

Tensor reshape(Operand x, const Shape& size) {
  const NamedCall call("reshape", x.where());
  return reshape_to(x, infer_size(size, x.tensor().impl().numel(), "reshape", x.where()));
}

// Whether shapes differ only by dims of size 1: such a view works for any layout. Symbols are compared as symbols,
// without a guard.
static bool differ_by_ones(const Shape& a, const Shape& b) {
  const auto skip = [](const Shape& s, int i) {
    while (i < s.rank() && !s[i].is_symbolic() && s[i].raw() == 1) ++i;
    return i;
  };
  int i = skip(a, 0), j = skip(b, 0);
  if (i == a.rank()) return false;  // one element
  for (; i < a.rank() && j < b.rank(); i = skip(a, i + 1), j = skip(b, j + 1))
    if (a[i].raw() != b[j].raw()) return false;
  return i == a.rank() && j == b.rank();
}

// A tensor whose layout allows no view is copied first. A recorded value has no layout yet: `contiguous` decides when
// it runs.
Tensor reshape_to(Operand x, const Shape& shape) {
  const TensorImpl& impl = x.defined_tensor("reshape").impl();
  if (!impl.has_layout() || UnknownLayouts::is_enabled()) {
    const Tensor from = differ_by_ones(impl.shape(), shape) ? x.tensor() : contiguous(x);
    return ops::emit<ops::Reshape>({from.get()}, {shape}, x.where());
  }
  if (impl.is_contiguous()) return ops::emit<ops::Reshape>({x.tensor().get()}, {shape}, x.where());
  try {
    return ops::emit<ops::Reshape>({x.tensor().get()}, {shape}, x.where());
  } catch (const Error& e) {
    if (e.category() != Category::view_incompatible) throw;
  }
  const Tensor copy = clone(x);
  Tensor out = ops::emit<ops::Reshape>({copy.get()}, {shape}, x.where());
  out.impl().forget_base();  // nobody else can see the copy
  return out;
}

Tensor permute(Operand x, const IntArray& dims) {
  const NamedCall call("permute", x.where());
  const int rank = x.tensor().impl().rank();
  if (static_cast<int>(dims.size()) != rank)
    fail(Category::bad_dim, "permute",
         fmt::format("{} dims for a tensor of {} dimensions", dims.size(), rank), x.where());
  IntList order;
  uint64_t seen = 0;
  for (int64_t d : dims) {
    const int i = wrap_dim(d, rank, "permute");
    if (seen >> i & 1) fail(Category::bad_dim, "permute", fmt::format("dim {} is given twice", i), x.where());
    seen |= uint64_t{1} << i;
    order.push_back(i);
  }
  return ops::emit<ops::Permute>({x.tensor().get()}, {order}, x.where());
}

Tensor transpose(Operand x, int64_t dim0, int64_t dim1) {
  const NamedCall call("transpose", x.where());
  const int rank = x.tensor().impl().rank();
  const int a = wrap_dim(dim0, rank, "transpose"), b = wrap_dim(dim1, rank, "transpose");
  IntArray dims;
  for (int i = 0; i < rank; ++i) dims.push_back(i);
  if (rank > 0) std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  return permute(x, dims);
}

Tensor t(Operand x) {
  const NamedCall call("t", x.where());
  const int rank = x.tensor().impl().rank();
  if (rank > 2)
    fail(Category::bad_dim, "t", fmt::format("a tensor of {} dimensions is not a matrix", rank), x.where());
  return rank < 2 ? alias(x) : permute(x, {1, 0});
}

Tensor sum_to(Tensor g, const Shape& shape, SourceLocation where) {
  const Shape& from = g.impl().shape();
  if (from.is_same(shape)) return g;
  const int skip = from.rank() - shape.rank();
  IntArray dims;
  for (int i = 0; i < from.rank(); ++i)
    if (i < skip || (shape[i - skip].raw() == 1 && from[i].raw() != 1)) dims.push_back(i);
  if (dims.empty()) return g;
  Tensor s = sum(Operand(g, where), dims, true);
  return skip == 0 ? s : reshape_to(Operand(s, where), shape);
}

}  // namespace retrograd
