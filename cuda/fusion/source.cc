// See cuda/fusion/source.h. write_source() writes the text twice: the kernel's name ends in a hash of the
// text with another name.
#include "cuda/fusion/source.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "cuda/kernels/elementwise.h"
#include "io/cache_entry.h"
#include "ops/full.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

constexpr size_t kReadAtOnce = 4;  // elements of all inputs that a thread of a reduction reads together

std::string_view type_name(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return "double";
    case kFloat32: return "float";
    case kFloat16: return "Half";
    case kBFloat16: return "BFloat16";
    case ScalarType::Float8_e4m3fn: return "Float8_e4m3fn";
    case ScalarType::Float8_e5m2: return "Float8_e5m2";
    case kInt64: return "int64_t";
    case kInt32: return "int32_t";
    case kUInt8: return "uint8_t";
    case kBool: return "bool";
    default: return "void";
  }
}
std::string_view computed_name(ScalarType dtype) { return type_name(compute_type(dtype)); }

bool goes_by_strides(Access a) { return a != Access::dense && a != Access::number; }

// The name of the kernel that merges the parts of rows.
std::string merge_name(std::string_view kernel, const Reducing& r) {
  const auto last = [](std::string_view name) { return name.substr(name.rfind(':') + 1); };
  return fmt::format("{}_merge_{}_{}", kernel, last(r.kind_name), last(r.finish_name));
}

class Writer {
 public:
  Writer(const Group& group, const Variant& variant, std::string_view name)
      : g_(group), v_(variant), name_(name) {
    for (size_t k = 0; k < g_.inputs.size(); ++k)
      side_.push_back(goes_by_strides(v_.inputs[k]) ? sides_++ : -1);
  }

  std::string run() {
    head();
    parameters();
    if (g_.reduces == FusedRole::none)
      packs();
    else
      rows();
    text_ += "}  // namespace retrograd::cuda::RG_TARGET\n";
    return std::move(text_);
  }

 private:
  template <class... A>
  void line(int indent, fmt::format_string<A...> format, A&&... arguments) {
    text_.append(static_cast<size_t>(indent) * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<A>(arguments)...);
    text_ += '\n';
  }

  void head() {
    std::set<std::string_view> headers;
    for (const Group::Node& n : g_.nodes)
      if (n.formula) headers.insert(n.formula->header);
    line(0, "#include \"cuda/fusion/fused.cuh\"");
    for (std::string_view header : headers) line(0, "#include \"{}\"", header);
    line(0, "\nnamespace retrograd::cuda::RG_TARGET {{\n");
  }

  void parameters() {
    line(0, "struct {}_call {{", name_);
    if (g_.reduces == FusedRole::none) line(1, "int64_t numel;");
    for (size_t k = 0; k < g_.inputs.size(); ++k)
      line(1, "const {}* in{};", type_name(g_.inputs[k].dtype), k);
    for_each_output(
        [&](size_t o, const Group::Node& n) { line(1, "{}* out{};", type_name(n.type.dtype), o); });
    if (sides_ > 0) line(1, "StridedGrid<{}> grid;", sides_);
    for_each_reduction([&](size_t i, const Group::Node&) { line(1, "ReduceCall reduce{};", i); });
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (const Group::Node& n = g_.nodes[i]; n.attrs_size > 0)
        line(1, "alignas(8) {} node{};", n.formula ? n.formula->name + "::Attrs" : "Scalar", i);
    line(0, "}};\n");
  }

  // ---- a kernel without reductions: packs of neighbours ----

