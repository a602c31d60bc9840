// See cuda/fusion/fused_kernel.h.
#include "cuda/fusion/fused_kernel.h"

#include <algorithm>

#include "cuda/scratch.h"
#include "engine/runner.h"

namespace retrograd::cuda::fusion {
namespace {

constexpr int64_t kThreads = 256;  // of a block: cuda/kernels/launch.h

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>(std::min<int64_t>((threads + kThreads - 1) / kThreads, 1 << 30));
}

bool is_dead_after(const Group::Node& node, size_t n) {
  return !node.is_output && node.last_use == static_cast<int>(n);
}

}  // namespace

CudaFusedKernel::CudaFusedKernel(Gpu& gpu, Group group) : gpu_(gpu), group_(std::move(group)) {
  for (size_t n = 0; n < group_.nodes.size(); ++n)
    if (group_.nodes[n].reducing) reductions_.push_back(n);
}

bool CudaFusedKernel::may_overwrite(int input, int output) const {
  return group_.output(static_cast<size_t>(output)).role == FusedRole::elementwise &&
         group_.inputs[static_cast<size_t>(input)].shape == group_.shape;
}

bool CudaFusedKernel::is_settled() const {
  std::lock_guard lock(mutex_);
  return std::ranges::all_of(made_, [](const Made& m) { return !m.kernel || m.kernel->is_settled(); });
}

void CudaFusedKernel::run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
                          std::span<std::byte>) const {
  if (group_.numel == 0) return;
  Placement placement(group_, inputs, outputs);
  const LoadedKernel* kernel = is_reduced_as_it_lies(placement) ? kernel_for(placement) : nullptr;
  if (!kernel) {
    ++run_counts().one_by_one;
    return run_one_by_one(inputs, outputs, attrs);
  }
  ++run_counts().launches;
  gpu_.begin();
  const Gpu::Scope scope(gpu_);
  launch(*kernel, placement, inputs, outputs, attrs);
}

// How the reduction of a tensor is cut depends on its strides: that of an input which is not contiguous is left to its own kernel.
bool CudaFusedKernel::is_reduced_as_it_lies(const Placement& placement) const {
  return std::ranges::all_of(reductions_, [&](size_t n) {
    const int32_t operand = group_.nodes[n].operands[0];
    return operand < 0 || placement.variant().inputs[static_cast<size_t>(operand)] == Access::dense;
  });
}

// Null while it is compiled, and where it cannot be.
const LoadedKernel* CudaFusedKernel::kernel_for(Placement& placement) const {
  std::lock_guard lock(mutex_);
  const auto find = [&] {
    return std::ranges::find_if(made_, [&](const Made& m) { return m.variant == placement.variant(); });
  };
  auto known = find();
  if (known == made_.end() && made_.size() >= kMostVariants) {
    placement.generalize();
    known = find();
  }
  if (known == made_.end()) {
    KernelStore* kernels = store();
    const Source source = write_source(group_, placement.variant());
    run_counts().groups += made_.empty();
    made_.push_back({placement.variant(), kernels ? kernels->get(gpu_, source) : nullptr});
    known = made_.end() - 1;
  }
  return known->kernel && known->kernel->is_ready() ? known->kernel.get() : nullptr;
}

void CudaFusedKernel::launch(const LoadedKernel& kernel, const Placement& placement, TensorImpl* const* inputs,
                             TensorImpl* const* outputs, const void* const* attrs) const {
  const StreamHandle stream = gpu_.compute().handle();
  const auto start = [&](KernelHandle handle, unsigned blocks, unsigned blocks_y, void* argument) {
    const LaunchShape shape{blocks, blocks_y, kThreads};
    gpu_.health().check(gpu_.driver().launch(handle, shape, &argument, stream), "a fused group");
  };
  if (reductions_.empty()) {
    Arguments arguments(placement, inputs, outputs, attrs, {});
    const int pack = placement.variant().pack;
    start(kernel.kernel(), blocks_for((group_.numel + pack - 1) / pack), 1, arguments.data());
    return gpu_.launched("a fused group");
  }
  const ReduceCall cut = reduce_call(group_, group_.nodes[reductions_[0]]);
  std::vector<std::unique_ptr<Scratch>> memory;
  std::vector<void*> partials;
  for (size_t i = 0; i < reductions_.size() && cut.splits > 1; ++i) {
    const int64_t bytes = group_.rows * cut.splits * static_cast<int64_t>(sizeof(Partial<double>));
    partials.push_back(memory.emplace_back(std::make_unique<Scratch>(bytes, "a fused group"))->data());
  }
  Arguments arguments(placement, inputs, outputs, attrs, partials);
  start(kernel.kernel(), blocks_for(group_.rows * cut.lanes), static_cast<unsigned>(cut.splits), arguments.data());
  for (size_t i = 0; i < partials.size(); ++i)
    start(kernel.merge(i), blocks_for(group_.rows), 1, arguments.reduction(i));
  gpu_.launched("a fused group");
}

// An output may lie on the memory of an input, which a later node may still read: it is computed elsewhere first.
void CudaFusedKernel::run_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs,
                                     const void* const* attrs) const {
  Executor& executor = cuda_executor(gpu_.index());
  std::vector<RefPtr<TensorImpl>> results(group_.nodes.size());
  const auto lies_on_input = [&](const TensorImpl& x) {
    for (size_t k = 0; k < group_.inputs.size(); ++k)
      if (inputs[k]->storage() == x.storage()) return true;
    return false;
  };
  for (size_t o = 0; o < group_.outputs.size(); ++o)
    if (!lies_on_input(*outputs[o])) results[static_cast<size_t>(group_.outputs[o])] = RefPtr(outputs[o]);
  for (size_t n = 0; n < group_.nodes.size(); ++n) {
    const Group::Node& node = group_.nodes[n];
    std::vector<TensorImpl*> operands;
    for (int32_t k : node.operands)
      operands.push_back(k == FusedNode::kNone ? nullptr : k >= 0 ? inputs[k] : results[static_cast<size_t>(~k)].get());
    if (!results[n]) {
      results[n] = TensorImpl::make();
      results[n]->set_type(node.type.dtype, node.type.device, node.type.shape);
      executor.allocate(*results[n]);
    }
    TensorImpl* output = results[n].get();
    executor.launch(executor.find(node.op), {node.op, operands, const_cast<void*>(attrs[n]), {}, 1}, &output);
    for (int32_t k : node.operands)  // what nobody needs any more
      if (k < 0 && k != FusedNode::kNone && is_dead_after(group_.nodes[static_cast<size_t>(~k)], n))
        results[static_cast<size_t>(~k)].reset();
  }
  for (size_t o = 0; o < group_.outputs.size(); ++o) {
    const TensorImpl& made = *results[static_cast<size_t>(group_.outputs[o])];
    if (&made != outputs[o])
      gpu_.copy(outputs[o]->data(), made.data(), made.numel().raw() * static_cast<int64_t>(element_size(made.dtype())));
  }
}

}  // namespace retrograd::cuda::fusion
