// Entries for methods of Tensor, writes in place, hooks, backwards and derivatives of functions.
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::Scalar;

void add_writes(ApiTable& t) {
  add(t, "add_", +[](Tensor x, Tensor y, Scalar alpha) { return x.add_(y, alpha); });
  add(t, "mul_", +[](Tensor x, Tensor y) { return x.mul_(y); });
  add(t, "mul_ by a number", +[](Tensor x, Scalar y) { return x.mul_(y); });
  add(t, "copy_", +[](Tensor x, Tensor y) { return x.copy_(y); });
  add(t, "fill_", +[](Tensor x, Scalar y) { return x.fill_(y); });
  add(t, "zero_", +[](Tensor x) { return x.zero_(); });
  add(t, "uniform_", +[](Tensor x, double from, double to) { return x.uniform_(from, to); });
  add(t, "normal_", +[](Tensor x, double mean, double std) { return x.normal_(mean, std); });
  add(t, "exponential_", +[](Tensor x, double lambda) { return x.exponential_(lambda); });
  add(t, "bernoulli_", +[](Tensor x, double p) { return x.bernoulli_(p); });
  add(t, "bernoulli_ of a tensor", +[](Tensor x, Tensor p) { return x.bernoulli_(p); });
  add(t, "random_", +[](Tensor x) { return x.random_(); });
  add(t, "random_ to", +[](Tensor x, int64_t to) { return x.random_(to); });
  add(t, "random_ from, to", +[](Tensor x, int64_t from, int64_t to) { return x.random_(from, to); });
  add(t, "setitem_", +[](Tensor x, rg::Indices index, rg::Operand y) { return rg::setitem_(x, index, y); });
  add(t, "dropout_", rg::dropout_), add(t, "alpha_dropout_", rg::alpha_dropout_);
  add(t, "feature_dropout_", rg::feature_dropout_);
  add(t, "feature_alpha_dropout_", rg::feature_alpha_dropout_);
  add(t, "nn::init::uniform_", rg::nn::init::uniform_), add(t, "nn::init::normal_", rg::nn::init::normal_);
  add(t, "nn::init::kaiming_uniform_", rg::nn::init::kaiming_uniform_);
  add(t, "nn::init::xavier_uniform_", rg::nn::init::xavier_uniform_);
  add(t, "clip_grad_norm_", rg::optim::clip_grad_norm_), add(t, "clip_grad_value_", rg::optim::clip_grad_value_);
}

void add_questions(ApiTable& t) {
  add(t, "size", +[](Tensor x, int64_t dim) { (void)x.size(dim); });
  add(t, "stride", +[](Tensor x, int64_t dim) { (void)x.stride(dim); });
  add(t, "item", +[](Tensor x) { (void)x.item(); });
  add(t, "item<int64_t>", +[](Tensor x) { (void)x.item<int64_t>(); });
  add(t, "data_ptr<float>", +[](Tensor x) { (void)x.data_ptr<float>(); });
  add(t, "to_vector", +[](Tensor x) { (void)x.to_vector(); });
  add(t, "to_string", +[](Tensor x) { (void)rg::to_string(x); });
  add(t, "describe", +[](Tensor x) { (void)rg::describe(x); });
  add(t, "grad_fn", +[](Tensor x) { (void)x.grad_fn().name(); });
  add(t, "promote_types", +[](rg::ScalarType a, rg::ScalarType b) { (void)rg::promote_types(a, b); });
}

