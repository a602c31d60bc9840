// Rows of matrix products, linear algebra, attention, and user-defined functions. Matrices to be inverted are made
// diagonally dominant, those to be factored symmetric as well.
#include "ops/matmul.h"

#include "engine/function.h"
#include "ops/activations.h"
#include "ops/attention.h"
#include "ops/contraction.h"
#include "ops/creation.h"
#include "ops/factorizations.h"
#include "ops/linalg.h"
#include "ops/matrix_functions.h"
#include "ops/shape_ops.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

using Choose = void (*)(Chooser&);
template <class F>
void add(OpRows& rows, std::string_view name, Choose choose, F f) {
  rows.push_back({name, choose, [f](const Args& a) { return Tensors{f(a)}; }, false, false});
}

void add_products(OpRows& rows) {
  const Choose two = [](Chooser& c) { c.shaped({c.value(2, 2).size(1), c.size()}); };
  add(rows, "mm", two, [](auto& a) { return rg::mm(a[0], a[1]); });
  add(
      rows, "mm_with_itself", [](Chooser& c) { c.value(2, 2); },
      [](auto& a) { return rg::mm(a[0], rg::t(a[0])); });
  add(
      rows, "bmm",
      [](Chooser& c) {
        const Tensor x = c.value(3, 3);
        c.shaped({x.size(0), x.size(2), c.size()});
      },
      [](auto& a) { return rg::bmm(a[0], a[1]); });
  add(
      rows, "mv", [](Chooser& c) { c.shaped({c.value(2, 2).size(1)}); },
      [](auto& a) { return rg::mv(a[0], a[1]); });
  add(
      rows, "dot", [](Chooser& c) { c.shaped({c.value(1, 1).size(0)}); },
      [](auto& a) { return rg::dot(a[0], a[1]); });
  add(
      rows, "outer", [](Chooser& c) { c.value(1, 1), c.shaped({c.size()}); },
      [](auto& a) { return rg::outer(a[0], a[1]); });
  add(
      rows, "matmul",
      [](Chooser& c) {
        c.shaped({2, 1, c.value(1, 3).size(-1), c.size()});
      },
      [](auto& a) { return rg::matmul(a[0], a[1]); });
  add(
      rows, "addmm",
      [](Chooser& c) {
        const Tensor x = c.value(2, 2);
        const int64_t columns = c.size();
        c.shaped({x.size(1), columns});
        c.shaped({columns});
        c.number(0.5, 1.5);
      },
      [](auto& a) { return rg::addmm(a[2], a[0], a[1], a.x(0), 0.5); });
  add(
      rows, "baddbmm",
      [](Chooser& c) {
        const Tensor x = c.value(3, 3);
        c.shaped({x.size(0), x.size(2), x.size(1)});
        c.shaped({x.size(1), 1});
      },
      [](auto& a) { return rg::baddbmm(a[2], a[0], a[1], 0.5, 2.0); });
  add(
      rows, "linear",
      [](Chooser& c) {
        const Tensor x = c.value(1, 3);
        const int64_t features = c.size();
        c.shaped({features, x.size(-1)});
        if (c.random.chance(0.6)) c.shaped({features});
      },
      [](auto& a) { return rg::linear(a[0], a[1], a.optional(2)); });
  add(rows, "einsum", two, [](auto& a) { return rg::einsum("ij,jk->ki", {a[0], a[1]}); });
}

Tensor square(const Tensor& x) { return rg::matmul(x, rg::transpose(x, -1, -2)); }
Tensor regular(const Tensor& x) {
  const Tensor s = rg::tanh(square(x));
  return s + rg::eye(s.size(-1), {}, {s.dtype()}) * (1.5 + static_cast<double>(s.size(-1)));
}

void add_linalg(OpRows& rows) {
  const Choose matrix = [](Chooser& c) {
    c.value(2, 3, [](const Tensor& t) {
      return (t.dtype() == rg::kFloat32 || t.dtype() == rg::kFloat64) && t.size(-2) <= 6 && t.numel() > 0;
    });
  };
  add(rows, "inverse", matrix, [](auto& a) { return rg::inverse(regular(a[0])); });
  add(rows, "det", matrix, [](auto& a) { return rg::det(rg::tanh(square(a[0]))); });
  add(rows, "logdet", matrix, [](auto& a) { return rg::logdet(regular(a[0])); });
  add(rows, "slogdet", matrix, [](auto& a) { return rg::slogdet(regular(a[0])).logabsdet; });
  add(rows, "cholesky", matrix, [](auto& a) { return rg::cholesky(regular(a[0])); });
  add(rows, "solve", matrix, [](auto& a) { return rg::solve(regular(a[0]), a[0]); });
  add(rows, "solve_triangular", matrix,
      [](auto& a) { return rg::solve_triangular(regular(a[0]), a[0], true); });
  add(rows, "matrix_power", matrix, [](auto& a) { return rg::matrix_power(rg::tanh(square(a[0])), 3); });
  add(rows, "matrix_exp", matrix, [](auto& a) { return rg::linalg::matrix_exp(rg::tanh(square(a[0]))); });
  add(rows, "pinv", matrix, [](auto& a) { return rg::linalg::pinv(regular(a[0])); });
  add(rows, "lstsq", matrix, [](auto& a) { return rg::linalg::lstsq(regular(a[0]), a[0]); });
  add(rows, "qr", matrix, [](auto& a) { return rg::linalg::qr(regular(a[0])).R; });
  add(rows, "lu_factor", matrix, [](auto& a) { return rg::linalg::lu_factor(regular(a[0])).LU; });
  add(
      rows, "trace", [](Chooser& c) { c.value(2, 2); }, [](auto& a) { return rg::trace(a[0]); });
}

void add_attention(OpRows& rows) {
  add(
      rows, "attention",
      [](Chooser& c) {
        const Tensor q = c.value(2, 3, [](const Tensor& t) { return t.numel() > 0; });
        IntArray key = q.sizes();
        key[key.size() - 2] = c.length(3);
        c.shaped(key);
        c.shaped(key);
        c.flag();
      },
      [](auto& a) { return rg::scaled_dot_product_attention(a[0], a[1], a[2], {}, 0.0, a.i(0)); });
}

template <bool Traceable>
struct Blend : rg::Function<Blend<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensors forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& y, double factor) {
    if (!(x.impl().type() == y.impl().type()))
      rg::fail(rg::Category::bad_argument, "Blend", "two of one type are wanted");
    ctx->save_for_backward({x, y});
    ctx->saved_data["factor"] = factor;
    return {x * y * factor, rg::tanh(x)};
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensors saved = ctx->get_saved_variables();
    const Tensor t = rg::tanh(saved[0]), scaled = g[0] * ctx->saved_data["factor"];
    return {scaled * saved[1] + g[1] * (1.0 - t * t), scaled * saved[0], {}};
  }
};

template <bool Traceable>
void add_function(OpRows& rows, std::string_view name) {
  rows.push_back({name,
                  [](Chooser& c) {
                    c.shaped(c.value().sizes());
                    c.number(0.5, 1.5);
                  },
                  [](const Args& a) { return Blend<Traceable>::apply(a[0], a[1], a.x(0)); }});
}

}  // namespace

void add_matrix_rows(OpRows& rows) {
  add_products(rows);
  add_linalg(rows);
  add_attention(rows);
  add_function<false>(rows, "opaque_function");
  add_function<true>(rows, "traceable_function");
}

}  // namespace fuzz
