// Rows of reductions, scans and softmax: over one dim, some dims or all, with and without keepdim.
#include "ops/reduce.h"

#include "ops/arithmetic.h"
#include "ops/join.h"
#include "ops/scan.h"
#include "ops/softmax.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

bool has_elements(const Tensor& t) { return t.numel() > 0; }

/// f(x, dims, keepdim); no dims: all of them.
template <class F>
void over_dims(OpRows& rows, std::string_view name, F f) {
  const auto choose = [](Chooser& c) {
    const Tensor x = c.value(0, 4, has_elements);
    c.flag();
    if (x.dim() == 0 || c.random.chance(0.4)) return;
    const int64_t first = c.dim(x);
    if (x.dim() > 1 && c.random.chance(0.3)) c.integer((first + 1) % x.dim());
  };
  rows.push_back({name, choose, [f](const Args& a) {
                    return Tensors{f(a[0], rg::IntList(IntArray(a.ints.begin() + 1, a.ints.end())), a.i(0))};
                  }});
}

/// f(x, dim, keepdim) gives one tensor or several.
template <class F>
void over_one_dim(OpRows& rows, std::string_view name, F f) {
  const auto choose = [](Chooser& c) {
    c.dim(c.value(1, 4, has_elements));
    c.flag();
  };
  rows.push_back({name, choose, [f](const Args& a) { return Tensors{f(a[0], a.i(0), a.i(1))}; }});
}
template <class F>
void extreme(OpRows& rows, std::string_view name, F f) {
  const auto choose = [](Chooser& c) {
    c.dim(c.value(1, 4, has_elements));
    c.flag();
  };
  rows.push_back({name, choose, [f](const Args& a) {
                    const auto [values, indices] = f(a[0], a.i(0), a.i(1));
                    return Tensors{values, indices};
                  }});
}

}  // namespace

void add_reduction_rows(OpRows& rows) {
  over_dims(rows, "sum", [](auto& x, auto dims, bool keep) { return rg::sum(x, dims, keep); });
  over_dims(rows, "mean", [](auto& x, auto dims, bool keep) { return rg::mean(x, dims, keep); });
  over_dims(rows, "amax", [](auto& x, auto dims, bool keep) { return rg::amax(x, dims, keep); });
  over_dims(rows, "amin", [](auto& x, auto dims, bool keep) { return rg::amin(x, dims, keep); });
  over_dims(rows, "logsumexp", [](auto& x, auto dims, bool keep) { return rg::logsumexp(x, dims, keep); });
  over_dims(rows, "var", [](auto& x, auto dims, bool keep) { return rg::var(x, dims, 0, keep); });
  // Of two numbers that differ: the derivative at equal ones is nan.
  over_one_dim(rows, "std", [](auto& x, int64_t, bool keep) {
    return rg::std(rg::stack({x, positive(x) * 2.0}), {0}, 1, keep);
  });
  over_dims(rows, "norm_3",
            [](auto& x, auto dims, bool keep) { return rg::norm(positive(x), 3, dims, keep); });
  over_dims(rows, "norm_2",
            [](auto& x, auto dims, bool keep) { return rg::norm(positive(x), 2, dims, keep); });
  over_dims(rows, "sum_f64",
            [](auto& x, auto dims, bool keep) { return rg::sum(x, dims, keep, rg::kFloat64); });
  over_one_dim(rows, "prod", [](auto& x, int64_t dim, bool keep) { return rg::prod(x, dim, keep); });
  over_one_dim(rows, "prod_of_all", [](auto& x, int64_t, bool) { return rg::prod(unit(x)); });
  over_one_dim(rows, "cumsum", [](auto& x, int64_t dim, bool) { return rg::cumsum(x, dim); });
  over_one_dim(rows, "cumprod", [](auto& x, int64_t dim, bool) { return rg::cumprod(x, dim); });
  over_one_dim(rows, "softmax", [](auto& x, int64_t dim, bool) { return rg::softmax(x, dim); });
  over_one_dim(rows, "log_softmax", [](auto& x, int64_t dim, bool) { return rg::log_softmax(x, dim); });
  over_one_dim(rows, "argmax", [](auto& x, int64_t dim, bool keep) { return rg::argmax(x, dim, keep); });
  extreme(rows, "max", [](auto& x, int64_t dim, bool keep) { return rg::max(x, dim, keep); });
  extreme(rows, "min", [](auto& x, int64_t dim, bool keep) { return rg::min(x, dim, keep); });
}

}  // namespace fuzz
