// Rows of reductions over everything, along rows (the last dim) and along columns (the first); scans and sorts.
#include "benchmarks/op_rows/row.h"

namespace bench {

Table reduction_rows() {
  return {
      {"sum", "x:n", [](In t) { return rg::sum(t[0]); }},
      {"mean", "x:n", [](In t) { return rg::mean(t[0]); }},
      {"prod", "g:n", [](In t) { return rg::prod(t[0]); }},
      {"amax", "x:n", [](In t) { return rg::amax(t[0]); }},
      {"amin", "x:n", [](In t) { return rg::amin(t[0]); }},
      {"max", "x:n", [](In t) { return rg::max(t[0]); }},
      {"argmax", "~x:n", [](In t) { return rg::argmax(t[0]); }},
      {"var", "x:n", [](In t) { return rg::var(t[0]); }},
      {"std", "x:n", [](In t) { return rg::std(t[0]); }},
      {"logsumexp", "x:n", [](In t) { return rg::logsumexp(t[0], 0); }},
      {"norm_1", "x:n", [](In t) { return rg::vector_norm(t[0], 1); }},
      {"norm_2", "x:n", [](In t) { return rg::vector_norm(t[0]); }},
      {"norm_3", "x:n", [](In t) { return rg::vector_norm(t[0], 3); }},
      {"norm_inf", "x:n", [](In t) { return rg::vector_norm(t[0], 1.0 / 0.0); }},
      {"all", "b:n", [](In t) { return rg::all(t[0]); }},
      {"any", "~x:n", [](In t) { return rg::any(t[0]); }},
      {"count_nonzero", "~x:n", [](In t) { return rg::count_nonzero(t[0]); }},
      {"sum_int64", "l:n", [](In t) { return rg::sum(t[0]); }},
      {"sum_bool", "b:n", [](In t) { return rg::sum(t[0]); }},
      {"sum_bf16", "h:n", [](In t) { return rg::sum(t[0]); }},
      {"sum_f64", "d:n", [](In t) { return rg::sum(t[0]); }},
      {"max_int64", "l:n", [](In t) { return rg::max(t[0]); }},

      {"sum_rows", "x:r,c", [](In t) { return rg::sum(t[0], 1); }},
      {"mean_rows", "x:r,c", [](In t) { return rg::mean(t[0], 1); }},
      {"prod_rows", "g:r,c", [](In t) { return rg::prod(t[0], 1); }},
      {"amax_rows", "x:r,c", [](In t) { return rg::amax(t[0], 1); }},
      {"max_rows", "x:r,c", [](In t) { return rg::max(t[0], 1).values; }},
      {"argmax_rows", "~x:r,c", [](In t) { return rg::argmax(t[0], 1); }},
      {"var_rows", "x:r,c", [](In t) { return rg::var(t[0], 1); }},
      {"logsumexp_rows", "x:r,c", [](In t) { return rg::logsumexp(t[0], 1); }},
      {"norm_rows", "x:r,c", [](In t) { return rg::vector_norm(t[0], 2, 1); }},
      {"any_rows", "b:r,c", [](In t) { return rg::any(t[0], 1); }},
      {"sum_int64_rows", "l:r,c", [](In t) { return rg::sum(t[0], 1); }},
      {"max_int64_rows", "l:r,c", [](In t) { return rg::max(t[0], 1).values; }},

      {"sum_columns", "x:r,c", [](In t) { return rg::sum(t[0], 0); }},
      {"mean_columns", "x:r,c", [](In t) { return rg::mean(t[0], 0); }},
      {"prod_columns", "g:r,c", [](In t) { return rg::prod(t[0], 0); }},
      {"amax_columns", "x:r,c", [](In t) { return rg::amax(t[0], 0); }},
      {"max_columns", "x:r,c", [](In t) { return rg::max(t[0], 0).values; }},
      {"argmax_columns", "~x:r,c", [](In t) { return rg::argmax(t[0], 0); }},
      {"var_columns", "x:r,c", [](In t) { return rg::var(t[0], 0); }},
      {"logsumexp_columns", "x:r,c", [](In t) { return rg::logsumexp(t[0], 0); }},
      {"norm_columns", "x:r,c", [](In t) { return rg::vector_norm(t[0], 2, 0); }},
      {"any_columns", "b:r,c", [](In t) { return rg::any(t[0], 0); }},
      {"sum_int64_columns", "l:r,c", [](In t) { return rg::sum(t[0], 0); }},
      {"sum_bf16_columns", "h:r,c", [](In t) { return rg::sum(t[0], 0); }},
      {"sum_middle", "x:16,256,512", [](In t) { return rg::sum(t[0], 1); }},
      {"sum_outer_dims", "x:16,64,2048",
       [](In t) {
         return rg::sum(t[0], rg::IntList{0, 2});
       }},

      {"cumsum", "x:n", [](In t) { return rg::cumsum(t[0], 0); }},
      {"cumsum_rows", "x:r,c", [](In t) { return rg::cumsum(t[0], 1); }},
      {"cumsum_columns", "x:r,c", [](In t) { return rg::cumsum(t[0], 0); }},
      {"cumsum_int64", "l:n", [](In t) { return rg::cumsum(t[0], 0); }},
      {"cumprod_rows", "u:r,c", [](In t) { return rg::cumprod(t[0], 1); }},
      {"cumprod_columns", "u:r,c", [](In t) { return rg::cumprod(t[0], 0); }},

      {"sort", "x:n", [](In t) { return rg::sort(t[0]).values; }},
      {"sort_rows", "x:r,c", [](In t) { return rg::sort(t[0], 1).values; }},
      {"sort_columns", "x:r,c", [](In t) { return rg::sort(t[0], 0).values; }},
      {"sort_int64", "l:n", [](In t) { return rg::sort(t[0]).values; }},
      {"sort_f64", "d:n", [](In t) { return rg::sort(t[0]).values; }},
      {"sort_bf16", "h:n", [](In t) { return rg::sort(t[0]).values; }},
      {"argsort", "~x:n", [](In t) { return rg::argsort(t[0]); }},
      {"argsort_descending", "~x:n", [](In t) { return rg::argsort(t[0], -1, true); }},
      {"topk_100", "x:n", [](In t) { return rg::topk(t[0], 100).values; }},
      {"topk_10_rows", "x:r,c", [](In t) { return rg::topk(t[0], 10, 1).values; }},
      {"topk_50_rows", "x:r,c", [](In t) { return rg::topk(t[0], 50, 1).values; }},
  };
}

}  // namespace bench
