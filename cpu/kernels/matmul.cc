// Matrix products on the CPU: operands become MatrixViews for cpu/gemm/gemm.h.
//
// Factor is an operand as matrices in its last two dims, Result the output in the type that it is computed
// in. float16 and bfloat16 operands are converted to float32, multiplied, and the result is rounded once;
// where the machine multiplies bfloat16 itself, larger ones are taken as they are. Integers have a plain loop
// of their own. Batch dims are turned into a list of offsets, in row-major order.
#include "ops/matmul.h"

#include <optional>

#include "cpu/gemm/gemm.h"
#include "cpu/kernels/layout.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::inline v0::cpu {
namespace {

// A factor of a product: matrices in the last two dims, batch dims before them.
struct Factor {
  LocalCopy cell;
  int64_t rows, columns, row, column;  // sizes and strides

  Factor(TensorImpl& x, ScalarType dtype) : Factor(x, dtype, x.dtype() != dtype) {}
  Factor(TensorImpl& x, ScalarType dtype, bool copied) : cell(&x, dtype, copied) {
    const int r = x.rank();
    rows = r < 2 ? 1 : x.shape()[r - 2].raw();
    columns = r < 1 ? 1 : x.shape()[r - 1].raw();
    row = r < 2 ? 0 : cell->strides()[r - 2];
    column = r < 1 ? 0 : cell->strides()[r - 1];
  }
  void transpose() {
    std::swap(rows, columns);
    std::swap(row, column);
  }
  /// The stride of a dim of size 1 has no meaning, and must not decide how a product is cut: it is set to 0, like
  /// that of a missing dim.
  template <class T>
  MatrixView<T> view() const {
    return {static_cast<const T*>(cell->data()), rows == 1 ? 0 : row, columns == 1 ? 0 : column};
  }
};

// Integer arithmetic wraps around.
void gemm(const Gemm<int64_t>& g) {
  if (measuring()) return;
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      const int64_t *a = g.a.data + i * g.a.row, *b = g.b.data + j * g.b.column;
      uint64_t sum = 0;
      for (int64_t l = 0; l < g.k; ++l)
        sum += static_cast<uint64_t>(a[l * g.a.column]) * static_cast<uint64_t>(b[l * g.b.row]);
      int64_t& c = g.c[i * g.c_row + j];
      const int64_t start = g.start ? g.start[i * g.start_row + j] : g.accumulate ? c : 0;
      c = static_cast<int64_t>(static_cast<uint64_t>(start) + static_cast<uint64_t>(g.alpha) * sum);
    }
}

void gemm_batched(const Gemm<int64_t>& first, std::span<const BatchOffsets> offsets) {
  if (measuring()) return;  // there are no offsets, and it takes no scratch
  for (const BatchOffsets& at : offsets) {
    Gemm<int64_t> g = first;
    g.a.data += at.a;
    g.b.data += at.b;
    g.c += at.c;
    gemm(g);
  }
}

// The type in which the factors of a product of dtype `dtype` with m rows and n columns are read.
ScalarType factor_type(ScalarType dtype, int64_t m, int64_t n) {
  return dtype == kBFloat16 && multiplies_bfloat16(m, n) ? kBFloat16 : compute_type(dtype);
}
ScalarType factor_type(const TensorImpl& a, const TensorImpl& b) {
  const auto size = [](const TensorImpl& x, int from_last) {
    return x.rank() < from_last ? 1 : x.shape()[x.rank() - from_last].raw();
  };
  return b.rank() < 2 ? compute_type(a.dtype()) : factor_type(a.dtype(), size(a, 2), size(b, 1));
}

// Calls f(std::type_identity<T>{}) with the type of factors.
template <class F>
void with_factor_type(ScalarType type, F&& f) {
  if (type == kBFloat16)
    f(std::type_identity<BFloat16>{});
  else
    dispatch_compute(type, f);
}

// The result of a product, in the compute type, and then in its own. Products of bfloat16 factors are rounded as they
// are computed; then there are sums only for a k of several parts, or where the sums start from something.
class Result {
 public:
  Result(TensorImpl& out, ScalarType factors, int64_t k, bool starts = false)
      : rounded_(factors == kBFloat16 && k > 0 && out.is_contiguous() ? &out : nullptr) {
    if (!rounded_)
      whole_.emplace(out, compute_type(out.dtype()));
    else if (starts || sums_in_parts(k))
      sums_.emplace(kFloat32, out.shape());
  }
  /// Null if there are none.
  TensorImpl* sums_tensor() const { return whole_ ? &**whole_ : sums_ ? &**sums_ : nullptr; }
  template <class Sum>
  Sum* sums() const {
    TensorImpl* const sums = sums_tensor();
    return sums ? static_cast<Sum*>(sums->data()) : nullptr;
  }
  BFloat16* rounded() const { return rounded_ ? static_cast<BFloat16*>(rounded_->data()) : nullptr; }
  void finish() const {
    if (whole_) whole_->finish();
  }

 private:
  TensorImpl* rounded_;
  std::optional<LocalResult> whole_;
  std::optional<LocalTensor> sums_;
};

// Dims before the last two are counted in row-major order.
template <class T>
void multiply_batch(Gemm<T> first, const Factor& a, const Factor& b) {
  const uint64_t dims = (uint64_t{1} << (a.cell->rank() - 2)) - 1;
  const Layout left(*a.cell, dims), right(*b.cell, dims);
  const int64_t count = left.numel();
  const Scratch<BatchOffsets> offsets(count);
  for (int64_t i = 0; i < count && !measuring(); ++i)
    offsets[i] = {left.offset(i), right.offset(i), i * first.m * first.n};
  gemm_batched(first, {offsets.data(), static_cast<size_t>(count)});
}

