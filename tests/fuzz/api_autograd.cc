// Entries for gradients: .grad, backwards, captured ones, forward mode, derivatives of functions and user-defined
// functions.
#include "tests/fuzz/api_failure.h"
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using MaybeBool = std::optional<bool>;
using MaybeTensors = std::optional<Tensors>;
namespace autograd = rg::autograd;

// Roots, inputs and cotangents that fit together: of tensors drawn at random hardly any do.
void choose_what_wants(Arguments& a, Tensors& roots, Tensors& inputs, Tensors& cotangents) {
  roots = a.wanting(2);
  inputs = a.wanting(5);
  cotangents.clear();
  for (const Tensor& root : roots) cotangents.push_back(rg::ones_like(root));
}

void add_gradients(ApiTable& t) {
  add(
      t, "requires_grad_", +[](Tensor x, bool on) { x.requires_grad_(on); });
  add(
      t, "grad of a tensor", +[](Tensor x) { return x.grad(); });
  add(
      t, "set_grad", +[](Tensor x, Tensor g) { x.set_grad(g); });
  add(
      t, "retain_grad", +[](Tensor x) { x.retain_grad(); });
}

void add_backwards(ApiTable& t) {
  add(
      t, "Tensor::backward",
      +[](Tensor x, Tensor g, MaybeBool retain, bool create) { x.backward(g, retain, create); });
  add(
      t, "autograd::backward", +[](Tensors x, Tensors g, MaybeBool retain, bool create, MaybeTensors inputs) {
        autograd::backward(x, g, retain, create, inputs);
      });
  add(
      t, "autograd::grad",
      +[](Arguments& a, Tensors x, Tensors inputs, Tensors g, MaybeBool retain, bool create, bool unused,
          bool zeros) {
        if (unused) choose_what_wants(a, x, inputs, g);
        return autograd::grad(x, inputs, g, retain, create, unused, zeros);
      });
}

void add_captured_backwards(ApiTable& t) {
  add(
      t, "CompiledBackward::operator()", +[](Arguments& a, Tensor x) { a.compiled(x); });
  add(
      t, "CompiledBackward::backward",
      +[](Arguments& a, Tensors x, Tensors g, MaybeBool retain, bool create, MaybeTensors inputs) {
        if (inputs && create) choose_what_wants(a, x, *inputs, g);
        a.compiled.backward(x, g, retain, create, inputs);
      });
  add(
      t, "CompiledBackward::grad",
      +[](Arguments& a, Tensors x, Tensors inputs, Tensors g, MaybeBool retain, bool create, bool unused,
          bool zeros) {
        if (unused) choose_what_wants(a, x, inputs, g);
        return a.compiled.grad(x, inputs, g, retain, create, unused, zeros);
      });
  add(
      t, "CompiledBackward, asked", +[](Arguments& a, Tensors x, Tensors g) {
        (void)a.compiled.knows(x, g), (void)a.compiled.stats(), (void)a.compiled.explain();
        (void)a.compiled.last_capture_reason();
        if (const auto graph = a.compiled.graph()) (void)graph->print();
      });
  add(
      t, "CompiledBackward::reset", +[](Arguments& a) { a.compiled.reset(); });
}

// A function of all its arguments that gives one element.
Tensor mixed(const Tensors& x) {
  Tensor sum = rg::scalar_tensor(1.0);
  for (const Tensor& t : x) sum = sum * rg::tanh(rg::sum(t)) + rg::mean(t * t);
  return sum;
}
Tensors mixed_list(const Tensors& x) { return {mixed(x)}; }
Tensors each_tanh(const Tensors& x) {
  Tensors out;
  for (const Tensor& t : x) out.push_back(rg::tanh(t));
  return out;
}

// Jacobians are as large as inputs times outputs.
Tensors small(const Tensors& x) {
  for (const Tensor& t : x)
    if (t.defined() && t.numel() > 30) return {};
  return x;
}

