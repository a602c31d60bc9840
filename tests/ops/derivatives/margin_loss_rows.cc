// Losses of margins, likelihoods and alignments, and functions of pairs of vectors.
#include "ops/ctc_loss.h"
#include "ops/likelihood_losses.h"
#include "ops/margin_losses.h"
#include "ops/softmax.h"
#include "ops/vector_pairs.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

void add_pairs(Rows& rows) {
  rows.push_back(row("bilinear", [](const Tensors& x) { return rg::bilinear(x[0], x[1], x[2], x[3]); },
                     {{real({2, 3}), real({2, 2}), real({2, 3, 2}), real({2})},
                      {transposed({2, 2, 3}), expanded({2, 2, 1}), transposed({2, 3, 1}), real({2})},
                      {real({3}), real({2}), real({1, 3, 2}), fixed(real({1}))}}));
  for (const double p : {1., 2., 3.})
    rows.push_back(row("pairwise_distance, p " + std::to_string(p),
                       [p](const Tensors& x) { return rg::pairwise_distance(x[0], x[1], p); },
                       {{real({2, 3}), real({2, 3})}, {transposed({2, 3}), real({3})}}));
}

void add_margins(Rows& rows) {
  const Tensor sides = ints({1, -1, -1, 1, 1, -1}, {2, 3}), side = ints({1, -1}, {2});
  for (const char* reduction : {"none", "mean"}) {
    const std::string r = reduction, suffix = ", " + r;
    rows.push_back(row("margin_ranking_loss" + suffix,
                       [r](const Tensors& x) { return rg::margin_ranking_loss(x[0], x[1], x[2], 0.3, r); },
                       {{real({2, 3}), transposed({2, 3}), sides}}));
    rows.push_back(row("hinge_embedding_loss" + suffix,
                       [r](const Tensors& x) { return rg::hinge_embedding_loss(x[0], x[1], 0.7, r); },
                       {{real({2, 3}), sides}, {transposed({2, 3}), sides}}));
    rows.push_back(row("cosine_embedding_loss" + suffix,
                       [r](const Tensors& x) { return rg::cosine_embedding_loss(x[0], x[1], x[2], -0.9, r); },
                       {{real({2, 3}), transposed({2, 3}), side}, {real({3}), real({3}), ints({1}, {})}}));
    rows.push_back(row(
        "triplet_margin_loss" + suffix,
        [r](const Tensors& x) { return rg::triplet_margin_loss(x[0], x[1], x[2], 3.0, 2.0, 1e-6, true, r); },
        {{real({2, 3}), transposed({2, 3}), real({1, 3})}, {real({3}), real({3}), real({3})}}));
    rows.push_back(row("soft_margin_loss" + suffix,
                       [r](const Tensors& x) { return rg::soft_margin_loss(x[0], x[1], r); },
                       {{real({2, 3}), transposed({2, 3})}, {real({}), real({})}}));
    rows.push_back(row("multilabel_soft_margin_loss" + suffix,
                       [r](const Tensors& x) { return rg::multilabel_soft_margin_loss(x[0], x[1], x[2], r); },
                       {{real({2, 3}), transposed({2, 3}, {0.1, 0.9}), real({3}, {0.5, 2})}}));
  }
}

void add_classes(Rows& rows) {
  const Tensor two = ints({2, 0}, {2}), labels = ints({1, 2, -1, 0, -1, 1}, {2, 3});
  for (const int p : {1, 2})
    rows.push_back(row(
        "multi_margin_loss, p " + std::to_string(p),
        [p](const Tensors& x) { return rg::multi_margin_loss(x[0], x[1], p, 1.0, x[2], "none"); },
        {{real({2, 3}), two, fixed(real({3}, {0.5, 2}))}, {transposed({2, 3}), two, real({3}, {0.5, 2})}}));
  rows.push_back(row("multi_margin_loss, mean",
                     [](const Tensors& x) { return rg::multi_margin_loss(x[0], x[1]); },
                     {{real({2, 3}), two}, {real({3}), ints({1}, {})}, {real({}), ints({0}, {})}}));
  for (const char* reduction : {"none", "sum"}) {
    const std::string r = reduction;
    rows.push_back(
        row("multilabel_margin_loss, " + r,
            [r](const Tensors& x) { return rg::multilabel_margin_loss(x[0], x[1], r); },
            {{real({2, 3}), labels}, {transposed({2, 3}), labels}, {real({3}), ints({1, 1, -1}, {3})}}));
  }
}

void add_likelihoods(Rows& rows) {
  for (const bool full : {false, true}) {
    const std::string suffix = full ? ", full" : "";
    for (const bool log_input : {false, true})
      rows.push_back(row(
          (log_input ? "poisson_nll_loss" : "poisson_nll_loss of a rate") + suffix,
          [=](const Tensors& x) { return rg::poisson_nll_loss(x[0], x[1], log_input, full, 1e-3); },
          {{real({2, 3}, {0.3, 2}), transposed({2, 3}, {0.2, 3})}, {real({}, {0.3, 2}), real({}, {2, 3})}}));
    rows.push_back(
        row("gaussian_nll_loss" + suffix,
            [=](const Tensors& x) { return rg::gaussian_nll_loss(x[0], x[1], x[2], full, 1e-6, "none"); },
            {{real({2, 3}), transposed({2, 3}), real({2, 3}, {0.5, 2})},
             {transposed({2, 3}), fixed(real({2, 3})), real({2}, {0.5, 2})},
             {real({2, 3}), real({3}), expanded({2, 1}, {0.5, 2})}}));
  }
}

// Repeated labels, an empty target, one that fills all steps; one after the other, and of a single sample.
void add_alignments(Rows& rows) {
  const Tensor padded = ints({1, 1, 2, 3, 1, 1}, {2, 3}), joined = ints({1, 1, 3}, {3});
  for (const char* reduction : {"none", "mean"}) {
    const std::string r = reduction;
    const auto f = [r](const Tensors& x) { return rg::ctc_loss(x[0], x[1], x[2], x[3], 0, r); };
    rows.push_back(row("ctc_loss, " + r, f,
                       {{real({5, 2, 4}, {-2, 0}), padded, ints({5, 4}, {2}), ints({3, 1}, {2})},
                        {transposed({3, 2, 4}, {-2, 0}), joined, ints({3, 3}, {2}), ints({2, 1}, {2})},
                        {real({4, 2, 4}, {-2, 0}), padded, ints({4, 2}, {2}), ints({0, 2}, {2})},
                        {real({4, 3}, {-2, 0}), ints({1, 2}, {2}), ints({4}, {}), ints({2}, {})}}));
  }
  rows.push_back(
      row("ctc_loss of logits",
          [](const Tensors& x) {
            return rg::ctc_loss(rg::log_softmax(x[0], 2), x[1], x[2], x[3], 3, "sum", true);
          },
          {{real({4, 2, 4}), ints({1, 1, 2, 0, 1, 1}, {2, 3}), ints({4, 2}, {2}), ints({2, 3}, {2})}}));
}

}  // namespace

Rows margin_loss_rows() {
  Rows rows;
  add_pairs(rows);
  add_margins(rows);
  add_classes(rows);
  add_likelihoods(rows);
  add_alignments(rows);
  return rows;
}

}  // namespace derivatives
