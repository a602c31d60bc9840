// See ir/passes/lifetimes.h.
#include "ir/passes/lifetimes.h"

#include <algorithm>
#include <numeric>

#include "engine/bookkeeping.h"

namespace retrograd::inline v0::ir {
namespace {

int64_t bytes_of(const TensorType& type, const SymbolTable& symbols, std::span<const Number> values) {
  int64_t bytes = static_cast<int64_t>(element_size(type.dtype));
  for (Dim d : type.shape) {
    const auto id = static_cast<size_t>(d.is_symbolic() ? d.id() : 0);
    const int64_t size = !d.is_symbolic()     ? d.raw()
                         : id < values.size() ? values[id].as_int()
                                              : symbols.expr(d.id()).hint.as_int();
    bytes = Dim::checked_mul(bytes, size);
  }
  return bytes;
}

class Finder {
 public:
  Finder(const Graph& graph, const LifetimeOptions& options)
      : graph_(graph), options_(options), order_(options.order.begin(), options.order.end()) {
    if (!order_.empty()) return;
    order_.resize(graph.nodes().size());
    std::iota(order_.begin(), order_.end(), 0);
  }

  Lifetimes run() {
    find_steps();
    make_blocks();
    find_last_uses();
    for (const OutsideWrite& write : options_.writes) lay_outside(write);
    if (options_.in_place)
      for (const Step& step : steps_) lay_in_place(step);
    return collect();
  }

 private:
  struct Step {
    int32_t first, last;  // places
    const GroupMemory* group;
    int64_t scratch;
  };
  struct Draft {
    Block block;
    ValueId holds;      // the value that it was made for, or the last that took over its memory
    bool may_go;        // an elementwise result may take over its memory where this value dies
    int32_t into = -1;  // another block, whose memory this one uses
    bool outside = false;
  };

  int32_t end() const { return static_cast<int32_t>(order_.size()); }
  int32_t block(ValueId v) {
    if (v == kNoValue) return -1;
    int32_t b = block_of_[static_cast<size_t>(v)];
    while (b >= 0 && drafts_[static_cast<size_t>(b)].into >= 0) b = drafts_[static_cast<size_t>(b)].into;
    return block_of_[static_cast<size_t>(v)] = b;
  }
  Draft& draft(int32_t b) { return drafts_[static_cast<size_t>(b)]; }
  const Node& node_at(int32_t place) const {
    return graph_.nodes()[static_cast<size_t>(order_[static_cast<size_t>(place)])];
  }
  const Step& step_of(size_t node) const { return steps_[static_cast<size_t>(step_of_[node])]; }

  int32_t group_at(int32_t place) const {
    if (!options_.groups) return -1;
    return options_.group.empty() ? node_at(place).group : options_.group[static_cast<size_t>(place)];
  }

  void find_steps() {
    step_of_.resize(order_.size());
    is_inside_.resize(static_cast<size_t>(graph_.value_count()));
    std::vector<uint32_t> nodes;
    for (int32_t first = 0, next = 0; first < end(); first = next) {
      const int32_t group = group_at(first);
      nodes.clear();
      do nodes.push_back(static_cast<uint32_t>(order_[static_cast<size_t>(next++)]));
      while (group >= 0 && next < end() && group_at(next) == group);
      const GroupMemory* memory = group >= 0 && nodes.size() > 1 ? &options_.groups->of(nodes) : nullptr;
      if (memory && memory->kernel) {
        add_step({first, next - 1, memory, memory->scratch_bytes});
        for (uint32_t n : nodes) is_inside_[static_cast<size_t>(graph_.nodes()[n].first_result)] = 1;
        for (ValueId v : memory->outputs) is_inside_[static_cast<size_t>(v)] = 0;
      } else {
        for (int32_t place = first; place < next; ++place)
          add_step({place, place, nullptr,
                    options_.groups
                        ? options_.groups->scratch_bytes(nodes[static_cast<size_t>(place - first)])
                        : 0});
      }
    }
  }
  void add_step(const Step& step) {
    for (int32_t place = step.first; place <= step.last; ++place)
      step_of_[static_cast<size_t>(order_[static_cast<size_t>(place)])] = static_cast<int32_t>(steps_.size());
    steps_.push_back(step);
  }

