// Products of matrices on a device: converts a Call to strides, and selects what multiplies: the vendor's library
// (cuda/blas.h) if it accepts the product, else the kernels of cuda/kernels/matmul.cu, which accept any.
//
// Batch dims are merged if all sides allow it, and folded into the rows of a if b is the same for all of them: so
// linear over (..., k) is one product. The library has one batch dim; the others are a loop over calls.
#include "ops/matmul.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cuda/blas.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/launchers.h"
#include "cuda/kernels/matmul.h"
#include "cuda/kernels/matmul_call.h"
#include "cuda/kernels/splits.h"
#include "cuda/kernels/table.h"
#include "cuda/scratch.h"

namespace retrograd::inline v0::cuda {
namespace {

constexpr int64_t kLeastOfBlock = 2048;  // terms that a whole block shares
constexpr int64_t kLibraryCalls = 64;    // at most, for one product

// The size and the stride of dim `from_last`, counted from the last, 1; a missing dim is repeated.
int64_t size(const TensorImpl& x, int from_last) {
  return x.rank() < from_last ? 1 : x.shape()[x.rank() - from_last].raw();
}
int64_t stride(const TensorImpl& x, int from_last) {
  return size(x, from_last) == 1 ? 0 : x.strides()[x.rank() - from_last];
}

// A side (..., rows, columns); a vector is a row.
void set_side(MatmulCall& c, int side, const TensorImpl& x) {
  c.side[side].data = x.data();
  c.side[side].row = stride(x, 2);
  c.side[side].column = stride(x, 1);
}
void turn(BatchMatrix& side) { std::swap(side.row, side.column); }

void add_batch_dim(MatmulCall& c, int64_t n, const int64_t (&strides)[MatmulCall::kSides]) {
  int d = c.batch_rank - 1;
  bool merges = d >= 0;
  for (int s = 0; merges && s < MatmulCall::kSides; ++s) merges = c.side[s].batch[d] == n * strides[s];
  if (merges)
    c.batch_size[d] *= n;
  else
    c.batch_size[d = c.batch_rank++] = n;
  for (int s = 0; s < MatmulCall::kSides; ++s) c.side[s].batch[d] = strides[s];
}

// The dims of `out` before the last two; an operand without them is repeated. operand[side]: null if the side is
// missing.
void set_batch(MatmulCall& c, const TensorImpl& out, const TensorImpl* const (&operand)[MatmulCall::kSides]) {
  for (int from_last = out.rank(); from_last > 2; --from_last) {
    const int64_t n = size(out, from_last);
    c.batches *= n;
    if (n == 1) continue;
    int64_t strides[MatmulCall::kSides];
    for (int s = 0; s < MatmulCall::kSides; ++s) strides[s] = operand[s] ? stride(*operand[s], from_last) : 0;
    add_batch_dim(c, n, strides);
  }
}

// Turns the last batch dim into more rows, if b is repeated along it.
bool fold_batch_dim(MatmulCall& c) {
  if (c.batch_rank == 0) return false;
  const int d = c.batch_rank - 1;
  if (c.side[MatmulCall::kB].batch[d] != 0) return false;
  for (int s : {MatmulCall::kOut, MatmulCall::kA, MatmulCall::kStart})
    if (c.m > 1 && c.side[s].batch[d] != c.m * c.side[s].row) return false;
  if (c.m == 1)
    for (int s : {MatmulCall::kOut, MatmulCall::kA, MatmulCall::kStart}) c.side[s].row = c.side[s].batch[d];
  c.m *= c.batch_size[d];
  c.batches /= c.batch_size[d];
  for (BatchMatrix& side : c.side) side.batch[d] = 0;
  --c.batch_rank;
  return true;
}

// Depends on sizes and strides only: results do not depend on the device.
void cut(MatmulCall& c) {
  c.is_thin = c.m == 1 || c.n == 1;
  if (!c.is_thin) return;
  const BatchMatrix &a = c.side[MatmulCall::kA], &b = c.side[MatmulCall::kB];
  c.outputs_first = c.m == 1 ? c.n > 1 && b.row != 1 : a.column != 1;
  c.lanes = c.outputs_first ? 8 : c.k >= kLeastOfBlock ? kThreadsOfBlock : 32;
  const int64_t of_block = kThreadsOfBlock / c.lanes;
  const int64_t blocks = (c.m * c.n * c.batches + of_block - 1) / of_block;
  c.splits = static_cast<int>(
      std::clamp<int64_t>(std::min(kBlocks / blocks, c.k / (c.lanes * kLeastOfLane)), 1, kBlocks));
  c.part = (c.k + c.splits - 1) / c.splits;
}

// The product in the form of the library, or nothing.
class LibraryProduct {
 public:
  /// `start`: the tensor of side[kStart]; null if there is none, or if it is the result. `out`: the result; null if
  /// start is.
  LibraryProduct(const MatmulCall& c, ScalarType dtype, const TensorImpl* start, TensorImpl* out)
      : c_(c), start_(start), out_(out) {
    const std::optional<BlasType> type = type_of(dtype);
    if (!type || c.k == 0 || c.m * c.n == 1) return;
    p_.type = *type;
    p_.m = c.m;
    p_.n = c.n;
    p_.k = c.k;
    p_.alpha = c.alpha;
    p_.tf32 = Gpu::current().allows_tf32();
    item_ = static_cast<int64_t>(element_size(dtype));
    is_taken_ = set_batches() && set_matrix(p_.a, MatmulCall::kA, c.m, c.k) &&
                set_matrix(p_.b, MatmulCall::kB, c.k, c.n) && set_out() && set_start();
  }

