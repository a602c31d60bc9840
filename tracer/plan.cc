// Making plans: see tracer/plan.h. plan_step() chooses the work of a node; where values are: tracer/plan_registers.cc, tracer/plan_memory.cc.
#include "tracer/plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/runner.h"
#include "ir/bookkeeping.h"
#include "ir/each_field.h"
#include "ir/passes/fuse.h"
#include "tracer/plan_run.h"

namespace retrograd {
namespace {

constexpr int64_t kSpanElements = 2048;  // beyond it a kernel's own cutting into chunks is worth its start

bool has_groups(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const ir::Node& n) { return n.group >= 0; });
}

// Behind the last node of the group that begins at n; n: none does.
size_t end_of_group(const ir::Graph& graph, size_t n) {
  const auto& nodes = graph.nodes();
  if (nodes[n].group < 0 || (n > 0 && nodes[n - 1].group == nodes[n].group)) return n;
  size_t end = n;
  while (end < nodes.size() && nodes[end].group == nodes[n].group) ++end;
  return end;
}

}  // namespace

Executor& executor_for(const ir::Graph& graph) {
  for (const TensorType& type : graph.types())
    if (type.device.type != DeviceType::CPU) return executor_of(type.device);
  return cpu_executor();
}

Plan::Plan(const ir::Graph& graph, const std::vector<Source>& sources, const std::vector<RuleRun>& rules,
           const DriveLog& log, std::span<const Number> values, Executor& executor,
           std::span<const WrittenInput> writes, std::optional<int64_t> arena_waste,
           ir::GroupMemories* groups)
    : graph_(graph),
      sources_(sources),
      log_(log),
      executor_(executor),
      bound_index_(sources.size(), -1),
      records_(arena_waste && executor.records_launches()) {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].kind == Source::Kind::slot) continue;
    bound_index_[i] = static_cast<int32_t>(bound_.size());
    bound_.push_back(static_cast<uint32_t>(i));
  }
  for (const TensorType& t : graph.types()) cell_types_.push_back(ir::concrete_type(t, values));
  plan_nodes(rules, values, groups);
  assign_registers(writes, arena_waste);
  choose_spans();
  find_own_takes();
  if (!log_.may_leave) fold_unpacks();
  find_unpacks();
  if (records_) find_segments();
}

void Plan::plan_nodes(const std::vector<RuleRun>& rules, std::span<const Number> values,
                      ir::GroupMemories* groups) {
  const auto& nodes = graph_.nodes();
  steps_.reserve(nodes.size() + 8);
  registers_.reserve(nodes.size() * 4);
  std::optional<ir::GroupMemories> own;
  if (!groups && has_groups(graph_)) groups = &own.emplace(graph_, executor_, values, log_.values());
  auto rule = rules.begin();
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (const size_t end = end_of_group(graph_, n); end > n + 1 && plan_group(n, end, values, *groups))
      n = end - 1;
    else
      plan_step(nodes[n], values);
    for (; rule != rules.end() && rule->end_node <= steps_.back().node + 1; ++rule) {
      Step release{};
      release.kind = Kind::release;
      release.place = rule->place;
      release.node = steps_.back().node;
      if (rule->leaves_slots) steps_.push_back(release);
    }
  }
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
bool Plan::plan_group(size_t begin, size_t end, std::span<const Number> values, ir::GroupMemories& groups) {
  std::vector<uint32_t> nodes(end - begin);
  std::iota(nodes.begin(), nodes.end(), static_cast<uint32_t>(begin));
  ir::GroupMemory made = groups.take(nodes);
  if (!made.kernel) return false;
  Fused fused;
  fused.kernel = std::move(made.kernel);
  fused.inputs = std::move(made.inputs);
  fused.outputs = std::move(made.outputs);
  for (uint32_t n : nodes) fused.attrs.push_back(plan_attrs(graph_.nodes()[n], values));
  fused.takes.resize(fused.outputs.size(), -1);
  fused.into.resize(fused.outputs.size());
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
  if (s.kind == Kind::kernel) s.room = -1;
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

void Plan::choose_spans() {
  for (Step& s : steps_) {
    const ir::Node& node = graph_.nodes()[s.node];
    if (s.kind != Kind::kernel || !node.op->is(Trait::elementwise) || s.operands == 0 ||
        s.operands > kMaxSpanOperands)
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

// Which spans take over a value that a kernel has computed in their register and that only they use: nothing else has been shown its memory, so
// a run need not look.
void Plan::find_own_takes() {
  const std::vector<int32_t> uses = ir::count_uses(graph_);
  std::vector<bool> is_own(uses.size());
  for (Step& s : steps_) {
    if (s.kind != Kind::span && s.kind != Kind::kernel) continue;
    const ir::Node& node = graph_.nodes()[s.node];
    if (s.kind == Kind::span && s.takes >= 0) {
      const auto taken = static_cast<size_t>(graph_.operands(node)[static_cast<size_t>(s.takes)]);
      s.takes_own = is_own[taken] && uses[taken] == 1;
    }
    for (int i = 0; i < s.results; ++i)
      is_own[static_cast<size_t>(node.first_result + i)] = !s.computes_into(i);
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
                           sources_[static_cast<size_t>(unpack.handle)].offset, 0});
        std::copy(dies + 1, dying + s.dying, dies);
        --s.dying;
        --kept;
      }
    }
    steps_[kept++] = s;
  }
  steps_.resize(kept);
  for (size_t i = 0; i < folded_.size(); ++i)
    folded_[i].ahead = folded_[std::min(i + kAhead, folded_.size() - 1)].place;
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
