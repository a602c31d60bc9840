// Methods of Tensor that are not ops: access, autograd state. Op methods are in ops/methods.cc. See engine/tensor.h.
#include "engine/tensor.h"

#include <fmt/format.h>

#include "engine/autograd.h"
#include "engine/inplace.h"
#include "engine/named_call.h"
#include "engine/recording.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {

namespace {
constexpr std::string_view kUndefined =
    "an undefined tensor was used. Hint: a default-constructed Tensor has no value";
}

void Tensor::undefined_used() { fail_somewhere(Category::bad_argument, kUndefined); }
void Tensor::undefined_used(std::string_view op, SourceLocation where) {
  fail(Category::bad_argument, op, kUndefined, where);
}

void Operand::refuse(std::string_view op) const {
  fail(Category::bad_argument, op,
       tensor_ ? "an undefined tensor was given. Hint: a default-constructed Tensor has no value"
               : "a number was given where a tensor is needed. Hint: rg::full, or rg::scalar_tensor",
       where_);
}

std::string describe(const Tensor& tensor) {
  return tensor.defined() ? to_string(tensor.impl().type()) : "undefined";
}

namespace {

// wrap_dim() accepts a dim of a tensor without dims, which reductions may name; but such a tensor has no size.
int dim_of(const TensorImpl& x, int64_t dim, std::string_view op, SourceLocation where) {
  const NamedCall scope(op, where);
  if (x.rank() == 0) fail(Category::bad_dim, op, fmt::format("dim {} of a tensor without dims", dim));
  return wrap_dim(dim, x.rank(), op);
}

}  // namespace

int64_t Tensor::size(int64_t dim, SourceLocation where) const {
  const TensorImpl& x = impl("size", where);
  return x.shape()[dim_of(x, dim, "size", where)].value();
}
Dim Tensor::sym_size(int64_t dim, SourceLocation where) const {
  const TensorImpl& x = impl("sym_size", where);
  return x.shape()[dim_of(x, dim, "sym_size", where)];
}
int64_t Tensor::stride(int64_t dim, SourceLocation where) const {
  const TensorImpl& x = impl("stride", where);
  return x.stride(dim_of(x, dim, "stride", where)).value();
}
Sizes Tensor::strides(SourceLocation where) const {
  const TensorImpl& x = impl("strides", where);
  Shape strides;
  for (int i = 0; i < x.rank(); ++i) strides.push_back(x.stride(i));
  return Sizes(strides);
}

int64_t Tensor::get_device(SourceLocation where) const { return is_cpu(where) ? -1 : device().index(); }

int64_t Tensor::_version(SourceLocation where) const {
  if (is_inference(where))
    fail(Category::bad_argument, "_version", "a tensor of inference mode has no version. Hint: clone it",
         where);
  return version(where);
}

Tensor Tensor::_base(SourceLocation where) const {
  if (!is_view(where)) fail(Category::bad_argument, "_base", "the tensor is no view", where);
  return Tensor(impl().base);
}

void Tensor::print() const { fmt::print(stderr, "[{}]\n", describe(*this)); }

void Tensor::check_has_data(std::string_view op, SourceLocation where) const {
  if (const TensorImpl& self = impl(op, where); self.graph)
    fail(Category::bad_argument, op, no_data_text(self), where);
  if (!detail::current_emitter) return;
  if (const FunctionRecording* function = innermost_recorded_function();
      function && function->writes_to(*impl().storage()))
    fail(Category::bad_argument, op,
         "the recorded function writes to this tensor: the new value is available after it has run. "
         "Hint: read it after the function",
         where);
}

// What the host has filled is a value of the recorded function that has data nevertheless.
static Tensor host_values(const TensorImpl& cell) {
  const FunctionRecording* const function = cell.graph ? innermost_recorded_function() : nullptr;
  return function ? function->host_values(cell) : Tensor();
}

void* Tensor::raw_data(SourceLocation where) const {
  if (const Tensor host = host_values(impl("data_ptr", where)); host.defined()) return host.impl().data();
  check_has_data("data_ptr", where);
  return impl().data();
}

void Tensor::check_dtype(ScalarType wanted, SourceLocation where) const {
  if (wanted != impl("data_ptr", where).dtype())
    fail(Category::dtype_mismatch, "data_ptr",
         fmt::format("{} is needed, the tensor is {}", name(wanted), describe(*this)), where);
}

void Tensor::check_accessible(int dims, SourceLocation where) const {
  if (impl("accessor", where).rank() != dims)
    fail(Category::bad_dim, "accessor", fmt::format("{} dims are asked for, of {}", dims, describe(*this)),
         where);
  if (!is_cpu())
    fail(Category::bad_argument, "accessor",
         fmt::format("{} is not on the CPU. Hint: x.cpu()", describe(*this)), where);
}

