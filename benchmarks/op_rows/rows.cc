// Rows of softmax, normalisations and losses.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

rg::Tensor running(In t, double value) { return rg::full({t[0].impl().shape()[1]}, value, t.options()); }

}  // namespace

Table row_rows() {
  return {
      {"softmax", "x:r,c", [](In t) { return rg::softmax(t[0], 1); }},
      {"log_softmax", "x:r,c", [](In t) { return rg::log_softmax(t[0], 1); }},
      {"softmax_columns", "x:r,c", [](In t) { return rg::softmax(t[0], 0); }},
      {"log_softmax_columns", "x:r,c", [](In t) { return rg::log_softmax(t[0], 0); }},
      {"softmax_short", "x:65536,16", [](In t) { return rg::softmax(t[0], 1); }},
      {"softmax_bf16", "h:r,c", [](In t) { return rg::softmax(t[0], 1); }},

      {"layer_norm", "x:r,c x:c x:c",
       [](In t) { return rg::layer_norm(t[0], t[1].impl().shape(), t[1], t[2]); }},
      {"layer_norm_plain", "x:r,c", [](In t) { return rg::layer_norm(t[0], {t[0].impl().shape()[1]}); }},
      {"rms_norm", "x:r,c x:c", [](In t) { return rg::rms_norm(t[0], t[1].impl().shape(), t[1]); }},
      {"group_norm", "x:16,64,28,28 x:64 x:64", [](In t) { return rg::group_norm(t[0], 8, t[1], t[2]); }},
      {"batch_norm", "x:16,64,28,28 x:64 x:64",
       [](In t) { return rg::batch_norm(t[0], t[1], t[2], {}, {}, true); }},
      {"batch_norm_eval", "x:16,64,28,28 x:64 x:64",
       [](In t) { return rg::batch_norm(t[0], t[1], t[2], running(t, 0), running(t, 1)); }},
      {"batch_norm_2d", "x:r,c x:c x:c", [](In t) { return rg::batch_norm(t[0], t[1], t[2], {}, {}, true); }},
      {"instance_norm", "x:16,64,28,28 x:64 x:64",
       [](In t) { return rg::instance_norm(t[0], t[1], t[2]); }},

      {"cross_entropy", "x:r,c ~ic:r", [](In t) { return rg::cross_entropy(t[0], t[1]); }},
      {"cross_entropy_vocab", "x:128,50257 ~i50257:128", [](In t) { return rg::cross_entropy(t[0], t[1]); }},
      {"cross_entropy_smooth", "x:r,c ~ic:r",
       [](In t) { return rg::cross_entropy(t[0], t[1], {}, "mean", -100, 0.1); }},
      {"nll_loss", "x:r,c ~ic:r", [](In t) { return rg::nll_loss(t[0], t[1]); }},
      {"mse_loss", "x:n ~x:n", [](In t) { return rg::mse_loss(t[0], t[1]); }},
      {"l1_loss", "x:n ~x:n", [](In t) { return rg::l1_loss(t[0], t[1]); }},
      {"smooth_l1_loss", "x:n ~x:n", [](In t) { return rg::smooth_l1_loss(t[0], t[1]); }},
      {"huber_loss", "x:n ~x:n", [](In t) { return rg::huber_loss(t[0], t[1]); }},
      {"mse_loss_none", "x:n ~x:n", [](In t) { return rg::mse_loss(t[0], t[1], "none"); }},
      {"binary_cross_entropy", "u:n ~u:n", [](In t) { return rg::binary_cross_entropy(t[0], t[1]); }},
      {"bce_with_logits", "x:n ~u:n", [](In t) { return rg::binary_cross_entropy_with_logits(t[0], t[1]); }},
      {"kl_div", "x:r,c ~u:r,c", [](In t) { return rg::kl_div(t[0], t[1], "batchmean"); }},
      {"kl_div_log", "x:r,c ~x:r,c", [](In t) { return rg::kl_div(t[0], t[1], "batchmean", true); }},
      {"cosine_similarity", "x:r,c x:r,c", [](In t) { return rg::cosine_similarity(t[0], t[1]); }},
  };
}

}  // namespace bench