  // A bias that the library does not accept, for example for some types, is passed as a start.
  bool run() {
    if (!is_taken_ || !Gpu::current().products().blas) return false;
    if (multiply()) return true;
    if (!std::exchange(p_.bias, nullptr)) return false;
    p_.beta = 1;
    copy_start();
    return multiply();
  }

 private:
  bool multiply() const {
    Gpu& gpu = Gpu::current();
    const Gpu::Products library = gpu.products();
    for (int64_t i = 0; i < c_.batches / p_.batches; ++i)
      if (!library.blas->multiply(at(i), library.workspace, gpu.compute().handle())) return false;
    return true;
  }

  static std::optional<BlasType> type_of(ScalarType dtype) {
    switch (dtype) {
      case kFloat32: return BlasType::f32;
      case kFloat64: return BlasType::f64;
      case kFloat16: return BlasType::f16;
      case kBFloat16: return BlasType::bf16;
      default: return {};
    }
  }

  // The largest batch dim is passed to the library.
  bool set_batches() {
    for (int d = 0; d < c_.batch_rank; ++d)
      if (batch_dim_ < 0 || c_.batch_size[d] > c_.batch_size[batch_dim_]) batch_dim_ = d;
    p_.batches = batch_dim_ < 0 ? 1 : c_.batch_size[batch_dim_];
    return c_.batches / p_.batches <= kLibraryCalls;
  }
  int64_t batch_step(int side) const { return batch_dim_ < 0 ? 0 : c_.side[side].batch[batch_dim_]; }

  bool set_matrix(BlasMatrix& matrix, int side, int64_t rows, int64_t columns) {
    const BatchMatrix& s = c_.side[side];
    matrix = {s.data, false, rows == 1 ? columns : s.row, batch_step(side)};
    if ((columns == 1 || s.column == 1) && matrix.step >= columns) return true;
    matrix.turned = true;
    matrix.step = columns == 1 ? rows : s.column;
    return (rows == 1 || s.row == 1) && matrix.step >= rows;
  }

  bool set_out() {
    BlasMatrix out;
    if (!set_matrix(out, MatmulCall::kOut, c_.m, c_.n) || out.turned) return false;
    p_.out = c_.side[MatmulCall::kOut].data;
    p_.out_step = out.step;
    p_.out_batch = out.batch;
    return true;
  }

  // As a bias, directly, or, if it is neither, copied to the memory of the result.
  bool set_start() {
    const BatchMatrix& start = c_.side[MatmulCall::kStart];
    if (!start.data) return true;
    const bool is_row = start.row == 0 && (c_.n == 1 || start.column == 1) &&
                        reinterpret_cast<uintptr_t>(start.data) % BlasProduct::kBiasAlignment == 0;
    if (is_row && c_.beta == 1 && std::count(start.batch, start.batch + c_.batch_rank, 0) == c_.batch_rank) {
      p_.bias = start.data;
      return true;
    }
    p_.beta = c_.beta;
    if (set_matrix(p_.start, MatmulCall::kStart, c_.m, c_.n) && !p_.start.turned) return true;
    if (!start_ || !Gpu::current().products().blas) return false;
    copy_start();
    return true;
  }
  void copy_start() {
    convert_copy(*start_, *out_);
    p_.start = {p_.out, false, p_.out_step, p_.out_batch};
    start_is_out_ = true;
  }

  // The product at index i of all batch dims but the library's.
  BlasProduct at(int64_t i) const {
    int64_t place[MatmulCall::kSides] = {};
    for (int d = c_.batch_rank - 1; d >= 0; --d) {
      if (d == batch_dim_) continue;
      for (int s = 0; s < MatmulCall::kSides; ++s) place[s] += i % c_.batch_size[d] * c_.side[s].batch[d];
      i /= c_.batch_size[d];
    }
    BlasProduct p = p_;
    move(p.a.data, place[MatmulCall::kA]);
    move(p.b.data, place[MatmulCall::kB]);
    move(p.start.data, place[start_is_out_ ? MatmulCall::kOut : MatmulCall::kStart]);
    p.out = static_cast<char*>(p.out) + place[MatmulCall::kOut] * item_;
    return p;
  }
  void move(const void*& data, int64_t elements) const {
    if (data) data = static_cast<const char*>(data) + elements * item_;
  }

