// Kernels of ops that read and write at positions held by another tensor (ops/index_ops.h, ops/embedding.h, FlatIndex).
//
// Two shapes of loop serve them all. gather and scatter go along lines: the elements of a dim, for one choice of the other dims; lines
// never meet, so they run in parallel and each one in order. The ops on whole entries see a tensor as [outer, entries, inner]; additions
// group the positions by the entry they name (Buckets) and each entry adds its own in order, in float32 for small formats.
// Every index is checked before anything is written.
#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "cpu/kernels/elementwise.h"
#include "cpu/kernels/layout.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/embedding.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"

namespace retrograd::cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements a chunk

/// x itself when it is row-major, else a row-major copy.
RefPtr<TensorImpl> dense(TensorImpl* x) {
  if (x->is_contiguous()) return RefPtr<TensorImpl>(x);
  RefPtr<TensorImpl> copy = TensorImpl::make();
  copy->set_type(x->dtype(), x->device(), x->shape());
  copy->allocate();
  convert_copy(*x, *copy);
  return copy;
}

void check_range(const Call& call, const TensorImpl& index, int64_t size) {
  const auto* p = static_cast<const int64_t*>(index.data());
  for (int64_t i = 0, n = index.numel().raw(); i < n; ++i)
    if (p[i] < 0 || p[i] >= size)
      fail_call(call, Category::index_out_of_range,
                fmt::format("index {} is out of range for {} entries", p[i], size));
}

// Calls f with a value of an unsigned type as wide as an element: for moves that do not look at values.
template <class F>
void by_width(size_t width, F&& f) {
  switch (width) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

template <class T>
using Accumulator = std::conditional_t<is_floating(dtype_of<T>()) && sizeof(T) < 4, float, T>;

// ---- lines -------------------------------------------------------------------------------------------------------------------------

// Calls f(index offset, a's offset, b's offset) for the first element of every line of `index` along `dim`.
template <class F>
void for_lines(const TensorImpl& index, int64_t dim, const TensorImpl& a, const TensorImpl& b, F&& f) {
  const int rank = index.rank();
  const int64_t n = index.numel().raw();
  if (n == 0) return;
  const int64_t length = index.shape()[static_cast<int>(dim)].raw();
  parallel_range(n / length, std::max<int64_t>(1, kGrain / length), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t rest = line, at_index = 0, at_a = 0, at_b = 0;
      for (int d = rank - 1; d >= 0; --d) {
        if (d == dim) continue;
        const int64_t size = index.shape()[d].raw(), i = rest % size;
        rest /= size;
        at_index += i * index.strides()[d];
        at_a += i * a.strides()[d];
        at_b += i * b.strides()[d];
      }
      f(at_index, at_a, at_b);
    }
  });
}

const int64_t* positions(const TensorImpl& index) { return static_cast<const int64_t*>(index.data()); }

void gather_lines(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const TensorImpl& x = *call.operands[0];
  if (outputs[0]->numel().raw() == 0) return;
  const RefPtr<TensorImpl> index = dense(call.operands[1]);
  TensorImpl& out = *outputs[0];
  check_range(call, *index, x.shape()[static_cast<int>(dim)].raw());
  const int64_t length = index->shape()[static_cast<int>(dim)].raw(), step = index->strides()[dim],
                x_step = x.strides()[dim];
  by_width(element_size(x.dtype()), [&]<class T>(T) {
    const T* from = static_cast<const T*>(x.data());
    T* to = static_cast<T*>(out.data());
    for_lines(*index, dim, x, out, [&](int64_t at_index, int64_t at_x, int64_t at_out) {
      const int64_t* p = positions(*index) + at_index;
      for (int64_t i = 0; i < length; ++i) to[at_out + i * step] = from[at_x + p[i * step] * x_step];
    });
  });
}

// out is a row-major copy of x; src elements go to their places in it through put(to, value).
template <class T, class Put>
void scatter_lines(const TensorImpl& index, int64_t dim, const TensorImpl& src, TensorImpl& out, Put&& put) {
  if (index.numel().raw() == 0) return;
  const int d = static_cast<int>(dim);
  const int64_t length = index.shape()[d].raw(), step = index.strides()[d], out_step = out.strides()[d],
                src_step = src.strides()[d];
  T* to = static_cast<T*>(out.data());
  const T* from = static_cast<const T*>(src.data());
  for_lines(index, dim, src, out, [&](int64_t at_index, int64_t at_src, int64_t at_out) {
    const int64_t* p = positions(index) + at_index;
    for (int64_t i = 0; i < length; ++i)
      put(to[at_out + p[i * step] * out_step], from[at_src + i * src_step]);
  });
}

