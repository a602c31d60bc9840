// See ops/creation.h. The only op is `full`; everything else copies host data or makes views of its result.
#include "ops/creation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "engine/recording.h"
#include "engine/runner.h"
#include "ops/arithmetic.h"
#include "ops/full.h"
#include "ops/scan.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

void check_type(const Shape& size, ScalarType dtype, std::string_view op, SourceLocation where) {
  if (dtype == ScalarType::Undefined) fail(Category::bad_argument, op, "the dtype is undefined", where);
  for (Dim d : size)
    if (d.hint() < 0)
      fail(Category::bad_argument, op, fmt::format("a size is negative: {}", to_string(size)), where);
  if (!size.is_symbolic()) size.numel();
}

Tensor finish(Tensor t, const TensorOptions& options, SourceLocation where) {
  if (!(t.device() == options.device())) t = to(Operand(t, where), options.device());
  if (options.requires_grad()) t.requires_grad_(true, where);
  return t;
}

// Of memory that the host fills. A recorded function makes it anew in each run, since it may write to it or return it.
Tensor finish_host(Tensor t, const TensorOptions& options, SourceLocation where) {
  if (FunctionRecording* const function = recorded_function(); function && t.device() == options.device()) {
    const Tensor values = std::exchange(t, t.clone(where));
    function->made_of_host_values(t, values);
  }
  return finish(std::move(t), options, where);
}

// The dtype of a tensor of such numbers.
ScalarType dtype_of(Scalar value) {
  switch (value.kind()) {
    case Number::Kind::Bool: return kBool;
    case Number::Kind::Int: return kInt64;
    case Number::Kind::Float: break;
  }
  return get_default_dtype();
}

template <class T>
T converted(double v) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<T>(truncated(v));
  else
    return static_cast<T>(v);
}
template <class T>
T converted(int64_t v) {
  return static_cast<T>(v);
}

// As the Taper does with what ops compute.
void mark_in_inference_mode(TensorImpl& cell) {
  if (InferenceMode::is_enabled() && cell.storage()) cell.storage()->mark_inference();
}

Tensor fresh(const Shape& size, const TensorOptions& options, std::string_view op, SourceLocation where) {
  check_type(size, options.dtype(), op, where);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(options.dtype(), kCPU, size);
  cell->allocate();
  mark_in_inference_mode(*cell);
  return Tensor(std::move(cell));
}

}  // namespace

Tensor full(const Shape& size, Scalar value, TensorOptions options, SourceLocation where) {
  const NamedCall call("full", where);
  options = options.or_else(dtype_of(value));
  check_type(size, options.dtype(), "full", where);
  return finish(ops::emit<ops::Full>({}, {size, value, options.dtype(), options.device()}, where), options,
                where);
}

Tensor full(const Shape& size, Scalar value, SourceLocation where) {
  return full(size, value, TensorOptions(), where);
}

Tensor zeros(const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("zeros", where);
  return full(size, 0, options.dtype(options.dtype()), where);
}
Tensor ones(const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("ones", where);
  return full(size, 1, options.dtype(options.dtype()), where);
}
Tensor scalar_tensor(Scalar value, TensorOptions options, SourceLocation where) {
  const NamedCall call("scalar_tensor", where);
  return full({}, value, options.dtype(options.dtype()), where);
}

Tensor empty(const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("empty", where);
  // Not every byte is a bool; no memory yet for a size that is a symbol; memory that the host cannot fill.
  const bool is_recorded = recorded_function();
  if (options.dtype() == kBool || size.is_symbolic() || (is_recorded && options.device() != kCPU))
    return zeros(size, options, where);
  check_type(size, options.dtype(), "empty", where);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(options.dtype(), options.device(), size);
  executor_of(options.device()).allocate(*cell);
  if (is_recorded && cell->data())  // another recording of the same function sees the same values
    std::memset(cell->data(), 0, cell->storage()->nbytes());
  mark_in_inference_mode(*cell);
  return finish_host(Tensor(std::move(cell)), options, where);
}

namespace {

template <class From>
Tensor tensor_of(const std::vector<From>& values, const Shape& size, TensorOptions options,
                 SourceLocation where) {
  // As many values as there are fix a size that is a symbol.
  Tensor t = fresh(size.is_symbolic() ? Shape(size.ints()) : size, options, "tensor", where);
  if (static_cast<int64_t>(values.size()) != t.numel())
    fail(Category::shape_mismatch, "tensor",
         fmt::format("{} values for a tensor of shape {}", values.size(), to_string(size)), where);
  dispatch(options.dtype(), [&]<class T>(std::type_identity<T>) {
    std::transform(values.begin(), values.end(), static_cast<T*>(t.raw_data(where)),
                   [](From v) { return converted<T>(v); });
  });
  return finish_host(std::move(t), options, where);
}

}  // namespace

