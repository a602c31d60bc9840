// Rows of ops whose operands are indices or masks: gather, scatter, embedding, indexing, sorting.
#include "ops/embedding.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/scatter_reduce.h"
#include "ops/sort.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

using Choose = void (*)(Chooser&);
template <class F>
void add(OpRows& rows, std::string_view name, Choose choose, F f) {
  rows.push_back({name, choose, [f](const Args& a) { return Tensors{f(a)}; }, false, false});
}

bool has_elements(const Tensor& t) { return t.numel() > 0; }

/// A value, a dim of it, and an index of its shape.
Tensor value_and_index(Chooser& c) {
  const Tensor x = c.value(1, 3, has_elements);
  const int64_t dim = c.dim(x);
  IntArray shape = x.sizes();
  for (int64_t& size : shape) size = c.length(size);
  c.indices(shape, x.size(dim));
  return x;
}

/// A value, a dim of it, and a list of entries of the dim.
Tensor value_and_entries(Chooser& c) {
  const Tensor x = c.value(1, 3, has_elements);
  c.indices({c.length(3)}, x.size(c.dim(x)));
  return x;
}

/// As above, and a source of as many entries.
void value_entries_and_source(Chooser& c) {
  const Tensor x = value_and_entries(c);
  IntArray shape = x.sizes();
  const int64_t dim = (c.step.ints[0].value + x.dim()) % x.dim();
  shape[static_cast<size_t>(dim)] = c.machine().find(c.step.operands[1])->numel();
  c.shaped(shape);
}

void value_and_mask(Chooser& c) { c.mask(c.value(0, 3).sizes()); }

void add_along_dims(OpRows& rows) {
  add(
      rows, "gather", [](Chooser& c) { value_and_index(c); },
      [](auto& a) { return rg::gather(a[0], a.i(0), a[1]); });
  const auto with_source = [](Chooser& c) { c.shaped(value_and_index(c).sizes()); };
  add(rows, "scatter", with_source, [](auto& a) { return rg::scatter(a[0], a.i(0), a[1], a[2]); });
  add(
      rows, "scatter_number", [](Chooser& c) { value_and_index(c); },
      [](auto& a) { return rg::scatter(a[0], a.i(0), a[1], 0.5); });
  add(rows, "scatter_add", with_source, [](auto& a) { return rg::scatter_add(a[0], a.i(0), a[1], a[2]); });
  add(
      rows, "take_along_dim", [](Chooser& c) { value_and_index(c); },
      [](auto& a) { return rg::take_along_dim(a[0], a[1], a.i(0)); });
  add(
      rows, "index_select", [](Chooser& c) { value_and_entries(c); },
      [](auto& a) { return rg::index_select(a[0], a.i(0), a[1]); });
  add(rows, "index_add", value_entries_and_source,
      [](auto& a) { return rg::index_add(a[0], a.i(0), a[1], a[2], 0.5); });
  add(rows, "index_copy", value_entries_and_source,
      [](auto& a) { return rg::index_copy(a[0], a.i(0), a[1], a[2]); });
}

void add_masks_and_indexing(OpRows& rows) {
  add(rows, "masked_fill", value_and_mask, [](auto& a) { return rg::masked_fill(a[0], a[1], -0.5); });
  add(
      rows, "masked_fill_value",
      [](Chooser& c) {
        value_and_mask(c);
        c.shaped({});
      },
      [](auto& a) { return rg::masked_fill(a[0], a[1], a[2]); });
  add(rows, "masked_select", value_and_mask, [](auto& a) { return rg::masked_select(a[0], a[1]); });
  add(
      rows, "masked_scatter",
      [](Chooser& c) {
        const Tensor x = c.value(0, 3);
        c.mask(x.sizes());
        c.shaped(x.sizes());
      },
      [](auto& a) { return rg::masked_scatter(a[0], a[1], a[2]); });
  const Choose first_entries = [](Chooser& c) {
    const Tensor x = c.value(1, 3, has_elements);
    c.indices({c.length(3)}, x.size(0));
  };
  add(rows, "getitem", first_entries, [](auto& a) {
    return rg::getitem(a[0], {a[1], rg::indexing::Ellipsis, rg::indexing::None});
  });
  add(
      rows, "index_put",
      [](Chooser& c) {
        const Tensor x = c.value(1, 3, has_elements);
        IntArray shape = x.sizes();
        c.indices({shape[0] = c.length(3)}, x.size(0));
        c.shaped(shape);
        c.flag();
      },
      [](auto& a) { return rg::index_put(a[0], {a[1]}, a[2], a.i(0)); });
  add(
      rows, "take",
      [](Chooser& c) {
        const Tensor x = c.value(1, 3, has_elements);
        c.indices({2, 2}, x.numel());
      },
      [](auto& a) { return rg::take(a[0], a[1]); });
  add(
      rows, "embedding",
      [](Chooser& c) {
        const Tensor x = c.value(2, 2, has_elements);
        c.indices({2, c.length(3)}, x.size(0));
        c.integer(c.random.below(x.size(0)));
        c.flag();
      },
      [](auto& a) {
        return rg::embedding(a[0], a[1], a.i(1) ? std::optional<int64_t>(a.i(0)) : std::nullopt, a.i(1));
      });
}

void add_sorts(OpRows& rows) {
  const Choose choose = [](Chooser& c) {
    const Tensor x = c.value(1, 3, has_elements);
    const int64_t dim = c.dim(x);
    c.flag();
    c.integer(c.length(x.size(dim)));
  };
  rows.push_back({"sort", choose, [](const Args& a) {
                    const rg::ValuesAndIndices r = rg::sort(a[0], a.i(0), a.i(1));
                    return Tensors{r.values, r.indices};
                  }});
  rows.push_back({"topk", choose, [](const Args& a) {
                    const rg::ValuesAndIndices r = rg::topk(a[0], a.i(2), a.i(0), a.i(1));
                    return Tensors{r.values, r.indices};
                  }});
}

void add_reductions(OpRows& rows) {
  for (const auto& [name, reduce] :
       {std::pair{"scatter_prod", "prod"}, {"scatter_mean", "mean"}, {"scatter_amax", "amax"}})
    add(
        rows, name,
        [](Chooser& c) {
          c.shaped(value_and_index(c).sizes());
          c.flag();
        },
        [reduce = reduce](auto& a) { return rg::scatter_reduce(a[0], a.i(0), a[1], a[2], reduce, a.i(1)); });
  add(rows, "index_reduce", value_entries_and_source,
      [](auto& a) { return rg::index_reduce(a[0], a.i(0), a[1], a[2], "mean"); });
  add(
      rows, "index_fill", [](Chooser& c) { value_and_entries(c); },
      [](auto& a) { return rg::index_fill(a[0], a.i(0), a[1], 0.5); });
}

}  // namespace

void add_index_rows(OpRows& rows) {
  add_along_dims(rows);
  add_masks_and_indexing(rows);
  add_sorts(rows);
  add_reductions(rows);
}

}  // namespace fuzz
