// See ops/indexing.h.
#include "ops/indexing.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/inplace.h"
#include "engine/named_call.h"
#include "ops/attributes.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/index_parts.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {

void FlatIndex::infer(const Call& call, TensorImpl* const* outputs) {
  if (static_cast<int>(call.operands.size()) != call.attrs_as<Attrs>().sizes.rank())
    fail_call(call, Category::bad_argument, "sizes and indices are not equally many");
  check_sizes(call, call.attrs_as<Attrs>().sizes);
  const TensorImpl& first = *call.operands[0];
  for (const TensorImpl* x : call.operands) {
    if (x->dtype() != kInt64) fail_call(call, Category::dtype_mismatch, "an index is not int64");
    if (!(x->shape() == first.shape()))
      fail_call(call, Category::shape_mismatch, "indices have different shapes");
  }
  outputs[0]->set_type(kInt64, first.device(), first.shape());
}

}  // namespace ops

// ---- items of an index ----------------------------------------------------------------------------------------------

indexing::TensorIndex::TensorIndex(const char* dots) : item_(Ellipsis) {
  if (std::string_view(dots) != "...")
    fail(Category::bad_argument, "index",
         fmt::format("\"{}\" is no index. Hint: \"...\" is the ellipsis", dots));
}

Tensor indexing::TensorIndex::mask(bool flag) { return full({}, flag); }

namespace indexing {

template <class T>
const T& TensorIndex::get(const char* kind) const {
  if (const T* value = std::get_if<T>(&item_)) return *value;
  fail(Category::bad_argument, "TensorIndex", fmt::format("the item is not {}", kind));
}

bool TensorIndex::is_none() const { return std::holds_alternative<std::nullopt_t>(item_); }
bool TensorIndex::is_ellipsis() const { return std::holds_alternative<EllipsisIndexType>(item_); }
bool TensorIndex::is_integer() const { return std::holds_alternative<int64_t>(item_); }
bool TensorIndex::is_slice() const { return std::holds_alternative<indexing::Slice>(item_); }
// true and false are masks without dims.
bool TensorIndex::is_boolean() const {
  const Tensor* const x = std::get_if<Tensor>(&item_);
  return x && x->dtype() == kBool && x->dim() == 0;
}
bool TensorIndex::is_tensor() const { return std::holds_alternative<Tensor>(item_) && !is_boolean(); }

int64_t TensorIndex::integer() const { return get<int64_t>("an integer"); }
bool TensorIndex::boolean() const { return get<Tensor>("a boolean").item<bool>(); }
const indexing::Slice& TensorIndex::slice() const { return get<indexing::Slice>("a slice"); }
const Tensor& TensorIndex::tensor() const { return get<Tensor>("a tensor"); }

}  // namespace indexing