Tensor tensor(const std::vector<double>& values, const Shape& size, TensorOptions options,
              SourceLocation where) {
  const NamedCall call("tensor", where);
  return tensor_of(values, size, options, where);
}

template <std::same_as<int64_t> T>
Tensor tensor(const std::vector<T>& values, const Shape& size, TensorOptions options, SourceLocation where) {
  const NamedCall call("tensor", where);
  return tensor_of(values, size, options.or_else(kInt64), where);
}
template Tensor tensor(const std::vector<int64_t>&, const Shape&, TensorOptions, SourceLocation);

namespace {

// A vector whose element i is value(i), converted.
template <class F>
Tensor sequence(int64_t n, const TensorOptions& options, std::string_view op, SourceLocation where,
                const F& value) {
  Tensor t = fresh({n}, options, op, where);
  dispatch(options.dtype(), [&]<class T>(std::type_identity<T>) {
    T* to = static_cast<T*>(t.raw_data(where));
    for (int64_t i = 0; i < n; ++i) to[i] = converted<T>(value(i));
  });
  return finish_host(std::move(t), options, where);
}

// out[i] = from + by * i, for a T that one instruction per register converts from I.
template <class T, class I>
void count_up(T* out, int64_t n, I from, I by) {
  using U = std::make_unsigned_t<I>;  // after the last element it may overflow
  constexpr int kLanes = 16 / sizeof(I);
  typedef U Steps __attribute__((vector_size(16)));
  typedef I Numbers __attribute__((vector_size(16)));
  typedef T Values __attribute__((vector_size(kLanes * sizeof(T))));
  Steps next;
  for (int i = 0; i < kLanes; ++i) next[i] = static_cast<U>(from) + static_cast<U>(by) * static_cast<U>(i);
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes, next += static_cast<U>(by) * U{kLanes}) {
    const Values values = __builtin_convertvector(reinterpret_cast<Numbers>(next), Values);
    std::memcpy(out + at, &values, sizeof(values));
  }
  for (int i = 0; at < n; ++at, ++i) out[at] = static_cast<T>(static_cast<I>(next[i]));
}

// out[i] = from + step * (first + i), in loops without conversions of 64-bit integers, and with a length known to the
// compiler.
void fill_line(float* out, int64_t n, double from, double step, int64_t first) {
  constexpr int kRun = 16;
  int64_t at = 0;
  for (; at + kRun <= n; at += kRun) {
    const double place = static_cast<double>(first + at);
#pragma GCC unroll 16
    for (int i = 0; i < kRun; ++i) out[at + i] = static_cast<float>(from + step * (place + i));
  }
  for (; at < n; ++at) out[at] = static_cast<float>(from + step * static_cast<double>(first + at));
}

// The points of linear_point().
Tensor linspace_floats(double start, double end, int64_t steps, const TensorOptions& options,
                       SourceLocation where) {
  Tensor t = fresh({steps}, options, "linspace", where);
  float* const out = static_cast<float*>(t.raw_data(where));
  const double step = (end - start) / static_cast<double>(steps - 1);
  const int64_t half = steps / 2;
  fill_line(out, half, start, step, 0);
  fill_line(out + half, steps - half, end, step, half - (steps - 1));
  return finish_host(std::move(t), options, where);
}

// n integers from `from` on, in steps of `by`. 32-bit ones become float32 directly.
Tensor count_integers(int64_t n, int64_t from, int64_t by, const TensorOptions& options,
                      SourceLocation where) {
  constexpr int64_t least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();
  const int64_t last = n > 0 ? from + by * (n - 1) : from;
  const bool is_narrow =
      std::min(from, last) >= least && std::max(from, last) <= most && by >= least && by <= most;
  if (options.dtype() != kInt64 && !(options.dtype() == kFloat32 && is_narrow))
    return sequence(n, options, "arange", where, [&](int64_t i) { return from + by * i; });
  Tensor t = fresh({n}, options, "arange", where);
  if (options.dtype() == kInt64)
    count_up(static_cast<int64_t*>(t.raw_data(where)), n, from, by);
  else
    count_up(static_cast<float*>(t.raw_data(where)), n, static_cast<int32_t>(from), static_cast<int32_t>(by));
  return finish_host(std::move(t), options, where);
}

int64_t difference(int64_t a, int64_t b, SourceLocation where) {
  int64_t d;
  if (__builtin_sub_overflow(a, b, &d))
    fail(Category::bad_argument, "arange", fmt::format("{} and {} are too far apart", b, a), where);
  return d;
}

