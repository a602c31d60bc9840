// Rows of normalisations, losses, dropout and random draws. Draws take their positions in the random stream in the
// order of the steps, which is the same in every run of a program.
#include "ops/norms.h"

#include "ops/activations.h"
#include "ops/dropout.h"
#include "ops/losses.h"
#include "ops/random_ops.h"
#include "ops/softmax.h"
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

/// An input [N, C, ...], and perhaps a weight and a bias for each channel.
void with_channels(Chooser& c) {
  const Tensor x = c.value(2, 4, [](const Tensor& t) { return t.numel() > t.size(1); });
  if (c.random.chance(0.7)) c.shaped({x.size(1)});
  if (c.step.operands.size() > 1 && c.random.chance(0.7)) c.shaped({x.size(1)});
}

void with_last_dim(Chooser& c) {
  const Tensor x = c.value(1, 3, has_elements);
  if (c.random.chance(0.7)) c.shaped({x.size(-1)});
  if (c.step.operands.size() > 1 && c.random.chance(0.7)) c.shaped({x.size(-1)});
}

void add_norms(OpRows& rows) {
  add(rows, "layer_norm", with_last_dim,
      [](auto& a) { return rg::layer_norm(a[0], {a[0].size(-1)}, a.optional(1), a.optional(2)); });
  add(rows, "rms_norm", with_last_dim,
      [](auto& a) { return rg::rms_norm(a[0], {a[0].size(-1)}, a.optional(1), 0.01); });
  add(rows, "group_norm", with_channels,
      [](auto& a) { return rg::group_norm(a[0], 1, a.optional(1), a.optional(2)); });
  add(rows, "batch_norm", with_channels,
      [](auto& a) { return rg::batch_norm(a[0], a.optional(1), a.optional(2), {}, {}, true); });
  add(rows, "instance_norm", with_channels,
      [](auto& a) { return rg::instance_norm(a[0], a.optional(1), a.optional(2)); });
}

void reduction(Chooser& c) { c.word(c.random.pick(std::array<std::string_view, 3>{"none", "sum", "mean"})); }

void same_shape(Chooser& c) {
  c.shaped(c.value(0, 3, has_elements).sizes());
  reduction(c);
}

void classes(Chooser& c) {
  const Tensor x = c.value(2, 2, has_elements);
  c.indices({x.size(0)}, x.size(1));
  reduction(c);
  if (c.random.chance(0.3)) c.shaped({x.size(1)});
}

void add_losses(OpRows& rows) {
  add(rows, "mse_loss", same_shape, [](auto& a) { return rg::mse_loss(a[0], a[1], a.word(0)); });
  add(rows, "l1_loss", same_shape, [](auto& a) { return rg::l1_loss(a[0], a[1], a.word(0)); });
  add(rows, "smooth_l1_loss", same_shape,
      [](auto& a) { return rg::smooth_l1_loss(a[0], a[1], a.word(0), 0.75); });
  add(rows, "huber_loss", same_shape, [](auto& a) { return rg::huber_loss(a[0], a[1], a.word(0), 0.75); });
  add(rows, "binary_cross_entropy", same_shape,
      [](auto& a) { return rg::binary_cross_entropy(fraction(a[0]), fraction(a[1]), {}, a.word(0)); });
  add(rows, "binary_cross_entropy_with_logits", same_shape,
      [](auto& a) { return rg::binary_cross_entropy_with_logits(a[0], fraction(a[1]), {}, {}, a.word(0)); });
  add(rows, "kl_div", same_shape,
      [](auto& a) { return rg::kl_div(rg::logsigmoid(a[0]), fraction(a[1]), a.word(0)); });
  add(
      rows, "cosine_similarity", [](Chooser& c) { c.shaped(c.value(1, 3, has_elements).sizes()); },
      [](auto& a) { return rg::cosine_similarity(positive(a[0]), positive(a[1]), -1); });
  add(rows, "cross_entropy", classes, [](auto& a) {
    return rg::cross_entropy(a[0], a[1], a.operands.size() > 2 ? positive(a[2]) : Tensor(), a.word(0), 1,
                             0.25);
  });
  add(rows, "cross_entropy_plain", classes,
      [](auto& a) { return rg::cross_entropy(a[0], a[1], {}, a.word(0)); });
  add(rows, "nll_loss", classes,
      [](auto& a) { return rg::nll_loss(rg::log_softmax(a[0], 1), a[1], {}, a.word(0)); });
}

void add_draws(OpRows& rows) {
  const Choose any = [](Chooser& c) { c.value(); };
  add(rows, "dropout", any, [](auto& a) { return rg::dropout(a[0], 0.25); });
  add(
      rows, "feature_dropout", [](Chooser& c) { c.value(2); },
      [](auto& a) { return rg::feature_dropout(a[0], 0.25); });
  add(rows, "alpha_dropout", any, [](auto& a) { return rg::alpha_dropout(a[0], 0.25); });
  add(rows, "bernoulli", any, [](auto& a) { return rg::bernoulli(fraction(a[0])); });
  add(rows, "normal", any, [](auto& a) { return rg::normal(a[0], positive(a[0])); });
  add(rows, "randn_like", any, [](auto& a) { return rg::randn_like(a[0]); });
}

}  // namespace

void add_norm_rows(OpRows& rows) {
  add_norms(rows);
  add_losses(rows);
  add_draws(rows);
}

}  // namespace fuzz