// c (+)= alpha * a b, where c is what `first` has of a product.
template <class T>
void multiply(const Factor& a, const Factor& b, Gemm<T> first) {
  first.m = a.rows;
  first.n = first.c_row = first.rounded_row = b.columns;
  first.k = a.columns;
  first.a = a.view<T>();
  first.b = b.view<T>();
  if (a.cell->rank() == 2)
    gemm(first);
  else
    multiply_batch(first, a, b);
}

void product_kernel(const Call& call, TensorImpl* const* outputs) {
  const ScalarType factors = factor_type(*call.operands[0], *call.operands[1]);
  const Factor a(*call.operands[0], factors);
  Factor b(*call.operands[1], factors);
  if (call.operands[1]->rank() == 1) b.transpose();  // mv: a column
  const Result result(*outputs[0], factors, a.columns);
  with_factor_type(factors, [&]<class T>(std::type_identity<T>) {
    Gemm<T> product{};
    product.c = result.sums<typename Gemm<T>::Sum>();
    product.rounded = result.rounded();
    multiply(a, b, product);
  });
  result.finish();
}

void dot_kernel(const Call& call, TensorImpl* const* outputs) {
  const ScalarType type = compute_type(outputs[0]->dtype());
  const LocalResult result(*outputs[0], type);
  const Factor a(*call.operands[0], type), b(*call.operands[1], type);
  dispatch_compute(type, [&]<class T>(std::type_identity<T>) {
    T& out = *static_cast<T*>(result->data());
    const MatrixView<T> x = a.view<T>(), y = b.view<T>();
    if constexpr (std::is_same_v<T, int64_t>) {
      gemm(Gemm<T>{1, 1, a.columns, x, {y.data, y.column, 0}, &out, 1});
    } else {
      const T sum = dot(x.data, x.column, y.data, y.column, a.columns);
      if (!measuring()) out = sum;
    }
  });
  result.finish();
}

// out = beta * start; out is contiguous.
template <class T>
void scaled_copy(const TensorImpl& start, T beta, TensorImpl& out) {
  const bool in_place = !start.is_contiguous();
  if (in_place) convert_copy(start, out);
  const auto load = convert_table<T>().load[static_cast<int>(start.dtype())];
  const char* const from = static_cast<const char*>(start.data());
  const int64_t size = static_cast<int64_t>(element_size(start.dtype()));
  T* const to = static_cast<T*>(out.data());
  parallel_range(out.numel().raw(), kRowGrain, [&](int64_t begin, int64_t end) {
    if (!in_place) load(from + begin * size, 1, end - begin, to + begin);
    if (beta == T(1)) return;
    for (int64_t i = begin; i < end; ++i) to[i] *= beta;
  });
}

void add_product_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::AddProduct::Attrs>();
  const ScalarType factors = factor_type(*call.operands[1], *call.operands[2]);
  Factor a(*call.operands[1], factors);
  const Factor b(*call.operands[2], factors);
  if (!measuring() && attrs.alpha == Scalar(0))
    a.columns = 0;  // no product at all: a nan in it plays no role
  const bool starts = !(attrs.beta == Scalar(0));
  const Result result(*outputs[0], factors, a.columns, starts);
  with_factor_type(factors, [&]<class T>(std::type_identity<T>) {
    using Sum = typename Gemm<T>::Sum;
    const auto number = [](Scalar x) {
      return std::is_same_v<Sum, int64_t> ? static_cast<Sum>(x.to_int()) : static_cast<Sum>(x.to_double());
    };
    if (starts && !measuring()) scaled_copy(*call.operands[0], number(attrs.beta), *result.sums_tensor());
    Gemm<T> product{};
    product.c = result.sums<Sum>();
    product.rounded = result.rounded();
    product.alpha = number(attrs.alpha);
    product.accumulate = starts;
    multiply(a, b, product);
  });
  result.finish();
}

bool is_tall(const TensorImpl& x) { return Layout(x, (uint64_t{1} << (x.rank() - 1)) - 1).rank == 1; }

// (..., k) as one matrix with rows at equal distances, copied where memory does not allow it.
struct TallFactor : Factor {
  TallFactor(TensorImpl& x, ScalarType type) : Factor(x, type, x.dtype() != type || !is_tall(x)) {
    const Layout all(*cell, (uint64_t{1} << (x.rank() - 1)) - 1);
    rows = all.numel();
    row = all.stride[0];
  }
};

void linear_kernel(const Call& call, TensorImpl* const* outputs) {
  const ScalarType type = compute_type(outputs[0]->dtype());
  TensorImpl& w = *call.operands[1];
  const int64_t n = w.shape()[0].raw();
  const ScalarType factors = factor_type(w.dtype(), outputs[0]->numel().raw() / std::max<int64_t>(n, 1), n);
  const TallFactor x(*call.operands[0], factors);
  Factor weight(w, factors);
  weight.transpose();
  const LocalCopy bias(call.operands[2], type);
  const Result result(*outputs[0], factors, x.columns);
  with_factor_type(factors, [&]<class T>(std::type_identity<T>) {
    using Sum = typename Gemm<T>::Sum;
    gemm(Gemm<T>{.m = x.rows,
                 .n = n,
                 .k = x.columns,
                 .a = x.view<T>(),
                 .b = weight.view<T>(),
                 .c = result.sums<Sum>(),
                 .c_row = n,
                 .start = bias.values<const Sum>(),
                 .rounded = result.rounded(),
                 .rounded_row = n});
  });
  result.finish();
}

}  // namespace

void add_matmul_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Mm>, product_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Bmm>, product_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Mv>, product_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Dot>, dot_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Addmm>, add_product_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Baddbmm>, add_product_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::Linear>, linear_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
