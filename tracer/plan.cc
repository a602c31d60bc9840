// Making plans: see tracer/plan.h. plan_step() chooses the work of a node, assign_registers() where values are.
#include "tracer/plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "ir/bookkeeping.h"
#include "ir/each_field.h"
#include "tracer/plan_run.h"

namespace retrograd {
namespace {

constexpr int64_t kSpanElements = 2048;  // beyond it a kernel's own cutting into chunks is worth its start

}  // namespace

Plan::Plan(const ir::Graph& graph, const std::vector<Source>& sources, const std::vector<RuleRun>& rules,
           const DriveLog& log, std::span<const Number> values, Executor& executor,
           std::span<const WrittenInput> writes)
    : graph_(graph), sources_(sources), log_(log), executor_(executor), bound_index_(sources.size(), -1) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].kind == Source::Kind::slot) continue;
    bound_index_[i] = static_cast<int32_t>(bound_.size());
    bound_.push_back(static_cast<uint32_t>(i));
  }
  for (const TensorType& t : graph.types()) cell_types_.push_back(ir::concrete_type(t, values));
  steps_.reserve(graph.nodes().size() + 8);
  registers_.reserve(graph.nodes().size() * 4);
  auto rule = rules.begin();
  for (const ir::Node& node : graph.nodes()) {
    plan_step(node, values);
    for (; rule != rules.end() && rule->end_node <= steps_.back().node + 1; ++rule) {
      Step release{};
      release.kind = Kind::release;
      release.place = rule->place;
      release.node = steps_.back().node;
      if (rule->leaves_slots) steps_.push_back(release);
    }
  }
  assign_registers(writes);
  choose_spans();
  if (!log_.may_leave) fold_unpacks();
}

Plan::~Plan() { delete spare_.load(); }

Plan::Kind Plan::kind_of(const ir::Node& node) const {
  return node.op == &ops::unpack              ? Kind::unpack
         : node.op == &ops::hook              ? Kind::hook
         : node.op == &ops::function_backward ? Kind::function
         : node.op == &ops::accumulate_grad   ? Kind::accumulate_grad
         : node.op == &ops::retain_grad       ? Kind::retain_grad
         : node.op->run_on_host               ? Kind::host
         : node.op->is(Trait::view)           ? Kind::view
                                              : Kind::kernel;
}

void Plan::plan_step(const ir::Node& node, std::span<const Number> values) {
  Step s{};
  s.node = static_cast<uint32_t>(&node - graph_.nodes().data());
  s.operands = node.operands;
  s.results = node.results;
  s.takes = -1;
  s.kind = kind_of(node);
  if (s.kind == Kind::kernel && !(s.kernel = executor_.find(node.op)))
    throw Error(Category::unsupported, std::string(node.op->name) + ": the " + std::string(executor_.name()) +
                                           " executor has no kernel for it");
  if (s.kind == Kind::unpack) {
    s.place = sources_[static_cast<size_t>(node.handle)].place;
    s.slot = sources_[static_cast<size_t>(node.handle)].index;
  } else if (node.handle >= 0) {
    s.bound = bound_index_[static_cast<size_t>(node.handle)];
  }
  if (node.attrs) plan_attrs(node, s, values);
  steps_.push_back(s);
}

void Plan::plan_attrs(const ir::Node& node, Step& step, std::span<const Number> values) {
  std::vector<std::byte> copy;
  const void* concrete = ir::concrete_attrs(*node.op, node.attrs, values, copy);
  attrs_.push_back(std::make_unique<std::byte[]>(node.op->attrs_size));
  step.attrs = attrs_.back().get();
  std::memcpy(step.attrs, concrete, node.op->attrs_size);
  find_patches(node, step);
}

// With a number among its attributes, a step uses a copy of them that each frame has.
void Plan::find_patches(const ir::Node& node, Step& step) {
  const size_t begin = patched_attrs_.size();
  ir::for_each_field(*node.op, node.attrs, [&](auto, Scalar& number) {
    if (!number.is_symbolic()) return;
    const auto offset = reinterpret_cast<const char*>(&number) - static_cast<const char*>(node.attrs);
    patches_.push_back({static_cast<uint32_t>(begin + static_cast<size_t>(offset)), number.id()});
    step.is_patched = true;
  });
  if (!step.is_patched) return;
  const auto* bytes = static_cast<const std::byte*>(step.attrs);
  patched_attrs_.insert(patched_attrs_.end(), bytes, bytes + node.op->attrs_size);
  patched_attrs_.resize((patched_attrs_.size() + 15) / 16 * 16);
  step.patched_at = begin;
}

