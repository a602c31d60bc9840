// Lowering of a fused group: see cpu/fused/fused_draft.h.
//
// Lowering goes through the nodes in order. Each becomes one instruction (a span kernel), with conversions before it
// where an operand has another width and after it where the result has 16 or 8 bits; a `full` becomes a number, a
// `to` only conversions, a reduction no instruction. Then outputs are assigned: a value that is an output of its own
// type is computed into the output's memory, others are stored by one more instruction. fused_role() tells the pass
// that makes groups which nodes this file can lower. Start reading at Lowering::run.
#include "cpu/fused/fused_draft.h"

#include <algorithm>

#include "cpu/fused/fused_convert.h"
#include "engine/each_field.h"
#include "ops/full.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::cpu {
namespace {

// Outputs from this size on are streamed: no cache would hold them until they are read.
constexpr int64_t kStreamedBytes = int64_t{1} << 25;

bool is_native(ScalarType dtype) { return dtype == kFloat32 || dtype == kFloat64; }
bool is_computed(ScalarType dtype) { return is_floating(dtype) && !is_float8(dtype); }

// The dtype that an elementwise op computes in: that of its last tensor operand; an earlier one may be the
// condition of `where`.
ScalarType computed_dtype(std::span<const TensorType> operands) {
  for (size_t i = operands.size(); i-- > 0;)
    if (operands[i].dtype != ScalarType::Undefined) return operands[i].dtype;
  return ScalarType::Undefined;
}

bool is_elementwise(const Spans& spans, std::span<const TensorType> operands, ScalarType result) {
  const ScalarType dtype = computed_dtype(operands);
  if (!is_computed(dtype) && !(spans.boolean && dtype == kBool)) return false;
  if (result != (spans.boolean ? kBool : dtype)) return false;
  return std::ranges::all_of(operands, [&](const TensorType& t) {
    return t.dtype == dtype || t.dtype == kBool || t.dtype == ScalarType::Undefined;
  });
}

// Dims of size 1 are ignored. Rows: a reduction over the last dims, not only over dims of size 1. Columns: over the
// first dims.
FusedRole reduction_role(const Shape& shape, const IntList& dims) {
  bool reduced[kMaxRank], first = true;
  int count = 0, changes = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i].raw() == 1) continue;
    const bool now = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (count > 0) changes += now != reduced[count - 1];
    if (count == 0) first = now;
    reduced[count++] = now;
  }
  if (count == 0 || changes > 1 || !(first || reduced[count - 1])) return FusedRole::none;
  return reduced[count - 1] ? FusedRole::reduce_rows : FusedRole::reduce_columns;
}

// Whether there are so few columns that they are summed like rows. Only for known sizes.
bool has_few_columns(const Shape& result) {
  int64_t columns = 1;
  for (Dim d : result) {
    if (d.is_symbolic()) return false;
    columns *= d.raw();
  }
  return columns < kLeastColumns;
}

class Lowering {
 public:
  Lowering(const FusedGroup& group, const KernelTable& table, FusedDraft& draft)
      : group_(group), table_(table), draft_(draft), result_(group.nodes.size(), -1) {}

  bool run() {
    for (node_ = 0; node_ < static_cast<int>(group_.nodes.size()); ++node_)
      if (!lower_node()) return false;
    draft_.streams = output_bytes() >= kStreamedBytes;
    for (size_t o = 0; o < group_.outputs.size(); ++o) give_output(static_cast<int>(o));
    for (FusedDraft::Reduction& r : draft_.reductions) {
      ++value(r.value).uses;
      value(r.value).reduced = true;
      if (draft_.reduces == FusedRole::reduce_columns) keep(r.value);
    }
    return true;
  }

 private:
  const FusedNode& node() const { return group_.nodes[static_cast<size_t>(node_)]; }
  FusedDraft::Value& value(int v) { return draft_.values[static_cast<size_t>(v)]; }
  const TensorType& type_of(int32_t operand) const {
    static const TensorType none;
    if (operand == FusedNode::kNone) return none;
    return operand >= 0 ? group_.inputs[static_cast<size_t>(operand)]
                        : group_.nodes[static_cast<size_t>(~operand)].type;
  }

  bool lower_node();
  void lower_full();
  void lower_to();
  void lower_spans(const Spans& spans, std::span<const TensorType> operands);
  void lower_reduction();
  bool set_shape(const Shape& shape);

