// Type rules, derivatives and public functions of ops/matmul.h.
#include "ops/matmul.h"

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/batching.h"
#include "ops/family_parts.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace ops {
namespace {

// Operands `first` and `second` are tensors of one dtype and device that can be multiplied.
void check_factors(const Call& call, int first, int second) {
  const TensorImpl &a = *call.operands[static_cast<size_t>(first)],
                   &b = *call.operands[static_cast<size_t>(second)];
  if (a.dtype() != b.dtype()) fail_call(call, Category::dtype_mismatch, "operands have different dtypes");
  if (a.dtype() == kBool || is_float8(a.dtype()))
    fail_call(call, Category::dtype_mismatch, "products of this dtype are not supported");
  if (!(a.device() == b.device()))
    fail_call(call, Category::bad_argument, "operands are on different devices");
}

void check_rank(const Call& call, int operand, int rank, std::string_view what) {
  const TensorImpl& x = *call.operands[static_cast<size_t>(operand)];
  if (x.rank() != rank)
    fail_call(call, Category::bad_dim,
              fmt::format("operand {} must be a {} but has {} dims", operand, what, x.rank()));
}

void check_inner(const Call& call, Dim a, Dim b) {
  if (!(a == b))
    fail_call(call, Category::shape_mismatch,
              fmt::format("inner sizes {} and {} differ", to_string(a), to_string(b)));
}

// The shape of the product of the matrices in the last two dims of operands `first` and `first` + 1, which have equal
// ranks.
Shape product_shape(const Call& call, int first) {
  check_factors(call, first, first + 1);
  const Shape &a = call.operands[static_cast<size_t>(first)]->shape(),
              &b = call.operands[static_cast<size_t>(first) + 1]->shape();
  const int batch = a.rank() - 2;
  for (int i = 0; i < batch; ++i)
    if (!(a[i] == b[i])) fail_call(call, Category::shape_mismatch, "batch sizes differ");
  check_inner(call, a[batch + 1], b[batch]);
  Shape shape = a;
  shape[batch + 1] = b[batch + 1];
  return shape;
}

// Transposes of matrices and batches.
Tensor turned(Operand x) { return transpose(x, -2, -1); }

Tensor product_transpose(RuleContext& c, int i, const Tensor& g) {
  return i == 0 ? product(g, turned(c.in(1)), c.where()) : product(turned(c.in(0)), g, c.where());
}

}  // namespace

Tensor product(const Tensor& a, const Tensor& b, SourceLocation where) {
  return a.impl().rank() == 2 ? emit<Mm>({a.get(), b.get()}, {}, where)
                              : emit<Bmm>({a.get(), b.get()}, {}, where);
}

void Mm::infer(const Call& call, TensorImpl* const* outputs) {
  for (int i : {0, 1}) check_rank(call, i, 2, "matrix");
  set_like(*call.operands[0], product_shape(call, 0), *outputs[0]);
}

Tensor Mm::transpose(RuleContext& c, int i, const Tensor& g) { return product_transpose(c, i, g); }

void Bmm::infer(const Call& call, TensorImpl* const* outputs) {
  const int rank = call.operands[0]->rank();
  if (rank < 3 || call.operands[1]->rank() != rank)
    fail_call(call, Category::bad_dim, "operands must be batches of matrices, with equally many dims");
  set_like(*call.operands[0], product_shape(call, 0), *outputs[0]);
}

Tensor Bmm::transpose(RuleContext& c, int i, const Tensor& g) { return product_transpose(c, i, g); }

void Mv::infer(const Call& call, TensorImpl* const* outputs) {
  check_rank(call, 0, 2, "matrix");
  check_rank(call, 1, 1, "vector");
  check_factors(call, 0, 1);
  const Shape& a = call.operands[0]->shape();
  check_inner(call, a[1], call.operands[1]->shape()[0]);
  set_like(*call.operands[0], {a[0]}, *outputs[0]);
}

Tensor Mv::transpose(RuleContext& c, int i, const Tensor& g) {
  return i == 0 ? outer(Operand(g, c.where()), c.in(1)) : mv(turned(c.in(0)), Operand(g, c.where()));
}

void Dot::infer(const Call& call, TensorImpl* const* outputs) {
  for (int i : {0, 1}) check_rank(call, i, 1, "vector");
  check_factors(call, 0, 1);
  check_inner(call, call.operands[0]->shape()[0], call.operands[1]->shape()[0]);
  set_like(*call.operands[0], {}, *outputs[0]);
}

Tensor Dot::transpose(RuleContext& c, int i, const Tensor& g) {
  return mul(c.in(1 - i), Operand(g, c.where()));
}

