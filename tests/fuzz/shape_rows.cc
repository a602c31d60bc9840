// Rows of views, copies that change the layout, and joins.
#include "ops/join.h"
#include "ops/rearrange.h"
#include "ops/shape_ops.h"
#include "ops/view_scatter.h"
#include "tests/fuzz/chooser.h"
#include "tests/fuzz/op_table.h"

namespace fuzz {
namespace {

using Choose = void (*)(Chooser&);
template <class F>
void add(OpRows& rows, std::string_view name, Choose choose, F f, bool is_view = false) {
  rows.push_back({name, choose, [f](const Args& a) { return Tensors{f(a)}; }, is_view, false});
}
template <class F>
void add_view(OpRows& rows, std::string_view name, Choose choose, F f) {
  add(rows, name, choose, f, true);
}
/// Several results.
template <class F>
void add_parts(OpRows& rows, std::string_view name, Choose choose, F f) {
  rows.push_back({name, choose, f, true, false});
}

void any(Chooser& c) { c.value(); }
void along_dim(Chooser& c) { c.dim(c.value(1)); }

void start_and_length(Chooser& c) {
  const Tensor x = c.value(1);
  const int64_t size = x.size(c.dim(x)), start = c.random.below(size + 1);
  c.integer(start);
  c.integer(c.random.below(size - start + 1));
}

void add_parts_of_dims(OpRows& rows) {
  add_view(rows, "narrow", start_and_length,
           [](auto& a) { return rg::narrow(a[0], a.i(0), a.i(1), a.i(2)); });
  add_view(
      rows, "slice",
      [](Chooser& c) {
        start_and_length(c);
        c.integer(c.length(3));
      },
      [](auto& a) { return rg::slice(a[0], a.i(0), a.i(1), a.i(1) + 2 * a.i(2), a.i(3)); });
  add_view(
      rows, "select",
      [](Chooser& c) {
        const Tensor x = c.value(1, 4, [](const Tensor& t) { return t.numel() > 0; });
        c.integer(c.random.below(x.size(c.dim(x))));
      },
      [](auto& a) { return rg::select(a[0], a.i(0), a.i(1)); });
  add_view(
      rows, "diagonal",
      [](Chooser& c) {
        c.value(2);
        c.integer(c.random.between(-1, 1));
      },
      [](auto& a) { return rg::diagonal(a[0], a.i(0), 0, -1); });
  add_view(
      rows, "unfold",
      [](Chooser& c) {
        const Tensor x = c.value(1, 3);
        c.integer(c.length(x.size(c.dim(x))));
        c.integer(c.length(2));
      },
      [](auto& a) { return rg::unfold(a[0], a.i(0), a.i(1), a.i(2)); });
  add_parts(
      rows, "split",
      [](Chooser& c) {
        along_dim(c);
        c.integer(c.length(3));
      },
      [](auto& a) { return rg::split(a[0], a.i(1), a.i(0)); });
  add_parts(
      rows, "chunk",
      [](Chooser& c) {
        along_dim(c);
        c.integer(c.length(3));
      },
      [](auto& a) { return rg::chunk(a[0], a.i(1), a.i(0)); });
  add_parts(rows, "unbind", along_dim, [](auto& a) { return rg::unbind(a[0], a.i(0)); });
}

void add_other_views(OpRows& rows) {
  add_view(
      rows, "transpose",
      [](Chooser& c) {
        const Tensor x = c.value(1);
        c.dim(x);
        c.dim(x);
      },
      [](auto& a) { return rg::transpose(a[0], a.i(0), a.i(1)); });
  add_view(
      rows, "permute", [](Chooser& c) { c.value(3, 3); },
      [](auto& a) {
        return rg::permute(a[0], {2, 0, 1});
      });
  add_view(
      rows, "movedim", [](Chooser& c) { c.value(2); }, [](auto& a) { return rg::movedim(a[0], {0}, {-1}); });
  add_view(
      rows, "expand",
      [](Chooser& c) {
        const Tensor x = c.value(0, 3, [](const Tensor& t) { return t.numel() <= 64; });
        c.integer(c.size());
        for (const int64_t size : x.sizes()) c.integer(size == 1 ? c.length(4) : -1);
      },
      [](auto& a) { return rg::expand(a[0], a.ints); });
  add_view(
      rows, "view", [](Chooser& c) { c.value(1, 4, [](const Tensor& t) { return t.is_contiguous(); }); },
      [](auto& a) {
        return rg::view(a[0], {-1, a[0].size(0)});
      });
  add_view(rows, "flatten", any, [](auto& a) { return rg::flatten(a[0]); });
  add_view(rows, "reshape", any, [](auto& a) { return rg::reshape(a[0], {1, -1}); });
  add_view(rows, "squeeze", any, [](auto& a) { return rg::squeeze(a[0]); });
  add_view(
      rows, "unsqueeze", [](Chooser& c) { c.integer(c.random.between(0, c.value(0, 3).dim())); },
      [](auto& a) { return rg::unsqueeze(a[0], a.i(0)); });
  add_view(rows, "alias", any, [](auto& a) { return rg::alias(a[0]); });
  add_view(
      rows, "as_strided",
      [](Chooser& c) {
        c.forward_value(1, 4, [](const Tensor& t) { return t.numel() >= 6; });
        c.integer(c.length(2));
        c.integer(c.length(2));
        c.integer(c.random.below(2));
      },
      [](auto& a) {
        return rg::as_strided(a[0], {2, 2}, {a.i(0), a.i(1)}, a[0].storage_offset() + a.i(2));
      });
}

void add_copies(OpRows& rows) {
  add(rows, "clone", any, [](auto& a) { return rg::clone(a[0]); });
  add(rows, "contiguous", any, [](auto& a) { return rg::contiguous(rg::t(rg::reshape(a[0], {1, -1}))); });
  for (const auto& [name, dtype] : {std::pair{"to_f32", rg::kFloat32},
                                    {"to_f64", rg::kFloat64},
                                    {"to_bf16", rg::kBFloat16},
                                    {"to_f16", rg::kFloat16}})
    add(rows, name, any, [dtype](auto& a) { return rg::to(a[0], dtype); });
  add(rows, "flip", along_dim, [](auto& a) { return rg::flip(a[0], {a.i(0)}); });
  add(
      rows, "roll",
      [](Chooser& c) {
        along_dim(c);
        c.integer(c.random.between(-2, 2));
      },
      [](auto& a) { return rg::roll(a[0], {a.i(1)}, {a.i(0)}); });
  add(
      rows, "repeat", [](Chooser& c) { c.value(0, 2); },
      [](auto& a) {
        return rg::repeat(a[0], {1, 2, 1});
      });
  add(rows, "repeat_interleave", along_dim, [](auto& a) { return rg::repeat_interleave(a[0], 2, a.i(0)); });
  for (const bool lower : {true, false})
    add(
        rows, lower ? "tril" : "triu",
        [](Chooser& c) {
          c.value(2);
          c.integer(c.random.between(-1, 1));
        },
        [lower](auto& a) { return lower ? rg::tril(a[0], a.i(0)) : rg::triu(a[0], a.i(0)); });
  add(
      rows, "diag", [](Chooser& c) { c.value(1, 2); }, [](auto& a) { return rg::diag(a[0]); });
  add(
      rows, "pad",
      [](Chooser& c) {
        c.value(2, 3, [](const Tensor& t) { return t.numel() > 0; });
        c.word(
            c.random.pick(std::array<std::string_view, 4>{"constant", "constant", "replicate", "circular"}));
      },
      [](auto& a) {
        return rg::pad(a[0], a.word(0) == "constant" ? IntArray{1, -1} : IntArray{1, 1}, a.word(0));
      });
}

void add_joins(OpRows& rows) {
  add(
      rows, "cat",
      [](Chooser& c) {
        const Tensor x = c.value(1);
        IntArray shape = x.sizes();
        shape[static_cast<size_t>(c.dim(x))] = c.size();
        c.shaped(shape);
        if (c.random.chance(0.3)) c.step.operands.push_back(c.step.operands[0]);
      },
      [](auto& a) { return rg::cat(a.operands, a.i(0)); });
  add(
      rows, "stack",
      [](Chooser& c) {
        const Tensor x = c.value(0, 3);
        c.shaped(x.sizes());
        c.integer(c.random.between(-1, x.dim()));
      },
      [](auto& a) { return rg::stack(a.operands, a.i(0)); });
}

void add_replaced_views(OpRows& rows) {
  add(
      rows, "slice_scatter",
      [](Chooser& c) {
        const Tensor x = c.value(1);
        IntArray shape = x.sizes();
        const auto dim = static_cast<size_t>(c.dim(x));
        const int64_t start = c.random.below(shape[dim] + 1);
        shape[dim] = c.random.below(shape[dim] - start + 1);
        c.integer(start);
        c.integer(shape[dim]);
        c.shaped(shape);
      },
      [](auto& a) { return rg::slice_scatter(a[0], a[1], a.i(0), a.i(1), a.i(1) + a.i(2)); });
  add(
      rows, "select_scatter",
      [](Chooser& c) {
        const Tensor x = c.value(1, 4, [](const Tensor& t) { return t.numel() > 0; });
        const int64_t dim = c.dim(x);
        IntArray shape = x.sizes();
        shape.erase(shape.begin() + (dim + x.dim()) % x.dim());
        c.integer(c.random.below(x.size(dim)));
        c.shaped(shape);
      },
      [](auto& a) { return rg::select_scatter(a[0], a[1], a.i(0), a.i(1)); });
  add(
      rows, "diag_embed", [](Chooser& c) { c.value(1, 3), c.integer(c.random.between(-2, 2)); },
      [](auto& a) { return rg::diag_embed(a[0], a.i(0), 0, -1); });
  add(
      rows, "diagonal_scatter", [](Chooser& c) { c.value(2), c.integer(c.random.between(-1, 1)); },
      [](auto& a) {
        return rg::diagonal_scatter(a[0], rg::diagonal(rg::flip(a[0], {0}), a.i(0), 0, -1), a.i(0), 0, -1);
      });
}

}  // namespace

void add_shape_rows(OpRows& rows) {
  add_parts_of_dims(rows);
  add_other_views(rows);
  add_copies(rows);
  add_joins(rows);
  add_replaced_views(rows);
}

}  // namespace fuzz