// The tensor with its values on the CPU, without history.
Tensor Tensor::on_host(std::string_view op, SourceLocation where) const {
  if (Tensor host = host_values(impl(op, where)); host.defined()) return host;
  check_has_data(op, where);
  if (device() == kCPU) return *this;
  NoGradGuard no_grad;
  return to(kCPU, where);
}

Scalar Tensor::item(SourceLocation where) const {
  if (impl("item", where).numel().hint() != 1)
    fail(Category::bad_argument, "item",
         fmt::format("a tensor of one element is needed, this is {}", describe(*this)), where);
  const Tensor host = on_host("item", where);
  const void* p = host.raw_data(where);
  return dispatch(dtype(), [&]<class T>(std::type_identity<T>) -> Scalar {
    const T v = *static_cast<const T*>(p);
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(v);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(v));
    else
      return Scalar(static_cast<double>(v));
  });
}

template <class T>
std::vector<T> Tensor::to_vector(SourceLocation where) const {
  Tensor dense;
  {
    NoGradGuard no_grad;
    dense = on_host("to_vector", where).contiguous(where);
  }
  std::vector<T> out(static_cast<size_t>(numel()));
  dispatch(dtype(), [&]<class Stored>(std::type_identity<Stored>) {
    const Stored* p = static_cast<const Stored*>(dense.raw_data(where));
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_integral_v<Stored> || std::is_floating_point_v<T>)
        out[i] = static_cast<T>(p[i]);
      else if constexpr (std::is_same_v<T, bool>)
        out[i] = static_cast<double>(p[i]) != 0;
      else
        out[i] = static_cast<T>(truncated(static_cast<double>(p[i])));
    }
  });
  return out;
}

template std::vector<double> Tensor::to_vector<double>(SourceLocation) const;
template std::vector<float> Tensor::to_vector<float>(SourceLocation) const;
template std::vector<int64_t> Tensor::to_vector<int64_t>(SourceLocation) const;
template std::vector<int32_t> Tensor::to_vector<int32_t>(SourceLocation) const;
template std::vector<uint8_t> Tensor::to_vector<uint8_t>(SourceLocation) const;
template std::vector<bool> Tensor::to_vector<bool>(SourceLocation) const;

const Tensor& Tensor::requires_grad_(bool value, SourceLocation where) const {
  TensorImpl& self = impl("requires_grad_", where);
  if (value && !is_floating(self.dtype()))
    fail(Category::requires_grad_forbidden, "requires_grad_",
         fmt::format("only floating tensors can require gradients, this is {}", describe(*this)), where);
  if (value && is_inference() && !InferenceMode::is_enabled())
    fail(Category::requires_grad_forbidden, "requires_grad_",
         "a tensor of inference mode is to require a gradient outside of the mode. Hint: clone it first",
         where);
  const bool leaf = self.is_leaf();
  if (!value && !leaf)
    fail(Category::requires_grad_forbidden, "requires_grad_",
         "it can only be switched off on a leaf. Hint: detach()", where);
  if (!leaf) return *this;
  self.requires_grad = value;
  if (value) self.need_meta();  // now: later, several threads may accumulate into it
  return *this;
}

const Tensor Tensor::grad(SourceLocation where) const {
  const AutogradMeta* meta = impl("grad", where).meta.get();
  if (!meta) return {};
  if (FunctionRecording* function = meta->retained ? nullptr : recorded_function())
    function->grad_is_read(impl());
  return meta->retained ? meta->retained->grad : meta->grad;
}

void Tensor::set_grad(const Tensor& grad, SourceLocation where) const {
  if (const TensorImpl& self = impl("set_grad", where);
      grad.defined() && !(grad.impl().type() == self.type()))
    fail(Category::cotangent_mismatch, "set_grad",
         fmt::format("{} as the gradient of {}", describe(grad), describe(*this)), where);
  if (grad.is_same(*this))
    fail(Category::bad_argument, "set_grad", "a tensor cannot be its own gradient: it would hold itself",
         where);
  AutogradMeta& meta = impl().need_meta();
  if (!meta.retained) {
    if (GradWatcher::current) GradWatcher::current->before_replaced(impl(), where);
    if (FunctionRecording* function = recorded_function()) function->grad_is_replaced(impl());
  }
  (meta.retained ? meta.retained->grad : meta.grad) = grad;
}

void Tensor::retain_grad(SourceLocation where) const {
  const Edge edge = gradient_edge(impl("retain_grad", where));
  if (!edge) fail(Category::hook_forbidden, "retain_grad", "the tensor does not require a gradient", where);
  if (edge.leaf() || retains_grad()) return;
  AutogradMeta& meta = impl().need_meta();
  meta.retained = RefPtr<GradBox>::adopt(new GradBox);
  edge.record()->need_hooks().retained.emplace_back(edge.output_nr(), meta.retained);
  ++annotation_changes;
}