// A cell of the shape of `like` that shows one number everywhere.
RefPtr<TensorImpl> constant(const TensorImpl& like, ScalarType dtype, Scalar value) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(dtype, like.device(), {});
  cell->allocate();
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    T v;
    if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(value.to_int());
    else
      v = static_cast<T>(value.to_double());
    *static_cast<T*>(cell->data()) = v;
  });
  cell->mutable_shape() = like.shape();
  std::fill_n(cell->mutable_strides(), like.rank(), 0);
  return cell;
}

void scatter_values(const Call& call, TensorImpl* const* outputs) {
  const ops::Scatter::Attrs& attrs = call.attrs_as<ops::Scatter::Attrs>();
  const RefPtr<TensorImpl> index = dense(call.operands[1]);
  TensorImpl& out = *outputs[0];
  check_range(call, *index, out.shape()[static_cast<int>(attrs.dim)].raw());
  const RefPtr<TensorImpl> src =
      call.operands[2] ? RefPtr<TensorImpl>(call.operands[2]) : constant(*index, out.dtype(), attrs.scalar);
  convert_copy(*call.operands[0], out);
  by_width(element_size(out.dtype()),
           [&]<class T>(T) { scatter_lines<T>(*index, attrs.dim, *src, out, [](T& to, T v) { to = v; }); });
}

// Small formats are summed in float32 and rounded once.
RefPtr<TensorImpl> widened(const TensorImpl& x, ScalarType dtype) {
  RefPtr<TensorImpl> wide = TensorImpl::make();
  wide->set_type(dtype, x.device(), x.shape());
  wide->allocate();
  convert_copy(x, *wide);
  return wide;
}

void scatter_add(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const RefPtr<TensorImpl> index = dense(call.operands[1]);
  TensorImpl& out = *outputs[0];
  check_range(call, *index, out.shape()[static_cast<int>(dim)].raw());
  const auto add = [](auto& to, auto v) { to = to + v; };
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<Accumulator<T>, T>) {
      convert_copy(*call.operands[0], out);
      scatter_lines<T>(*index, dim, *call.operands[2], out, add);
    } else {
      const RefPtr<TensorImpl> sum = widened(*call.operands[0], kFloat32),
                               src = widened(*call.operands[2], kFloat32);
      scatter_lines<float>(*index, dim, *src, *sum, add);
      convert_copy(*sum, out);
    }
  });
}

// ---- whole entries -----------------------------------------------------------------------------------------------------------------

// A row-major tensor as [outer, entries, inner].
struct Entries {
  int64_t outer = 1, entries, inner = 1;
  Entries(const Shape& shape, int64_t dim) : entries(shape[static_cast<int>(dim)].raw()) {
    for (int i = 0; i < shape.rank(); ++i)
      if (i != dim) (i < dim ? outer : inner) *= shape[i].raw();
  }
};

void index_select(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const RefPtr<TensorImpl> x = dense(call.operands[0]), index = dense(call.operands[1]);
  const Entries e(x->shape(), dim);
  check_range(call, *index, e.entries);
  const int64_t k = index->numel().raw(), bytes = e.inner * static_cast<int64_t>(element_size(x->dtype()));
  const char* from = static_cast<const char*>(x->data());
  char* to = static_cast<char*>(outputs[0]->data());
  if (bytes == 0) return;
  parallel_range(e.outer * k, std::max<int64_t>(1, kGrain / e.inner), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::memcpy(to + r * bytes, from + (r / k * e.entries + positions(*index)[r % k]) * bytes,
                  static_cast<size_t>(bytes));
  });
}

