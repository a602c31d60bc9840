// Order statistics, cumulative extremes, statistics, quantiles, distances and differences.
#include <limits>

#include "ops/cumulative.h"
#include "ops/differences.h"
#include "ops/distances.h"
#include "ops/order_statistics.h"
#include "ops/quantile.h"
#include "ops/shape_ops.h"
#include "ops/statistics.h"
#include "ops/views.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Along = std::function<Tensor(const Tensor&, int64_t, bool)>;

/// Functions that choose along a dim.
void add_choices(Rows& rows) {
  const std::pair<std::string, Along> functions[] = {
      {"kthvalue", [](auto& x, int64_t dim, bool keep) { return rg::kthvalue(x, 1, dim, keep).values; }},
      {"median", [](auto& x, int64_t dim, bool keep) { return rg::median(x, dim, keep).values; }},
      {"nanmedian", [](auto& x, int64_t dim, bool keep) { return rg::nanmedian(x, dim, keep).values; }},
      {"mode", [](auto& x, int64_t dim, bool keep) { return rg::mode(x, dim, keep).values; }},
      {"quantile", [](auto& x, int64_t dim, bool keep) { return rg::quantile(x, 0.3, dim, keep); }},
      {"nanquantile", [](auto& x, int64_t dim, bool keep) { return rg::nanquantile(x, 0.7, dim, keep); }},
  };
  for (const auto& [name, f] : functions) {
    Row along = row(name + " along dim 1", [f](const Tensors& x) { return f(x[0], 1, false); },
                    {{real({2, 5, 2})}, {transposed({2, 3, 1})}, {expanded({2, 5})}});
    Row last = row(name + " along the last dim", [f](const Tensors& x) { return f(x[0], -1, true); },
                   {{real({})}, {real({5})}, {strided({2, 3})}});
    if (name.ends_with("quantile")) along.dtypes = last.dtypes = {rg::kFloat32};
    rows.push_back(along);
    rows.push_back(last);
  }
  const std::vector<Tensors> all{{real({})}, {real({5})}, {transposed({2, 3})}, {expanded({2, 3})}};
  rows.push_back(row(
      "median of all", [](const Tensors& x) { return rg::median(x[0]); }, all));
  rows.push_back(row(
      "nanmedian of all", [](const Tensors& x) { return rg::nanmedian(x[0]); }, all));
  Row by_q = row("quantile by q", [](const Tensors& x) { return rg::quantile(x[0], x[1]); },
                 {{real({4, 2}), real({3}, {0.1, 0.9})}, {real({6}), real({}, {0.1, 0.9})}});
  by_q.dtypes = {rg::kFloat32};
  rows.push_back(by_q);
}

void add_cumulative(Rows& rows) {
  const std::vector<Tensors> cases{
      {real({3, 4})}, {transposed({2, 3, 2})}, {strided({3, 3})}, {real({0, 2})}};
  const auto add = [&](const std::string& name, const std::function<Tensor(const Tensor&, int64_t)>& f) {
    rows.push_back(row(
        name + " along dim 1", [f](const Tensors& x) { return f(x[0], 1); }, cases));
    rows.push_back(row(name + " along the first dim", [f](const Tensors& x) { return f(x[0], 0); },
                       {{real({})}, {real({5})}, {expanded({2, 3})}}));
  };
  add("cummax", [](auto& x, int64_t dim) { return rg::cummax(x, dim).values; });
  add("cummin", [](auto& x, int64_t dim) { return rg::cummin(x, dim).values; });
  add("logcumsumexp", [](auto& x, int64_t dim) { return rg::logcumsumexp(x, dim); });
}

