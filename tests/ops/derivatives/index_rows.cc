// Reading and writing at positions: each index has an entry that occurs twice, unless the op says which one wins.
#include "ops/index_ops.h"

#include "ops/arithmetic.h"
#include "ops/embedding.h"
#include "ops/indexing.h"
#include "ops/op.h"
#include "ops/sort.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

std::vector<Tensors> each_layout(const Shape& shape, const Tensors& rest) {
  std::vector<Tensors> cases;
  for (const Tensor& x : {real(shape), transposed(shape), expanded(shape), strided(shape)}) {
    cases.push_back({x});
    cases.back().insert(cases.back().end(), rest.begin(), rest.end());
  }
  return cases;
}

void add_index_ops(Rows& rows) {
  const Tensor index = ints({2, 0, 0, 1, 1, 1}, {2, 3}), entries = ints({2, 0, 2}, {3}),
               distinct = ints({2, 0}, {2});
  rows.push_back(row(
      "gather", [](const Tensors& x) { return rg::gather(x[0], 0, x[1]); }, each_layout({3, 3}, {index})));
  rows.push_back(row("gather of a number", [](const Tensors& x) { return rg::gather(x[0], 0, x[1]); },
                     {{real({}), ints({0, 0}, {2})}}));
  rows.push_back(row(
      "scatter", [](const Tensors& x) { return rg::scatter(x[0], 1, x[1], x[2]); },
      each_layout({2, 3}, {ints({2, 0, 1, 2}, {2, 2}), transposed({2, 3})})));
  rows.push_back(row("scatter in the middle",
                     [](const Tensors& x) { return rg::scatter(x[0], 1, x[1], x[2]); },
                     {{real({1, 3, 2}), ints({2, 1, 0, 0}, {1, 2, 2}), real({1, 2, 2})}}));
  rows.push_back(row(
      "scatter of a number", [](const Tensors& x) { return rg::scatter(x[0], 1, x[1], 2.0); },
      each_layout({2, 3}, {ints({2, 0, 1, 2}, {2, 2})})));
  rows.push_back(row(
      "scatter_add", [](const Tensors& x) { return rg::scatter_add(x[0], 0, x[1], x[2]); },
      each_layout({3, 3}, {index, transposed({2, 3})})));
  rows.push_back(row(
      "index_select", [](const Tensors& x) { return rg::index_select(x[0], 1, x[1]); },
      each_layout({2, 3}, {entries})));
  rows.push_back(row(
      "index_add", [](const Tensors& x) { return rg::index_add(x[0], 1, x[1], x[2], -0.5); },
      each_layout({2, 3}, {entries, transposed({2, 3})})));
  rows.push_back(row(
      "index_copy", [](const Tensors& x) { return rg::index_copy(x[0], 0, x[1], x[2]); },
      each_layout({3, 2}, {distinct, strided({2, 2})})));
  rows.push_back(row("index_copy in the middle",
                     [](const Tensors& x) { return rg::index_copy(x[0], 1, x[1], x[2]); },
                     {{real({2, 3, 2}), distinct, real({2, 2, 2})}}));
  const Tensor some = mask({1, 0, 0, 0, 1, 1}, {2, 3});
  rows.push_back(row(
      "masked_fill", [](const Tensors& x) { return rg::masked_fill(x[0], x[1], x[2]); },
      each_layout({2, 3}, {some, real({})})));
  rows.push_back(row(
      "masked_fill with a number", [](const Tensors& x) { return rg::masked_fill(x[0], x[1], 2.0); },
      each_layout({1, 3}, {some})));
  rows.push_back(row(
      "masked_select", [](const Tensors& x) { return rg::masked_select(x[0], x[1]); },
      each_layout({2, 3}, {some})));
  rows.push_back(row(
      "masked_scatter", [](const Tensors& x) { return rg::masked_scatter(x[0], x[1], x[2]); },
      each_layout({2, 3}, {some, real({4})})));
  rows.push_back(row(
      "take", [](const Tensors& x) { return rg::take(x[0], x[1]); },
      each_layout({2, 3}, {ints({-1, 0, 5, 2}, {2, 2})})));
  rows.push_back(row(
      "take_along_dim", [](const Tensors& x) { return rg::take_along_dim(x[0], x[1], 1); },
      each_layout({2, 3}, {ints({2, 0, 0, 1}, {2, 2})})));
}

void add_indexing(Rows& rows) {
  using namespace rg::indexing;
  const Tensor index = ints({1, 0, 1}, {3});
  rows.push_back(row("getitem",
                     [](const Tensors& x) {
                       return rg::getitem(x[0], {x[1], Ellipsis, rg::indexing::Slice{1, {}, 2}, None});
                     },
                     {{real({2, 2, 3}), index}, {transposed({2, 1, 3}), index}}));
  rows.push_back(row("getitem by two",
                     [](const Tensors& x) {
                       return rg::getitem(x[0], {x[1], rg::indexing::Slice{}, x[1]});
                     },
                     {{real({2, 3, 2}), index}, {expanded({2, 1, 3}), index}}));
  rows.push_back(row(
      "index_put",
      [](const Tensors& x) {
        return rg::index_put(x[0], {x[1], Tensor()}, x[2]);
      },
      each_layout({3, 2}, {ints({2, 0}, {2}), real({2})})));
  rows.push_back(row(
      "index_put, adding", [](const Tensors& x) { return rg::index_put(x[0], {x[1]}, x[2], true); },
      each_layout({3, 2}, {index, transposed({3, 2})})));
}

void add_tables(Rows& rows) {
  const Tensor index = ints({1, 0, 1, 2}, {2, 2});
  rows.push_back(row(
      "embedding", [](const Tensors& x) { return rg::embedding(x[0], x[1]); }, each_layout({3, 2}, {index})));
  rows.push_back(row("embedding_backward with padding",
                     [](const Tensors& x) {
                       return rg::ops::emit<rg::ops::EmbeddingBackward>({x[1].get(), x[0].get()},
                                                                        {{.padding_idx = 1}, 3}, {});
                     },
                     {{real({2, 2, 2}), index}}));
  const std::vector<Tensors> added{{real({3, 2}), real({2, 2, 2}), index},
                                   {transposed({3, 2}), real({2, 2, 2}), index}};
  for (const int64_t padding : {-1, 1})
    rows.push_back(row(
        padding < 0 ? "embedding_add" : "embedding_add with padding",
        [padding](const Tensors& x) {
          return rg::ops::emit<rg::ops::EmbeddingAdd>({x[0].get(), x[2].get(), x[1].get()},
                                                      {.padding_idx = padding}, {});
        },
        added));
  rows.push_back(row(
      "embedding of one index", [](const Tensors& x) { return rg::embedding(x[0], x[1]); },
      each_layout({3, 2}, {ints({1}, {})})));
  for (const bool descending : {false, true})
    rows.push_back(row(descending ? "sort, descending" : "sort",
                       [descending](const Tensors& x) { return rg::sort(x[0], 1, descending).values; },
                       {{real({2, 5})}, {transposed({2, 3, 2})}, {expanded({2, 3})}, {real({0, 3})}}));
  rows.push_back(
      row("sort of a number", [](const Tensors& x) { return rg::sort(x[0]).values; }, {{real({})}}));
  rows.push_back(row(
      "topk", [](const Tensors& x) { return rg::topk(x[0], 2, 0, false).values; }, each_layout({3, 2}, {})));
}

}  // namespace

Rows index_rows() {
  Rows rows;
  add_index_ops(rows);
  add_indexing(rows);
  add_tables(rows);
  return rows;
}

}  // namespace derivatives