  void packs() {
    const int n = v_.pack;
    line(0, "extern \"C\" __global__ void __launch_bounds__(kThreads) {0}(const {0}_call call) {{", name_);
    line(1, "for (int64_t i = first_pack<{0}>(); i < call.numel; i += pack_step<{0}>()) {{", n);
    line(2, "const int count = in_pack<{}>(i, call.numel);", n);
    if (sides_ > 0) line(2, "const Offsets<{}> at(call.grid, i);", sides_);
    for (size_t k = 0; k < g_.inputs.size(); ++k) line(2, "const auto in{} = {};", k, packed_input(k));
    for_each_output([&](size_t o, const Group::Node& node) {
      line(2, "Pack<{}, {}> out{};", type_name(node.type.dtype), n, o);
    });
    line(0, "#pragma unroll");
    line(2, "for (int k = 0; k < {}; ++k) {{", n);
    nodes(3, ".v[k]");
    for_each_output([&](size_t o, const Group::Node&) { line(3, "out{}.v[k] = v{};", o, g_.outputs[o]); });
    line(2, "}}");
    for_each_output(
        [&](size_t o, const Group::Node&) { line(2, "write<{}>(call.out{}, i, count, out{});", n, o, o); });
    line(1, "}}");
    line(0, "}}\n");
  }

  std::string packed_input(size_t k) const {
    const int n = v_.pack, s = side_[k];
    switch (v_.inputs[k]) {
      case Access::dense: return fmt::format("read<{}>(call.in{}, i, count)", n, k);
      case Access::number: return fmt::format("repeat<{}>(call.in{}, 0)", n, k);
      case Access::run: return fmt::format("read<{}>(call.in{}, at[{}], {})", n, k, s, n);
      case Access::repeated: return fmt::format("repeat<{}>(call.in{}, at[{}])", n, k, s);
      case Access::gathered:
        return fmt::format("gather<{}>(call.in{}, at[{}], call.grid.stride[call.grid.rank - 1][{}])", n, k, s,
                           s);
    }
    return {};
  }

  // ---- a kernel with reductions: rows, whose elements are computed on the way ----

  void rows() {
    size_t first = g_.nodes.size();
    for_each_reduction([&](size_t i, const Group::Node&) { first = std::min(first, i); });
    line(0, "extern \"C\" __global__ void __launch_bounds__(kThreads) {0}(const {0}_call call) {{", name_);
    line(1, "__shared__ Partial<double> found[kThreads];");
    line(1, "const ReduceCall& cut = call.reduce{};", first);
    line(1, "const RowPart part(cut);");
    for_each_reduction([&](size_t i, const Group::Node& n) {
      line(1, "Partial<double> r{} = nothing<{}, double>();", i, n.reducing->kind_name);
    });
    line(0, "#pragma unroll {}", std::max<size_t>(1, kReadAtOnce / std::max<size_t>(1, g_.inputs.size())));
    line(1, "for (int64_t k = part.begin; k < part.end; k += cut.lanes) {{");
    line(2, "const int64_t i = part.row * cut.rows.stride[0] + k * cut.along.stride[0];");
    if (sides_ > 0) line(2, "const Offsets<{}> at(call.grid, i);", sides_);
    for (size_t k = 0; k < g_.inputs.size(); ++k) line(2, "const auto in{0} = call.in{0}[{1}];", k, place(k));
    nodes(2, "");
    for_each_output([&](size_t o, const Group::Node&) { line(2, "call.out{}[i] = v{};", o, g_.outputs[o]); });
    for_each_reduction([&](size_t i, const Group::Node& n) {
      line(2, "merge<{0}>(r{1}, of_one<{0}>(converted<{2}>({3}), k, 0.0));", n.reducing->kind_name, i,
           computed_name(g_.type_of(n.operands[0]).dtype), value(n.operands[0], ""));
    });
    line(1, "}}");
    bool is_first = true;
    for_each_reduction([&](size_t i, const Group::Node& n) {
      if (!std::exchange(is_first, false)) line(1, "__syncthreads();");
      line(1, "end_row<{0}>(call.reduce{1}, {2}, part, found, r{1});", n.reducing->kind_name, i,
           n.reducing->finish_name);
    });
    line(0, "}}\n");
    std::set<const Reducing*> merged;
    for_each_reduction([&](size_t, const Group::Node& n) {
      if (!merged.insert(n.reducing).second) return;
      line(0, "extern \"C\" __global__ void __launch_bounds__(kThreads) {}(const ReduceCall call) {{",
           merge_name(name_, *n.reducing));
      line(1, "merge_parts<{}, double>(call, {});", n.reducing->kind_name, n.reducing->finish_name);
      line(0, "}}\n");
    });
  }