namespace {

using namespace indexing;

// ---- index tensors --------------------------------------------------------------------------------------------------

// The index tensor of each dim, undefined where there is none; masks are resolved to positions.
struct DimIndices {
  Tensors of;  // one per dim of the tensor
  bool any() const {
    return std::any_of(of.begin(), of.end(), [](const Tensor& t) { return t.defined(); });
  }
};

// Puts the item `index` at dim `d` of a tensor of `shape`; returns the number of dims it takes. An item on the CPU
// serves tensors of any device.
int place_index(DimIndices& dims, const TensorImpl& x, int d, const Tensor& index, SourceLocation where) {
  const auto here = [&](const Tensor& t) {
    return t.device() == kCPU ? to(Operand(t, where), x.device()) : t;
  };
  if (index.dtype() != kBool) {
    dims.of[static_cast<size_t>(d)] = here(ops::as_index(index, "index", where));
    return 1;
  }
  const Shape& shape = x.shape();
  for (int i = 0; i < index.dim(); ++i)
    if (!(shape_of(index)[i] == shape[d + i]))
      fail(Category::shape_mismatch, "index",
           fmt::format("the mask is {}, the dims there are {}", describe(index), to_string(shape)), where);
  const Tensor positions = here(nonzero(Operand(index, where)));
  for (int i = 0; i < index.dim(); ++i)
    dims.of[static_cast<size_t>(d + i)] = select(Operand(positions, where), 1, i);
  return static_cast<int>(index.dim());
}

int dims_taken(const TensorIndex::Item& item) {
  if (const Tensor* t = std::get_if<Tensor>(&item))
    return t->dtype() == kBool ? static_cast<int>(t->dim()) : 1;
  return std::holds_alternative<int64_t>(item) || std::holds_alternative<Slice>(item) ? 1 : 0;
}

// The view that the integers, slices and new axes make, and the index tensors on its dims.
struct Resolved {
  Tensor view;
  DimIndices dims;
};

Resolved resolve(Operand x, const Indices& index, std::string_view op) {
  int taken = 0, ellipses = 0;
  for (const TensorIndex& each : index) {
    taken += dims_taken(each.item());
    ellipses += std::holds_alternative<EllipsisIndexType>(each.item());
  }
  if (ellipses > 1) fail(Category::bad_argument, op, "an index has one ellipsis at most", x.where());
  const int rank = x.tensor().impl().rank();
  if (taken > rank)
    fail(Category::bad_dim, op, fmt::format("{} indices for a tensor of {} dimensions", taken, rank),
         x.where());
  Tensor y = x.tensor();
  std::vector<std::pair<int, Tensor>> tensors;
  int d = 0;
  for (const TensorIndex& each : index) {
    const TensorIndex::Item& item = each.item();
    const Operand at(y, x.where());
    if (const int64_t* i = std::get_if<int64_t>(&item)) {
      y = select(at, d, *i);
    } else if (const Slice* s = std::get_if<Slice>(&item)) {
      std::optional<int64_t> start, stop;
      if (s->start() != 0) start = s->start();
      if (s->has_stop()) stop = s->stop();
      if (start || stop || s->step() != 1) y = slice(at, d, start, stop, s->step());
      ++d;
    } else if (std::holds_alternative<std::nullopt_t>(item)) {
      y = unsqueeze(at, d++);
    } else if (std::holds_alternative<EllipsisIndexType>(item)) {
      d += rank - taken;
    } else {
      Tensor t = std::get<Tensor>(item);
      if (t.dtype() == kBool && t.dim() == 0) {  // takes no dim: a mask of a new axis
        y = unsqueeze(at, d);
        t = reshape_to(Operand(t, x.where()), {1});
      }
      tensors.emplace_back(d, t);
      d += t.dtype() == kBool ? static_cast<int>(t.dim()) : 1;
    }
  }
  Resolved r{y, {Tensors(static_cast<size_t>(y.impl().rank()))}};
  for (const auto& [dim, t] : tensors) place_index(r.dims, y.impl(), dim, t, x.where());
  if (y.is_same(x.tensor()) && !r.dims.any()) r.view = alias(x);
  return r;
}

// ---- reading and writing at index tensors ---------------------------------------------------------------------------

// A tensor whose indexed dims are adjacent and treated as one dim.
class Indexed {
 public:
  Indexed(const Tensor& x, const DimIndices& dims, SourceLocation where) : where_(where) {
    Shape common;
    int last = -1;
    bool adjacent = true;
    for (int d = 0; d < static_cast<int>(dims.of.size()); ++d) {
      if (!dims.of[static_cast<size_t>(d)].defined()) continue;
      if (last >= 0 && d != last + 1) adjacent = false;
      if (last < 0) first_ = d;
      last = d;
      common = broadcast_shapes(common, shape_of(dims.of[static_cast<size_t>(d)]), "index");
      order_.push_back(d);
    }
    const auto count = static_cast<int>(order_.size());
    if (!adjacent) first_ = 0;
    order(static_cast<int>(dims.of.size()));
    x_ = permute(Operand(x, where), order_);
    find_flat_index(dims, common, count);
    set_shapes(common, count);
  }

  Tensor read() const {
    const Tensor flat = index_select(Operand(x_, where_), first_, index_);
    return reshape_to(Operand(flat, where_), result_);
  }

  Tensor write(const Tensor& values, bool accumulate) const {
    Shape rows = shape_of(x_);
    rows[first_] = shape_of(index_)[0];
    const Tensor source = reshape_to(Operand(expand_to(Operand(values, where_), result_), where_), rows);
    const Operand x(x_, where_);
    Tensor y = accumulate ? index_add(x, first_, index_, source) : index_copy(x, first_, index_, source);
    y = reshape_to(Operand(y, where_), permuted_);
    IntArray inverse(order_.size());
    for (size_t i = 0; i < order_.size(); ++i)
      inverse[static_cast<size_t>(order_[i])] = static_cast<int64_t>(i);
    return permute(Operand(y, where_), inverse);
  }

 private:
  // Puts the other dims around the indexed ones.
  void order(int rank) {
    IntArray indexed = std::move(order_);
    order_.clear();
    for (int d = 0; d < rank; ++d) {
      if (static_cast<int>(order_.size()) == first_)
        order_.insert(order_.end(), indexed.begin(), indexed.end());
      if (std::find(indexed.begin(), indexed.end(), d) == indexed.end()) order_.push_back(d);
    }
    if (static_cast<int>(order_.size()) < rank) order_.insert(order_.end(), indexed.begin(), indexed.end());
  }

  void find_flat_index(const DimIndices& dims, const Shape& common, int count) {
    ops::FlatIndex::Attrs attrs;
    Tensors held;
    std::vector<TensorImpl*> operands;
    for (int i = 0; i < count; ++i) {
      const int64_t d = order_[static_cast<size_t>(first_ + i)];
      held.push_back(expand_to(Operand(dims.of[static_cast<size_t>(d)], where_), common));
      operands.push_back(held.back().get());
      attrs.sizes.push_back(shape_of(x_)[first_ + i]);
    }
    Tensor block;
    Emitter::current().emit({&ops::info<ops::FlatIndex>, operands, &attrs, effective_location(where_), 1},
                            &block);
    index_ = flat(block, where_);
  }