void index_copy(const Call& call, TensorImpl* const* outputs) {
  const int64_t dim = call.attrs_as<ops::DimAttrs>().dim;
  const RefPtr<TensorImpl> index = dense(call.operands[1]), source = dense(call.operands[2]);
  TensorImpl& out = *outputs[0];
  const Entries e(out.shape(), dim);
  check_range(call, *index, e.entries);
  convert_copy(*call.operands[0], out);
  const int64_t k = index->numel().raw(), bytes = e.inner * static_cast<int64_t>(element_size(out.dtype()));
  const char* from = static_cast<const char*>(source->data());
  char* to = static_cast<char*>(out.data());
  if (bytes == 0) return;
  for (int64_t o = 0; o < e.outer; ++o)
    for (int64_t j = 0; j < k; ++j)
      std::memcpy(to + (o * e.entries + positions(*index)[j]) * bytes, from + (o * k + j) * bytes,
                  static_cast<size_t>(bytes));
}

// Which positions name an entry, in order: begin[r] .. begin[r + 1] of `order`. Positions with the index `skip` are left out.
struct Buckets {
  std::vector<int64_t> begin, order;

  Buckets(const int64_t* index, int64_t count, int64_t entries, int64_t skip = -1)
      : begin(static_cast<size_t>(entries) + 1) {
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skip) ++begin[static_cast<size_t>(index[i]) + 1];
    for (size_t r = 1; r < begin.size(); ++r) begin[r] += begin[r - 1];
    order.resize(static_cast<size_t>(begin.back()));
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skip) order[static_cast<size_t>(next[static_cast<size_t>(index[i])]++)] = i;
  }
  int64_t count(int64_t entry) const {
    return begin[static_cast<size_t>(entry) + 1] - begin[static_cast<size_t>(entry)];
  }
};

// to[o, r, :] += the source entries of r's bucket, divided by their number when `mean`.
template <class T>
void add_entries(const Buckets& buckets, const Entries& e, int64_t k, const T* source, T* to, bool mean) {
  using A = Accumulator<T>;
  parallel_range(e.outer * e.entries, std::max<int64_t>(1, kGrain / std::max<int64_t>(e.inner, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<A> sum(static_cast<size_t>(e.inner));
                   for (int64_t r = begin; r < end; ++r) {
                     const int64_t entry = r % e.entries, o = r / e.entries, n = buckets.count(entry);
                     if (n == 0) continue;
                     T* row = to + r * e.inner;
                     for (int64_t i = 0; i < e.inner; ++i)
                       sum[static_cast<size_t>(i)] = static_cast<A>(row[i]);
                     for (int64_t b = buckets.begin[static_cast<size_t>(entry)];
                          b < buckets.begin[static_cast<size_t>(entry) + 1]; ++b) {
                       const T* from = source + (o * k + buckets.order[static_cast<size_t>(b)]) * e.inner;
                       for (int64_t i = 0; i < e.inner; ++i)
                         sum[static_cast<size_t>(i)] = sum[static_cast<size_t>(i)] + static_cast<A>(from[i]);
                     }
                     for (int64_t i = 0; i < e.inner; ++i)
                       row[i] = static_cast<T>(mean ? sum[static_cast<size_t>(i)] / static_cast<A>(n)
                                                    : sum[static_cast<size_t>(i)]);
                   }
                 });
}

void add_at(const Call& call, const TensorImpl& index, const TensorImpl& source, const Entries& e,
            TensorImpl& out, int64_t skip = -1, bool mean = false) {
  check_range(call, index, e.entries);
  const Buckets buckets(positions(index), index.numel().raw(), e.entries, skip);
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    add_entries<T>(buckets, e, index.numel().raw(), static_cast<const T*>(source.data()),
                   static_cast<T*>(out.data()), mean);
  });
}

void clear(TensorImpl& out) {
  std::memset(out.data(), 0, static_cast<size_t>(out.numel().raw()) * element_size(out.dtype()));
}

void index_add(const Call& call, TensorImpl* const* outputs) {
  const RefPtr<TensorImpl> index = dense(call.operands[1]), source = dense(call.operands[2]);
  convert_copy(*call.operands[0], *outputs[0]);
  add_at(call, *index, *source, Entries(outputs[0]->shape(), call.attrs_as<ops::DimAttrs>().dim),
         *outputs[0]);
}

