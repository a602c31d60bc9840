// Rows of ops that read or write at positions in another tensor.
#include "benchmarks/op_rows/row.h"

namespace bench {

Table index_rows() {
  return {
      {"gather_rows", "x:r,c ~ic:r,c", [](In t) { return rg::gather(t[0], 1, t[1]); }},
      {"gather_columns", "x:r,c ~ir:r,c", [](In t) { return rg::gather(t[0], 0, t[1]); }},
      {"scatter_rows", "x:r,c ~ic:r,c x:r,c", [](In t) { return rg::scatter(t[0], 1, t[1], t[2]); }},
      {"scatter_number", "x:r,c ~ic:r,10", [](In t) { return rg::scatter(t[0], 1, t[1], 2.0); }},
      {"scatter_add_rows", "x:r,c ~ic:r,c x:r,c", [](In t) { return rg::scatter_add(t[0], 1, t[1], t[2]); }},
      {"scatter_add_columns", "x:r,c ~ir:r,c x:r,c",
       [](In t) { return rg::scatter_add(t[0], 0, t[1], t[2]); }},
      {"scatter_add", "x:n ~in:n x:n", [](In t) { return rg::scatter_add(t[0], 0, t[1], t[2]); }},
      {"index_select", "x:n ~in:n", [](In t) { return rg::index_select(t[0], 0, t[1]); }},
      {"index_select_rows", "x:r,c ~ir:r", [](In t) { return rg::index_select(t[0], 0, t[1]); }},
      {"index_select_columns", "x:r,c ~ic:c", [](In t) { return rg::index_select(t[0], 1, t[1]); }},
      {"index_add_rows", "x:r,c ~ir:r x:r,c", [](In t) { return rg::index_add(t[0], 0, t[1], t[2]); }},
      {"index_add_columns", "x:r,c ~ic:c x:r,c", [](In t) { return rg::index_add(t[0], 1, t[1], t[2]); }},
      {"index_copy_rows", "~x:r,c ~ir:r ~x:r,c", [](In t) { return rg::index_copy(t[0], 0, t[1], t[2]); }},
      {"take", "x:n ~in:n", [](In t) { return rg::take(t[0], t[1]); }},
      {"take_along_dim", "x:r,c ~ic:r,c", [](In t) { return rg::take_along_dim(t[0], t[1], 1); }},
      {"getitem_rows", "x:r,c ~ir:r", [](In t) { return rg::getitem(t[0], {t[1]}); }},
      {"getitem_pairs", "x:r,c ~ir:n ~ic:n",
       [](In t) {
         return rg::getitem(t[0], {t[1], t[2]});
       }},
      {"index_put_add", "x:r,c ~ir:n ~ic:n x:n",
       [](In t) {
         return rg::index_put(t[0], {t[1], t[2]}, t[3], true);
       }},
      {"masked_fill", "x:n b:n", [](In t) { return rg::masked_fill(t[0], t[1], 0.0); }},
      {"masked_fill_row", "x:r,c b:c", [](In t) { return rg::masked_fill(t[0], t[1], 0.0); }},
      {"masked_select", "x:n b:n", [](In t) { return rg::masked_select(t[0], t[1]); }},
      {"masked_scatter", "x:n b:n x:n", [](In t) { return rg::masked_scatter(t[0], t[1], t[2]); }},
      {"nonzero", "b:r,c", [](In t) { return rg::nonzero(t[0]); }},
      {"embedding", "~i50257:8,256 x:50257,256", [](In t) { return rg::embedding(t[1], t[0]); }},
      {"embedding_narrow", "~i1000:64,512 x:1000,32", [](In t) { return rg::embedding(t[1], t[0]); }},
      {"one_hot", "ic:r", [](In t) { return rg::one_hot(t[0], t.n <= 1'000 ? 100 : 1'000); }},
  };
}

}  // namespace bench
