// Entries for products, linear algebra, windows, losses, normalisation and dropout: the functions of nn::functional and
// similar ones. The modules made of them are in api_modules.cc.
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::Operand;
using rg::Scalar;

void add_products(ApiTable& t) {
  add(t, "mm", rg::mm, "n m; m p"), add(t, "bmm", rg::bmm, "b n m; b m p"), add(t, "mv", rg::mv, "n m; m"),
      add(t, "dot", rg::dot, "n; n");
  add(t, "matmul", rg::matmul), add(t, "addmm", rg::addmm, "n p; n m; m p"),
      add(t, "baddbmm", rg::baddbmm, "b n p; b n m; b m p");
  add(t, "linear", rg::linear, "b n m; p m; p"), add(t, "outer", rg::outer);
  t.push_back({"einsum", [](Arguments& a) {
                 const std::string equation = a.equation();
                 const Tensors operands = a.get<Tensors>();
                 a.ready();
                 a.keep(rg::einsum(equation, operands));
               }});
  add(t, "tensordot", static_cast<Tensor (*)(Operand, const Tensor&, int64_t)>(rg::tensordot));
  add(t, "tensordot",
      static_cast<Tensor (*)(Operand, const Tensor&, const rg::IntList&, const rg::IntList&)>(rg::tensordot));
  add(t, "inverse", rg::inverse, "N N"), add(t, "det", rg::det, "b N N"),
      add(t, "slogdet", rg::slogdet, "N N");
  add(t, "logdet", rg::logdet, "N N"), add(t, "cholesky", rg::cholesky, "N N"),
      add(t, "solve", rg::solve, "N N; N m");
  add(t, "solve_triangular", rg::solve_triangular, "N N; N m"), add(t, "trace", rg::trace, "n m");
  add(t, "matrix_power", rg::matrix_power, "N N");
  add(t, "scaled_dot_product_attention", rg::scaled_dot_product_attention, "b h N d; b h M d; b h M e; N M");
}

void add_windows(ApiTable& t) {
  add(t, "conv1d", rg::conv1d, "n c L; o c k; o"), add(t, "conv2d", rg::conv2d, "n c H W; o c k l; o"),
      add(t, "conv3d", rg::conv3d, "n c D H W; o c k l m; o");
  add(t, "conv_transpose1d", rg::conv_transpose1d, "n c L; c o k; o"),
      add(t, "conv_transpose2d", rg::conv_transpose2d, "n c H W; c o k l; o");
  add(t, "conv_transpose3d", rg::conv_transpose3d, "n c D H W; c o k l m; o"),
      add(t, "max_pool1d", rg::max_pool1d, "n c L");
  add(t, "max_pool2d", rg::max_pool2d, "n c H W"), add(t, "max_pool3d", rg::max_pool3d, "n c D H W");
  add(t, "max_pool1d_with_indices", rg::max_pool1d_with_indices, "n c L");
  add(t, "max_pool2d_with_indices", rg::max_pool2d_with_indices, "n c H W");
  add(t, "max_pool3d_with_indices", rg::max_pool3d_with_indices, "n c D H W"),
      add(t, "avg_pool1d", rg::avg_pool1d, "n c L");
  add(t, "avg_pool2d", rg::avg_pool2d, "n c H W"), add(t, "avg_pool3d", rg::avg_pool3d, "n c D H W");
  add(t, "adaptive_avg_pool1d", rg::adaptive_avg_pool1d, "n c L");
  add(t, "adaptive_avg_pool2d", rg::adaptive_avg_pool2d, "n c H W");
  add(t, "adaptive_avg_pool3d", rg::adaptive_avg_pool3d, "n c D H W");
  add(t, "adaptive_max_pool1d", rg::adaptive_max_pool1d, "n c L");
  add(t, "adaptive_max_pool2d", rg::adaptive_max_pool2d, "n c H W");
  add(t, "adaptive_max_pool3d", rg::adaptive_max_pool3d, "n c D H W");
  add(t, "adaptive_max_pool1d_with_indices", rg::adaptive_max_pool1d_with_indices, "n c L");
  add(t, "adaptive_max_pool2d_with_indices", rg::adaptive_max_pool2d_with_indices, "n c H W");
  add(t, "adaptive_max_pool3d_with_indices", rg::adaptive_max_pool3d_with_indices, "n c D H W");
  add(t, "interpolate", rg::interpolate);
}