  void set_shapes(const Shape& common, int count) {
    permuted_ = shape_of(x_);
    Shape joined;
    Dim block = 1;
    for (int i = 0; i < permuted_.rank(); ++i) {
      const bool indexed = i >= first_ && i < first_ + count;
      if (indexed) block *= permuted_[i];
      if (i == first_)
        for (Dim n : common) result_.push_back(n);
      if (!indexed) result_.push_back(permuted_[i]);
      if (!indexed || i == first_) joined.push_back(permuted_[i]);
    }
    joined[first_] = block;
    x_ = reshape_to(Operand(x_, where_), joined);
  }

  SourceLocation where_;
  Tensor x_, index_;  // x_: permuted, the indexed dims as one; index_: positions in that dim
  IntArray order_;    // dims of x in x_
  int first_ = 0;     // the indexed dim of x_
  Shape permuted_, result_;
};

// Leading dims of size 1 do not count in an assignment.
Tensor without_leading_ones(const Tensor& value, SourceLocation where) {
  Shape shape = shape_of(value);
  while (shape.rank() > 0 && shape[0] == 1) shape.erase(0);
  return shape == shape_of(value) ? value : reshape_to(Operand(value, where), shape);
}

}  // namespace

Tensor getitem(Operand x, const Indices& index) {
  const NamedCall call("getitem", x.where());
  const Resolved r = resolve(x, index, "getitem");
  return r.dims.any() ? Indexed(r.view, r.dims, x.where()).read() : r.view;
}

const Tensor& setitem_(const Tensor& self, const Indices& index, Operand value, bool accumulate) {
  const SourceLocation where = value.where();
  const NamedCall call("setitem_", where);
  const Resolved r = resolve(Operand(self, where), index, "setitem_");
  Tensor from;
  if (value.is_scalar())
    from = scalar_tensor(value.scalar(), {self.dtype(), self.device()}, where);
  else
    from = without_leading_ones(to(Operand(value.tensor(), where), self.dtype()), where);
  if (from.dim() == 0) from = to(Operand(from, where), self.device());
  if (r.dims.any()) {
    apply_inplace(
        r.view, [&](const Tensor& old) { return Indexed(old, r.dims, where).write(from, accumulate); },
        "index_put_", where);
  } else if (accumulate) {
    r.view.add_(Operand(from, where), 1, where);
  } else if (from.dim() == 0) {
    apply_inplace(
        r.view, [&](const Tensor& old) { return fill(Operand(old, where), Operand(from, where)); }, "fill_",
        where);
  } else {
    from = expand_to(Operand(from, where), shape_of(r.view));
    apply_inplace(
        r.view, [&](const Tensor& old) { return copy(Operand(old, where), from); }, "setitem_", where);
  }
  return self;
}

Tensor index_put(Operand input, const Tensors& indices, const Tensor& source, bool accumulate) {
  const NamedCall call("index_put", input.where());
  const ops::AutocastFunction cast(CastPolicy::promote, {&input.tensor(), &source});
  const Tensor into = cast(input), values = cast(source);
  const Operand x(into, input.where());
  if (values.dtype() != x.tensor().dtype())
    fail(Category::dtype_mismatch, "index_put",
         fmt::format("{} into {}", describe(values), describe(x.tensor())), x.where());
  Indices items;
  for (const Tensor& t : indices) {
    if (t.defined())
      items.emplace_back(t);
    else
      items.emplace_back(Slice{});
  }
  const Resolved r = resolve(x, items, "index_put");
  if (!r.dims.any()) return copy(x, values);
  return Indexed(r.view, r.dims, x.where()).write(values, accumulate);
}

Tensor take(Operand x, const Tensor& index) {
  const NamedCall call("take", x.where());
  const Tensor from = flat(x.tensor(), x.where()), i = ops::as_index(index, "take", x.where());
  return Indexed(from, {{i}}, x.where()).read();
}

Tensor take_along_dim(Operand x, const Tensor& indices, std::optional<int64_t> dim) {
  const NamedCall call("take_along_dim", x.where());
  if (indices.dtype() != kInt64)
    fail(Category::dtype_mismatch, "take_along_dim",
         fmt::format("indices must be int64, these are {}", describe(indices)), x.where());
  if (!dim) {
    const Tensor all = flat(x.tensor(), x.where()), index = flat(indices, x.where());
    return gather(Operand(all, x.where()), 0, ops::wrapped(index, shape_of(all)[0], x.where()));
  }
  Shape from = shape_of(x.tensor()), to = shape_of(indices);
  if (from.rank() != to.rank())
    fail(Category::bad_dim, "take_along_dim",
         fmt::format("{} and {}", describe(x.tensor()), describe(indices)), x.where());
  const int d = wrap_dim(*dim, from.rank(), "take_along_dim");
  const Dim n = from[d], k = to[d];
  from[d] = to[d] = 1;
  Shape common = broadcast_shapes(from, to, "take_along_dim");
  common[d] = n;
  const Tensor wide = expand_to(x, common);
  common[d] = k;
  const Tensor index = ops::wrapped(indices, n, x.where());
  return gather(Operand(wide, x.where()), d, expand_to(Operand(index, x.where()), common));
}

}  // namespace retrograd
