// See sample.h.
#include "tools/ops_table/sample.h"

#include <cstring>

#include <fmt/format.h>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "ops/creation.h"

namespace ops_table {
namespace {

struct Parts {
  std::vector<std::string> operands;
  std::string attrs, results;
};

// "f32[2,3], none {dim=0} : f32[2]". Commas within a shape do not separate.
Parts parts_of(const std::string& example) {
  Parts parts;
  const size_t colon = std::min(example.rfind(" : "), example.size());
  const size_t brace = std::min(example.find('{'), colon);
  parts.attrs = example.substr(brace, colon - brace);
  parts.results = example.substr(colon);
  std::string operand;
  int depth = 0;
  for (const char c : example.substr(0, brace)) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0) parts.operands.push_back(std::exchange(operand, {}));
    if (c != ' ' && (c != ',' || depth)) operand += c;
  }
  if (!operand.empty()) parts.operands.push_back(operand);
  return parts;
}

int count_of(std::string_view results) {
  int depth = 0, count = 1;
  for (const char c : results) {
    depth += (c == '[') - (c == ']');
    count += c == ',' && depth == 0;
  }
  return count;
}

std::string graph_text(const rg::OpInfo& op, const Parts& parts) {
  std::string inputs, operands, results;
  int values = 0;
  for (const std::string& operand : parts.operands) {
    const bool is_tensor = operand.find('[') != std::string::npos;
    if (is_tensor) inputs += fmt::format("{}%{}: {}", values ? ", " : "", values, operand);
    operands += operands.empty() ? " " : ", ";
    operands += is_tensor ? fmt::format("%{}", values++) : operand;
  }
  for (int i = 0, n = count_of(parts.results); i < n; ++i) results += fmt::format("{}%r{}", i ? ", " : "", i);
  return fmt::format("graph @{}({}) {{\n  {} = {}{} {}{}\n}}\n", op.name, inputs, results, op.name, operands,
                     parts.attrs, parts.results);
}

// Replaces the sample's dtype in attributes by another one.
class DtypeAttrs final : public rg::AttrVisitor {
 public:
  DtypeAttrs(rg::ScalarType from, rg::ScalarType to) : from_(from), to_(to) {}
  void field(std::string_view, rg::ScalarType& value) override {
    if (value == from_) value = to_;
  }
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, rg::Dim&) override {}
  void field(std::string_view, rg::Scalar&) override {}
  void field(std::string_view, rg::Shape&) override {}
  void field(std::string_view, rg::IntList&) override {}
  void field(std::string_view, rg::Device&) override {}

 private:
  rg::ScalarType from_, to_;
};

}  // namespace

Sample::Sample(const Entry& entry) : entry_(&entry) {
  const rg::OpInfo& op = *entry.op;
  if (entry.example.empty()) rg::fail(rg::Category::bad_argument, op.name, "its struct has no example");
  const Parts parts = parts_of(entry.example);
  graph_ = rg::ir::parse(graph_text(op, parts), rg::ops::find_op);
  for (const rg::ir::ValueId v : graph_.operands(graph_.nodes()[0]))
    types_.push_back(v == rg::ir::kNoValue ? rg::TensorType{} : graph_.type(v));
  if (op.arity >= 0 && entry.operands.size() != types_.size())
    rg::fail(rg::Category::bad_argument, op.name, "`operands` does not name each of its operands");
}

std::string Sample::name(int i) const {
  const auto n = static_cast<size_t>(i);
  return n < entry_->operands.size() ? entry_->operands[n] : fmt::format("x{}", i);
}

rg::ScalarType Sample::dtype() const {
  for (const rg::TensorType& type : types_)
    if (type.dtype != rg::ScalarType::Undefined && rg::is_floating(type.dtype)) return type.dtype;
  return types_.empty() ? result_type(0).dtype : types_[0].dtype;
}

std::vector<rg::ScalarType> Sample::dtypes() const {
  std::vector<rg::ScalarType> dtypes;
  for (const rg::TensorType& type : types_) dtypes.push_back(type.dtype);
  return dtypes;
}

rg::Tensors Sample::make(const std::vector<rg::ScalarType>& dtypes) const {
  rg::Tensors operands;
  for (size_t i = 0; i < types_.size(); ++i) {
    const auto& [dtype, device, shape] = types_[i];
    if (dtype == rg::ScalarType::Undefined)
      operands.emplace_back();
    else if (dtype == rg::kInt32 && shape.rank() == 1)
      operands.push_back(rg::arange(0, rg::Scalar(shape[0]), 1, rg::TensorOptions(dtypes[i])));
    else
      operands.push_back(rg::full(shape, rg::is_floating(dtype) ? 1 : 0, dtypes[i]));
  }
  return operands;
}

rg::Tensors Sample::emit(const rg::Tensors& operands, rg::ScalarType dtype) const {
  std::vector<rg::TensorImpl*> cells;
  for (const rg::Tensor& t : operands) cells.push_back(t.get());
  std::vector<std::byte> attrs(op().attrs_size);
  if (op().attrs_size) {
    std::memcpy(attrs.data(), this->attrs(), attrs.size());
    DtypeAttrs change(this->dtype(), dtype);
    op().visit_attrs(attrs.data(), change);
  }
  rg::Tensors outputs(static_cast<size_t>(results()));
  rg::Emitter::current().emit({&op(), cells, attrs.data(), {}, results()}, outputs.data());
  return outputs;
}

}  // namespace ops_table