void add_distances(Rows& rows) {
  for (const double p : {0.0, 1.0, 2.0, 3.0, 1.5, kInfinity}) {
    rows.push_back(row("cdist " + std::to_string(p),
                       [p](const Tensors& x) { return rg::cdist(x[0], x[1], p); },
                       {{real({3, 2}), real({4, 2}, {2, 5})},
                        {transposed({2, 3, 2}), expanded({3, 2}, {2, 5})},
                        {strided({1, 3}), real({2, 2, 3}, {2, 5})},
                        {real({0, 2}), real({3, 2})},
                        {real({2, 0}), real({3, 0})}}));
    rows.push_back(row("pdist " + std::to_string(p), [p](const Tensors& x) { return rg::pdist(x[0], p); },
                       {{real({4, 3})}}));
    if (p != 0)
      rows.push_back(row("dist " + std::to_string(p),
                         [p](const Tensors& x) { return rg::dist(x[0], x[1], p); },
                         {{real({2, 3}), real({3}, {2, 5})}, {real({}), real({2}, {2, 5})}}));
  }
}

void add_statistics(Rows& rows) {
  const std::vector<Tensors> cases{{real({2, 3})}, {transposed({3, 4})}, {strided({2, 5})}};
  rows.push_back(row(
      "nansum", [](const Tensors& x) { return rg::nansum(x[0], -1); }, cases));
  rows.push_back(row(
      "nanmean", [](const Tensors& x) { return rg::nanmean(x[0], 0, true); }, cases));
  rows.push_back({"std_mean",
                  [](const Tensors& x) {
                    const auto [deviation, mean] = rg::std_mean(x[0], 1);
                    return Tensors{deviation, mean};
                  },
                  cases});
  rows.push_back({"var_mean",
                  [](const Tensors& x) {
                    const auto [variance, mean] = rg::var_mean(x[0], 0, 0, true);
                    return Tensors{variance, mean};
                  },
                  cases});
  rows.push_back({"aminmax",
                  [](const Tensors& x) {
                    const auto [least, most] = rg::aminmax(x[0], 1);
                    return Tensors{least, most};
                  },
                  cases});
  rows.push_back(row("cov", [](const Tensors& x) { return rg::cov(x[0]); }, {{real({2, 4})}, {real({5})}}));
  rows.push_back(row("weighted cov", [](const Tensors& x) { return rg::cov(x[0], 1, x[2], x[1]); },
                     {{real({2, 4}), real({4}, {0.5, 1}), ints({1, 2, 3, 1}, {4})}}));
  rows.push_back(row("corrcoef", [](const Tensors& x) { return rg::corrcoef(x[0]); }, {{real({3, 5})}}));
  for (const double p : {1.0, 2.0, 3.0})
    rows.push_back(row("renorm", [p](const Tensors& x) { return rg::renorm(x[0], p, -1, 1.2); },
                       {{real({3, 4}, {0.2, 0.9})}, {transposed({2, 3, 2}, {0.2, 0.9})}}));
}

void add_differences(Rows& rows) {
  const std::vector<Tensors> cases{{real({2, 4})}, {transposed({3, 3})}, {strided({2, 3})}, {real({2, 1})}};
  rows.push_back(row(
      "diff", [](const Tensors& x) { return rg::diff(x[0]); }, cases));
  rows.push_back(row("second diff", [](const Tensors& x) { return rg::diff(x[0], 2, 0, x[1], x[2]); },
                     {{real({2, 3}), real({1, 3}), real({2, 3})}}));
  rows.push_back(row(
      "trapezoid", [](const Tensors& x) { return rg::trapezoid(x[0], 0.5); }, cases));
  rows.push_back(row(
      "cumulative_trapezoid", [](const Tensors& x) { return rg::cumulative_trapezoid(x[0], 0.5, 1); },
      cases));
  const std::vector<Tensors> with_points{{real({2, 4}), real({4})}, {real({3, 3}), transposed({3, 3})}};
  rows.push_back(row(
      "trapezoid of points", [](const Tensors& x) { return rg::trapezoid(x[0], x[1]); }, with_points));
  rows.push_back(row(
      "cumulative_trapezoid of points", [](const Tensors& x) { return rg::cumulative_trapezoid(x[0], x[1]); },
      with_points));
}

}  // namespace

Rows statistics_rows() {
  Rows rows;
  add_choices(rows);
  add_cumulative(rows);
  add_distances(rows);
  add_statistics(rows);
  add_differences(rows);
  return rows;
}

}  // namespace derivatives
