// RecordingExecutor: the CPU's kernels, and graphs of their launches. A recording keeps addresses and numbers, not
// tensors, like a device's graph: a tensor that moved without being noticed gives other bits. For steps of optimizers
// and draws it keeps the address of the numbers.
#pragma once

#include <cstring>
#include <functional>

#include "engine/executor.h"
#include "engine/runner.h"
#include "engine/storage.h"

namespace retrograd {

class RecordingExecutor final : public Executor {
 public:
  std::string_view name() const override { return "recording"; }
  Kernel find(const OpInfo* op) const override { return cpu().find(op); }
  FusedRole fused_role(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                       const TensorType& result) const override {
    return cpu().fused_role(op, attrs, operands, result);
  }
  std::unique_ptr<FusedKernel> fuse(const FusedGroup& group) const override {
    std::unique_ptr<FusedKernel> kernel = cpu().fuse(group);
    return kernel ? std::make_unique<Fused>(std::move(kernel), group, recorded_) : nullptr;
  }
  void allocate(TensorImpl& cell) override { cpu().allocate(cell); }
  bool has_scratch(const OpInfo* op) const override { return cpu().has_scratch(op); }
  int64_t scratch_bytes(Kernel kernel, const Call& call, TensorImpl* const* outputs) override {
    return cpu().scratch_bytes(kernel, call, outputs);
  }
  void launch(Kernel kernel, const Call& call, TensorImpl* const* outputs,
              std::span<std::byte> scratch) override {
    if (!*recorded_) return cpu().launch(kernel, call, outputs, scratch);
    if (launches_to_failure > 0 && --launches_to_failure == 0) throw RuntimeError("not recorded");
    auto cells = std::make_shared<Cells>(call.operands.data(), call.operands.size(), outputs, call.outputs);
    const bool follows = call.op->is(Trait::updates) || call.op->is(Trait::random);
    auto attrs = follows ? std::make_shared<Bytes>(call.attrs)
                         : std::make_shared<Bytes>(call.attrs, call.op->attrs_size);
    (*recorded_)->push_back([kernel, call, cells, attrs, scratch] {
      const Call again{call.op, cells->operands, attrs->data(), call.where, call.outputs};
      cpu().launch(kernel, again, cells->results.data(), scratch);
    });
  }
  bool records_launches() const override { return true; }
  bool joins_updates(const TensorType&) const override { return true; }
  std::unique_ptr<LaunchGraph> new_graph() override { return std::make_unique<Graph>(recorded_); }

  int launches_to_failure = 0;  // this recorded launch throws; 0: none

 private:
  using Work = std::vector<std::function<void()>>;
  using Recorded = std::shared_ptr<Work*>;  // the present recording; null: launches run

  static Executor& cpu() { return cpu_executor(); }

  class Bytes {
   public:
    Bytes(const void* data, size_t size)
        : bytes_((size + sizeof(std::max_align_t)) / sizeof(std::max_align_t)) {
      if (data) std::memcpy(bytes_.data(), data, size);
    }
    explicit Bytes(void* where_they_are) : elsewhere_(where_they_are) {}
    void* data() { return elsewhere_ ? elsewhere_ : bytes_.data(); }

   private:
    void* elsewhere_ = nullptr;
    std::vector<std::max_align_t> bytes_;
  };

  struct Cells {
    Cells(TensorImpl* const* operands_at, size_t operand_count, TensorImpl* const* results_at,
          int result_count) {
      for (size_t i = 0; i < operand_count; ++i) add(operands_at[i], operands);
      for (int i = 0; i < result_count; ++i) add(results_at[i], results);
    }
    void add(const TensorImpl* x, std::vector<TensorImpl*>& to) {
      to.push_back(nullptr);
      if (!x) return;
      RefPtr<TensorImpl> cell = TensorImpl::make();
      cell->alias(*x);
      cell->set_storage(Storage::wrap(x->storage()->data(), x->storage()->nbytes(), nullptr, nullptr));
      to.back() = cell.get();
      held.push_back(std::move(cell));
    }
    std::vector<RefPtr<TensorImpl>> held;
    std::vector<TensorImpl*> operands, results;
  };

  class Fused final : public FusedKernel {
   public:
    Fused(std::unique_ptr<FusedKernel> kernel, const FusedGroup& group, Recorded recorded)
        : kernel_(std::move(kernel)),
          inputs_(group.inputs.size()),
          outputs_(static_cast<int>(group.outputs.size())),
          recorded_(std::move(recorded)) {
      for (const FusedNode& n : group.nodes) attrs_sizes_.push_back(n.op->attrs_size);
    }
    int64_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
    bool may_overwrite(int input, int output) const override { return kernel_->may_overwrite(input, output); }
    void run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
             std::span<std::byte> scratch) const override {
      if (!*recorded_) return kernel_->run(inputs, outputs, attrs, scratch);
      auto cells = std::make_shared<Cells>(inputs, inputs_, outputs, outputs_);
      auto copies = std::make_shared<std::vector<Bytes>>();
      for (size_t n = 0; n < attrs_sizes_.size(); ++n) copies->emplace_back(attrs[n], attrs_sizes_[n]);
      (*recorded_)->push_back([this, cells, copies, scratch] {
        std::vector<const void*> again;
        for (Bytes& b : *copies) again.push_back(b.data());
        kernel_->run(cells->operands.data(), cells->results.data(), again.data(), scratch);
      });
    }

   private:
    const std::unique_ptr<FusedKernel> kernel_;
    const size_t inputs_;
    const int outputs_;
    std::vector<size_t> attrs_sizes_;
    const Recorded recorded_;
  };

  class Graph final : public LaunchGraph {
   public:
    explicit Graph(Recorded recorded) : recorded_(std::move(recorded)) {}
    void begin() override {
      work_.clear();
      *recorded_ = &work_;
    }
    void end() override { *recorded_ = nullptr; }
    void cancel() noexcept override { *recorded_ = nullptr; }
    void start() override {
      for (const auto& launch : work_) launch();
    }

   private:
    const Recorded recorded_;
    Work work_;
  };

  const Recorded recorded_ = std::make_shared<Work*>(nullptr);
};

}  // namespace retrograd
