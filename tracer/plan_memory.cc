// The arena of a plan: which steps its placement is about (tracer/placement.h), and what their kernels need while they run.
#include <algorithm>
#include <numeric>

#include "ir/passes/memory_classes.h"
#include "tracer/plan_run.h"
#include "tracer/register_file.h"

namespace retrograd {
namespace {

constexpr int64_t kMiddle =
    int64_t{1} << 40;  // of a storage: a view may begin before its base, which may be a view itself

constexpr int64_t kAnyWaste = int64_t{1} << 60;

// Cells for values of a graph that have types and layouts, but no memory: what a kernel can be asked with. Inputs count as row-major.
class Outlines {
 public:
  /// `attrs_of`: a node's attributes, with numbers.
  Outlines(const ir::Graph& graph, const std::vector<TensorType>& types,
           std::function<void*(const ir::Node&)> attrs_of)
      : graph_(graph), types_(types), attrs_of_(std::move(attrs_of)) {}

  void* attrs_of(const ir::Node& node) const { return attrs_of_(node); }
  TensorImpl* cell(ir::ValueId v) {
    if (cells_.empty()) find_producers();
    std::vector<ir::ValueId> chain;  // of views, the last one first
    for (; v != ir::kNoValue && !cells_[static_cast<size_t>(v)]; v = viewed(v)) chain.push_back(v);
    TensorImpl* of = v == ir::kNoValue ? nullptr : cells_[static_cast<size_t>(v)].get();
    for (; !chain.empty(); chain.pop_back()) {
      RefPtr<TensorImpl>& cell = cells_[static_cast<size_t>(chain.back())];
      cell = make(chain.back());
      if (of) lay_out(node_of(chain.back()), of, *cell);
      of = cell.get();
    }
    return of;
  }

 private:
  void find_producers() {
    cells_.resize(static_cast<size_t>(graph_.value_count()));
    producers_.resize(cells_.size(), -1);
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      for (int i = 0; i < graph_.nodes()[n].results; ++i)
        producers_[static_cast<size_t>(graph_.nodes()[n].first_result + i)] = static_cast<int32_t>(n);
  }
  const ir::Node& node_of(ir::ValueId v) const {
    return graph_.nodes()[static_cast<size_t>(producers_[static_cast<size_t>(v)])];
  }
  ir::ValueId viewed(ir::ValueId v) const {
    const bool is_view = producers_[static_cast<size_t>(v)] >= 0 && node_of(v).op->is(Trait::view);
    return is_view ? graph_.operands(node_of(v))[0] : ir::kNoValue;
  }
  RefPtr<TensorImpl> make(ir::ValueId v) const {
    const TensorType& t = types_[static_cast<size_t>(graph_.type_index(v))];
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->set_type(t.dtype, t.device, t.shape);
    contiguous_strides(t.shape, cell->mutable_strides());
    cell->set_storage(nowhere_);
    cell->set_storage_offset(kMiddle);
    return cell;
  }
  // Layouts depend on the first operand alone.
  void lay_out(const ir::Node& view, TensorImpl* of, TensorImpl& cell) const {
    std::vector<TensorImpl*> operands(view.operands, of);
    view.op->layout({view.op, operands, attrs_of_(view), view.where, 1}, cell);
  }