void index_select_backward(const Call& call, TensorImpl* const* outputs) {
  const RefPtr<TensorImpl> g = dense(call.operands[0]), index = dense(call.operands[1]);
  clear(*outputs[0]);
  add_at(call, *index, *g, Entries(outputs[0]->shape(), call.attrs_as<ops::IndexSelectBackward::Attrs>().dim),
         *outputs[0]);
}

// ---- embedding ---------------------------------------------------------------------------------------------------------------------

void embedding(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingAttrs>();
  const RefPtr<TensorImpl> index = dense(call.operands[0]), weight = dense(call.operands[1]);
  const int64_t rows = weight->shape()[0].raw(), width = weight->shape()[1].raw(), k = index->numel().raw();
  check_range(call, *index, rows);
  dispatch(weight->dtype(), [&]<class T>(std::type_identity<T>) {
    const T* from = static_cast<const T*>(weight->data());
    T* to = static_cast<T*>(outputs[0]->data());
    parallel_range(k, std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t row = positions(*index)[i];
                       if (a.without_padding && row == a.padding_idx)
                         std::fill_n(to + i * width, width, T(0));
                       else
                         std::copy_n(from + row * width, width, to + i * width);
                     }
                   });
  });
}

void embedding_backward(const Call& call, TensorImpl* const* outputs) {
  const ops::EmbeddingAttrs& a = call.attrs_as<ops::EmbeddingBackward::Attrs>().embedding;
  const RefPtr<TensorImpl> index = dense(call.operands[0]), g = dense(call.operands[1]);
  clear(*outputs[0]);
  add_at(call, *index, *g, Entries(outputs[0]->shape(), 0), *outputs[0], a.padding_idx, a.scale_grad_by_freq);
}

// ---- masked_fill and flat_index ----------------------------------------------------------------------------------------------------

void masked_fill(const Call& call, TensorImpl* const* outputs) {
  TensorImpl& out = *outputs[0];
  const RefPtr<TensorImpl> x = dense(call.operands[0]), mask = dense(call.operands[1]);
  const Scalar number = call.attrs_as<ops::MaskedFill::Attrs>().scalar;
  const RefPtr<TensorImpl> value =
      call.operands[2] ? dense(call.operands[2]) : constant(out, out.dtype(), number);
  const int64_t step = call.operands[2] ? 1 : 0, n = out.numel().raw();
  const bool* m = static_cast<const bool*>(mask->data());
  by_width(element_size(out.dtype()), [&]<class T>(T) {
    const T *from = static_cast<const T*>(x->data()), *v = static_cast<const T*>(value->data());
    T* to = static_cast<T*>(out.data());
    parallel_range(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = m[i] ? v[i * step] : from[i];
    });
  });
}

void flat_index(const Call& call, TensorImpl* const* outputs) {
  const Shape& sizes = call.attrs_as<ops::FlatIndex::Attrs>().sizes;
  TensorImpl& out = *outputs[0];
  auto* to = static_cast<int64_t*>(out.data());
  const int64_t n = out.numel().raw();
  std::fill_n(to, n, 0);
  for (size_t k = 0; k < call.operands.size(); ++k) {
    const RefPtr<TensorImpl> index = dense(call.operands[k]);
    const int64_t size = sizes[static_cast<int>(k)].raw();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t p = positions(*index)[i];
      if (p < -size || p >= size)
        fail_call(call, Category::index_out_of_range,
                  fmt::format("index {} is out of range for {} entries", p, size));
      to[i] = to[i] * size + (p < 0 ? p + size : p);
    }
  }
}

}  // namespace

void add_index_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Gather>, gather_lines);
  table.set(&ops::info<ops::Scatter>, scatter_values);
  table.set(&ops::info<ops::ScatterAdd>, scatter_add);
  table.set(&ops::info<ops::IndexSelect>, index_select);
  table.set(&ops::info<ops::IndexSelectBackward>, index_select_backward);
  table.set(&ops::info<ops::IndexAdd>, index_add);
  table.set(&ops::info<ops::IndexCopy>, index_copy);
  table.set(&ops::info<ops::MaskedFill>, masked_fill);
  table.set(&ops::info<ops::FlatIndex>, flat_index);
  table.set(&ops::info<ops::Embedding>, embedding);
  table.set(&ops::info<ops::EmbeddingBackward>, embedding_backward);
}

}  // namespace retrograd::cpu
