// See ir/passes/lifetimes.h.
#include "ir/passes/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace retrograd::ir {
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
    if (order_.empty()) {
      order_.resize(graph.nodes().size());
      std::iota(order_.begin(), order_.end(), 0);
    }
    place_.resize(order_.size());
    for (size_t i = 0; i < order_.size(); ++i)
      place_[static_cast<size_t>(order_[i])] = static_cast<int32_t>(i);
  }

  Lifetimes run() {
    make_blocks();
    find_last_uses();
    for (const OutsideWrite& write : options_.writes) lay_outside(write);
    if (options_.in_place)
      for (int32_t node : order_)
        lay_in_place(graph_.nodes()[static_cast<size_t>(node)], place_[static_cast<size_t>(node)]);
    return collect();
  }

 private:
  struct Draft {
    Block block;
    ValueId holds;      // the value that it was made for, or the last that was laid over it
    int32_t into = -1;  // another block that it was laid into
  };

  int32_t end() const { return static_cast<int32_t>(order_.size()); }
  int32_t block(ValueId v) {
    if (v == kNoValue) return -1;
    int32_t b = block_of_[static_cast<size_t>(v)];
    while (b >= 0 && drafts_[static_cast<size_t>(b)].into >= 0) b = drafts_[static_cast<size_t>(b)].into;
    return block_of_[static_cast<size_t>(v)] = b;
  }
  Draft& draft(int32_t b) { return drafts_[static_cast<size_t>(b)]; }

  void make_blocks() {
    std::vector<int64_t> bytes;
    for (const TensorType& type : graph_.types())
      bytes.push_back(bytes_of(type, graph_.symbols, options_.values));
    MemoryClasses classes(graph_);
    block_of_.assign(static_cast<size_t>(graph_.value_count()), -1);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (!node.op->is(Trait::pure)) continue;
      for (ValueId v = node.first_result; v < node.first_result + node.results; ++v) {
        int32_t& at = block_of_[static_cast<size_t>(v)];
        if (node.op->is(Trait::view)) {
          at = block(graph_.operands(node)[0]);
          continue;
        }
        at = static_cast<int32_t>(drafts_.size());
        const bool escapes = !classes.is_private(v) || classes.is_output(v);
        drafts_.push_back(
            {{bytes[static_cast<size_t>(graph_.type_index(v))], place_[i], place_[i], escapes}, v});
      }
    }
  }

  void need(ValueId v, int32_t place) {
    if (const int32_t b = block(v); b >= 0) draft(b).block.last = std::max(draft(b).block.last, place);
  }

  // Backwards, so that what a result keeps alive is known when its operands are looked at.
  void find_last_uses() {
    for (ValueId v : graph_.outputs()) need(v, end());
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      const bool pure = node.op->is(Trait::pure), stays = !pure && node.results == 0;
      int32_t last = stays ? end() : place_[i];
      if (pure && node.op->run_on_host && !makes_memory(*node.op))
        for (int r = 0; r < node.results; ++r)
          last = std::max(last, draft(block(node.first_result + r)).block.last);
      for (ValueId v : graph_.operands(node)) need(v, last);
    }
    if (!options_.writes.empty()) find_last_reads();
  }

  // Of inputs, through their views.
  void find_last_reads() {
    last_read_.assign(block_of_.size(), -1);
    const auto read = [&](ValueId v, int32_t place) {
      if (v != kNoValue)
        last_read_[static_cast<size_t>(v)] = std::max(last_read_[static_cast<size_t>(v)], place);
    };
    for (ValueId v : graph_.outputs()) read(v, end());
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      int32_t last = place_[i];
      for (int r = 0; r < node.results && !makes_memory(*node.op); ++r)
        last = std::max(last, last_read_[static_cast<size_t>(node.first_result + r)]);
      for (ValueId v : graph_.operands(node)) read(v, last);
    }
  }

  // Not where another operand is a view of the one that dies: it would be read at other places than are
  // written.
  void lay_in_place(const Node& node, int32_t place) {
    if (!node.op->is(Trait::elementwise) || !makes_memory(*node.op) || node.results != 1) return;
    const ValueId result = node.first_result;
    const int32_t own = block(result);
    for (ValueId v : graph_.operands(node)) {
      const int32_t b = block(v);
      if (b < 0 || draft(b).holds != v || draft(b).block.last != place || draft(b).block.escapes ||
          draft(own).block.escapes || graph_.type_index(v) != graph_.type_index(result))
        continue;
      const bool alone = std::ranges::all_of(graph_.operands(node),
                                             [&](ValueId other) { return other == v || block(other) != b; });
      if (!alone) continue;
      draft(own).into = b;
      draft(b).block.last = draft(own).block.last;
      draft(b).holds = result;
      return;
    }
  }

  // The value of a written input needs no block if its node is the last that reads the input, and may
  // write where it reads.
  void lay_outside(const OutsideWrite& write) {
    const ValueId input = graph_.inputs()[static_cast<size_t>(write.input)].value;
    const ValueId value = graph_.outputs()[static_cast<size_t>(write.output)];
    const int32_t b = block(value);
    if (b < 0 || draft(b).holds != value) return;
    const int32_t made = draft(b).block.first;
    const Node& node = graph_.nodes()[static_cast<size_t>(order_[static_cast<size_t>(made)])];
    const int32_t read = last_read_[static_cast<size_t>(input)];
    if (read > made || (read == made && !node.op->is(Trait::elementwise) && !node.op->is(Trait::updates)))
      return;
    draft(b).block.bytes = 0;
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
    return found;
  }

  const Graph& graph_;
  const LifetimeOptions& options_;
  std::vector<int32_t> order_, place_;  // place_: of each node in the order
  std::vector<Draft> drafts_;
  std::vector<int32_t> block_of_, last_read_;  // of values
};

}  // namespace

int64_t Lifetimes::peak_bytes() const {
  std::vector<int64_t> change(static_cast<size_t>(nodes) + 2);
  for (const Block& b : blocks) {
    change[static_cast<size_t>(b.first)] += b.bytes;
    change[static_cast<size_t>(b.last) + 1] -= b.bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t c : change) peak = std::max(peak, live += c);
  return peak;
}

Lifetimes lifetimes(const Graph& graph, const LifetimeOptions& options) {
  return Finder(graph, options).run();
}

}  // namespace retrograd::ir