  const ir::Graph& graph_;
  const std::vector<TensorType>& types_;
  std::function<void*(const ir::Node&)> attrs_of_;
  const RefPtr<Storage> nowhere_ = storage_without_memory();
  std::vector<RefPtr<TensorImpl>> cells_;
  std::vector<int32_t> producers_;
};

}  // namespace

// What only kernels see gets its place, and what they need for themselves.
void Plan::place_in_arena(RegisterFile& file, int64_t most_waste) {
  std::vector<ir::ValueId> values(static_cast<size_t>(graph_.value_count()));
  std::iota(values.begin(), values.end(), 0);
  std::vector<PlacedStep> placed;
  std::vector<const Step*> steps;
  for (const Step& s : steps_) {
    if (s.kind == Kind::release) continue;
    steps.push_back(&s);
    placed.push_back(placed_step(s, values));
  }
  std::vector<int64_t> bytes;
  for (const TensorType& t : cell_types_) bytes.push_back(bytes_of(t));
  const Placement placement = place_values(
      {graph_, placed, file.last(), bytes, [&](ir::ValueId v) { return file.target_of(v) != ir::kNoValue; },
       [&](size_t step, int o, int r) { return may_lie_over(*steps[step], o, r); },
       records_ ? kAnyWaste : most_waste, records_});
  arena_bytes_ = placement.arena_bytes;
  arena_offsets_ = file.place(placement);
  for (size_t i = 0; i < steps.size(); ++i)
    if (const int32_t room = room_of(*steps[i]); room >= 0)
      rooms_[static_cast<size_t>(room)].offset = placement.scratch[i];
}

PlacedStep Plan::placed_step(const Step& s, std::span<const ir::ValueId> values) const {
  using enum PlacedStep::Kind;
  const ir::Node& node = graph_.nodes()[s.node];
  const int32_t room = room_of(s);
  const int64_t scratch = room < 0 ? 0 : rooms_[static_cast<size_t>(room)].bytes;
  if (s.kind == Kind::fused) return {kernel, s.node, fused_of(s).inputs, fused_of(s).outputs, scratch};
  return {s.kind == Kind::kernel      ? kernel
          : s.kind == Kind::view      ? view
          : node.op->is(Trait::fresh) ? reader
                                      : other,
          s.node, graph_.operands(node), values.subspan(static_cast<size_t>(node.first_result), s.results),
          scratch};
}

// What each kernel needs for itself; nothing of it has a place so far.
void Plan::ask_for_scratch() {
  Outlines outlines(graph_, cell_types_, [&](const ir::Node& node) {
    const auto number = static_cast<uint32_t>(&node - graph_.nodes().data());
    const Attrs& attrs = std::ranges::lower_bound(steps_, number, {}, &Step::node)->attrs;
    return attrs.is_patched ? patched_attrs_.data() + attrs.patched_at : attrs.fixed;
  });
  const auto make_room = [&](int32_t& room, int64_t bytes) {
    if (bytes == 0) return;
    room = static_cast<int32_t>(rooms_.size());
    rooms_.push_back({bytes, -1});
  };
  for (Step& s : steps_) {
    if (s.kind == Kind::fused) make_room(fused_of(s).room, fused_of(s).kernel->scratch_bytes());
    const ir::Node& node = graph_.nodes()[s.node];
    if (s.kind != Kind::kernel || !executor_.has_scratch(node.op)) continue;
    std::vector<TensorImpl*> operands, results;
    for (ir::ValueId v : graph_.operands(node)) operands.push_back(outlines.cell(v));
    for (int i = 0; i < s.results; ++i) results.push_back(outlines.cell(node.first_result + i));
    const Call call{node.op, operands, outlines.attrs_of(node), node.where, s.results};
    make_room(s.room, executor_.scratch_bytes(s.kernel, call, results.data()));
  }
}

Device Plan::device() const {
  const auto elsewhere =
      std::ranges::find_if(cell_types_, [](const TensorType& t) { return !(t.device == kCPU); });
  return elsewhere == cell_types_.end() ? Device(kCPU) : elsewhere->device;
}

// Whether a result may be computed in the memory of an operand.
bool Plan::may_lie_over(const Step& s, int operand, int result) const {
  if (s.kind == Kind::fused) return fused_of(s).kernel->may_overwrite(operand, result);
  const ir::Node& node = graph_.nodes()[s.node];
  return ir::may_lie_over(*node.op, graph_.operands(node), static_cast<size_t>(operand), result);
}

}  // namespace retrograd