void add_derivatives(ApiTable& t) {
  add(
      t, "autograd::jvp", +[](Tensors x, Tensors v) { return autograd::jvp(mixed_list, x, v).tangents; });
  add(
      t, "autograd::vjp", +[](Tensors x, Tensors v, bool create, bool strict) {
        return autograd::vjp(each_tanh, x, v, {create, strict}).gradients;
      });
  add(
      t, "autograd::hvp", +[](Tensors x, Tensors v, bool create, bool strict) {
        return autograd::hvp(mixed, x, v, {create, strict}).product;
      });
  add(
      t, "autograd::vhp", +[](Tensors x, Tensors v, bool create, bool strict) {
        return autograd::vhp(mixed, x, v, {create, strict}).product;
      });
  add(
      t, "autograd::jacobian", +[](Tensors x, bool create, bool strict) {
        return autograd::jacobian(each_tanh, small(x), {create, strict});
      });
  add(
      t, "autograd::hessian", +[](Tensors x, bool create, bool strict) {
        return autograd::hessian(mixed, small(x), {create, strict});
      });
  add(
      t, "autograd::gradcheck", +[](Tensors x, bool forward) {
        (void)autograd::gradcheck(each_tanh, small(x), {.raise = false, .check_forward = forward});
      });
  add(
      t, "autograd::gradgradcheck", +[](Tensors x, Tensors g, bool strided) {
        (void)autograd::gradgradcheck(each_tanh, small(x), g,
                                      {.raise = false, .non_contiguous_cotangents = strided});
      });
  add(
      t, "DualLevel", +[](Tensor x, Tensor v, Tensor y) {
        autograd::DualLevel level;
        const Tensor dual = level.make_dual(x, v);
        return Tensors{level.tangent(rg::mul(dual, y)), level.tangent(y), level.tangent(dual)};
      });
}

// ---- user-defined functions --------------------------------------------------------------------------

template <bool traceable>
struct Scale : rg::Function<Scale<traceable>> {
  static constexpr bool is_traceable = traceable;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& y, double factor) {
    ctx->saved_data["factor"] = factor;
    ctx->save_for_backward({x, y});
    return x * y * factor;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    const Tensor g = grads[0] * ctx->saved_data["factor"];
    return {rg::sum_to(g * saved[1], saved[0].impl().shape(), {}), g * saved[0], {}};
  }
  static Tensors jvp(rg::AutogradContext*, const Tensors& tangents) { return {tangents[0]}; }
};

struct Dirty : rg::Function<Dirty> {
  static Tensors forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& other,
                         bool differentiable) {
    x.mul_(2);
    ctx->mark_dirty({x});
    if (!differentiable) ctx->mark_non_differentiable({x});
    ctx->save_for_backward({x, other, Tensor()});
    return {x, other};
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    if (ctx->needs_input_grad(1)) return {grads[0], ctx->get_saved_variables()[1], {}};
    return grads;  // one too few
  }
};

struct Throwing : rg::Function<Throwing> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x, bool at_once) {
    if (at_once) throw HookFailure();
    return x.clone();
  }
  static Tensors backward(rg::AutogradContext*, const Tensors&) { throw HookFailure(); }
};

void add_functions(ApiTable& t) {
  add(
      t, "Function, opaque",
      +[](Tensor x, Tensor y, double factor) { return Scale<false>::apply(x, y, factor); });
  add(
      t, "Function, traceable",
      +[](Tensor x, Tensor y, double factor) { return Scale<true>::apply(x, y, factor); });
  add(
      t, "Function that writes",
      +[](Tensor x, Tensor y, bool differentiable) { return Dirty::apply(x, y, differentiable); });
  add(
      t, "Function that throws", +[](Tensor x, bool at_once) { return Throwing::apply(x, at_once); });
}

}  // namespace

void add_autograd_api(ApiTable& table) {
  add_gradients(table);
  add_backwards(table);
  add_captured_backwards(table);
  add_derivatives(table);
  add_functions(table);
}

}  // namespace fuzz
