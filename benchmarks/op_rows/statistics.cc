// Rows of order statistics, cumulative extremes, statistics, distances, counts and searches.
#include "benchmarks/op_rows/row.h"

namespace bench {

Table statistics_rows() {
  return {
      {"median", "x:n", [](In t) { return rg::median(t[0]); }},
      {"median_rows", "x:r,c", [](In t) { return rg::median(t[0], 1).values; }},
      {"nanmedian_columns", "x:r,c", [](In t) { return rg::nanmedian(t[0], 0).values; }},
      {"kthvalue_rows", "x:r,c", [](In t) { return rg::kthvalue(t[0], 10, 1).values; }},
      {"mode_rows", "x:r,c", [](In t) { return rg::mode(t[0], 1).values; }},
      {"quantile_rows", "x:r,c", [](In t) { return rg::quantile(t[0], 0.3, 1); }},
      {"cummax_rows", "x:r,c", [](In t) { return rg::cummax(t[0], 1).values; }},
      {"cummin_columns", "x:r,c", [](In t) { return rg::cummin(t[0], 0).values; }},
      {"logcumsumexp_rows", "x:r,c", [](In t) { return rg::logcumsumexp(t[0], 1); }},
      {"nansum", "x:n", [](In t) { return rg::nansum(t[0]); }},
      {"nanmean_rows", "x:r,c", [](In t) { return rg::nanmean(t[0], 1); }},
      {"var_mean_rows", "x:r,c", [](In t) { return std::get<0>(rg::var_mean(t[0], 1)); }},
      {"aminmax", "x:n", [](In t) { return rg::aminmax(t[0]).max; }},
      {"renorm", "x:r,c", [](In t) { return rg::renorm(t[0], 2, 0, 1); }},
      {"cov", "x:100,10000", [](In t) { return rg::cov(t[0]); }, 2.0 * 100 * 100 * 10000},
      {"dist", "x:n x:n", [](In t) { return rg::dist(t[0], t[1]); }},
      {"cdist", "x:500,64 x:400,64", [](In t) { return rg::cdist(t[0], t[1]); }, 3.0 * 500 * 400 * 64},
      {"cdist_1", "x:500,64 x:400,64", [](In t) { return rg::cdist(t[0], t[1], 1); }, 3.0 * 500 * 400 * 64},
      {"pdist", "x:500,64", [](In t) { return rg::pdist(t[0]); }, 3.0 * 500 * 500 / 2 * 64},
      {"diff_rows", "x:r,c", [](In t) { return rg::diff(t[0]); }},
      {"trapezoid_rows", "x:r,c", [](In t) { return rg::trapezoid(t[0]); }},
      {"histc", "~x:n", [](In t) { return rg::histc(t[0], 100, -3, 3); }},
      {"bincount", "~i1000:n", [](In t) { return rg::bincount(t[0]); }},
      {"unique", "l:n", [](In t) { return rg::unique(t[0]).output; }},
      {"searchsorted", "~i1000:1000 ~i1000:n", [](In t) { return rg::searchsorted(t[0], t[1]); }},
  };
}

}  // namespace bench
