// Losses, by input and, if the target may be differentiated, by target.
#include "ops/losses.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

using Loss = std::function<Tensor(const Tensor&, const Tensor&, std::string_view)>;

/// Of numbers against numbers; `broadcasts`: sizes need not be the same.
void add(Rows& rows, const std::string& name, const Loss& f, Range x = {}, Range target = {}) {
  rows.push_back(row(name + ", none", [f](const Tensors& in) { return f(in[0], in[1], "none"); },
                     {{real({2, 3}, x), transposed({2, 3}, target)},
                      {real({}, x), real({}, target)},
                      {real({0, 2}, x), real({0, 2}, target)}}));
  rows.push_back(row(name + ", mean", [f](const Tensors& in) { return f(in[0], in[1], "mean"); },
                     {{transposed({2, 1, 3}, x), real({2, 1, 3}, target)},
                      {expanded({2, 3}, x), fixed(real({2, 3}, target))}}));
  rows.push_back(row(name + ", sum", [f](const Tensors& in) { return f(in[0], in[1], "sum"); },
                     {{fixed(real({5}, x)), strided({5}, target)}, {real({0}, x), real({0}, target)}}));
}

void add_of_numbers(Rows& rows) {
  add(rows, "mse_loss", [](auto& x, auto& t, auto r) { return rg::mse_loss(x, t, r); });
  add(rows, "l1_loss", [](auto& x, auto& t, auto r) { return rg::l1_loss(x, t, r); });
  add(rows, "smooth_l1_loss", [](auto& x, auto& t, auto r) { return rg::smooth_l1_loss(x, t, r, 0.7); });
  add(rows, "huber_loss", [](auto& x, auto& t, auto r) { return rg::huber_loss(x, t, r, 0.7); });
  add(rows, "binary_cross_entropy",
      [](auto& x, auto& t, auto r) { return rg::binary_cross_entropy(x, t, {}, r); }, {0.2, 0.8}, {0.1, 0.9});
  add(rows, "binary_cross_entropy_with_logits",
      [](auto& x, auto& t, auto r) { return rg::binary_cross_entropy_with_logits(x, t, {}, {}, r); }, {-3, 3},
      {0.1, 0.9});
  add(rows, "kl_div", [](auto& x, auto& t, auto r) { return rg::kl_div(x, t, r); }, {-2, -0.3}, {0.2, 0.8});
  add(rows, "kl_div of logarithms", [](auto& x, auto& t, auto r) { return rg::kl_div(x, t, r, true); },
      {-2, -0.3}, {-2, -0.3});
  rows.push_back(
      row("bce with weights",
          [](const Tensors& x) { return rg::binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3]); },
          {{real({2, 3}), real({2, 3}, {0.1, 0.9}), real({3}, {0.5, 2}), real({3}, {0.5, 2})}}));
  rows.push_back(
      row("cosine_similarity", [](const Tensors& x) { return rg::cosine_similarity(x[0], x[1], -1); },
          {{real({2, 3}), real({2, 3})}, {transposed({2, 3}), real({1, 3})}, {real({3}), expanded({2, 3})}}));
}

void add_of_classes(Rows& rows) {
  const Tensor two = ints({2, 0}, {2}), ignored = ints({1, -100}, {2}), deep = ints({0, 2, 1, 1}, {2, 2});
  for (const char* reduction : {"none", "sum", "mean"}) {
    const std::string r = reduction;
    rows.push_back(row("cross_entropy, " + r,
                       [r](const Tensors& x) { return rg::cross_entropy(x[0], x[1], {}, r); },
                       {{real({2, 3}), two},
                        {transposed({2, 3}), ignored},
                        {real({2, 3, 2}), deep},
                        {real({3}), ints({1}, {})},
                        {expanded({2, 3}), two}}));
    rows.push_back(row("cross_entropy with weights and smoothing, " + r,
                       [r](const Tensors& x) { return rg::cross_entropy(x[0], x[1], x[2], r, -100, 0.2); },
                       {{real({2, 3}), two, fixed(real({3}, {0.5, 2}))},
                        {transposed({2, 3}), ignored, fixed(real({3}, {0.5, 2}))}}));
    rows.push_back(row("nll_loss, " + r,
                       [r](const Tensors& x) { return rg::nll_loss(x[0], x[1], {}, r); },
                       {{real({2, 3}), two}, {transposed({2, 3}), ignored}, {real({2, 3, 2}), deep}}));
  }
  rows.push_back(
      row("cross_entropy of probabilities", [](const Tensors& x) { return rg::cross_entropy(x[0], x[1]); },
          {{real({2, 3}), real({2, 3}, {0.1, 0.9})}, {transposed({2, 3, 2}), real({2, 3, 2}, {0.1, 0.9})}}));
  rows.push_back(row("nll_loss with weights", [](const Tensors& x) { return rg::nll_loss(x[0], x[1], x[2]); },
                     {{real({2, 3}), two, fixed(real({3}, {0.5, 2}))}}));
}

}  // namespace

Rows loss_rows() {
  Rows rows;
  add_of_numbers(rows);
  add_of_classes(rows);
  return rows;
}

}  // namespace derivatives
