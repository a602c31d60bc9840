// Making plans: see tracer/plan.h. plan_step() chooses the work of a node, assign_registers() where values are.
#include "tracer/plan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "ir/bookkeeping.h"
#include "ir/each_field.h"
#include "ir/passes/fuse.h"
#include "tracer/plan_run.h"
#include "tracer/register_file.h"

namespace retrograd {
namespace {

constexpr int64_t kSpanElements = 2048;  // beyond it a kernel's own cutting into chunks is worth its start
constexpr int64_t kSmallBytes = 4096;    // of a value in the arena of a plan that empties slots

int64_t bytes_of(const TensorType& type) {
  return type.shape.numel().raw() * static_cast<int64_t>(element_size(type.dtype));
}

}  // namespace

// The groups of a graph, if it has any.
struct Plan::Groups {
  const ir::Graph& graph;
  std::span<const Number> values;
  std::vector<int32_t> uses;

  Groups(const ir::Graph& g, std::span<const Number> v) : graph(g), values(v) {
    if (std::ranges::any_of(g.nodes(), [](const ir::Node& n) { return n.group >= 0; }))
      uses = ir::count_uses(g);
  }
  /// Behind the last node of the group that begins at n; n: none does.
  size_t end(size_t n) const {
    const auto& nodes = graph.nodes();
    if (uses.empty() || nodes[n].group < 0 || (n > 0 && nodes[n - 1].group == nodes[n].group)) return n;
    size_t end = n;
    while (end < nodes.size() && nodes[end].group == nodes[n].group) ++end;
    return end;
  }
};

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
  const Groups groups(graph, values);
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (const size_t end = groups.end(n); end > n + 1 && plan_group(n, end, groups))
      n = end - 1;
    else
      plan_step(graph.nodes()[n], values);
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

// One step for the nodes from `begin` on. False when the executor has no kernel for them.
bool Plan::plan_group(size_t begin, size_t end, const Groups& groups) {
  std::vector<uint32_t> nodes(end - begin);
  std::iota(nodes.begin(), nodes.end(), static_cast<uint32_t>(begin));
  const ir::GroupDescription description(graph_, nodes, groups.uses, groups.values);
  Fused fused;
  fused.kernel = executor_.fuse(description.group());
  if (!fused.kernel) return false;
  for (uint32_t n : nodes) fused.attrs.push_back(plan_attrs(graph_.nodes()[n], groups.values));
  fused.inputs.assign(description.inputs().begin(), description.inputs().end());
  fused.outputs.assign(description.outputs().begin(), description.outputs().end());
  fused.takes.resize(fused.outputs.size(), -1);
  fused.into.resize(fused.outputs.size());
  RG_ASSERT(nodes.size() <= kMostFused && fused.inputs.size() <= kMostFused &&
            fused.outputs.size() <= kMostFused);
  if (step_ends_.empty()) {
    step_ends_.resize(graph_.nodes().size());
    std::iota(step_ends_.begin(), step_ends_.end(), 0u);
  }
  for (uint32_t n : nodes) step_ends_[n] = nodes.back();
  Step s{};
  s.kind = Kind::fused;
  s.node = nodes.back();
  s.operands = static_cast<uint16_t>(fused.inputs.size());
  s.results = static_cast<uint16_t>(fused.outputs.size());
  s.takes = -1;
  s.bound = static_cast<int32_t>(fused_.size());
  fused_.push_back(std::move(fused));
  steps_.push_back(s);
  return true;
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
  s.attrs = plan_attrs(node, values);
  steps_.push_back(s);
}

Plan::Attrs Plan::plan_attrs(const ir::Node& node, std::span<const Number> values) {
  if (!node.attrs) return {};
  std::vector<std::byte> copy;
  const void* concrete = ir::concrete_attrs(*node.op, node.attrs, values, copy);
  attrs_.push_back(std::make_unique<std::byte[]>(node.op->attrs_size));
  std::memcpy(attrs_.back().get(), concrete, node.op->attrs_size);
  Attrs attrs;
  attrs.fixed = attrs_.back().get();
  find_patches(node, attrs);
  return attrs;
}

// With a number among them, a copy that each frame has is used.
void Plan::find_patches(const ir::Node& node, Attrs& attrs) {
  const size_t begin = patched_attrs_.size();
  ir::for_each_field(*node.op, node.attrs, [&](auto, Scalar& number) {
    if (!number.is_symbolic()) return;
    const auto offset = reinterpret_cast<const char*>(&number) - static_cast<const char*>(node.attrs);
    patches_.push_back({static_cast<uint32_t>(begin + static_cast<size_t>(offset)), number.id()});
    attrs.is_patched = true;
  });
  if (!attrs.is_patched) return;
  const auto* bytes = static_cast<const std::byte*>(attrs.fixed);
  patched_attrs_.insert(patched_attrs_.end(), bytes, bytes + node.op->attrs_size);
  patched_attrs_.resize((patched_attrs_.size() + 15) / 16 * 16);
  attrs.patched_at = begin;
}

void Plan::assign_registers(std::span<const WrittenInput> writes) {
  RegisterFile file(graph_, register_types_, step_ends_);
  if (log_.may_leave) file.keep_arrived(log_);
  file.reserve(writes, [&](int32_t step_end, const WrittenInput& w) { return may_overwrite(step_end, w); });
  place_in_arena(file);
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

// What only kernels see gets its place.
void Plan::place_in_arena(RegisterFile& file) {
  std::vector<ir::ValueId> values(static_cast<size_t>(graph_.value_count()));
  std::iota(values.begin(), values.end(), 0);
  std::vector<PlacedStep> steps;
  std::vector<const Step*> placed;
  bool empties_slots = false;
  for (const Step& s : steps_) {
    if (s.kind == Kind::release) continue;
    const ir::Node& node = graph_.nodes()[s.node];
    PlacedStep step{PlacedStep::Kind::other, s.node, graph_.operands(node),
                    std::span(values).subspan(static_cast<size_t>(node.first_result), s.results), 0};
    if (s.kind == Kind::fused) {
      const Fused& f = fused_[static_cast<size_t>(s.bound)];
      step = {PlacedStep::Kind::kernel, s.node, f.inputs, f.outputs, 0};
    } else if (s.kind == Kind::kernel || s.kind == Kind::view) {
      step.kind = s.kind == Kind::view ? PlacedStep::Kind::view : PlacedStep::Kind::kernel;
    }
    empties_slots |= s.kind == Kind::unpack;
    steps.push_back(step);
    placed.push_back(&s);
  }
  std::vector<int64_t> bytes;
  for (const TensorType& t : cell_types_) bytes.push_back(bytes_of(t));
  const Placement placement = place_values(
      {graph_, steps, file.last(), bytes, empties_slots ? kSmallBytes : std::numeric_limits<int64_t>::max(),
       [&](ir::ValueId v) { return file.target_of(v) != ir::kNoValue; },
       [&](size_t step, int o, int r) { return may_lie_over(*placed[step], o, r); }});
  arena_bytes_ = placement.arena_bytes;
  arena_offsets_ = file.place(placement);
}

// Whether a result may be computed in the memory of an operand.
bool Plan::may_lie_over(const Step& s, int operand, int result) const {
  if (s.kind == Kind::fused)
    return fused_[static_cast<size_t>(s.bound)].kernel->may_overwrite(operand, result);
  return graph_.nodes()[s.node].op->is(Trait::elementwise);
}

// Whether a step may read the input where it computes the value: element by element.
bool Plan::may_overwrite(int32_t step_end, const WrittenInput& w) const {
  const auto step = std::ranges::lower_bound(steps_, static_cast<uint32_t>(step_end), {}, &Step::node);
  const auto index_of = [](const auto& list, ir::ValueId v) {
    return static_cast<int>(std::ranges::find(list, v) - list.begin());
  };
  if (step->kind == Kind::fused) {
    const Fused& f = fused_[static_cast<size_t>(step->bound)];
    return f.kernel->may_overwrite(index_of(f.inputs, w.input), index_of(f.outputs, w.value));
  }
  const ir::Node& node = graph_.nodes()[step->node];
  if (node.op->is(Trait::elementwise)) return true;
  if (!node.op->is(Trait::updates)) return false;
  const auto operands = graph_.operands(node);
  int updated = 0;
  for (ir::ValueId v : operands)
    if (v != ir::kNoValue && updated++ == w.value - node.first_result)
      return v == w.input && std::ranges::count(operands, v) == 1;
  return false;
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

// Outputs take over registers as a node's result does: of the written input, or of an input that dies.
void Plan::place_fused(Step& s, RegisterFile& file) {
  Fused& f = fused_[static_cast<size_t>(s.bound)];
  s.first_register = static_cast<uint32_t>(registers_.size());
  for (ir::ValueId v : f.inputs) registers_.push_back(file.at(v));
  for (size_t o = 0; o < f.outputs.size(); ++o)  // first: no other output may have such a register
    if (file.is_placed(f.outputs[o])) {
      f.into[o] = true;
    } else if (const ir::ValueId input = file.target_of(f.outputs[o]); input != ir::kNoValue) {
      f.into[o] = true;
      file.take_over(f.outputs[o], input);
    }
  for (size_t o = 0; o < f.outputs.size(); ++o) {
    const ir::ValueId value = f.outputs[o];
    for (size_t k = 0; k < f.inputs.size() && f.takes[o] < 0 && !f.into[o]; ++k)
      if (file.dies(f.inputs[k], s.node) && graph_.type_index(f.inputs[k]) == graph_.type_index(value) &&
          f.kernel->may_overwrite(static_cast<int>(k), static_cast<int>(o))) {
        f.takes[o] = static_cast<int8_t>(k);
        file.take_over(value, f.inputs[k]);
      }
    if (f.takes[o] < 0 && !f.into[o]) file.take(value);
  }
  for (ir::ValueId v : f.outputs) registers_.push_back(file.at(v));
  for (ir::ValueId v : f.inputs)
    if (file.dies(v, s.node)) {
      registers_.push_back(file.free(v));
      ++s.dying;
    }
}

void Plan::place(Step& s, RegisterFile& file) {
  if (s.kind == Kind::fused) return place_fused(s, file);
  const ir::Node& node = graph_.nodes()[s.node];
  const auto operands = graph_.operands(node);
  s.first_register = static_cast<uint32_t>(registers_.size());
  for (ir::ValueId v : operands) registers_.push_back(file.at(v));
  for (int i = 0; i < s.results && s.kind == Kind::kernel; ++i) {
    const ir::ValueId value = node.first_result + i, input = file.target_of(value);
    if (input != ir::kNoValue) file.take_over(value, input);
    if (input != ir::kNoValue || file.is_placed(value)) s.into |= static_cast<uint8_t>(1u << i);
  }
  for (size_t k = 0; k < operands.size() && s.kind == Kind::kernel && node.op->is(Trait::elementwise) &&
                     s.takes < 0 && !s.into;
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
    if (s.kind != Kind::kernel || !node.op->is(Trait::elementwise) || s.operands > kMaxSpanOperands) continue;
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
  for (size_t r = 0; r < arena_offsets_.size(); ++r) {
    TensorImpl& cell = *frame->own[r];
    cell.set_storage(Storage::wrap(nullptr, bytes_of(cell_types_[static_cast<size_t>(register_types_[r])]),
                                   nullptr, nullptr));
    frame->at[r] = &cell;
  }
  frame->foreign.resize(frame->own.size());
  frame->patched = patched_attrs_;
  return frame;
}

}  // namespace retrograd
