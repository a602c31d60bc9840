// Entries for in-place writes: methods of Tensor, functions with an underscore, and ordinary functions written into
// their first argument, which is how all writes of the library are made (engine/inplace.h).
#include "ops/copy.h"
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::IntArray;
using rg::IntList;
using rg::Operand;
using rg::Scalar;

template <auto function>
void unary(ApiTable& table, std::string_view name) {
  add_write(
      table, name, +[](Operand x) { return function(x); });
}
template <auto function>
void binary(ApiTable& table, std::string_view name) {
  add_write(
      table, name, +[](Operand x, Operand y) { return function(x, y); });
}

void add_methods(ApiTable& t) {
  add(
      t, "add_", +[](Tensor x, Tensor y, Scalar alpha) { return x.add_(y, alpha); });
  add(
      t, "mul_", +[](Tensor x, Tensor y) { return x.mul_(y); });
  add(
      t, "mul_ by a number", +[](Tensor x, Scalar y) { return x.mul_(y); });
  add(
      t, "copy_", +[](Tensor x, Tensor y) { return x.copy_(y); });
  add(
      t, "fill_", +[](Tensor x, Scalar y) { return x.fill_(y); });
  add(
      t, "zero_", +[](Tensor x) { return x.zero_(); });
  add(
      t, "uniform_", +[](Tensor x, double from, double to) { return x.uniform_(from, to); });
  add(
      t, "normal_", +[](Tensor x, double mean, double std) { return x.normal_(mean, std); });
  add(
      t, "exponential_", +[](Tensor x, double lambda) { return x.exponential_(lambda); });
  add(
      t, "bernoulli_", +[](Tensor x, double p) { return x.bernoulli_(p); });
  add(
      t, "bernoulli_ of a tensor", +[](Tensor x, Tensor p) { return x.bernoulli_(p); });
  add(
      t, "random_", +[](Tensor x) { return x.random_(); });
  add(
      t, "random_ to", +[](Tensor x, int64_t to) { return x.random_(to); });
  add(
      t, "random_ from, to", +[](Tensor x, int64_t from, int64_t to) { return x.random_(from, to); });
}

void add_functions(ApiTable& t) {
  add(
      t, "setitem_", +[](Tensor x, rg::Indices index, Operand y) { return rg::setitem_(x, index, y); });
  add(t, "dropout_", rg::dropout_), add(t, "alpha_dropout_", rg::alpha_dropout_);
  add(t, "feature_dropout_", rg::feature_dropout_);
  add(t, "feature_alpha_dropout_", rg::feature_alpha_dropout_);
  add(t, "nn::init::uniform_", rg::nn::init::uniform_), add(t, "nn::init::normal_", rg::nn::init::normal_);
  add(t, "nn::init::constant_", rg::nn::init::constant_), add(t, "nn::init::zeros_", rg::nn::init::zeros_);
  add(t, "nn::init::ones_", rg::nn::init::ones_);
  add(
      t, "nn::init::kaiming_uniform_",
      +[](Tensor x, double a) { return rg::nn::init::kaiming_uniform_(x, a); });
  add(
      t, "nn::init::kaiming_normal_",
      +[](Tensor x, double a) { return rg::nn::init::kaiming_normal_(x, a, "fan_out", "tanh"); });
  add(t, "nn::init::xavier_uniform_", rg::nn::init::xavier_uniform_);
  add(t, "nn::init::xavier_normal_", rg::nn::init::xavier_normal_);
  add(t, "nn::init::trunc_normal_", rg::nn::init::trunc_normal_);
  add(t, "nn::init::eye_", rg::nn::init::eye_), add(t, "nn::init::dirac_", rg::nn::init::dirac_);
  add(t, "nn::init::orthogonal_", rg::nn::init::orthogonal_);
  add(t, "nn::init::sparse_", rg::nn::init::sparse_);
  add(t, "fill_uniform", rg::fill_uniform), add(t, "fill_normal", rg::fill_normal);
  add(t, "clip_grad_norm_", rg::optim::clip_grad_norm_);
  add(t, "clip_grad_value_", rg::optim::clip_grad_value_);
}