  int add_value(FusedDraft::Value::Kind kind, bool wide, size_t index) {
    draft_.values.push_back({kind, wide, static_cast<int>(index)});
    return static_cast<int>(draft_.values.size()) - 1;
  }
  int source(int input, bool wide);
  int number(std::string_view field, bool wide);
  int operand(int32_t code, bool wide);
  int convert(Span span, int from, bool wide, bool in_place);
  int rounded(int v, ScalarType dtype) {
    return is_native(dtype) ? v : convert(round_span(dtype), v, false, true);
  }
  int64_t output_bytes() const;
  void give_output(int output);
  void keep(int& v);

  const FusedGroup& group_;
  const KernelTable& table_;
  FusedDraft& draft_;
  int node_ = 0;
  bool has_shape_ = false;
  std::vector<int> result_;  // value of each node, -1 of a reduction
};

bool Lowering::set_shape(const Shape& shape) {
  if (!has_shape_) draft_.shape = shape;
  has_shape_ = true;
  return draft_.shape == shape;
}

int Lowering::source(int input, bool wide) {
  for (size_t v = 0; v < draft_.values.size(); ++v) {
    const FusedDraft::Value& known = draft_.values[v];
    if (known.kind != FusedDraft::Value::Kind::source) continue;
    const FusedDraft::Source& s = draft_.sources[static_cast<size_t>(known.index)];
    if (s.input == input && s.wide == wide) return static_cast<int>(v);
  }
  draft_.sources.push_back({input, wide});
  return add_value(FusedDraft::Value::Kind::source, wide, draft_.sources.size() - 1);
}

// A number among the attributes of the node that is lowered.
int Lowering::number(std::string_view field, bool wide) {
  draft_.numbers.push_back({node_, number_offset(*node().op, node().attrs, field), wide});
  return add_value(FusedDraft::Value::Kind::number, wide, draft_.numbers.size() - 1);
}

int Lowering::convert(Span span, int from, bool wide, bool in_place) {
  ++value(from).uses;
  const int out = add_value(FusedDraft::Value::Kind::result, wide, draft_.code.size());
  draft_.code.push_back({nullptr, span, wide, in_place, 1, {from}, out, {}});
  return out;
}

// An operand as floats or doubles.
int Lowering::operand(int32_t code, bool wide) {
  if (code >= 0) return source(code, wide);
  const int v = result_[static_cast<size_t>(~code)];
  if (value(v).wide == wide) return v;
  for (const FusedDraft::Instruction& i : draft_.code)
    if (!i.op && i.in[0] == v && i.wide == wide && i.span == width_span(wide)) return i.out;
  return convert(width_span(wide), v, wide, false);
}

bool Lowering::lower_node() {
  const FusedNode& n = node();
  std::array<TensorType, kMaxSpanInputs> types;
  if (n.operands.size() > types.size()) return false;
  for (size_t k = 0; k < n.operands.size(); ++k) {
    if (n.operands[k] < 0 && n.operands[k] != FusedNode::kNone &&
        result_[static_cast<size_t>(~n.operands[k])] < 0)
      return false;  // the result of a reduction
    types[k] = type_of(n.operands[k]);
  }
  const std::span operands(types.data(), n.operands.size());
  const FusedRole role = fused_role(table_, *n.op, n.attrs, operands, n.type);
  if (role == FusedRole::none) return false;
  if (role != FusedRole::elementwise) {
    if (!set_shape(types[0].shape)) return false;
    if (draft_.reduces != FusedRole::none && draft_.reduces != role) return false;
    draft_.reduces = role;
    lower_reduction();
    return true;
  }
  if (!set_shape(n.type.shape)) return false;
  if (n.op == &ops::info<ops::To>)
    lower_to();
  else if (n.op == &ops::info<ops::Full>)
    lower_full();
  else
    lower_spans(*table_.find(n.op).spans, operands);
  return true;
}

void Lowering::lower_full() {
  const ScalarType dtype = node().type.dtype;
  const int v = number("value", dtype != kFloat32);
  result_[static_cast<size_t>(node_)] =
      rounded(is_native(dtype) ? v : convert(odd_span(), v, false, false), dtype);
}

void Lowering::lower_to() {
  const ScalarType from = type_of(node().operands[0]).dtype, to = node().type.dtype;
  // A value that may have more digits than a float must reach a narrower dtype by a single rounding.
  const bool has_more = (from == kFloat64 || from == kInt32) && !is_native(to);
  int v = operand(node().operands[0], to == kFloat64 || has_more);
  if (has_more) v = convert(odd_span(), v, false, false);
  result_[static_cast<size_t>(node_)] = from == to || from == kBool ? v : rounded(v, to);
}

