// Prints docs/ops.md, the table of all ops: ./bazelw run //tools/ops_table >docs/ops.md
//
// Everything is derived from the op structs (entry.h): dtypes by trying (dtypes.h), derivatives by recording the rule
// (formula.h). Exit code 1, with a line on stderr, for an op whose struct has a missing or wrong example.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "engine/runner.h"
#include "tools/ops_table/dtypes.h"
#include "tools/ops_table/formula.h"

namespace ops_table {
namespace {

constexpr std::string_view kIntroduction =
    R"(# The ops

This page is printed by `./bazelw run //tools/ops_table >docs/ops.md`, from the op structs alone. It lists
the ops that graphs are made of, by the header that has their structs. Public functions that are made of
several ops are in the same headers; the bookkeeping ops are in [ir.md](ir.md).

- **op**: operands by name with the types of an example, after a semicolon attributes with their kinds,
  after the arrow results. An elementwise op has no types where all are equal. `x?` may be missing;
  `a|number`: a number may stand in its place. Kinds: `size` and `sizes` are symbols in a graph, `number` is
  an input of it; `int`, `ints`, `bool` and `dtype` are part of its structure.
- **dtypes**: what may replace f32 in the example. floating: f64, f32, f16, bf16; integers: i64, i32, u8;
  all: these, bool and float8. "as": what it is converted to; "with": operands that keep their dtype;
  "giving": the result's dtype, where it differs from the example. For an elementwise op this is
  what its public function accepts, for others what the kernel accepts: their functions may promote, and may
  refuse more.
- **derivative**: the gradient of each operand, written from the recorded rule; `grad` is the gradient of
  the result. Attributes that equal the op's own are omitted, and so are sizes. none: the operand counts as
  constant. A linear op has its transpose here; its jvp is the op itself. All derivatives serve forward mode
  as well and can be differentiated themselves: `tests/ops/derivatives` proves it for each op.
- **saves**: what the record keeps when all operands want a gradient.
- **traits**: see [ir.md](ir.md); all are pure. **on**: cpu: there is a kernel for the CPU (on a CUDA device
  without one the op is an Error(unsupported)); host: it runs on the host, wherever the operands are; -: a view has
  nothing to compute.
)";

/// "dim: int, keepdim: bool".
class Kinds final : public rg::AttrVisitor {
 public:
  explicit Kinds(bool skip_scalar) : skip_scalar_(skip_scalar) {}
  std::string text;
  void field(std::string_view name, bool&) override { add(name, "bool"); }
  void field(std::string_view name, int64_t&) override { add(name, "int"); }
  void field(std::string_view name, rg::Dim&) override { add(name, "size"); }
  void field(std::string_view name, rg::Scalar&) override {
    if (!skip_scalar_ || name != "scalar") add(name, "number");
  }
  void field(std::string_view name, rg::Shape&) override { add(name, "sizes"); }
  void field(std::string_view name, rg::IntList&) override { add(name, "ints"); }
  void field(std::string_view name, rg::ScalarType&) override { add(name, "dtype"); }
  void field(std::string_view name, rg::Device&) override { add(name, "device"); }

 private:
  void add(std::string_view name, std::string_view kind) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, kind);
  }
  bool skip_scalar_;
};

// Types are omitted if all are equal: in most elementwise ops.
std::string signature(const Sample& sample) {
  const rg::OpInfo& op = sample.op();
  bool plain = sample.entry().typing;
  for (int i = 0; i < sample.operands(); ++i) plain = plain && sample.type(i) == sample.type(0);
  std::string text, results;
  for (int i = 0; i < sample.operands(); ++i) {
    const bool optional = op.optional >> i & 1;
    text += fmt::format("{}{}{}", i ? ", " : "", sample.name(i),
                        !optional               ? ""
                        : op.has_scalar_operand ? "|number"
                                                : "?");
    if (!plain && sample.type(i).dtype != rg::ScalarType::Undefined)
      text += ": " + rg::to_string(sample.type(i));
  }
  if (op.arity < 0) text += ", ...";
  Kinds kinds(op.has_scalar_operand);
  if (op.visit_attrs) op.visit_attrs(const_cast<void*>(sample.attrs()), kinds);
  if (!kinds.text.empty()) text += (text.empty() ? "" : "; ") + kinds.text;
  for (int i = 0; i < sample.results(); ++i)
    results += fmt::format("{}{}", i ? ", " : "", rg::to_string(sample.result_type(i)));
  if (plain)
    results = sample.result_type(0) == sample.type(0) ? "" : rg::short_name(sample.result_type(0).dtype);
  return fmt::format("`{}({}){}{}`", op.name, text, results.empty() ? "" : " → ", results);
}

