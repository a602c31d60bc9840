// See ir/passes/join_updates.h. The pass, and the kernel of its groups, are here.
#include "ir/passes/join_updates.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/each_field.h"
#include "ir/passes/fuse.h"
#include "ir/passes/memory_classes.h"
#include "ir/passes/pass.h"

namespace retrograd::inline v0::ir {
namespace {

constexpr size_t kMostJoined = 512;  // nodes of a group: the properties of a group are found by linear search

void put(std::string& to, const auto& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The common properties of the updates of one group, as bytes.
std::string kind_of(const Graph& graph, const Node& node) {
  std::string kind;
  const TensorType& parameter = graph.type(node.first_result);
  put(kind, node.op);
  put(kind, parameter.dtype);
  put(kind, parameter.device.type());
  put(kind, parameter.device.index());
  for (ValueId v : graph.operands(node))
    put(kind, v == kNoValue ? ScalarType::Undefined : graph.type(v).dtype);
  for_each_field(*node.op, node.attrs,
                 Fields{[&](auto, Scalar& v) { put(kind, v.number().as_double()); },
                        [&](auto, bool& v) { put(kind, v); }, [&](auto, int64_t& v) { put(kind, v); }});
  return kind;
}

// Adjacent updates, in the order of their groups.
class Stretch {
 public:
  explicit Stretch(const Graph& graph) : graph_(graph), classes_(graph) {}

  /// Whether one launch may compute the node together with those of this stretch: it uses none of their results, reads
  /// no memory that they may write to, and does not write to memory that they read.
  bool takes(const Node& node) {
    bool is_apart = true;
    for_memory(node, [&](ValueId memory, bool is_written) {
      is_apart &= !written_.contains(memory) && !(is_written && read_.contains(memory));
    });
    for (ValueId v : graph_.operands(node))
      is_apart &= kinds_.empty() || v < first_result_ || v >= end_result_;
    return is_apart;
  }
  void add(uint32_t number) {
    const Node& node = graph_.nodes()[number];
    if (kinds_.empty()) first_result_ = node.first_result;
    for_memory(node,
               [&](ValueId memory, bool is_written) { (is_written ? written_ : read_).insert(memory); });
    end_result_ = node.first_result + node.results;
    const std::string kind = kind_of(graph_, node);
    auto same = std::find_if(kinds_.rbegin(), kinds_.rend(), [&](const Kind& k) { return k.of == kind; });
    if (same == kinds_.rend() || same->nodes.size() == kMostJoined)
      kinds_.push_back({kind, {number}});
    else
      same->nodes.push_back(number);
  }
  void move_to(Grouping& to) {
    for (const Kind& k : kinds_) {
      const int32_t number = k.nodes.size() > 1 ? to.groups++ : -1;
      to.order.insert(to.order.end(), k.nodes.begin(), k.nodes.end());
      to.group.insert(to.group.end(), k.nodes.size(), number);
    }
    kinds_.clear();
    written_.clear();
    read_.clear();
  }

 private:
  struct Kind {
    std::string of;
    std::vector<uint32_t> nodes;
  };

  // Calls f(memory, whether a result may use it) for each operand.
  void for_memory(const Node& node, auto f) {
    int updated = 0;
    for (ValueId v : graph_.operands(node))
      if (v != kNoValue) f(classes_.representative(v), updated++ < node.results);
  }

  const Graph& graph_;
  MemoryClasses classes_;
  std::vector<Kind> kinds_;
  std::unordered_set<ValueId> written_, read_;
  ValueId first_result_ = 0, end_result_ = 0;
};

// The lists of operands and results are those of the nodes, concatenated.
class JoinedUpdates final : public FusedKernel {
 public:
  JoinedUpdates(Executor& executor, const FusedGroup& group)
      : executor_(executor),
        op_(*group.nodes[0].op),
        kernel_(executor.find(&op_)),
        nodes_(group.nodes.size()),
        arity_(static_cast<size_t>(op_.arity)),
        results_(static_cast<size_t>(group.nodes[0].results)),
        uses_(group.inputs.size()),
        is_cut_(nodes_) {
    for (const FusedNode& node : group.nodes)
      for (int32_t i : node.operands) {
        RG_ASSERT(i == FusedNode::kNone || i >= 0);
        operands_.push_back(i);
        if (i >= 0) ++uses_[static_cast<size_t>(i)];
      }
  }

  int64_t scratch_bytes() const override { return 0; }

  void run(TensorImpl* const* inputs, TensorImpl* const* outputs, const void* const* attrs,
           std::span<std::byte>) const override {
    std::vector<TensorImpl*> operands(operands_.size());
    for (size_t i = 0; i < operands.size(); ++i)
      operands[i] = operands_[i] < 0 ? nullptr : inputs[operands_[i]];
    for (size_t begin = 0, end = 0; begin < nodes_; begin = end) {
      ++end;
      while (end < nodes_ && !is_cut(end, attrs)) ++end;
      try {
        const Call call{&op_,
                        {operands.data() + begin * arity_, (end - begin) * arity_},
                        const_cast<void*>(attrs[begin]),
                        {},
                        static_cast<int>((end - begin) * results_)};
        executor_.launch(kernel_, call, outputs + begin * results_);
      } catch (Exception& e) {
        if (begin > 0) e.add_context(fmt::format("when {} of {} of a list had been updated", begin, nodes_));
        throw;
      }
    }
  }

  // Result k of a node may use the memory of its k-th present operand, if nothing else in the group reads that.
  bool may_overwrite(int input, int output) const override {
    const auto node = static_cast<size_t>(output) / results_;
    auto left = static_cast<size_t>(output) % results_;
    for (size_t i = node * arity_; i < (node + 1) * arity_; ++i)
      if (operands_[i] >= 0 && left-- == 0)
        return operands_[i] == input && uses_[static_cast<size_t>(input)] == 1;
    return false;
  }

 private:
  // Whether update n is separate from the one before it. Once their numbers have differed, they stay separate: if the
  // numbers were equal again in some runs only, a recorded launch would have to be recorded again each time.
  bool is_cut(size_t n, const void* const* attrs) const {
    if (!have_same_numbers(attrs[n - 1], attrs[n])) is_cut_[n].store(true, std::memory_order_relaxed);
    return is_cut_[n].load(std::memory_order_relaxed);
  }
  // The bytes between the fields are undefined.
  bool have_same_numbers(const void* a, const void* b) const {
    return std::memcmp(a, b, op_.attrs_size) == 0 || numbers(a) == numbers(b);
  }
  std::vector<double> numbers(const void* attrs) const {
    std::vector<double> all;
    for_each_field(op_, const_cast<void*>(attrs), [&](auto, Scalar& v) { all.push_back(v.to_double()); });
    return all;
  }

  Executor& executor_;
  const OpInfo& op_;
  const Kernel kernel_;
  const size_t nodes_, arity_, results_;
  std::vector<int32_t> operands_;                  // of all nodes, as in a FusedNode
  std::vector<int> uses_;                          // of each input
  mutable std::vector<std::atomic<bool>> is_cut_;  // of each node
};

}  // namespace

std::unique_ptr<FusedKernel> joined_updates(Executor& executor, const FusedGroup& group) {
  return std::make_unique<JoinedUpdates>(executor, group);
}

bool join_updates(Graph& graph, const PassInput& input, Remap& remap) {
  if (!input.executor) return false;
  Grouping grouping;
  Stretch stretch(graph);
  for (uint32_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const bool is_joined = node.op->is(Trait::updates) && node.op->is(Trait::pure) &&
                           input.executor->joins_updates(graph.type(node.first_result));
    if (!is_joined || !stretch.takes(node)) stretch.move_to(grouping);
    if (is_joined) {
      stretch.add(i);
      continue;
    }
    grouping.order.push_back(i);
    grouping.group.push_back(-1);
  }
  stretch.move_to(grouping);
  if (grouping.groups == 0) return false;
  remap = regroup(graph, grouping);
  return true;
}

}  // namespace retrograd::ir