namespace {

void infer_add_product(const Call& call, TensorImpl* const* outputs, int rank, std::string_view what) {
  for (int i : {1, 2}) check_rank(call, i, rank, what);
  const Shape shape = product_shape(call, 1);
  check_factors(call, 0, 1);
  if (!(call.operands[0]->shape() == shape))
    fail_call(call, Category::shape_mismatch,
              fmt::format("input does not fit the product's shape {}", to_string(shape)));
  set_like(*call.operands[1], shape, *outputs[0]);
}

// The operands that the product of operands `first` and `first` + 1 saves.
SaveSet save_factors(uint64_t wants, int first) {
  const uint64_t one = uint64_t{1} << first, two = one << 1;
  return {(wants & one ? two : 0) | (wants & two ? one : 0), 0};
}

}  // namespace

void Addmm::infer(const Call& call, TensorImpl* const* outputs) {
  infer_add_product(call, outputs, 2, "matrix");
}
void Baddbmm::infer(const Call& call, TensorImpl* const* outputs) {
  infer_add_product(call, outputs, 3, "batch of matrices");
}

SaveSet AddProduct::saves_for(const Call&, uint64_t wants) { return save_factors(wants, 1); }

void AddProduct::vjp(RuleContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  if (c.needs(0)) c.give(0, multiply(c.grad(), Operand(a.beta, c.where())));
  const Tensor g = c.needs(1) || c.needs(2) ? multiply(c.grad(), Operand(a.alpha, c.where())) : Tensor();
  if (c.needs(1)) c.give(1, product(g, turned(c.in(2)), c.where()));
  if (c.needs(2)) c.give(2, product(turned(c.in(1)), g, c.where()));
}

void AddProduct::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  Tensor sum;
  if (c.needs(1)) sum = product(c.tangent(1), c.in(2).tensor(), c.where());
  if (c.needs(2)) sum = plus(sum, product(c.in(1).tensor(), c.tangent(2), c.where()));
  if (sum.defined()) sum = multiply(sum, Operand(a.alpha, c.where()));
  if (c.needs(0)) sum = plus(sum, multiply(c.tangent(0), Operand(a.beta, c.where())));
  c.give(0, sum);
}

void Linear::infer(const Call& call, TensorImpl* const* outputs) {
  const TensorImpl &x = *call.operands[0], &weight = *call.operands[1];
  if (x.rank() == 0) fail_call(call, Category::bad_dim, "input needs at least one dim");
  check_rank(call, 1, 2, "matrix");
  check_factors(call, 0, 1);
  check_inner(call, x.shape().back(), weight.shape()[1]);
  Shape shape = x.shape();
  shape[x.rank() - 1] = weight.shape()[0];
  if (call.operands[2]) {
    check_factors(call, 0, 2);
    check_rank(call, 2, 1, "vector");
    if (!(call.operands[2]->shape()[0] == weight.shape()[0]))
      fail_call(call, Category::shape_mismatch, "bias does not fit weight");
  }
  set_like(x, shape, *outputs[0]);
}

SaveSet Linear::saves_for(const Call&, uint64_t wants) { return save_factors(wants, 0); }

namespace {

// (..., k) as a matrix.
Tensor as_rows(const Tensor& x, SourceLocation where) {
  const Shape& shape = x.impl().shape();
  if (shape.rank() == 2) return x;
  Dim rows = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return reshape_to(Operand(x, where), {rows, shape.back()});
}

}  // namespace

// That of the input last: a graph frees the saved input before it makes it.
void Linear::vjp(RuleContext& c) {
  if (c.needs(1)) {
    const Tensor rows = as_rows(c.grad(), c.where());
    c.give(1, mm(t(Operand(rows, c.where())), Operand(as_rows(c.in(0).tensor(), c.where()), c.where())));
  }
  if (c.has_operand(2) && c.needs(2)) c.give(2, sum_to(c.grad(), c.type(2).shape, c.where()));
  if (c.needs(0)) c.give(0, linear(Operand(c.grad(), c.where()), t(c.in(1))));
}

void Linear::jvp(TangentContext& c) {
  const Tensor& bias = c.tangent(2);
  Tensor sum;
  if (c.needs(0)) sum = linear(Operand(c.tangent(0), c.where()), c.in(1).tensor(), bias);
  if (c.needs(1)) sum = plus(sum, linear(c.in(0), c.tangent(1), c.needs(0) ? Tensor() : bias));
  c.give(0, sum.defined() ? sum : expand_to(Operand(bias, c.where()), c.out_type().shape));
}

// ---- batches of vmap ------------------------------------------------------------------------------------------------