std::string derivative(const Sample& sample, const Rule& rule) {
  static constexpr std::string_view kind[] = {"", "", "linear: ", "bilinear: ", ""};
  const bool zero = std::ranges::all_of(rule.formulas, [](const auto& f) { return f.second == "0"; });
  std::string text(zero ? "zero" : kind[static_cast<int>(sample.entry().derivative)]);
  for (const auto& [name, formula] : rule.formulas) {
    if (zero) break;
    const bool is_text = formula.starts_with("made of ") || formula == "none";
    if (rule.formulas.size() > 1)
      text += fmt::format("{}{}: ", name == rule.formulas[0].first ? "" : "; ", name);
    text += is_text ? formula : "`" + formula + "`";
  }
  if (!sample.op().jvp) text += "; no forward mode";
  return text;
}

std::string traits(const rg::OpInfo& op) {
  static constexpr std::pair<rg::Trait, std::string_view> kNames[] = {{rg::Trait::effect, "effect"},
                                                                      {rg::Trait::host, "host"},
                                                                      {rg::Trait::view, "view"},
                                                                      {rg::Trait::elementwise, "elementwise"},
                                                                      {rg::Trait::commutative, "commutative"},
                                                                      {rg::Trait::random, "random"}};
  std::vector<std::string_view> names;
  for (const auto& [trait, name] : kNames)
    if (op.is(trait)) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view executors(const rg::OpInfo& op) {
  if (op.run_on_host) return "host";
  if (op.is(rg::Trait::view)) return "-";
  return rg::cpu_executor().find(&op) ? rg::cpu_executor().name() : std::string_view("none");
}

// A bar ends a cell, even within code.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string row(const Entry& entry) {
  const Sample sample(entry);
  const rg::OpInfo& op = sample.op();
  Rule rule;
  std::string how = fmt::format("none: {}", op.no_derivative);
  try {
    if (op.vjp) how = derivative(sample, rule = rule_of(sample));
  } catch (const rg::Error& e) {
    if (e.category() != rg::Category::unsupported) throw;
    how = "in part";
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell(signature(sample)), cell(op.doc),
                     dtypes_text(sample), cell(how), fmt::join(rule.saved, ", "), traits(op), executors(op));
}

std::string ops_cast(rg::CastPolicy policy) {
  std::vector<std::string> names;
  for (const Family& family : families())
    for (const Entry& entry : family.entries)
      if (entry.op->cast_policy == policy) names.push_back(fmt::format("`{}`", entry.op->name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string casts() {
  static constexpr std::pair<rg::CastPolicy, std::string_view> kPolicies[] = {
      {rg::CastPolicy::lower_precision, "the dtype of the scope"},
      {rg::CastPolicy::float32, "float32"},
      {rg::CastPolicy::promote, "float32 if one has it"},
      {rg::CastPolicy::banned, "float32; in float16 an error"}};
  std::string text =
      "\n## Under autocast\n\nWhat [autocast](training.md#mixed-precision) casts operands to. Other ops run "
      "in the "
      "dtypes that they get.\n\n| operands | ops |\n|---|---|\n";
  for (const auto& [policy, to] : kPolicies) text += fmt::format("| {} | {} |\n", to, ops_cast(policy));
  return text;
}

std::string document() {
  std::string text(kIntroduction);
  for (const Family& family : families()) {
    text += fmt::format("\n## [ops/{0}](../ops/{0})\n\n", family.header);
    text += "| op | meaning | dtypes | derivative | saves | traits | on |\n|---|---|---|---|---|---|---|\n";
    for (const Entry& entry : family.entries) text += row(entry);
  }
  return text + casts();
}

}  // namespace
}  // namespace ops_table

int main() {
  try {
    std::fputs(ops_table::document().c_str(), stdout);
    return 0;
  } catch (const retrograd::Exception& e) {
    std::fprintf(stderr, "ops_table: %s\n", e.what());
    return 1;
  }
}