void add_grids_and_channels(ApiTable& t) {
  add(t, "im2col", rg::im2col, "n c H W"), add(t, "col2im", rg::col2im, "n c L");
  add(t, "lp_pool1d", rg::lp_pool1d, "n c L"), add(t, "lp_pool2d", rg::lp_pool2d, "n c H W"),
      add(t, "lp_pool3d", rg::lp_pool3d, "n c D H W");
  add(t, "grid_sample", rg::grid_sample, "n c H W; n h w x"), add(t, "affine_grid", rg::affine_grid, "n h w");
  add(t, "pixel_shuffle", rg::pixel_shuffle, "n c H W"),
      add(t, "pixel_unshuffle", rg::pixel_unshuffle, "n c H W");
  add(t, "channel_shuffle", rg::channel_shuffle, "n c L"),
      add(t, "local_response_norm", rg::local_response_norm, "n c L");
  add(t, "embedding_bag", rg::embedding_bag, "n m:r; r d");
}

void add_margin_losses(ApiTable& t) {
  add(t, "bilinear", rg::bilinear, "n i; n j; o i j; o"),
      add(t, "pairwise_distance", rg::pairwise_distance, "n m; n m");
  add(t, "margin_ranking_loss", rg::margin_ranking_loss, "n m; n m; n m"),
      add(t, "hinge_embedding_loss", rg::hinge_embedding_loss, "n m; n m");
  add(t, "cosine_embedding_loss", rg::cosine_embedding_loss, "n m; n m; n"),
      add(t, "triplet_margin_loss", rg::triplet_margin_loss, "n m; n m; n m");
  add(t, "multi_margin_loss", rg::multi_margin_loss, "n c; n:c; c"),
      add(t, "multilabel_margin_loss", rg::multilabel_margin_loss, "n c; n c:c");
  add(t, "soft_margin_loss", rg::soft_margin_loss, "n m; n m"),
      add(t, "multilabel_soft_margin_loss", rg::multilabel_soft_margin_loss, "n m; n m; m");
  add(t, "poisson_nll_loss", rg::poisson_nll_loss, "n m; n m"),
      add(t, "gaussian_nll_loss", rg::gaussian_nll_loss, "n m; n m; n m");
  add(t, "ctc_loss", rg::ctc_loss, "t n c; n s:c; n:t; n:s");
}

void add_losses(ApiTable& t) {
  using Smoothed = Tensor (*)(Operand, const Tensor&, const Tensor&, rg::LossReduction, int64_t, Scalar);
  using Plain = Tensor (*)(Operand, const Tensor&, const Tensor&, rg::LossReduction, int64_t);
  add(t, "cross_entropy", static_cast<Smoothed>(rg::cross_entropy), "n c; n:c; c");
  add(t, "nll_loss", static_cast<Plain>(rg::nll_loss), "n c; n:c; c");
  add(t, "mse_loss", rg::mse_loss, "n m; n m"), add(t, "l1_loss", rg::l1_loss);
  add(t, "smooth_l1_loss", rg::smooth_l1_loss), add(t, "huber_loss", rg::huber_loss);
  add(t, "binary_cross_entropy", rg::binary_cross_entropy, "n m; n m; m"),
      add(t, "kl_div", rg::kl_div, "n m; n m");
  add(t, "binary_cross_entropy_with_logits", rg::binary_cross_entropy_with_logits, "n m; n m; m; m");
  add(t, "cosine_similarity", rg::cosine_similarity, "n m; n m"),
      add(t, "layer_norm", rg::layer_norm, "b n d; =d; d; d");
  add(t, "rms_norm", rg::rms_norm, "b n d; =d; d"), add(t, "group_norm", rg::group_norm, "n c H W; c; c");
  add(t, "batch_norm", rg::batch_norm, "n c H W; c; c; c; c"),
      add(t, "instance_norm", rg::instance_norm, "n c H W; c; c; c; c");
  add(t, "dropout", rg::dropout), add(t, "feature_dropout", rg::feature_dropout);
  add(t, "dropout1d", rg::dropout1d), add(t, "dropout2d", rg::dropout2d);
  add(t, "dropout3d", rg::dropout3d), add(t, "alpha_dropout", rg::alpha_dropout);
  add(t, "feature_alpha_dropout", rg::feature_alpha_dropout);
}

}  // namespace

void add_nn_api(ApiTable& table) {
  add_products(table);
  add_windows(table);
  add_grids_and_channels(table);
  add_losses(table);
  add_margin_losses(table);
}

}  // namespace fuzz