namespace {

// A new dim of size 1 at the end, and before the last one.
Tensor column_of(const Tensor& x, SourceLocation where) { return unsqueeze(Operand(x, where), -1); }
Tensor row_of(const Tensor& x, SourceLocation where) { return unsqueeze(Operand(x, where), -2); }

// (batch, m, k) times (k, n) or (batch, k, n): one product of matrices where all samples have the same right side.
Tensor products(const Tensor& a, const Tensor& b, SourceLocation where) {
  if (b.impl().rank() == 3) return bmm(Operand(a, where), Operand(b, where));
  const Dim batch = a.impl().shape()[0], rows = a.impl().shape()[1];
  return unfold_first(mm(Operand(fold(a, where), where), Operand(b, where)), batch, rows, where);
}

}  // namespace

void Mm::batch(BatchContext& c) { c.give(0, products(c.all(0), c.value(1), c.where())); }

void Mv::batch(BatchContext& c) {
  const SourceLocation where = c.where();
  if (!c.is_batched(0))  // the vectors are the rows of one matrix
    return c.give(0, mm(Operand(c.value(1), where),
                        Operand(retrograd::transpose(Operand(c.value(0), where), 0, 1), where)));
  c.give(0, squeeze(Operand(products(c.value(0), column_of(c.value(1), where), where), where), -1));
}

void Dot::batch(BatchContext& c) {
  const SourceLocation where = c.where();
  if (c.is_batched(0) && c.is_batched(1)) {
    const Tensor sums =
        bmm(Operand(row_of(c.value(0), where), where), Operand(column_of(c.value(1), where), where));
    return c.give(0, reshape_to(Operand(sums, where), {c.size()}));
  }
  const int many = c.is_batched(0) ? 0 : 1;
  c.give(0, mv(Operand(c.value(many), where), Operand(c.value(1 - many), where)));
}

void Addmm::batch(BatchContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  c.give(0, baddbmm(Operand(c.all(0), c.where()), c.all(1), c.all(2), a.beta, a.alpha));
}

void Baddbmm::batch(BatchContext& c) {
  Tensors operands = all_operands(c);
  for (Tensor& x : operands) x = fold(x, c.where());
  c.give(0, unfold_first(c.run(operands)[0], c.size(), c.out_type().shape[0], c.where()));
}

// With one weight the samples are rows of one input; with one for each, products of the matrices of two batches.
void Linear::batch(BatchContext& c) {
  const SourceLocation where = c.where();
  const Shape shape = c.with_batch(c.out_type().shape);
  if (!c.is_batched(1)) {
    const bool has_biases = c.is_batched(2);
    const Tensor operands[] = {c.all(0), c.value(1), has_biases ? Tensor() : c.value(2)};
    const Tensor result = c.run(operands)[0];
    return c.give(0,
                  has_biases ? add(Operand(result, where), align(c.value(2), shape.rank(), where)) : result);
  }
  Shape rows_only = c.out_type().shape;
  rows_only.erase(rows_only.rank() - 1);
  const Dim in = c.shape(0).back(), out = shape.back(), rows = rows_only.numel();
  const Tensor x = reshape_to(Operand(c.all(0), where), {c.size(), rows, in});
  const Tensor weight = retrograd::transpose(Operand(c.value(1), where), 1, 2);
  const Tensor result =
      c.has_operand(2)
          ? baddbmm(Operand(expand_to(Operand(row_of(c.all(2), where), where), {c.size(), rows, out}), where),
                    x, weight)
          : bmm(Operand(x, where), Operand(weight, where));
  c.give(0, reshape_to(Operand(result, where), shape));
}

}  // namespace ops

Tensor mm(Operand a, Operand b) {
  return ops::emit<ops::Mm>({a.tensor().get(), b.tensor().get()}, {}, a.where());
}
Tensor mv(Operand a, Operand b) {
  return ops::emit<ops::Mv>({a.tensor().get(), b.tensor().get()}, {}, a.where());
}
Tensor dot(Operand a, Operand b) {
  return ops::emit<ops::Dot>({a.tensor().get(), b.tensor().get()}, {}, a.where());
}

Tensor bmm(Operand a, Operand b) {
  const NamedCall call("bmm", a.where());
  for (const Operand& x : {a, b})
    if (x.tensor().dim() != 3)
      fail(Category::bad_dim, "bmm", fmt::format("{} is not a batch of matrices", describe(x.tensor())),
           a.where());
  return ops::emit<ops::Bmm>({a.tensor().get(), b.tensor().get()}, {}, a.where());
}