// Which values may lie in the memory of which: views, and what code of the user's gives back, in that of their operands.
class Aliases {
 public:
  explicit Aliases(const ir::Graph& graph)
      : root_(static_cast<size_t>(graph.value_count())), producer_(root_.size(), -1), last_(root_.size(), -1) {
    std::iota(root_.begin(), root_.end(), 0);
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const ir::Node& node = graph.nodes()[n];
      const auto operands = graph.operands(node);
      for (ir::ValueId v : operands)
        if (v != ir::kNoValue && root_[static_cast<size_t>(v)] != v) last(v) = static_cast<int32_t>(n);
      for (int i = 0; i < node.results; ++i) {
        producer_[static_cast<size_t>(node.first_result + i)] = static_cast<int32_t>(n);
        const size_t from = node.op->is(Trait::view) ? 0 : static_cast<size_t>(i);
        if ((node.op->is(Trait::view) || node.op->run_on_host) && from < operands.size() &&
            operands[from] != ir::kNoValue)
          root_[static_cast<size_t>(node.first_result + i)] = root_[static_cast<size_t>(operands[from])];
      }
    }
    for (ir::ValueId v : graph.outputs())
      if (v != ir::kNoValue && root_[static_cast<size_t>(v)] != v) last(v) = static_cast<int32_t>(graph.nodes().size());
  }
  /// The node that made the value; -1: an input.
  int32_t producer(ir::ValueId v) const { return producer_[static_cast<size_t>(v)]; }
  /// The last node that reads another value in the memory of `root`; -1: none.
  int32_t last_of_others(ir::ValueId root) const { return last_[static_cast<size_t>(root)]; }

 private:
  int32_t& last(ir::ValueId v) { return last_[static_cast<size_t>(root_[static_cast<size_t>(v)])]; }
  std::vector<ir::ValueId> root_;
  std::vector<int32_t> producer_, last_;  // last_: by root
};

