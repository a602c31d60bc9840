// Entries for products, linear algebra, windows, losses, normalisation and dropout: the functions of
// nn::functional and their like. The modules made of them are in api_modules.cc.
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::Operand;
using rg::Scalar;

void add_products(ApiTable& t) {
  add(t, "mm", rg::mm), add(t, "bmm", rg::bmm), add(t, "mv", rg::mv), add(t, "dot", rg::dot);
  add(t, "matmul", rg::matmul), add(t, "addmm", rg::addmm), add(t, "baddbmm", rg::baddbmm);
  add(t, "linear", rg::linear), add(t, "outer", rg::outer);
  t.push_back({"einsum", [](Arguments& a) {
                 const std::string equation = a.equation();
                 const Tensors operands = a.get<Tensors>();
                 a.ready();
                 a.keep(rg::einsum(equation, operands));
               }});
  add(t, "tensordot", static_cast<Tensor (*)(Operand, const Tensor&, int64_t)>(rg::tensordot));
  add(t, "tensordot",
      static_cast<Tensor (*)(Operand, const Tensor&, const rg::IntList&, const rg::IntList&)>(rg::tensordot));
  add(t, "inverse", rg::inverse), add(t, "det", rg::det), add(t, "slogdet", rg::slogdet);
  add(t, "logdet", rg::logdet), add(t, "cholesky", rg::cholesky), add(t, "solve", rg::solve);
  add(t, "solve_triangular", rg::solve_triangular), add(t, "trace", rg::trace);
  add(t, "matrix_power", rg::matrix_power);
  add(t, "scaled_dot_product_attention", rg::scaled_dot_product_attention);
}

void add_windows(ApiTable& t) {
  add(t, "conv1d", rg::conv1d), add(t, "conv2d", rg::conv2d), add(t, "conv3d", rg::conv3d);
  add(t, "conv_transpose1d", rg::conv_transpose1d), add(t, "conv_transpose2d", rg::conv_transpose2d);
  add(t, "conv_transpose3d", rg::conv_transpose3d), add(t, "max_pool1d", rg::max_pool1d);
  add(t, "max_pool2d", rg::max_pool2d), add(t, "max_pool3d", rg::max_pool3d);
  add(t, "max_pool1d_with_indices", rg::max_pool1d_with_indices);
  add(t, "max_pool2d_with_indices", rg::max_pool2d_with_indices);
  add(t, "max_pool3d_with_indices", rg::max_pool3d_with_indices), add(t, "avg_pool1d", rg::avg_pool1d);
  add(t, "avg_pool2d", rg::avg_pool2d), add(t, "avg_pool3d", rg::avg_pool3d);
  add(t, "adaptive_avg_pool1d", rg::adaptive_avg_pool1d);
  add(t, "adaptive_avg_pool2d", rg::adaptive_avg_pool2d);
  add(t, "adaptive_avg_pool3d", rg::adaptive_avg_pool3d);
  add(t, "adaptive_max_pool1d", rg::adaptive_max_pool1d);
  add(t, "adaptive_max_pool2d", rg::adaptive_max_pool2d);
  add(t, "adaptive_max_pool3d", rg::adaptive_max_pool3d);
  add(t, "adaptive_max_pool1d_with_indices", rg::adaptive_max_pool1d_with_indices);
  add(t, "adaptive_max_pool2d_with_indices", rg::adaptive_max_pool2d_with_indices);
  add(t, "adaptive_max_pool3d_with_indices", rg::adaptive_max_pool3d_with_indices);
  add(t, "interpolate", rg::interpolate);
}

void add_losses(ApiTable& t) {
  add(t, "cross_entropy", rg::cross_entropy), add(t, "nll_loss", rg::nll_loss);
  add(t, "mse_loss", rg::mse_loss), add(t, "l1_loss", rg::l1_loss);
  add(t, "smooth_l1_loss", rg::smooth_l1_loss), add(t, "huber_loss", rg::huber_loss);
  add(t, "binary_cross_entropy", rg::binary_cross_entropy), add(t, "kl_div", rg::kl_div);
  add(t, "binary_cross_entropy_with_logits", rg::binary_cross_entropy_with_logits);
  add(t, "cosine_similarity", rg::cosine_similarity), add(t, "layer_norm", rg::layer_norm);
  add(t, "rms_norm", rg::rms_norm), add(t, "group_norm", rg::group_norm);
  add(t, "batch_norm", rg::batch_norm), add(t, "instance_norm", rg::instance_norm);
  add(t, "dropout", rg::dropout), add(t, "feature_dropout", rg::feature_dropout);
  add(t, "dropout1d", rg::dropout1d), add(t, "dropout2d", rg::dropout2d);
  add(t, "dropout3d", rg::dropout3d), add(t, "alpha_dropout", rg::alpha_dropout);
  add(t, "feature_alpha_dropout", rg::feature_alpha_dropout);
}

}  // namespace

void add_nn_api(ApiTable& table) {
  add_products(table);
  add_windows(table);
  add_losses(table);
}

}  // namespace fuzz