namespace {

// A batch of matrices on the left of one matrix or vector is treated as one tall matrix.
Tensor tall_product(const Tensor& a, const Tensor& b, SourceLocation where) {
  const Shape &left = a.impl().shape(), &right = b.impl().shape();
  const bool vector = right.rank() == 1;
  const Tensor rows = ops::as_rows(a, where);
  Shape shape = left;
  if (vector)
    shape.erase(left.rank() - 1);
  else
    shape[left.rank() - 1] = right[1];
  const Operand x(rows, where), y(b, where);
  return reshape_to(Operand(vector ? mv(x, y) : mm(x, y), where), shape);
}

// x with its batch dims expanded to `batch`, followed by its last two.
Tensor expand_batch(const Tensor& x, const Shape& batch, SourceLocation where) {
  Shape shape = batch;
  const Shape& from = x.impl().shape();
  for (int i = from.rank() - 2; i < from.rank(); ++i) shape.push_back(from[i]);
  return expand_to(Operand(x, where), shape);
}

Shape batch_dims(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<size_t>(shape.rank() - 2)));
}

// At least one operand has batch dims; a vector is a row on the left, a column on the right.
Tensor batch_product(Tensor a, Tensor b, SourceLocation where) {
  const bool row = a.dim() == 1, column = b.dim() == 1;
  if (row) a = reshape_to(Operand(a, where), {1, a.impl().shape()[0]});
  if (column) b = reshape_to(Operand(b, where), {b.impl().shape()[0], 1});
  const Shape batch = broadcast_shapes(batch_dims(a.impl().shape()), batch_dims(b.impl().shape()), "matmul");
  const Tensor out = ops::product(expand_batch(a, batch, where), expand_batch(b, batch, where), where);
  if (!row && !column) return out;
  Shape shape = out.impl().shape();
  shape.erase(shape.rank() - (row ? 2 : 1));
  return reshape_to(Operand(out, where), shape);
}

Tensor expanded_start(Operand input, const Tensor& a, const Tensor& b) {
  const Shape &left = a.impl().shape(), &right = b.impl().shape();
  if (left.rank() != right.rank() || left.rank() < 2) return input.tensor();  // the type rule refuses it
  Shape shape = left;
  shape[left.rank() - 1] = right.back();
  return expand_to(input, shape);
}

}  // namespace

Tensor matmul(Operand x, Operand y) {
  const NamedCall call("matmul", x.where());
  const ops::AutocastFunction cast(CastPolicy::lower_precision, {&x.tensor(), &y.tensor()});
  const Tensor a = cast(x), b = cast(y);
  if (a.dim() == 0 || b.dim() == 0)
    fail(Category::bad_dim, "matmul", "both operands need at least one dim", x.where());
  if (a.dim() <= 2 && b.dim() <= 2) {
    const Operand left(a, x.where()), right(b, y.where());
    if (a.dim() == 2) return b.dim() == 2 ? mm(left, right) : mv(left, right);
    return b.dim() == 1 ? dot(left, right) : mv(t(Operand(b, x.where())), left);
  }
  if (b.dim() <= 2 && a.dim() > 2) return tall_product(a, b, x.where());
  return batch_product(a, b, x.where());
}

Tensor addmm(Operand input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const NamedCall call("addmm", input.where());
  const Tensor start = expanded_start(input, a, b);
  return ops::emit<ops::Addmm>({start.get(), a.get(), b.get()}, {beta, alpha}, input.where());
}

Tensor baddbmm(Operand input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const NamedCall call("baddbmm", input.where());
  const Tensor start = expanded_start(input, a, b);
  return ops::emit<ops::Baddbmm>({start.get(), a.get(), b.get()}, {beta, alpha}, input.where());
}

Tensor linear(Operand input, const Tensor& weight, const Tensor& bias) {
  const NamedCall call("linear", input.where());
  if (weight.dim() == 1) {
    const ops::AutocastFunction cast(CastPolicy::lower_precision, {&input.tensor(), &weight, &bias});
    const Tensor out = matmul(cast(input), cast(weight));
    return bias.defined() ? add(out, cast(bias)) : out;
  }
  return ops::emit<ops::Linear>({input.tensor().get(), weight.get(), bias.get()}, {}, input.where());
}

Tensor outer(Operand a, Operand b) {
  const NamedCall call("outer", a.where());
  for (const Operand& x : {a, b})
    if (x.tensor().dim() != 1)
      fail(Category::bad_dim, "outer", fmt::format("{} is not a vector", describe(x.tensor())), a.where());
  const Tensor column = reshape_to(a, {a.tensor().impl().shape()[0], 1});
  return mul(Operand(column, a.where()), b);
}

}  // namespace retrograd
