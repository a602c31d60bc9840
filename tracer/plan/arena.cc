// Builds the input of place_values() (tracer/plan/placement.h): the steps to place and their kernels' scratch; the
// arena is allocated by Frame::take_arena.
#include <algorithm>
#include <limits>
#include <numeric>

#include "tracer/plan/planner.h"
#include "tracer/plan/register_file.h"

namespace retrograd::inline v0 {
namespace {

// The middle of a storage: a view may begin before its base, which may be a view itself.
constexpr int64_t kMiddle = int64_t{1} << 40;

// No limit on waste.
constexpr int64_t kAnyWaste = int64_t{1} << 60;

// Cells with types and layouts but without memory, for querying kernels about the values of a graph.
class CellsWithoutMemory {
 public:
  CellsWithoutMemory(const Program& program, std::span<const ir::Binding> bindings)
      : program_(program), graph_(program.graph), types_(program.layout.types), bindings_(bindings) {}

  void* attrs_of(const ir::Node& node) const {
    const auto number = static_cast<uint32_t>(&node - graph_.nodes().data());
    const Step& step = *std::ranges::lower_bound(program_.steps, number, {}, &Step::node);
    return const_cast<void*>(program_.attrs.sample(step.attrs));
  }
  TensorImpl* cell(ir::ValueId v) {
    if (cells_.empty()) {
      find_producers();
      make_inputs();
    }
    std::vector<ir::ValueId> chain;  // of views, last one first
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
  void make_inputs() {
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const ir::ValueId v = graph_.inputs()[i].value;
      const Tensor& bound = bindings_[i].tensor;
      if (v == ir::kNoValue || !bound.defined()) continue;
      RefPtr<TensorImpl>& cell = cells_[static_cast<size_t>(v)] = make(v);
      std::copy_n(bound.impl().strides(), bound.impl().rank(), cell->mutable_strides());
    }
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
  // Layouts depend only on the first operand. A view may be possible only in the layout that an input has in a run: if
  // that is not known, the view counts as row-major.
  void lay_out(const ir::Node& view, TensorImpl* of, TensorImpl& cell) const {
    std::vector<TensorImpl*> operands(view.operands, of);
    try {
      view.op->layout({view.op, operands, attrs_of(view), view.where, 1}, cell);
    } catch (const Exception&) {
      contiguous_strides(cell.shape(), cell.mutable_strides());
    }
  }

  const Program& program_;
  const ir::Graph& graph_;
  const std::vector<TensorType>& types_;
  const std::span<const ir::Binding> bindings_;
  const RefPtr<Storage> nowhere_ = storage_without_memory();
  std::vector<RefPtr<TensorImpl>> cells_;
  std::vector<int32_t> producers_;
};

// `values`: all values of the graph, in order.
PlacedStep placed_step(const Program& program, const Step& s, std::span<const ir::ValueId> values) {
  using enum PlacedStep::Kind;
  const ir::Node& node = program.node(s);
  const int32_t piece = program.scratch_of(s);
  const int64_t scratch = piece < 0 ? 0 : program.scratch[static_cast<size_t>(piece)].bytes;
  if (s.kind == StepKind::fused)
    return {kernel, s.node, program.fused_of(s).inputs, program.fused_of(s).outputs, scratch};
  return {s.kind == StepKind::kernel  ? kernel
          : s.kind == StepKind::view  ? view
          : node.op->is(Trait::fresh) ? reader
                                      : other,
          s.node, program.graph.operands(node),
          values.subspan(static_cast<size_t>(node.first_result), s.results), scratch};
}

}  // namespace

void place_in_arena(Program& program, RegisterFile& file, int64_t most_waste) {
  std::vector<ir::ValueId> values(static_cast<size_t>(program.graph.value_count()));
  std::iota(values.begin(), values.end(), 0);
  std::vector<PlacedStep> placed;
  std::vector<const Step*> steps;
  for (const Step& s : program.steps) {
    if (s.kind == StepKind::release) continue;
    steps.push_back(&s);
    placed.push_back(placed_step(program, s, values));
  }
  std::vector<int64_t> bytes;
  for (const TensorType& t : program.layout.types) bytes.push_back(bytes_of(t));
  const bool keeps_arena = program.records_launches;
  const Placement placement =
      place_values({program.graph, placed, file.last(), bytes,
                    [&](ir::ValueId v) { return file.target_of(v) != ir::kNoValue; },
                    [&](size_t step, int o, int r) { return program.may_overwrite(*steps[step], o, r); },
                    keeps_arena ? kAnyWaste : most_waste, keeps_arena});
  program.layout.arena_bytes = placement.arena_bytes;
  program.layout.arena_offsets = file.place(placement);
  for (size_t i = 0; i < steps.size(); ++i)
    if (const int32_t piece = program.scratch_of(*steps[i]); piece >= 0)
      program.scratch[static_cast<size_t>(piece)].offset = placement.scratch[i];
}

void find_scratch(Program& program, std::span<const ir::Binding> bindings) {
  CellsWithoutMemory cells(program, bindings);
  const auto add_piece = [&](int32_t& piece, int64_t bytes) {
    if (bytes == 0) return;
    piece = static_cast<int32_t>(program.scratch.size());
    program.scratch.push_back({bytes, -1});
  };
  for (Step& s : program.steps) {
    if (s.kind == StepKind::fused)
      add_piece(program.fused_of(s).scratch, program.fused_of(s).kernel->scratch_bytes());
    const ir::Node& node = program.node(s);
    if (s.kind != StepKind::kernel || !program.executor.has_scratch(node.op)) continue;
    std::vector<TensorImpl*> operands, results;
    for (ir::ValueId v : program.graph.operands(node)) operands.push_back(cells.cell(v));
    for (int i = 0; i < s.results; ++i) results.push_back(cells.cell(node.first_result + i));
    const Call call{node.op, operands, cells.attrs_of(node), node.where, s.results};
    add_piece(s.scratch, program.executor.scratch_bytes(s.kernel, call, results.data()));
  }
}

}  // namespace retrograd