  int32_t add_block(ValueId v, int32_t place, bool escapes, bool may_go) {
    drafts_.push_back(
        {{bytes_[static_cast<size_t>(graph_.type_index(v))], place, place, escapes}, v, may_go});
    return static_cast<int32_t>(drafts_.size()) - 1;
  }

  std::vector<ValueId> given_values() const {
    std::vector<ValueId> of_inputs, given;
    for (const Input& input : graph_.inputs()) of_inputs.push_back(input.value);
    for (const Node& node : graph_.nodes())
      if (node.op == &ops::unpack) of_inputs[static_cast<size_t>(node.handle)] = node.first_result;
    for (int32_t input : options_.given)
      if (const ValueId v = of_inputs[static_cast<size_t>(input)]; v != kNoValue) given.push_back(v);
    return given;
  }

  void make_blocks() {
    for (const TensorType& type : graph_.types())
      bytes_.push_back(bytes_of(type, graph_.symbols, options_.values));
    MemoryClasses classes(graph_);
    block_of_.assign(static_cast<size_t>(graph_.value_count()), -1);
    const std::vector<ValueId> given = given_values();
    for (ValueId v : given) {
      block_of_[static_cast<size_t>(v)] = add_block(v, 0, true, true);
      draft(block(v)).block.last = -1;
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (!node.op->is(Trait::pure)) continue;
      for (ValueId v = node.first_result; v < node.first_result + node.results; ++v) {
        if (is_inside_[static_cast<size_t>(v)]) continue;
        const bool is_private = classes.is_private(v);
        block_of_[static_cast<size_t>(v)] =
            node.op->is(Trait::view)
                ? block(graph_.operands(node)[0])
                : add_block(v, step_of(i).first, !is_private || classes.is_output(v), is_private);
        if (!node.op->is(Trait::view)) draft(block(v)).block.last = step_of(i).last;
      }
    }
  }

  void need(ValueId v, int32_t place) {
    if (const int32_t b = block(v); b >= 0) draft(b).block.last = std::max(draft(b).block.last, place);
  }

  // In backward order, so that the lifetime of a result is known before its operands are processed.
  void find_last_uses() {
    for (ValueId v : graph_.outputs()) need(v, end());
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      const bool pure = node.op->is(Trait::pure), stays = !pure && node.results == 0;
      int32_t last = stays ? end() : step_of(i).last;
      if (pure && node.op->run_on_host && !makes_memory(*node.op))
        for (int r = 0; r < node.results; ++r)
          last = std::max(last, draft(block(node.first_result + r)).block.last);
      for (ValueId v : graph_.operands(node)) {
        need(v, last);
        if (const int32_t b = block(v); !pure && b >= 0) draft(b).may_go = false;
      }
    }
    for (Draft& d : drafts_)
      if (d.block.last < 0) d.block.bytes = d.block.last = 0;  // an unused input is freed immediately
    if (!options_.writes.empty()) find_last_reads();
  }

  // For inputs, including reads through views.
  void find_last_reads() {
    last_read_.assign(block_of_.size(), -1);
    const auto read = [&](ValueId v, int32_t place) {
      if (v != kNoValue)
        last_read_[static_cast<size_t>(v)] = std::max(last_read_[static_cast<size_t>(v)], place);
    };
    for (ValueId v : graph_.outputs()) read(v, end());
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      int32_t last = step_of(i).last;
      for (int r = 0; r < node.results && !makes_memory(*node.op); ++r)
        last = std::max(last, last_read_[static_cast<size_t>(node.first_result + r)]);
      for (ValueId v : graph_.operands(node)) read(v, last);
    }
  }

  void lay_in_place(const Step& step) {
    if (step.group) {
      for (ValueId output : step.group->outputs)
        lay_over_operand(step, output, step.group->inputs,
                         [&](ValueId input) { return step.group->may_overwrite(input, output); });
      return;
    }
    const Node& node = node_at(step.first);
    const auto operands = graph_.operands(node);
    if (makes_memory(*node.op) && node.results == 1)
      lay_over_operand(step, node.first_result, operands, [&](ValueId v) {
        return may_lie_over(*node.op, operands,
                            static_cast<size_t>(std::ranges::find(operands, v) - operands.begin()), 0);
      });
  }

