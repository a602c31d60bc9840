// See cuda/fusion/fused_kernel.h.
#include "cuda/fusion/fused_kernel.h"

#include <algorithm>
#include <utility>

#include "cuda/kernels/reduce.h"
#include "cuda/kernels/rows.h"
#include "cuda/scratch.h"
#include "engine/runner.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

constexpr int64_t kThreads = 256;  // of a block: cuda/kernels/launch.h

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>(std::min<int64_t>((threads + kThreads - 1) / kThreads, 1 << 30));
}

// How the reduction is divided when it runs by itself, for inputs of any layout.
ReduceCall single_call(const Group& group, const Group::Node& node, TensorImpl* const* inputs) {
  const int32_t operand = node.operands[0];
  ReduceCall call = reduce_call(group, node);
  if (operand < 0) return call;
  const RowSide side = row_side(*inputs[operand], mask_of(group.dims));
  call.rows = side.rows;
  call.along = side.along;
  cut(call);
  return call;
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

void CudaFusedKernel::run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
                          std::span<std::byte>) const {
  if (group_.numel == 0) return;
  const DeviceScratch::Foretold foretold;
  Placement placement(group_, inputs, outputs);
  const bool has_kernel = is_reduced_as_it_lies(placement);
  std::shared_ptr<const LoadedKernel> kernel;
  if (has_kernel) kernel = kernel_for(placement, Recording::of(gpu_) != nullptr);
  if (!kernel) {
    try {
      return run_one_by_one(inputs, outputs, attrs);
    } catch (const OutOfMemory&) {
      if (has_kernel) kernel = kernel_for(placement, true);
      if (!kernel) throw;
    }
  }
  ++run_counts().launches;
  gpu_.begin();
  const Gpu::Scope scope(gpu_);
  launch(*kernel, placement, inputs, outputs, attrs);
}

void CudaFusedKernel::run_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs,
                                     const void* const* attrs) const {
  if (group_.numel == 0) return;
  const DeviceScratch::Foretold foretold;
  gpu_.begin();
  const Gpu::Scope scope(gpu_);
  run_nodes(inputs, outputs, attrs);
  ++run_counts().one_by_one;
}

FusedKernel::Temporary CudaFusedKernel::temporary(TensorImpl* const* inputs,
                                                  TensorImpl* const* outputs) const {
  if (group_.numel == 0) return {};
  Placement placement(group_, inputs, outputs);
  if (is_reduced_as_it_lies(placement) && kernel_for(placement, false)) return {bytes_of_partials(), false};
  return {bytes_one_by_one(inputs, outputs), true};
}

// How the reduction of a tensor is divided depends on its strides: the reduction of an input that is not contiguous is
// left to its own kernel.
bool CudaFusedKernel::is_reduced_as_it_lies(const Placement& placement) const {
  return std::ranges::all_of(reductions_, [&](size_t n) {
    const int32_t operand = group_.nodes[n].operands[0];
    return operand < 0 || placement.variant().inputs[static_cast<size_t>(operand)] == Access::dense;
  });
}

// Null while it is compiled, unless the caller waits, and when it cannot be compiled. A recorded launch is worth
// waiting for: it will be started many times.
std::shared_ptr<const LoadedKernel> CudaFusedKernel::kernel_for(Placement& placement, bool waits) const {
  const std::shared_ptr<const LoadedKernel> kernel = asked_for(placement);
  if (!kernel) return nullptr;
  if (waits || is_waiting())
    if (KernelStore* kernels = store()) kernels->wait_for(*kernel);
  return kernel->is_ready() ? kernel : nullptr;
}

std::shared_ptr<const LoadedKernel> CudaFusedKernel::asked_for(Placement& placement) const {
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
  return known->kernel;
}

void CudaFusedKernel::launch(const LoadedKernel& kernel, const Placement& placement,
                             TensorImpl* const* inputs, TensorImpl* const* outputs,
                             const void* const* attrs) const {
  const StreamHandle stream = gpu_.compute().handle();
  const auto start = [&](KernelHandle handle, unsigned blocks, unsigned blocks_y, void* argument) {
    const LaunchShape shape{blocks, blocks_y, kThreads};
    gpu_.health().check(gpu_.driver().launch(handle, shape, &argument, stream), kernel.name());
  };
  if (reductions_.empty()) {
    Arguments arguments(placement, inputs, outputs, attrs, {});
    const int pack = placement.variant().pack;
    start(kernel.kernel(), blocks_for((group_.numel + pack - 1) / pack), 1, arguments.data());
    return gpu_.launched(kernel.name());
  }
  const ReduceCall cut = reduce_call(group_, group_.nodes[reductions_[0]]);
  std::vector<std::unique_ptr<Scratch>> memory;
  std::vector<void*> partials;
  for (size_t i = 0; i < reductions_.size() && cut.splits > 1; ++i)
    partials.push_back(
        memory.emplace_back(std::make_unique<Scratch>(partial_bytes(cut), "a fused group"))->data());
  Arguments arguments(placement, inputs, outputs, attrs, partials);
  start(kernel.kernel(), blocks_for(group_.rows * cut.lanes), static_cast<unsigned>(cut.splits),
        arguments.data());
  for (size_t i = 0; i < partials.size(); ++i)
    start(kernel.merge(i), blocks_for(group_.rows), 1, arguments.reduction(i));
  gpu_.launched(kernel.name());
}

