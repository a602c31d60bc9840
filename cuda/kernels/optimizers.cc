// Steps of optimizers and the norm of many tensors on a device: makes tables of tensors, and factors from attributes,
// for the launchers of cuda/kernels/optimizers_call.h.
#include "cuda/kernels/optimizers_call.h"

#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cuda/kernels/launchers.h"
#include "cuda/kernels/table.h"
#include "cuda/numbers.h"
#include "cuda/scratch.h"
#include "ops/optimizer_steps.h"
#include "ops/total_norm.h"

namespace retrograd::inline v0::cuda {
namespace {

void require_dense(const Call& call) {
  for (const TensorImpl* x : call.operands)
    if (x && !x->is_contiguous()) fail_call(call, Category::bad_argument, "an operand is not contiguous");
}

// The rows of a table, and the number of blocks of all of them.
template <class Row>
class Rows {
 public:
  static_assert(std::has_unique_object_representations_v<Row>);
  explicit Rows(int elements_of_block) : elements_(elements_of_block) {}

  void add(Row row) {
    if (row.numel == 0) return;
    row.first_block = blocks_;
    blocks_ += (row.numel + elements_ - 1) / elements_;
    rows_.push_back(row);
  }
  int64_t blocks() const { return blocks_; }
  int count() const { return static_cast<int>(rows_.size()); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(rows_)); }

 private:
  const int elements_;
  int64_t blocks_ = 0;
  std::vector<Row> rows_;
};

// One step: its operands and results.
StepTensors step_of(TensorImpl* const* in, TensorImpl* const* out, size_t inputs) {
  StepTensors s{};
  uintptr_t places = 0;
  const auto operand = [&](const TensorImpl& x) {
    places |= reinterpret_cast<uintptr_t>(x.data());
    return static_cast<const void*>(x.data());
  };
  const auto result = [&] {
    void* const data = (*out++)->data();
    places |= reinterpret_cast<uintptr_t>(data);
    return data;
  };
  const TensorImpl *master = in[inputs - 1], &grad = *in[inputs], *found_inf = in[inputs + 1];
  s.in[0] = operand(*in[0]);
  s.out[0] = result();
  for (size_t k = 1; k + 1 < inputs; ++k)
    if (in[k]) s.in[k] = operand(*in[k]), s.out[k] = result();
  s.in[inputs - 1] = operand(grad);
  if (master) {
    s.narrow = std::exchange(s.in[0], operand(*master));
    s.new_narrow = std::exchange(s.out[0], result());
  }
  if (found_inf) s.found_inf = static_cast<const float*>(found_inf->data());
  s.numel = in[0]->numel().raw();
  s.param = static_cast<Element>(in[0]->dtype());
  s.grad = static_cast<Element>(grad.dtype());
  s.is_aligned = places % 16 == 0;
  return s;
}

// The steps of a call: the operands of all steps, concatenated; results likewise.
Rows<StepTensors> steps_of(const Call& call, TensorImpl* const* outputs) {
  const auto arity = static_cast<size_t>(call.op->arity);
  const size_t count = call.operands.size() / arity, results = static_cast<size_t>(call.outputs) / count;
  Rows<StepTensors> steps(kStepElements);
  for (size_t i = 0; i < count; ++i)
    steps.add(step_of(call.operands.data() + i * arity, outputs + i * results, arity - 2));
  return steps;
}

template <class Rule>
void step(const Call& call, TensorImpl* const* outputs) {
  using Attrs = typename ops::StepOf<Rule>::Attrs;
  require_dense(call);
  const Rows<StepTensors> steps = steps_of(call, outputs);
  if (steps.count() == 0) return;
  const size_t grad = static_cast<size_t>(call.op->arity) - 2;
  const bool has_master = call.operands[grad - 1];
  const ScalarType dtype = has_master ? kFloat32 : call.operands[0]->dtype();
  const Uploaded table(steps.bytes(), call.op->name);
  Gpu& gpu = Gpu::current();
  const StepLauncher<typename Rule::Formula::Factors>& launcher = *gpu.launchers().optimizers;
  launcher.run({static_cast<const StepTensors*>(table.data()), steps.count(), steps.blocks(),
                dtype != call.operands[grad]->dtype()},
               static_cast<Element>(dtype),
               given_numbers<Attrs>(call, [](const Attrs& a) { return ops::factors_of<Rule>(a); }),
               gpu.compute().handle());
  gpu.launched(call.op->name);
}

template <class... Rule>
void add_steps(KernelTable& table, ops::RuleList<Rule...>) {
  (table.set(&ops::info<ops::StepOf<Rule>>, step<Rule>), ...);
}

// An error that depends on the norm is thrown immediately, as on the CPU: then the host waits for it.
void total_norm(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::TotalNorm::Attrs>();
  require_dense(call);
  Rows<NormTensor> tensors(kNormElements);
  for (const TensorImpl* x : call.operands)
    tensors.add({x->data(), static_cast<Element>(x->dtype()), {}, x->numel().raw(), 0});
  const Uploaded table(tensors.bytes(), call.op->name);
  const Scratch parts(tensors.blocks() * 8, call.op->name);
  Gpu& gpu = Gpu::current();
  TotalNormCall c;
  c.tensors = static_cast<const NormTensor*>(table.data());
  c.count = tensors.count();
  c.blocks = tensors.blocks();
  c.norm_type = attrs.norm_type.to_double();
  c.parts = static_cast<double*>(parts.data());
  c.out = static_cast<double*>(outputs[0]->data());
  gpu.launchers().optimizers->total_norm(c, gpu.compute().handle());
  gpu.launched(call.op->name);
  if (!attrs.error_if_nonfinite) return;
  double norm;
  gpu.download(&norm, c.out, sizeof(norm));
  if (!std::isfinite(norm)) fail_call(call, Category::bad_argument, fmt::format("the norm is {}", norm));
}

}  // namespace

void add_optimizers_kernels(KernelTable& table) {
  add_steps(table, ops::OptimizerRules());
  table.set(&ops::info<ops::TotalNorm>, total_norm);
}

}  // namespace retrograd::cuda
