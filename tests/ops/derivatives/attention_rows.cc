// Attention: with masks of both kinds, causal, with dims that broadcast.
#include "ops/attention.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

Rows attention_rows() {
  Rows rows;
  rows.push_back(row("attention",
                     [](const Tensors& x) { return rg::scaled_dot_product_attention(x[0], x[1], x[2]); },
                     {{real({2, 3}), real({3, 3}), real({3, 2})},
                      {transposed({2, 1, 2}), real({2, 2, 2}), transposed({2, 2, 2})},
                      {real({2, 1, 2}), real({2, 2}), expanded({2, 2, 1})},
                      {real({1, 2, 3, 1}), transposed({1, 2, 2, 1}), real({1, 2, 2, 2})},
                      {real({0, 2}), real({2, 2}), real({2, 2})}}));
  rows.push_back(
      row("attention, causal",
          [](const Tensors& x) { return rg::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true); },
          {{real({3, 2}), real({3, 2}), real({3, 2})},
           {real({2, 1, 2}), transposed({2, 2, 2}), real({2, 2, 1})},
           {real({1, 2, 2, 1}), real({1, 2, 3, 1}), real({1, 2, 3, 2})}}));
  rows.push_back(
      row("attention, scaled",
          [](const Tensors& x) { return rg::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, false, 0.3); },
          {{real({2, 3}), real({2, 3}), real({2, 1})}}));
  rows.push_back(
      row("attention, masked",
          [](const Tensors& x) { return rg::scaled_dot_product_attention(x[0], x[1], x[2], x[3]); },
          {{real({2, 2}), real({3, 2}), real({3, 2}), mask({1, 0, 1, 1, 1, 0}, {2, 3})},
           {real({2, 2}), real({3, 2}), real({3, 1}), real({2, 3})},
           {real({2, 2, 2}), real({3, 2}), real({3, 1}), real({3})}}));
  return rows;
}

}  // namespace derivatives
