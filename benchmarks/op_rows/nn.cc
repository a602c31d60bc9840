// Rows of what models of vision, speech and ranking use besides convolutions: grids, patches, bags of rows, and losses
// of margins, likelihoods and alignments.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

rg::Tensor lengths(In t, int64_t n, double length) { return rg::full({n}, length, t.options(rg::kInt64)); }

}  // namespace

Table nn_rows() {
  return {
      {"im2col", "x:16,64,56,56", [](In t) { return rg::im2col(t[0], 3, 1, 1); }},
      {"col2im", "x:16,576,784", [](In t) { return rg::col2im(t[0], 28, 3, 1, 1); }},
      {"lp_pool2d", "x:16,64,56,56", [](In t) { return rg::lp_pool2d(t[0], 2, 2); }},
      {"pixel_shuffle", "x:16,64,56,56", [](In t) { return rg::pixel_shuffle(t[0], 2); }},
      {"channel_shuffle", "x:16,64,56,56", [](In t) { return rg::channel_shuffle(t[0], 8); }},
      {"local_response_norm", "x:16,64,56,56", [](In t) { return rg::local_response_norm(t[0], 5); }},
      {"grid_sample", "x:16,32,56,56 x:16,56,56,2", [](In t) { return rg::grid_sample(t[0], t[1]); }},
      {"grid_sample_bicubic", "x:16,32,56,56 x:16,56,56,2",
       [](In t) { return rg::grid_sample(t[0], t[1], "bicubic", "border"); }},
      {"affine_grid", "x:16,2,3",
       [](In t) {
         return rg::affine_grid(t[0], {16, 3, 224, 224});
       }},
      {"embedding_bag", "~i10000:4096,32 x:10000,64", [](In t) { return rg::embedding_bag(t[0], t[1]); }},
      {"embedding_bag_max", "~i10000:4096,32 x:10000,64",
       [](In t) { return rg::embedding_bag(t[0], t[1], {}, false, "max"); }},
      {"bilinear", "x:1024,64 x:1024,64 x:64,64,64", [](In t) { return rg::bilinear(t[0], t[1], t[2]); },
       2. * 1024 * 64 * 64 * 64},
      {"pairwise_distance", "x:r,c x:r,c", [](In t) { return rg::pairwise_distance(t[0], t[1]); }},

      {"triplet_margin_loss", "x:r,c x:r,c x:r,c",
       [](In t) { return rg::triplet_margin_loss(t[0], t[1], t[2]); }},
      {"multi_margin_loss", "x:r,c ~ic:r", [](In t) { return rg::multi_margin_loss(t[0], t[1]); }},
      {"multilabel_margin_loss", "x:128,100 ~i100:128,100",
       [](In t) { return rg::multilabel_margin_loss(t[0], t[1]); }},
      {"soft_margin_loss", "x:n ~x:n", [](In t) { return rg::soft_margin_loss(t[0], t[1]); }},
      {"poisson_nll_loss", "x:n ~u:n", [](In t) { return rg::poisson_nll_loss(t[0], t[1]); }},
      {"gaussian_nll_loss", "x:n ~x:n u:n", [](In t) { return rg::gaussian_nll_loss(t[0], t[1], t[2]); }},
      {"ctc_loss", "x:200,32,64 ~i63:32,40",
       [](In t) {
         return rg::ctc_loss(rg::log_softmax(t[0], 2), t[1], lengths(t, 32, 200), lengths(t, 32, 40), 63);
       }},
  };
}

}  // namespace bench
