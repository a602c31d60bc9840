// Profile::table: see tracer/observe/profile.h.
//
// A slice is a call or a step. Slices nest: a call made by an optimizer's step is within it. A slice's own time
// excludes the slices directly within it.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "ir/passes/fuse.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {
namespace {

struct Slice {
  std::string_view kind;
  int64_t begin, end;
  Work work;
  int64_t own = 0;
};

// The types of a node's operands or results with the sizes of a run in place of symbols.
class RunTypes {
 public:
  explicit RunTypes(const Profile::Run& run) : run_(run) {}

  std::vector<TensorType> of(std::span<const ir::ValueId> values) const {
    std::vector<TensorType> types;
    for (ir::ValueId v : values)
      types.push_back(v == ir::kNoValue ? TensorType() : concrete(run_.graph->type(v)));
    return types;
  }
  std::vector<TensorType> results_of(const ir::Node& node) const {
    std::vector<ir::ValueId> values;
    for (int i = 0; i < node.results; ++i) values.push_back(node.first_result + i);
    return of(values);
  }

 private:
  TensorType concrete(TensorType type) const {
    for (int d = 0; d < type.shape.rank(); ++d)
      if (Dim& size = type.shape[d]; size.is_symbolic())
        size = run_.numbers[static_cast<size_t>(size.id())].i;
    return type;
  }
  const Profile::Run& run_;
};

// The reads and writes of a group, except for values that stay in it.
Work work_of_group(const Profile::Run& run, const std::vector<uint32_t>& nodes,
                   std::span<const int32_t> uses) {
  const ir::GroupDescription group(*run.graph, nodes, uses, run.numbers);
  const RunTypes types(run);
  return {.bytes = bytes_of(types.of(group.inputs())) + bytes_of(types.of(group.outputs()))};
}

void add_steps(const Profile::Run& run, std::vector<Slice>& slices) {
  const RunTypes types(run);
  const std::vector<int32_t> uses = ir::count_uses(*run.graph);
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const Profile::Step& s = run.steps[i];
    if (!s.end) continue;
    const ir::Node& node = run.graph->nodes()[s.node];
    const std::vector<uint32_t> nodes = run.nodes_of(i);
    if (s.frees)
      slices.push_back({"free", s.begin, s.end, {}});
    else if (nodes.size() > 1)
      slices.push_back({"fused", s.begin, s.end, work_of_group(run, nodes, uses)});
    else
      slices.push_back({node.op->name, s.begin, s.end,
                        work_of(*node.op, types.of(run.graph->operands(node)), types.results_of(node))});
  }
}

std::vector<Slice> slices_of(const Profile& profile) {
  std::vector<Slice> slices;
  for (const Profile::Call& c : profile.calls()) slices.push_back({c.op, c.begin, c.end, c.work});
  for (const Profile::Run& run : profile.runs()) add_steps(run, slices);
  std::ranges::sort(slices, [](const Slice& a, const Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<Slice*> open;
  for (Slice& s : slices) {
    while (!open.empty() && open.back()->end <= s.begin) open.pop_back();
    s.own = s.end - s.begin;
    if (!open.empty()) open.back()->own -= s.own;
    open.push_back(&s);
  }
  return slices;
}

struct Row {
  std::string_view kind;
  int64_t count = 0, ns = 0;
  Work work;
};

std::vector<Row> rows_of(const std::vector<Slice>& slices) {
  std::map<std::string_view, Row> by_kind;
  for (const Slice& s : slices) {
    Row& row = by_kind[s.kind];
    row.kind = s.kind;
    ++row.count;
    row.ns += s.own;
    row.work.bytes += s.work.bytes;
    row.work.flops += s.work.flops;
  }
  std::vector<Row> rows;
  for (const auto& [kind, row] : by_kind) rows.push_back(row);
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return a.ns > b.ns; });
  return rows;
}

// Work per nanosecond: billions per second.
std::string rate(double work, int64_t ns) {
  return work > 0 && ns > 0 ? fmt::format("{:.1f}", work / static_cast<double>(ns)) : "-";
}

}  // namespace

std::string Profile::table() const {
  const std::vector<Row> rows = rows_of(slices_of(*this));
  int64_t sum = 0, count = 0;
  for (const Row& row : rows) sum += row.ns, count += row.count;
  constexpr std::string_view line = "{:<28} {:>7} {:>11} {:>8} {:>8} {:>8}\n";
  const auto share = [&](int64_t ns) {
    return sum ? fmt::format("{:.1f} %", 100 * static_cast<double>(ns) / static_cast<double>(sum)) : "-";
  };
  const auto ms = [](int64_t ns) { return fmt::format("{:.3f} ms", static_cast<double>(ns) * 1e-6); };
  std::string text = fmt::format(fmt::runtime(line), "kind", "count", "time", "share", "GB/s", "GF/s");
  for (const Row& row : rows)
    text += fmt::format(fmt::runtime(line), row.kind, row.count, ms(row.ns), share(row.ns),
                        rate(row.work.bytes, row.ns), rate(row.work.flops, row.ns));
  return text + fmt::format(fmt::runtime(line), "all", count, ms(sum), share(sum), "", "");
}

}  // namespace retrograd