bool Tensor::retains_grad(SourceLocation where) const {
  const TensorImpl& self = impl("retains_grad", where);
  return self.meta && self.meta->retained;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      SourceLocation where) const {
  autograd::backward({*this}, {gradient}, retain_graph, create_graph, {}, where);
}
void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      const Tensors& inputs, SourceLocation where) const {
  autograd::backward({*this}, {gradient}, retain_graph, create_graph, inputs, where);
}

const Record* Tensor::gradient_record(std::string_view op, SourceLocation where) const {
  TensorImpl& self = impl(op, where);
  refresh_view(self);
  return self.grad_fn.get();
}

int64_t Tensor::output_nr(SourceLocation where) const {
  return gradient_record("output_nr", where) ? impl().output_nr : 0;
}

const Tensor& Tensor::detach_(SourceLocation where) const {
  TensorImpl& self = impl("detach_", where);
  if (self.base)
    fail(Category::bad_argument, "detach_", "a view has the history of its base. Hint: detach()", where);
  if (!self.graph) refuse_recording("detach_", "a tensor from outside of the recording changes", where);
  if (self.is_leaf()) return requires_grad_(false, where);
  if (self.meta) self.meta->retained = {};
  self.grad_fn = {};
  self.output_nr = 0;
  self.requires_grad = false;
  ++annotation_changes;
  return *this;
}

void Tensor::remove_hook(HookHandle hook) const { hook.remove(); }

HookHandle Tensor::add_hook(std::function<Tensor(const Tensor&)> fn, SourceLocation where) const {
  const Edge edge = gradient_edge(impl("register_hook", where));
  if (!edge) fail(Category::hook_forbidden, "register_hook", "the tensor does not require a gradient", where);
  require_function(static_cast<bool>(fn), "register_hook", where);
  auto hook = RefPtr<Hook>::adopt(new Hook);
  hook->where = where;
  hook->tensor = std::move(fn);
  if (edge.leaf()) {
    if (FunctionRecording* function = recorded_function()) function->hook_is_added(*edge.leaf(), where);
    return edge.leaf()->need_meta().tensor_hooks.add(std::move(hook));
  }
  hook->output_nr = edge.output_nr();
  return edge.record()->need_hooks().tensor.add(std::move(hook));
}

namespace {

// The annotations of a leaf that accumulates a gradient, for a new hook.
AutogradMeta& meta_of_leaf(const Tensor& leaf, std::string_view what, SourceLocation where) {
  if (leaf.impl(what, where); !leaf.requires_grad() || !leaf.is_leaf())
    fail(Category::hook_forbidden, what, "only a leaf that requires a gradient accumulates one", where);
  if (FunctionRecording* function = recorded_function()) function->hook_is_added(leaf.impl(), where);
  return leaf.impl().need_meta();
}

RefPtr<Hook> new_hook(Hook::Kind kind, SourceLocation where) {
  auto hook = RefPtr<Hook>::adopt(new Hook);
  hook->kind = kind;
  hook->where = where;
  return hook;
}

}  // namespace

HookHandle Tensor::add_post_accumulate_hook(std::function<void(const Tensor&)> fn,
                                            SourceLocation where) const {
  require_function(static_cast<bool>(fn), "register_post_accumulate_grad_hook", where);
  AutogradMeta& meta = meta_of_leaf(*this, "register_post_accumulate_grad_hook", where);
  RefPtr<Hook> hook = new_hook(Hook::Kind::post_accumulate, where);
  hook->post_accumulate = std::move(fn);
  return meta.post_accumulate_hooks.add(std::move(hook));
}

HookHandle Tensor::add_accumulate_prehook(std::function<Tensors(const Tensors&)> fn,
                                          SourceLocation where) const {
  require_function(static_cast<bool>(fn), "register_accumulate_grad_prehook", where);
  AutogradMeta& meta = meta_of_leaf(*this, "register_accumulate_grad_prehook", where);
  RefPtr<Hook> hook = new_hook(Hook::Kind::pre, where);
  hook->pre = std::move(fn);
  return meta.pre_hooks.add(std::move(hook));
}

HookHandle Tensor::add_accumulate_posthook(std::function<Tensors(const Tensors&, const Tensors&)> fn,
                                           SourceLocation where) const {
  require_function(static_cast<bool>(fn), "register_accumulate_grad_posthook", where);
  AutogradMeta& meta = meta_of_leaf(*this, "register_accumulate_grad_posthook", where);
  RefPtr<Hook> hook = new_hook(Hook::Kind::post, where);
  hook->post = std::move(fn);
  return meta.post_hooks.add(std::move(hook));
}

Edge gradient_edge(TensorImpl& tensor) {
  if (tensor.base) refresh_view(tensor);
  if (tensor.grad_fn) return {tensor.grad_fn.get(), tensor.output_nr};
  if (!tensor.requires_grad) return {};
  if (tensor.meta && tensor.meta->stands_for) return Edge(tensor.meta->stands_for.get());
  return Edge(&tensor);
}

}  // namespace retrograd