// The number of steps from start to end.
int64_t count_steps(Scalar start, Scalar end, Scalar step, bool floating, SourceLocation where) {
  const double from = start.to_double(), to = end.to_double(), by = step.to_double();
  if (by == 0) fail(Category::bad_argument, "arange", "the step is zero", where);
  if (by > 0 ? from > to : to > from)
    fail(Category::bad_argument, "arange", fmt::format("steps of {} from {} never reach {}", by, from, to),
         where);
  const double n = std::ceil((to - from) / by);
  if (!(n < 0x1p62))
    fail(Category::bad_argument, "arange", fmt::format("{} to {} by {}", from, to, by), where);
  if (floating) return static_cast<int64_t>(n);
  const int64_t stride = step.to_int(), span = difference(end.to_int(), start.to_int(), where);
  return span / stride + (span % stride != 0);
}

// Point i of linspace, computed from the nearer end: so both ends are exact.
double linear_point(double start, double end, int64_t steps, int64_t i) {
  if (steps == 1) return start;
  const double step = (end - start) / static_cast<double>(steps - 1);
  return i < steps / 2 ? start + step * static_cast<double>(i)
                       : end - step * static_cast<double>(steps - 1 - i);
}

void check_space(std::string_view op, int64_t steps, const TensorOptions& options, SourceLocation where) {
  if (steps < 0) fail(Category::bad_argument, op, fmt::format("{} steps", steps), where);
  if (options.dtype() == kBool || is_float8(options.dtype()))
    fail(Category::dtype_mismatch, op, fmt::format("it is not defined for {}", name(options.dtype())), where);
}

// The entries of a matrix on one side of a diagonal, including the diagonal. The rows from `begin` to before `end` have
// entries: from the corner on, each row has one more than its neighbour, up to all columns.
struct Triangle {
  int64_t col, offset, begin, end;
  bool upper;

  Triangle(int64_t row, int64_t col, int64_t diagonal, bool upper)
      : col(col), offset(std::clamp(diagonal, -row, col)), upper(upper) {
    begin = upper ? 0 : std::max<int64_t>(-offset, 0);
    end = col == 0 ? begin : upper ? std::clamp<int64_t>(col - offset, 0, row) : row;
  }
  // The columns of row r, from first(r) to before last(r).
  int64_t first(int64_t r) const { return upper ? std::max<int64_t>(r + offset, 0) : 0; }
  int64_t last(int64_t r) const { return upper ? col : std::min(r + offset + 1, col); }

  int64_t count() const {
    if (begin >= end) return 0;
    const int64_t rows = end - begin, corner = upper ? end - 1 : begin, fewest = last(corner) - first(corner),
                  growing = std::min(rows, col - fewest);
    return (Dim(growing) * fewest + Dim(growing) * (growing - 1) / 2 + Dim(rows - growing) * col).value();
  }
};

Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool upper, const TensorOptions& options,
                        SourceLocation where) {
  const std::string_view op = upper ? "triu_indices" : "tril_indices";
  constexpr int64_t kMost = int64_t{1} << 48;
  if (row < 0 || col < 0 || row > kMost || col > kMost)
    fail(Category::bad_argument, op, fmt::format("a size is negative or too large: {}, {}", row, col), where);
  if (options.dtype() != kInt64 && options.dtype() != kInt32)
    fail(Category::dtype_mismatch, op, fmt::format("it is not defined for {}", name(options.dtype())), where);
  const Triangle triangle(row, col, offset, upper);
  const int64_t n = triangle.count();
  Tensor t = fresh({2, n}, options, op, where);
  dispatch(options.dtype(), [&]<class T>(std::type_identity<T>) {
    T *rows = static_cast<T*>(t.raw_data(where)), *columns = rows + n;
    for (int64_t r = triangle.begin; r < triangle.end; ++r)
      for (int64_t c = triangle.first(r); c < triangle.last(r); ++c) {
        *rows++ = static_cast<T>(r);
        *columns++ = static_cast<T>(c);
      }
  });
  return finish_host(std::move(t), options, where);
}

}  // namespace

