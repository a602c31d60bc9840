// Rows of reductions at positions, of copies with a part replaced, and of joins by rows and columns.
#include "benchmarks/op_rows/row.h"

namespace bench {

Table scatter_rows() {
  return {
      {"scatter_reduce_prod", "x:r,c ~ic:r,c x:r,c",
       [](In t) { return rg::scatter_reduce(t[0], 1, t[1], t[2], "prod"); }},
      {"scatter_reduce_mean", "x:r,c ~ir:r,c x:r,c",
       [](In t) { return rg::scatter_reduce(t[0], 0, t[1], t[2], "mean"); }},
      {"scatter_reduce_amax", "x:r,c ~ic:r,c x:r,c",
       [](In t) { return rg::scatter_reduce(t[0], 1, t[1], t[2], "amax"); }},
      {"scatter_reduce_sum_alone", "x:n ~in:n x:n",
       [](In t) { return rg::scatter_reduce(t[0], 0, t[1], t[2], "sum", false); }},
      {"index_reduce_mean_rows", "x:r,c ~ir:r x:r,c",
       [](In t) { return rg::index_reduce(t[0], 0, t[1], t[2], "mean"); }},
      {"index_reduce_amax_columns", "x:r,c ~ic:c x:r,c",
       [](In t) { return rg::index_reduce(t[0], 1, t[1], t[2], "amax"); }},
      {"index_fill_rows", "x:r,c ~ir:10", [](In t) { return rg::index_fill(t[0], 0, t[1], 0.0); }},
      {"index_fill_columns", "x:r,c ~ic:10", [](In t) { return rg::index_fill(t[0], 1, t[1], 0.0); }},
      {"put", "x:n ~in:n x:n", [](In t) { return rg::put(t[0], t[1], t[2]); }},
      {"isin_few", "~x:n ~x:8", [](In t) { return rg::isin(t[0], t[1]); }},
      {"isin_many", "~l:n ~l:10000", [](In t) { return rg::isin(t[0], t[1]); }},
      {"slice_scatter", "x:r,c x:r,50", [](In t) { return rg::slice_scatter(t[0], t[1], 1, 10, 60); }},
      {"select_scatter", "x:r,c x:c", [](In t) { return rg::select_scatter(t[0], t[1], 0, 3); }},
      {"diagonal_scatter", "x:1024,1024 x:1024", [](In t) { return rg::diagonal_scatter(t[0], t[1]); }},
      {"diag_embed", "x:64,64", [](In t) { return rg::diag_embed(t[0]); }},
      {"block_diag", "x:256,256 x:256,256 x:256,256", [](In t) { return rg::block_diag(t); }},
      {"column_stack", "x:n x:n", [](In t) { return rg::column_stack(t); }},
      {"cartesian_prod", "x:1000 x:1000", [](In t) { return rg::cartesian_prod(t); }},
      {"kron", "x:32,32 x:32,32", [](In t) { return rg::kron(t[0], t[1]); }},
      {"rot90", "x:r,c", [](In t) { return rg::contiguous(rg::rot90(t[0])); }},
      {"vander", "x:1000", [](In t) { return rg::vander(t[0], 100); }},
  };
}

}  // namespace bench