bool CudaFusedKernel::lies_on_input(TensorImpl* const* inputs, const TensorImpl& x) const {
  return std::any_of(inputs, inputs + group_.inputs.size(), [&](const TensorImpl* input) {
    return input == &x || (x.data() && input->data() == x.data());
  });
}

// Whether a node's result is not needed any more.
bool CudaFusedKernel::is_dead_after(int32_t operand, size_t node) const {
  if (operand >= 0 || operand == FusedNode::kNone) return false;
  const Group::Node& of = group_.nodes[static_cast<size_t>(~operand)];
  return !of.is_output && of.last_use == static_cast<int>(node);
}

// An output may share memory with an input that a later node still reads: then it is computed elsewhere first. Values
// that only nodes see are in temporary memory, since launches may be recorded; bytes_one_by_one() gives its size.
void CudaFusedKernel::run_nodes(TensorImpl* const* inputs, TensorImpl* const* outputs,
                                const void* const* attrs) const {
  Executor& executor = cuda_executor(gpu_.index());
  std::vector<RefPtr<TensorImpl>> results(group_.nodes.size());
  std::vector<std::unique_ptr<Scratch>> memory(group_.nodes.size());
  for (size_t o = 0; o < group_.outputs.size(); ++o)
    if (!lies_on_input(inputs, *outputs[o]))
      results[static_cast<size_t>(group_.outputs[o])] = RefPtr(outputs[o]);
  for (size_t n = 0; n < group_.nodes.size(); ++n) {
    const Group::Node& node = group_.nodes[n];
    std::vector<TensorImpl*> operands;
    for (int32_t k : node.operands)
      operands.push_back(k == FusedNode::kNone ? nullptr
                         : k >= 0              ? inputs[k]
                                               : results[static_cast<size_t>(~k)].get());
    if (!results[n]) {
      results[n] = TensorImpl::make();
      results[n]->set_type(node.type.dtype, node.type.device, node.type.shape);
      contiguous_strides(node.type.shape, results[n]->mutable_strides());
      const int64_t bytes = bytes_of(node.type);
      memory[n] = std::make_unique<Scratch>(bytes, node.op->name);
      results[n]->set_storage(Storage::wrap(memory[n]->data(), bytes, nullptr, nullptr));
    }
    TensorImpl* output = results[n].get();
    executor.launch(executor.find(node.op), {node.op, operands, const_cast<void*>(attrs[n]), {}, 1}, &output);
    for (int32_t k : node.operands)
      if (is_dead_after(k, n)) memory[static_cast<size_t>(~k)].reset();
  }
  for (size_t o = 0; o < group_.outputs.size(); ++o) {
    const TensorImpl& made = *results[static_cast<size_t>(group_.outputs[o])];
    if (&made != outputs[o]) gpu_.copy(outputs[o]->data(), made.data(), bytes_of(group_.output(o).type));
  }
}

// The largest number of live bytes in run_nodes(), including the temporary memory of reduction kernels.
int64_t CudaFusedKernel::bytes_one_by_one(TensorImpl* const* inputs, TensorImpl* const* outputs) const {
  std::vector<int64_t> held(group_.nodes.size());
  for (size_t n = 0; n < held.size(); ++n) held[n] = bytes_of(group_.nodes[n].type);
  for (size_t o = 0; o < group_.outputs.size(); ++o)
    if (!lies_on_input(inputs, *outputs[o])) held[static_cast<size_t>(group_.outputs[o])] = 0;
  int64_t live = 0, most = 0;
  for (size_t n = 0; n < held.size(); ++n) {
    const Group::Node& node = group_.nodes[n];
    live += held[n];
    most = std::max(most, live + (node.reducing ? partial_bytes(single_call(group_, node, inputs)) : 0));
    for (int32_t k : node.operands)
      if (is_dead_after(k, n)) live -= std::exchange(held[static_cast<size_t>(~k)], 0);
  }
  return most;
}

int64_t CudaFusedKernel::bytes_of_partials() const {
  int64_t bytes = 0;
  for (size_t n : reductions_) bytes += partial_bytes(reduce_call(group_, group_.nodes[n]));
  return bytes;
}

}  // namespace retrograd::cuda::fusion