void add_gradients(ApiTable& t) {
  add(t, "requires_grad_", +[](Tensor x, bool on) { x.requires_grad_(on); });
  add(t, "grad of a tensor", +[](Tensor x) { return x.grad(); });
  add(t, "set_grad", +[](Tensor x, Tensor g) { x.set_grad(g); });
  add(t, "retain_grad", +[](Tensor x) { x.retain_grad(); });
  add(t, "register_hook", +[](Tensor x, Scalar factor) {
    x.register_hook([factor](const Tensor& g) { return g * factor; });
  });
  add(t, "register_hook that answers with", +[](Tensor x, Tensor answer) {
    x.register_hook([answer](const Tensor&) { return answer; });
  });
  add(t, "register_post_accumulate_grad_hook", +[](Tensor x) {
    x.register_post_accumulate_grad_hook([](const Tensor& leaf) { leaf.set_grad({}); });
  });
  add(t, "node hooks", +[](Tensor x, Tensors answer) {
    x.grad_fn().register_prehook([](const Tensors& g) { return g; });
    x.grad_fn().register_hook([answer](const Tensors&, const Tensors&) { return answer; });
  });
  add(t, "register_saved_tensor_hooks", +[](Tensor x, int64_t slot, rg::ScalarType dtype) {
    x.grad_fn().register_saved_tensor_hooks(
        static_cast<int>(slot), rg::saved_tensor_hooks([dtype](const Tensor& s) { return s.to(dtype); },
                                                       [](const Tensor& s) { return s.to(rg::kFloat32); }));
  });
  add(t, "register_multi_grad_hook", +[](Tensors x, bool any) {
    rg::autograd::register_multi_grad_hook(
        x, [](const Tensors&) {}, any ? rg::autograd::MultiGradMode::any : rg::autograd::MultiGradMode::all);
  });
}

using MaybeBool = std::optional<bool>;
using MaybeTensors = std::optional<Tensors>;

void add_backwards(ApiTable& t) {
  add(t, "Tensor::backward", +[](Tensor x, Tensor g, MaybeBool retain, bool create) { x.backward(g, retain, create); });
  add(t, "autograd::backward",
      +[](Tensors x, Tensors g, MaybeBool retain, bool create, MaybeTensors inputs) {
        rg::autograd::backward(x, g, retain, create, inputs);
      });
  add(t, "autograd::grad", rg::autograd::grad);
  add(t, "CompiledBackward::grad",
      +[](Tensors x, Tensors inputs, Tensors g, MaybeBool retain, bool create, bool unused, bool zeros) {
        rg::CompiledBackward compiled;
        return compiled.grad(x, inputs, g, retain, create, unused, zeros);
      });
  add(t, "CompiledBackward::backward",
      +[](Tensors x, Tensors g, MaybeBool retain, bool create, MaybeTensors inputs) {
        rg::CompiledBackward compiled;
        compiled.backward(x, g, retain, create, inputs);
      });
}

Tensors mixed(const Tensors& x) {
  Tensor sum = rg::scalar_tensor(1.0);
  for (const Tensor& t : x) sum = sum * rg::tanh(rg::sum(t)) + rg::mean(t * t);
  return {sum};
}

void add_derivatives(ApiTable& t) {
  add(t, "autograd::jvp", +[](Tensors x, Tensors v) { return rg::autograd::jvp(mixed, x, v).tangents; });
  add(t, "autograd::vjp", +[](Tensors x, Tensors v) { return rg::autograd::vjp(mixed, x, v).gradients; });
  add(t, "autograd::hvp", +[](Tensors x, Tensors v) {
    return rg::autograd::hvp([](const Tensors& in) { return mixed(in)[0]; }, x, v).product;
  });
  add(t, "autograd::vhp", +[](Tensors x, Tensors v) {
    return rg::autograd::vhp([](const Tensors& in) { return mixed(in)[0]; }, x, v).product;
  });
  add(t, "autograd::jacobian", +[](Tensor x, bool create, bool strict) {
    return rg::autograd::jacobian([](const Tensors& in) { return Tensors{rg::tanh(in[0])}; },
                                  {x.numel() < 100 ? x : Tensor()}, {create, strict})[0];
  });
}

}  // namespace

void add_tensor_api(ApiTable& table) {
  add_writes(table);
  add_questions(table);
}

void add_autograd_api(ApiTable& table) {
  add_gradients(table);
  add_backwards(table);
  add_derivatives(table);
}

std::span<const ApiFunction> api_table() {
  static const ApiTable* table = [] {
    auto* all = new ApiTable;
    add_creation_api(*all);
    add_elementwise_api(*all);
    add_shape_api(*all);
    add_reduction_api(*all);
    add_nn_api(*all);
    add_tensor_api(*all);
    add_autograd_api(*all);
    return all;
  }();
  return *table;
}

}  // namespace fuzz