namespace {

Dim as_dim(Scalar s) { return s.is_symbolic() ? Dim::symbol(s.id()) : Dim(s.to_int()); }

// Steps upward between bounds that are symbols of a recording: a running sum of ones, whose length is a symbol, too.
Tensor counted_up(Scalar start, Scalar end, int64_t step, const TensorOptions& options,
                  SourceLocation where) {
  const Dim n = (as_dim(end) - as_dim(start) + (step - 1)) / step;
  const Tensor one = ones({n}, {kInt64, options.device()}, where);
  const Tensor count = cumsum(Operand(one, where), 0);
  const Tensor from_one = mul(Operand(count, where), Operand(Scalar(step), where));
  const Tensor at = add(Operand(from_one, where), Operand(start - Scalar(step), where));
  return finish(to(Operand(at, where), options.dtype()), options, where);
}

bool are_symbolic(Scalar start, Scalar end, Scalar step) {
  return (start.is_symbolic() || end.is_symbolic()) && !step.is_symbolic() && step.to_int() > 0 &&
         as_dim(start).hint() < as_dim(end).hint();
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, std::optional<TensorOptions> options,
              SourceLocation where) {
  const NamedCall call("arange", where);
  const bool floating = start.is_floating() || end.is_floating() || step.is_floating();
  const TensorOptions o = options.value_or(TensorOptions()).or_else(floating ? get_default_dtype() : kInt64);
  if (!floating && are_symbolic(start, end, step)) return counted_up(start, end, step.to_int(), o, where);
  const int64_t n = count_steps(start, end, step, floating, where);
  if (!floating) return count_integers(n, start.to_int(), step.to_int(), o, where);
  const double from = start.to_double(), by = step.to_double();
  if (o.dtype() == kFloat32) {
    Tensor t = fresh({n}, o, "arange", where);
    fill_line(static_cast<float*>(t.raw_data(where)), n, from, by, 0);
    return finish(std::move(t), o, where);
  }
  return sequence(n, o, "arange", where, [&](int64_t i) { return from + by * static_cast<double>(i); });
}

Tensor arange(Scalar start, Scalar end, TensorOptions options, SourceLocation where) {
  const NamedCall call("arange", where);
  return arange(start, end, 1, options, where);
}

Tensor arange(Scalar end, std::optional<TensorOptions> options, SourceLocation where) {
  const NamedCall call("arange", where);
  return arange(0, end, 1, options, where);
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, TensorOptions options, SourceLocation where) {
  const NamedCall call("linspace", where);
  check_space("linspace", steps, options, where);
  const double from = start.to_double(), to = end.to_double();
  if (options.dtype() == kFloat32 && steps > 1) return linspace_floats(from, to, steps, options, where);
  return sequence(steps, options, "linspace", where,
                  [&](int64_t i) { return linear_point(from, to, steps, i); });
}

Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, TensorOptions options,
                SourceLocation where) {
  const NamedCall call("logspace", where);
  check_space("logspace", steps, options, where);
  const double from = start.to_double(), to = end.to_double();
  return sequence(steps, options, "logspace", where,
                  [&](int64_t i) { return std::pow(base, linear_point(from, to, steps, i)); });
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options, SourceLocation where) {
  const NamedCall call("tril_indices", where);
  return triangle_indices(row, col, offset, false, options.or_else(kInt64), where);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options, SourceLocation where) {
  const NamedCall call("triu_indices", where);
  return triangle_indices(row, col, offset, true, options.or_else(kInt64), where);
}

Tensor eye(Dim n, std::optional<Dim> m, TensorOptions options, SourceLocation where) {
  const NamedCall call("eye", where);
  const Shape size{n, m.value_or(n)};
  check_type(size, options.dtype(), "eye", where);
  const Tensor diagonal = ones({size[0] < size[1] ? size[0] : size[1]}, {options.dtype()}, where);
  return finish(ops::emit<ops::Transposed<ops::Diagonal>>({diagonal.get()}, {{0, 0, 1}, size}, where),
                options, where);
}

Tensor from_blob(void* data, const Shape& size, TensorOptions options, void (*release)(void*), void* context,
                 SourceLocation where) {
  const NamedCall call("from_blob", where);
  check_type(size, options.dtype(), "from_blob", where);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(options.dtype(), options.device(), size);
  contiguous_strides(size, cell->mutable_strides());
  const int64_t bytes =
      Dim::checked_mul(size.numel().value(), static_cast<int64_t>(element_size(options.dtype())));
  cell->set_storage(Storage::wrap(data, bytes, release, context));
  mark_in_inference_mode(*cell);
  return finish(Tensor(std::move(cell)), options, where);
}

Tensor zeros_of(const TensorType& type, SourceLocation where) {
  return full(type.shape, 0, {type.dtype, type.device}, where);
}
Tensor repeated_zero(const TensorType& type, SourceLocation where) {
  return expand_to(Operand(zeros_of({type.dtype, type.device, {}}, where), where), type.shape);
}
Tensor ones_of(const TensorType& type, SourceLocation where) {
  return full(type.shape, 1, {type.dtype, type.device}, where);
}

}  // namespace retrograd