  const MatmulCall& c_;
  const TensorImpl* const start_;
  TensorImpl* const out_;
  BlasProduct p_;
  bool is_taken_ = false, start_is_out_ = false;
  int batch_dim_ = -1;
  int64_t item_ = 1;
};

void launch_kernels(const Call& call, MatmulCall& c, ScalarType dtype) {
  cut(c);
  std::optional<Scratch> partials;
  if (c.splits > 1) c.partials = partials.emplace(c.m * c.n * c.batches * c.splits * 8, call.op->name).data();
  const MatmulRow& row = *Gpu::current().launchers().matmul;
  const ScalarType type = compute_type(dtype);
  const MatmulLauncher launcher = type == kFloat32 ? row.f32 : type == kFloat64 ? row.f64 : row.i64;
  launcher(c, Gpu::current().compute().handle());
}

// `c` has its sides and its batch dims. `start` and `out` as for LibraryProduct.
void multiply(const Call& call, MatmulCall& c, ScalarType dtype, const TensorImpl* start, TensorImpl* out) {
  if (c.m * c.n * c.batches == 0) return;
  while (fold_batch_dim(c)) {
  }
  c.element = static_cast<Element>(dtype);
  if (!LibraryProduct(c, dtype, start, out).run()) {
    if (c.batch_rank == 0) c.batch_size[c.batch_rank++] = 1;
    launch_kernels(call, c, dtype);
  }
  Gpu::current().launched(call.op->name);
}
void multiply(const Call& call, MatmulCall& c, TensorImpl& out, const TensorImpl* start = nullptr) {
  multiply(call, c, out.dtype(), start, &out);
}

void set_factors(MatmulCall& c, const TensorImpl& a, const TensorImpl& b, const TensorImpl& out) {
  set_side(c, MatmulCall::kOut, out);
  set_side(c, MatmulCall::kA, a);
  set_side(c, MatmulCall::kB, b);
  c.m = size(a, 2);
  c.k = size(a, 1);
  c.n = size(b, 1);
}

void product_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &a = *call.operands[0], &b = *call.operands[1];
  MatmulCall c;
  set_factors(c, a, b, *outputs[0]);
  set_batch(c, *outputs[0], {outputs[0], &a, &b, nullptr});
  multiply(call, c, *outputs[0]);
}

// (m, k) x (k) and (k) x (k): the vector is a column, and so is the result.
void vector_kernel(const Call& call, TensorImpl* const* outputs) {
  MatmulCall c;
  set_factors(c, *call.operands[0], *call.operands[1], *outputs[0]);
  turn(c.side[MatmulCall::kB]);
  turn(c.side[MatmulCall::kOut]);
  c.n = 1;
  multiply(call, c, *outputs[0]);
}

void add_product_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::AddProduct::Attrs>();
  const TensorImpl &start = *call.operands[0], &a = *call.operands[1], &b = *call.operands[2];
  MatmulCall c;
  set_factors(c, a, b, *outputs[0]);
  if (!(attrs.beta == Scalar(0))) set_side(c, MatmulCall::kStart, start);
  set_batch(c, *outputs[0], {outputs[0], &a, &b, c.side[MatmulCall::kStart].data ? &start : nullptr});
  if (attrs.alpha == Scalar(0)) c.k = 0;  // no product at all: a nan in it has no effect
  c.alpha = attrs.alpha.to_double();
  c.beta = attrs.beta.to_double();
  c.integer_alpha = attrs.alpha.to_int();
  c.integer_beta = attrs.beta.to_int();
  multiply(call, c, *outputs[0], &start);
}

void linear_kernel(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &weight = *call.operands[1];
  MatmulCall c;
  set_factors(c, x, weight, *outputs[0]);
  turn(c.side[MatmulCall::kB]);
  c.n = size(weight, 2);
  if (call.operands[2]) set_side(c, MatmulCall::kStart, *call.operands[2]);
  set_batch(c, *outputs[0], {outputs[0], &x, nullptr, nullptr});
  multiply(call, c, *outputs[0], call.operands[2]);
}

}  // namespace

void multiply_rows(const Call& call, ScalarType dtype, const RowsProduct& p) {
  MatmulCall c;
  c.m = p.m;
  c.n = p.n;
  c.k = p.k;
  const auto set = [&c](int side, const void* data, int64_t row, int64_t column) {
    c.side[side].data = const_cast<void*>(data);
    c.side[side].row = row;
    c.side[side].column = column;
  };
  set(MatmulCall::kA, p.a, p.a_row, 1);
  set(MatmulCall::kB, p.b, p.b_turned ? 1 : p.n, p.b_turned ? p.k : 1);
  set(MatmulCall::kOut, p.out, p.out_row, 1);
  if (p.accumulate) set(MatmulCall::kStart, p.out, p.out_row, 1);
  multiply(call, c, dtype, nullptr, nullptr);
}

void add_matmul_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Mm>, product_kernel);
  table.set(&ops::info<ops::Bmm>, product_kernel);
  table.set(&ops::info<ops::Mv>, vector_kernel);
  table.set(&ops::info<ops::Dot>, vector_kernel);
  table.set(&ops::info<ops::Addmm>, add_product_kernel);
  table.set(&ops::info<ops::Baddbmm>, add_product_kernel);
  table.set(&ops::info<ops::Linear>, linear_kernel);
}

}  // namespace retrograd::cuda