// Hands out registers in order of the graph: one is free for the next value of its type after the step in which its value dies.
class RegisterFile {
 public:
  RegisterFile(const ir::Graph& graph, std::vector<int32_t>& types)
      : graph_(graph),
        types_(types),
        register_(static_cast<size_t>(graph.value_count()), -1),
        last_(register_.size(), -1),
        free_(graph.types().size()) {
    const auto& nodes = graph.nodes();
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (int i = 0; i < nodes[n].results; ++i) last(nodes[n].first_result + i) = static_cast<int32_t>(n);
      for (ir::ValueId v : graph.operands(nodes[n]))
        if (v != ir::kNoValue) last(v) = static_cast<int32_t>(n);
    }
    for (ir::ValueId v : graph.outputs())
      if (v != ir::kNoValue) last(v) = static_cast<int32_t>(nodes.size());
  }
  // Keeps the register of a written input until its new value is computed, into it, where the old one is not read any more then.
  void reserve(std::span<const WrittenInput> writes) {
    if (writes.empty()) return;
    const Aliases aliases(graph_);
    for (const WrittenInput& w : writes) {
      const int32_t n = aliases.producer(w.value);
      if (n < 0 || targets_.contains(w.value)) continue;
      const ir::Node& node = graph_.nodes()[static_cast<size_t>(n)];
      if (node.op->is(Trait::view) || node.op->run_on_host || aliases.last_of_others(w.input) >= n) continue;
      const int32_t last_read = last(w.input);
      if (last_read > n || (last_read == n && !may_overwrite(node, w))) continue;
      last(w.input) = n;
      targets_[w.value] = w.input;
    }
  }
  /// The written input into which `v` is computed; kNoValue: none.
  ir::ValueId target_of(ir::ValueId v) const {
    const auto it = targets_.find(v);
    return it == targets_.end() ? ir::kNoValue : it->second;
  }
  int32_t at(ir::ValueId v) const { return v == ir::kNoValue ? -1 : register_[static_cast<size_t>(v)]; }
  bool dies(ir::ValueId v, uint32_t node) {
    return v != ir::kNoValue && last(v) == static_cast<int32_t>(node);
  }
  void take(ir::ValueId v) {
    auto& list = free_[static_cast<size_t>(graph_.type_index(v))];
    if (list.empty()) {
      list.push_back(static_cast<int32_t>(types_.size()));
      types_.push_back(graph_.type_index(v));
    }
    register_[static_cast<size_t>(v)] = list.back();
    list.pop_back();
  }
  // A gradient that has arrived is kept until its record or leaf begins, used or not: the driver would have it then. Likewise what a rule
  // that calls code of the user's was given and gave, until its post-hooks.
  void keep_arrived(const DriveLog& log) {
    std::vector<ir::ValueId> arrived;
    const auto keep_value = [&](ir::ValueId v, uint32_t node) {
      if (v != ir::kNoValue) last(v) = std::max(last(v), static_cast<int32_t>(node));
    };
    const auto keep = [&](size_t grad, uint32_t node) {
      if (grad < arrived.size()) keep_value(std::exchange(arrived[grad], ir::kNoValue), node);
    };
    for (const DriveLog::Event& e : log.events) {
      if (e.kind == DriveLog::Kind::arrived) {
        if (arrived.size() <= e.index) arrived.resize(e.index + 1, ir::kNoValue);
        arrived[e.index] = e.value;
      } else if (e.kind == DriveLog::Kind::record) {
        for (uint16_t i = 0; i < e.count; ++i) keep(static_cast<size_t>(e.value) + i, e.node);
      } else if (e.kind == DriveLog::Kind::leaf) {
        keep(static_cast<size_t>(e.value), e.node);
      } else if (e.kind == DriveLog::Kind::gave) {
        for (uint16_t i = 0; i < e.count; ++i)
          keep_value(log.lists[static_cast<size_t>(e.value) + i], e.node);
      }
    }
    for (size_t v = 0; v < last_.size(); ++v) ends_at_[last_[v]].push_back(static_cast<ir::ValueId>(v));
  }
  // Values kept until this node begins though it does not use them.
  std::vector<ir::ValueId> ending_before(const ir::Node& node, uint32_t number) {
    std::vector<ir::ValueId> ending;
    const auto it = ends_at_.find(static_cast<int32_t>(number));
    if (it == ends_at_.end()) return ending;
    const auto operands = graph_.operands(node);
    for (ir::ValueId v : it->second)
      if (dies(v, number) && v < node.first_result && std::ranges::find(operands, v) == operands.end())
        ending.push_back(v);
    return ending;
  }
  std::vector<int32_t> registers() && { return std::move(register_); }
  void take_over(ir::ValueId v, ir::ValueId dying) {
    last(dying) = -1;
    register_[static_cast<size_t>(v)] = at(dying);
  }
  int32_t free(ir::ValueId v) {
    last(v) = -1;  // once only
    free_[static_cast<size_t>(graph_.type_index(v))].push_back(at(v));
    return at(v);
  }

 private:
  // Whether the node may read the input where it computes the value: element by element.
  bool may_overwrite(const ir::Node& node, const WrittenInput& w) const {
    if (node.op->is(Trait::elementwise)) return true;
    const auto operands = graph_.operands(node);
    const int result = w.value - node.first_result;
    int updated = 0;
    for (ir::ValueId v : operands) {
      if (v == ir::kNoValue) continue;
      if (updated == result) return node.op->is(Trait::updates) && v == w.input && std::ranges::count(operands, v) == 1;
      ++updated;
    }
    return false;
  }

  int32_t& last(ir::ValueId v) { return last_[static_cast<size_t>(v)]; }
  const ir::Graph& graph_;
  std::vector<int32_t>& types_;
  std::vector<int32_t> register_, last_;  // of values; last: the node of the last use
  std::vector<std::vector<int32_t>> free_;
  std::unordered_map<int32_t, std::vector<ir::ValueId>> ends_at_;  // filled by keep_arrived only
  std::unordered_map<ir::ValueId, ir::ValueId> targets_;            // new value of a written input: the input
};

void Plan::assign_registers(std::span<const WrittenInput> writes) {
  RegisterFile file(graph_, register_types_);
  if (log_.may_leave) file.keep_arrived(log_);
  file.reserve(writes);
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    const ir::Input& input = graph_.inputs()[i];
    if (input.kind != ir::Input::Kind::tensor) continue;
    file.take(input.value);
    tensor_inputs_.push_back({static_cast<uint32_t>(bound_index_[i]), file.at(input.value)});
  }
  if (log_.may_leave) {
    place_with_drops(file);
  } else {
    for (Step& s : steps_)
      if (s.kind != Kind::release) place(s, file);
  }
  for (ir::ValueId v : graph_.outputs()) output_registers_.push_back(file.at(v));
  if (log_.may_leave) value_registers_ = std::move(file).registers();
}

void Plan::place_with_drops(RegisterFile& file) {
  std::vector<Step> placed;
  for (Step& s : steps_) {
    if (s.kind != Kind::release) {
      if (const auto ending = file.ending_before(graph_.nodes()[s.node], s.node); !ending.empty()) {
        Step drop{};
        drop.kind = Kind::drop;
        drop.node = s.node;
        drop.first_register = static_cast<uint32_t>(registers_.size());
        drop.dying = static_cast<uint16_t>(ending.size());
        for (ir::ValueId v : ending) registers_.push_back(file.free(v));
        placed.push_back(drop);
      }
      place(s, file);
    }
    placed.push_back(s);
  }
  steps_ = std::move(placed);
}