void add_elementwise(ApiTable& t) {
  unary<rg::exp>(t, "exp_"), unary<rg::log>(t, "log_"), unary<rg::sqrt>(t, "sqrt_");
  unary<rg::rsqrt>(t, "rsqrt_"), unary<rg::reciprocal>(t, "reciprocal_"), unary<rg::sin>(t, "sin_");
  unary<rg::abs>(t, "abs_"), unary<rg::square>(t, "square_"), unary<rg::sign>(t, "sign_");
  unary<rg::floor>(t, "floor_"), unary<rg::neg>(t, "neg_"), unary<rg::sigmoid>(t, "sigmoid_");
  unary<rg::tanh>(t, "tanh_"), unary<rg::relu>(t, "relu_"), unary<rg::silu>(t, "silu_");
  unary<rg::logical_not>(t, "logical_not_"), binary<rg::atan2>(t, "atan2_");
  binary<rg::fmod>(t, "fmod_"), binary<rg::remainder>(t, "remainder_"), binary<rg::lt>(t, "lt_");
  binary<rg::logical_and>(t, "logical_and_"), binary<rg::hypot>(t, "hypot_");
  add_write(
      t, "sub_", +[](Operand x, Operand y, Scalar alpha) { return rg::sub(x, y, alpha); });
  add_write(t, "div_", rg::div), add_write(t, "pow_", rg::pow), add_write(t, "lerp_", rg::lerp);
  add_write(t, "addcmul_", rg::addcmul), add_write(t, "addcdiv_", rg::addcdiv);
  add_write(t, "clamp_", rg::clamp), add_write(t, "nan_to_num_", rg::nan_to_num);
  add_write(
      t, "where_", +[](Operand x, Tensor mask, Tensor y) { return rg::where(mask, x, y); });
}

void add_others(ApiTable& t) {
  add_write(
      t, "masked_fill_",
      +[](rg::Operand x, Tensor mask, rg::Operand value) {
        return rg::masked_fill(x, rg::to(mask, rg::kBool), value);
      },
      "n m; n m");
  add_write(
      t, "masked_scatter_",
      +[](rg::Operand x, Tensor mask, Tensor source) {
        return rg::masked_scatter(x, rg::to(mask, rg::kBool), source);
      },
      "n m; n m; n m");
  add_write(t, "scatter_", rg::scatter, "n m; n m:n; n m"),
      add_write(t, "scatter_add_", rg::scatter_add, "n m; n m:n; n m");
  add_write(t, "index_add_", rg::index_add, "n m; k:n; k m"),
      add_write(t, "index_copy_", rg::index_copy, "n m; k:n; k m");
  add_write(t, "scatter_reduce_", rg::scatter_reduce, "n m; n m:n; n m"),
      add_write(t, "index_reduce_", rg::index_reduce, "n m; k:n; k m");
  add_write(t, "index_fill_", rg::index_fill, "n m; k:n"), add_write(t, "put_", rg::put, "n m; k:n; k");
  add_write(t, "index_put_", rg::index_put), add_write(t, "cumsum_", rg::cumsum);
  add_write(t, "cumprod_", rg::cumprod), add_write(t, "tril_", rg::tril), add_write(t, "triu_", rg::triu);
  add_write(t, "softmax_", rg::softmax),
      add_write(t, "flip_", static_cast<Tensor (*)(Operand, const rg::IntArray&)>(rg::flip)),
      add_write(t, "addmm_", rg::addmm, "n p; n m; m p");
  add_write(t, "baddbmm_", rg::baddbmm, "b n p; b n m; b m p"), add_write(t, "fill of a tensor_", rg::fill);
  // Results that are no new value of the first argument: another tensor, a view of it, of another type.
  add_write(
      t, "another_", +[](Operand, Tensor other) { return other; });
  add_write(
      t, "itself_", +[](Operand x) { return x.tensor(); });
  add_write(t, "transpose_", rg::transpose);
  add_write(
      t, "expand_", +[](Operand x, IntArray size) { return rg::expand(x, size); });
  add_write(t, "to_", static_cast<Tensor (*)(Operand, rg::ScalarType)>(rg::to));
}

}  // namespace

void add_write_api(ApiTable& table) {
  add_methods(table);
  add_functions(table);
  add_elementwise(table);
  add_others(table);
}

}  // namespace fuzz