  std::string place(size_t k) const {
    return v_.inputs[k] == Access::dense    ? "i"
           : v_.inputs[k] == Access::number ? "0"
                                            : fmt::format("at[{}]", side_[k]);
  }

  // ---- nodes ----

  // The nodes for one element; `of_pack`: the name of an input's element.
  void nodes(int indent, std::string_view of_pack) {
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (const Group::Node& n = g_.nodes[i]; n.role == FusedRole::elementwise)
        line(indent, "const {} v{} = {};", type_name(n.type.dtype), i, formula(i, n, of_pack));
  }

  std::string formula(size_t i, const Group::Node& n, std::string_view of_pack) const {
    const std::string_view to = type_name(n.type.dtype);
    if (n.op == &ops::info<ops::Full>)
      return fmt::format("constant<{}, {}>(call.node{})", computed_name(n.type.dtype), to, i);
    if (!n.formula) {
      const ScalarType from = g_.type_of(n.operands[0]).dtype;
      const std::string x = value(n.operands[0], of_pack);
      return from == n.type.dtype ? x : fmt::format("cast<{}, {}>({})", computed_name(from), to, x);
    }
    std::vector<TensorType> types;
    for (int32_t k : n.operands) types.push_back(g_.type_of(k));
    std::string text =
        fmt::format("node<{}, {}, {}>(", n.formula->name, computed_name(computed_dtype(types)), to);
    text += n.attrs_size > 0 ? fmt::format("call.node{}", i) : "{}";
    for (int32_t k : n.operands)
      text += k == FusedNode::kNone ? fmt::format(", call.node{}.scalar", i) : ", " + value(k, of_pack);
    return text + ")";
  }

  static std::string value(int32_t operand, std::string_view of_pack) {
    return operand >= 0 ? fmt::format("in{}{}", operand, of_pack) : fmt::format("v{}", ~operand);
  }

  template <class F>
  void for_each_output(F f) const {
    for (size_t o = 0; o < g_.outputs.size(); ++o)
      if (g_.output(o).role == FusedRole::elementwise) f(o, g_.output(o));
  }
  template <class F>
  void for_each_reduction(F f) const {
    for (size_t i = 0; i < g_.nodes.size(); ++i)
      if (g_.nodes[i].reducing) f(i, g_.nodes[i]);
  }

  const Group& g_;
  const Variant& v_;
  const std::string_view name_;
  int sides_ = 0;
  std::vector<int> side_;  // of each input: its index among those that are read by strides
  std::string text_;
};

// What the kernel does, for profilers: its first few ops.
std::string name_of(const Group& group) {
  constexpr int kMost = 4;
  std::string name = "fused";
  std::set<std::string_view> seen;
  for (const Group::Node& n : group.nodes)
    if (std::ssize(seen) < kMost && seen.insert(n.op->name).second) name += "_" + std::string(n.op->name);
  return name;
}

}  // namespace

Source write_source(const Group& group, const Variant& variant) {
  const std::string plain = Writer(group, variant, "fused").run();
  Source made;
  made.name = fmt::format("{}_{}", name_of(group), io::digest(plain).substr(0, 16));
  made.text = Writer(group, variant, made.name).run();
  for (const Group::Node& n : group.nodes)
    if (n.reducing) made.merges.push_back(merge_name(made.name, *n.reducing));
  return made;
}

}  // namespace retrograd::cuda::fusion