  // Not if another operand is a view of the one that dies: it would be read at other elements than those being written.
  void lay_over_operand(const Step& step, ValueId result, std::span<const ValueId> operands, auto may) {
    const int32_t own = block(result);
    if (draft(own).outside) return;
    for (ValueId v : operands) {
      const int32_t b = block(v);
      if (b < 0 || draft(b).holds != v || draft(b).block.last != step.last || !draft(b).may_go ||
          graph_.type_index(v) != graph_.type_index(result) || !may(v))
        continue;
      const bool alone =
          std::ranges::all_of(operands, [&](ValueId other) { return other == v || block(other) != b; });
      if (!alone) continue;
      const Draft& laid = draft(own);
      draft(b).block.last = laid.block.last;
      draft(b).block.escapes |= laid.block.escapes;
      draft(b).holds = result;
      draft(b).may_go = laid.may_go;
      draft(own).into = b;
      return;
    }
  }

  // The value of a written input needs no block if its step is the last that reads the input, and may write where it
  // reads.
  void lay_outside(const OutsideWrite& write) {
    const ValueId input = graph_.inputs()[static_cast<size_t>(write.input)].value;
    const ValueId value = graph_.outputs()[static_cast<size_t>(write.output)];
    const int32_t b = block(value);
    if (b < 0 || draft(b).holds != value) return;
    const Step& step = step_of(static_cast<size_t>(order_[static_cast<size_t>(draft(b).block.first)]));
    const OpInfo& op = *node_at(step.first).op;
    const int32_t read = last_read_[static_cast<size_t>(input)];
    const bool overwrites = step.group ? step.group->may_overwrite(input, value)
                                       : op.is(Trait::elementwise) || op.is(Trait::updates);
    if (read > step.last || (read >= step.first && !overwrites)) return;
    draft(b).block.bytes = 0;
    draft(b).outside = true;
  }

  Lifetimes collect() {
    Lifetimes found;
    found.nodes = end();
    std::vector<int32_t> by_time, number(drafts_.size(), -1);
    for (size_t b = 0; b < drafts_.size(); ++b)
      if (drafts_[b].into < 0) by_time.push_back(static_cast<int32_t>(b));
    std::ranges::stable_sort(by_time, {}, [&](int32_t b) { return draft(b).block.first; });
    for (int32_t b : by_time) {
      number[static_cast<size_t>(b)] = static_cast<int32_t>(found.blocks.size());
      found.blocks.push_back(draft(b).block);
    }
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      const int32_t b = block(v);
      found.block_of.push_back(b < 0 ? -1 : number[static_cast<size_t>(b)]);
    }
    if (!options_.groups) return found;
    found.scratch.resize(order_.size());
    for (const Step& step : steps_)
      std::fill(found.scratch.begin() + step.first, found.scratch.begin() + step.last + 1, step.scratch);
    return found;
  }

  const Graph& graph_;
  const LifetimeOptions& options_;
  std::vector<int32_t> order_;
  std::vector<Step> steps_;
  std::vector<int32_t> step_of_;    // of each node
  std::vector<uint8_t> is_inside_;  // of values: a group
  std::vector<int64_t> bytes_;      // of types
  std::vector<Draft> drafts_;
  std::vector<int32_t> block_of_, last_read_;  // of values
};

}  // namespace

std::vector<int64_t> Lifetimes::live_bytes() const {
  std::vector<int64_t> live(static_cast<size_t>(nodes) + 2);
  for (const Block& b : blocks) {
    live[static_cast<size_t>(b.first)] += b.bytes;
    live[static_cast<size_t>(b.last) + 1] -= b.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  for (size_t place = 0; place < scratch.size(); ++place) live[place] += scratch[place];
  return live;
}

int64_t Lifetimes::peak_bytes() const { return std::ranges::max(live_bytes()); }

Lifetimes lifetimes(const Graph& graph, const LifetimeOptions& options) {
  return Finder(graph, options).run();
}

}  // namespace retrograd::ir
