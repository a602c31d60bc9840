// See dtypes.h.
#include "tools/ops_table/dtypes.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "engine/runner.h"

namespace ops_table {
namespace {

using rg::ScalarType;

// The outcome for one dtype.
struct Outcome {
  ScalarType computed, result;
  std::string kept;  // names of the operands that keep their dtype
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
using Outcomes = std::array<std::optional<Outcome>, rg::kScalarTypeCount>;

// Other errors are caused by the values of the sample, after its types were accepted.
bool is_refusal(const rg::Error& e) {
  using enum rg::Category;
  return e.category() == dtype_mismatch || e.category() == unsupported || e.category() == shape_mismatch;
}

// The dtype of the first result; nothing if the dtypes are refused.
std::optional<ScalarType> run(const Sample& sample, const std::vector<ScalarType>& dtypes, ScalarType dtype) {
  const rg::Emitter::Scope scope(rg::eager_runner());
  try {
    return sample.emit(sample.make(dtypes), dtype)[0].dtype();
  } catch (const rg::Error& e) {
    if (is_refusal(e)) return {};
    return sample.result_type(0).dtype == sample.dtype() ? dtype : sample.result_type(0).dtype;
  }
}

// Converts all operands of the sample's dtype to another one; for 16-bit floats some, such as statistics, may have to
// keep theirs.
std::optional<Outcome> try_kernel(const Sample& sample, ScalarType dtype) {
  std::vector<int> movable;
  for (int i = 0; i < sample.operands(); ++i)
    if (sample.varies(i)) movable.push_back(i);
  const size_t choices = dtype == rg::kFloat16 || dtype == rg::kBFloat16 ? size_t{1} << movable.size() : 1;
  for (size_t keep = 0; keep < choices || keep == 0; ++keep) {
    if (!movable.empty() && keep & 1) continue;  // the first one is converted
    std::vector<ScalarType> dtypes = sample.dtypes();
    std::string kept;
    for (size_t k = 0; k < movable.size(); ++k) {
      if (!(keep >> k & 1))
        dtypes[static_cast<size_t>(movable[k])] = dtype;
      else
        kept += (kept.empty() ? "" : ", ") + sample.name(movable[k]);
    }
    if (const auto result = run(sample, dtypes, dtype)) return Outcome{dtype, *result, kept};
  }
  return {};
}

std::optional<Outcome> try_function(const Sample& sample, ScalarType dtype) {
  const rg::ops::Typing& typing = *sample.entry().typing;
  std::vector<ScalarType> dtypes = sample.dtypes();
  for (int i = 0; i < sample.operands(); ++i)
    if (sample.varies(i)) dtypes[static_cast<size_t>(i)] = dtype;
  const rg::Tensors tensors = sample.make(dtypes);
  std::vector<rg::Operand> operands;
  for (int i = 0; i < sample.operands(); ++i)
    if (sample.varies(i)) operands.emplace_back(tensors[static_cast<size_t>(i)]);
  try {
    const ScalarType computed = rg::ops::compute_dtype(typing, operands, {});
    return Outcome{computed, typing.promotion == rg::ops::Promotion::boolean ? rg::kBool : computed, {}};
  } catch (const rg::Error& e) {
    if (is_refusal(e)) return {};
    throw;
  }
}

// " as f32", " (with mean in f32)", " giving i64"; empty if the same as in the example.
std::string remark(const Sample& sample, ScalarType dtype, const Outcome& outcome) {
  std::string text;
  if (outcome.computed != dtype) text += fmt::format(" as {}", rg::short_name(outcome.computed));
  if (!outcome.kept.empty())
    text += fmt::format(" (with {} in {})", outcome.kept, rg::short_name(sample.dtype()));
  const ScalarType shown = sample.result_type(0).dtype;
  const ScalarType expected = shown == sample.dtype() ? outcome.computed : shown;
  if (outcome.result != expected) text += fmt::format(" giving {}", rg::short_name(outcome.result));
  return text;
}

struct Group {
  std::string_view name;
  std::vector<ScalarType> dtypes;
};

// A group by its name if all of it is accepted in the same way, else its accepted dtypes.
void describe(std::string& text, const Sample& sample, const Group& group, const Outcomes& outcomes) {
  const auto add = [&](std::string_view name, const std::string& remark) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, remark);
  };
  std::vector<std::pair<ScalarType, std::string>> taken;
  for (const ScalarType dtype : group.dtypes)
    if (const auto& outcome = outcomes[static_cast<size_t>(dtype)])
      taken.emplace_back(dtype, remark(sample, dtype, *outcome));
  const bool whole = taken.size() == group.dtypes.size();
  const bool alike =
      std::ranges::all_of(taken, [&](const auto& t) { return t.second == taken.front().second; });
  if (whole && alike) return add(group.name, taken.front().second);
  for (size_t i = 0; i < taken.size(); ++i) {
    const bool last = i + 1 == taken.size() || taken[i + 1].second != taken[i].second;
    add(rg::short_name(taken[i].first), last ? taken[i].second : "");
  }
}

}  // namespace

std::string dtypes_text(const Sample& sample) {
  Outcomes outcomes;
  bool all = true;
  for (int i = 0; i < rg::kScalarTypeCount; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    auto& outcome = outcomes[static_cast<size_t>(i)];
    outcome = sample.entry().typing ? try_function(sample, dtype) : try_kernel(sample, dtype);
    all = all && outcome && remark(sample, dtype, *outcome).empty();
  }
  if (all) return "all";
  const Group groups[] = {{"floating", {rg::kFloat64, rg::kFloat32, rg::kFloat16, rg::kBFloat16}},
                          {"float8", {rg::kFloat8_e4m3fn, rg::kFloat8_e5m2}},
                          {"integers", {rg::kInt64, rg::kInt32, rg::kUInt8}},
                          {"bool", {rg::kBool}}};
  std::string text;
  for (const Group& group : groups) describe(text, sample, group, outcomes);
  return text;
}

}  // namespace ops_table