void Lowering::lower_spans(const Spans& spans, std::span<const TensorType> operands) {
  const bool wide = computed_dtype(operands) == kFloat64;
  FusedDraft::Instruction i{node().op, nullptr, wide,   true, static_cast<int>(operands.size()),
                            {},        0,       {node_}};
  i.span = spans.boolean ? (wide ? spans.f64_truth : spans.f32_truth) : wide ? spans.f64 : spans.f32;
  for (size_t k = 0; k < operands.size(); ++k) {
    i.in[k] = FusedDraft::kNumber;
    if (node().operands[k] == FusedNode::kNone) continue;
    i.in[k] = operand(node().operands[k], wide);
    ++value(i.in[k]).uses;
  }
  i.out = add_value(FusedDraft::Value::Kind::result, wide, draft_.code.size());
  draft_.code.push_back(i);
  result_[static_cast<size_t>(node_)] = spans.boolean ? i.out : rounded(i.out, node().type.dtype);
}

void Lowering::lower_reduction() {
  FusedDraft::Reduction r{row_value(node().op), 0, -1, node().type.dtype, {}};
  ir::for_each_field(*node().op, const_cast<void*>(node().attrs), [&](std::string_view name, IntList& dims) {
    if (name == "dim") r.dims = dims;
  });
  for (size_t o = 0; o < group_.outputs.size(); ++o)
    if (group_.outputs[o] == node_) r.output = static_cast<int>(o);
  r.value = operand(node().operands[0], type_of(node().operands[0]).dtype == kFloat64);
  if (r.output >= 0) draft_.reductions.push_back(r);
}

int64_t Lowering::output_bytes() const {
  int64_t bytes = 0;
  for (int32_t n : group_.outputs) {
    const TensorType& t = group_.nodes[static_cast<size_t>(n)].type;
    bytes += t.shape.numel().raw() * static_cast<int64_t>(element_size(t.dtype));
  }
  return bytes;
}

void Lowering::give_output(int output) {
  const auto n = static_cast<size_t>(group_.outputs[static_cast<size_t>(output)]);
  int v = result_[n];
  if (v < 0) return;  // of a reduction
  const ScalarType dtype = group_.nodes[n].type.dtype;
  if (is_native(dtype) && draft_.streams)
    v = convert(stream_span(value(v).wide), v, value(v).wide, false);
  else if (!is_native(dtype) || value(v).kind != FusedDraft::Value::Kind::result || value(v).output >= 0)
    v = convert(store_span(value(v).wide, dtype), v, value(v).wide, false);
  value(v).output = output;
  ++value(v).uses;
}

// Keeps a value of which more than a tile is needed at a time.
void Lowering::keep(int& v) {
  if (value(v).kind != FusedDraft::Value::Kind::result) {
    const bool wide = value(v).wide;
    v = convert(store_span(wide, wide ? kFloat64 : kFloat32), v, wide, false);
    ++value(v).uses;
  }
  if (value(v).output < 0 && value(v).kept < 0) value(v).kept = draft_.kept++;
}

}  // namespace

FusedRole fused_role(const KernelTable& table, const OpInfo& op, const void* attrs,
                     std::span<const TensorType> operands, const TensorType& result) {
  if (operands.size() > kMaxSpanInputs || !(result.device == Device{})) return FusedRole::none;
  const auto when = [](bool holds) { return holds ? FusedRole::elementwise : FusedRole::none; };
  if (&op == &ops::info<ops::Full>) return when(is_computed(result.dtype));
  // Not of integers with more digits than a double to a dtype that a second rounding leads to.
  if (&op == &ops::info<ops::To>)
    return when(is_floating(result.dtype) && (operands[0].dtype != kInt64 || is_native(result.dtype)));
  if (const Spans* spans = table.find(&op).spans) return when(is_elementwise(*spans, operands, result.dtype));
  const RowValue* row = row_value(&op);
  if (!row || !is_computed(operands[0].dtype)) return FusedRole::none;
  FusedRole role = FusedRole::none;
  ir::for_each_field(op, const_cast<void*>(attrs), [&](std::string_view name, IntList& dims) {
    if (name == "dim") role = reduction_role(operands[0].shape, dims);
  });
  if (role != FusedRole::reduce_columns) return role;
  return row->kind != Reduction::sum || has_few_columns(result.shape) ? FusedRole::none : role;
}

uint32_t number_offset(const OpInfo& op, const void* attrs, std::string_view field) {
  uint32_t offset = 0;
  ir::for_each_field(op, const_cast<void*>(attrs), [&](std::string_view name, Scalar& number) {
    if (name == field)
      offset =
          static_cast<uint32_t>(reinterpret_cast<const char*>(&number) - static_cast<const char*>(attrs));
  });
  return offset;
}

bool lower(const FusedGroup& group, const KernelTable& table, FusedDraft& draft) {
  return Lowering(group, table, draft).run();
}

}  // namespace retrograd::cpu