void Plan::place(Step& s, RegisterFile& file) {
  const ir::Node& node = graph_.nodes()[s.node];
  const auto operands = graph_.operands(node);
  s.first_register = static_cast<uint32_t>(registers_.size());
  for (ir::ValueId v : operands) registers_.push_back(file.at(v));
  for (int i = 0; i < s.results && s.kind == Kind::kernel; ++i)
    if (const ir::ValueId input = file.target_of(node.first_result + i); input != ir::kNoValue) {
      file.take_over(node.first_result + i, input);
      s.into |= static_cast<uint8_t>(1u << i);
    }
  for (size_t k = 0;
       k < operands.size() && s.kind == Kind::kernel && node.op->is(Trait::elementwise) && s.takes < 0 && !s.into;
       ++k)
    if (file.dies(operands[k], s.node) &&
        graph_.type_index(operands[k]) == graph_.type_index(node.first_result)) {
      s.takes = static_cast<int8_t>(k);
      file.take_over(node.first_result, operands[k]);
    }
  for (int i = 0; i < s.results; ++i) {
    if (s.takes < 0 && !(s.into >> i & 1)) file.take(node.first_result + i);
    registers_.push_back(file.at(node.first_result + i));
  }
  const auto let_die = [&](ir::ValueId v) {
    if (!file.dies(v, s.node)) return;
    registers_.push_back(file.free(v));
    ++s.dying;
  };
  for (ir::ValueId v : operands) let_die(v);
  for (int i = 0; i < s.results; ++i) let_die(node.first_result + i);
}

void Plan::choose_spans() {
  for (Step& s : steps_) {
    const ir::Node& node = graph_.nodes()[s.node];
    if (s.kind != Kind::kernel || !node.op->is(Trait::elementwise) || s.operands > kMaxSpanOperands || s.into)
      continue;
    const int32_t type = graph_.type_index(node.first_result);
    const bool same = std::ranges::all_of(graph_.operands(node), [&](ir::ValueId v) {
      return v != ir::kNoValue && graph_.type_index(v) == type;
    });
    const TensorType& t = cell_types_[static_cast<size_t>(type)];
    const int64_t elements = t.shape.numel().raw();
    const SpanKernel span =
        same && elements <= kSpanElements ? executor_.find_span(node.op, t.dtype) : nullptr;
    if (!span) continue;
    s.kind = Kind::span;
    s.span = span;
    s.elements = static_cast<uint32_t>(elements);
    s.item = static_cast<uint8_t>(element_size(t.dtype));
  }
}

void Plan::fold_unpacks() {
  size_t kept = 0;
  for (Step& s : steps_) {
    if (const Step* before = kept ? &steps_[kept - 1] : nullptr;
        before && s.kind == Kind::span && before->kind == Kind::unpack && before->dying == 0) {
      int32_t* operands = registers_.data() + s.first_register;
      int32_t* dying = operands + s.operands + s.results;
      const int32_t unpacked = registers_[before->first_register];
      int32_t* used = std::find(operands, operands + s.operands, unpacked);
      int32_t* dies = std::find(dying, dying + s.dying, unpacked);
      const bool once =
          used != operands + s.operands && std::count(operands, operands + s.operands, unpacked) == 1;
      if (once && dies != dying + s.dying) {
        *used = -2 - static_cast<int32_t>(folded_.size());
        const ir::Node& unpack = graph_.nodes()[before->node];
        folded_.push_back({static_cast<uint32_t>(before->place), before->slot,
                           sources_[static_cast<size_t>(unpack.handle)].offset});
        std::copy(dies + 1, dying + s.dying, dies);
        --s.dying;
        --kept;
      }
    }
    steps_[kept++] = s;
  }
  steps_.resize(kept);
  for (int i = 0; i < kAhead && !folded_.empty(); ++i) folded_.push_back(folded_.back());
}

std::unique_ptr<Plan::Frame> Plan::new_frame() const {
  auto frame = std::make_unique<Frame>();
  for (int32_t type : register_types_) {
    const TensorType& t = cell_types_[static_cast<size_t>(type)];
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->set_type(t.dtype, t.device, t.shape);
    contiguous_strides(t.shape, cell->mutable_strides());
    frame->own.push_back(std::move(cell));
  }
  frame->at.resize(frame->own.size());
  frame->foreign.resize(frame->own.size());
  frame->patched = patched_attrs_;
  return frame;
}

}  // namespace retrograd
