// Rows of order statistics, cumulative extremes, distances and differences.
#include "ops/arithmetic.h"
#include "ops/cumulative.h"
#include "ops/differences.h"
#include "ops/distances.h"
#include "ops/order_statistics.h"
#include "ops/statistics.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

using rg::ValuesAndIndices;

bool has_elements(const Tensor& t) { return t.numel() > 0; }

/// f(x, dim, keepdim).
template <class F>
void along(OpRows& rows, std::string_view name, F f) {
  const auto choose = [](Chooser& c) {
    c.dim(c.value(1, 4, has_elements));
    c.flag();
  };
  rows.push_back({name, choose, [f](const Args& a) { return Tensors(f(a[0], a.i(0), a.i(1))); }});
}

Tensors both(const ValuesAndIndices& r) { return {r.values, r.indices}; }

}  // namespace

void add_statistics_rows(OpRows& rows) {
  along(rows, "kthvalue",
        [](auto& x, int64_t dim, bool keep) { return both(rg::kthvalue(x, 1, dim, keep)); });
  along(rows, "median", [](auto& x, int64_t dim, bool keep) { return both(rg::median(x, dim, keep)); });
  along(rows, "nanmedian", [](auto& x, int64_t dim, bool keep) { return both(rg::nanmedian(x, dim, keep)); });
  along(rows, "mode", [](auto& x, int64_t dim, bool keep) { return both(rg::mode(x, dim, keep)); });
  along(rows, "median_of_all", [](auto& x, int64_t, bool) {
    return Tensors{rg::median(x), rg::nanmedian(x)};
  });
  along(rows, "cummax", [](auto& x, int64_t dim, bool) { return both(rg::cummax(x, dim)); });
  along(rows, "cummin", [](auto& x, int64_t dim, bool) { return both(rg::cummin(x, dim)); });
  along(rows, "logcumsumexp", [](auto& x, int64_t dim, bool) { return Tensors{rg::logcumsumexp(x, dim)}; });
  along(rows, "nanmean", [](auto& x, int64_t dim, bool keep) { return Tensors{rg::nanmean(x, dim, keep)}; });
  along(rows, "diff",
        [](auto& x, int64_t dim, bool twice) { return Tensors{rg::diff(x, twice ? 2 : 1, dim)}; });
  along(rows, "trapezoid", [](auto& x, int64_t dim, bool) { return Tensors{rg::trapezoid(x, 0.5, dim)}; });
  const auto two = [](Chooser& c) {
    const Tensor x = c.value(2, 2, has_elements);
    c.shaped({c.size(), x.size(1)});
  };
  // Apart: distances near 0 have large derivatives.
  rows.push_back(
      {"cdist", two, [](const Args& a) { return Tensors{rg::cdist(positive(a[0]), -positive(a[1]))}; }});
  rows.push_back({"pdist", [](Chooser& c) { c.value(2, 2, has_elements); },
                  [](const Args& a) { return Tensors{rg::pdist(a[0], 1)}; }});
}

}  // namespace fuzz
