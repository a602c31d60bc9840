// The values of leaves, and how values are written into the lines of a run.
#include <fmt/format.h>

#include "ops/all_ops.h"
#include "tests/fuzz/machine.h"

namespace fuzz {
namespace {

constexpr std::pair<std::string_view, rg::ScalarType> kDtypes[] = {
    {"f32", rg::kFloat32}, {"f64", rg::kFloat64}, {"bf16", rg::kBFloat16},
    {"f16", rg::kFloat16}, {"i64", rg::kInt64},   {"i32", rg::kInt32}};

rg::ScalarType dtype_of(const Step& step) {
  for (const auto& [name, dtype] : kDtypes)
    if (step.has(name)) return dtype;
  return rg::kFloat32;
}

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = (a * 0x9E3779B97F4A7C15u) ^ (b + 0x632BE59BD9B4E019u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  return z ^ (z >> 29);
}

/// The same numbers in another layout.
Tensor laid_out(const Tensor& t, const Step& step) {
  if (t.dim() == 0) return t;
  if (step.has("transposed")) return rg::transpose(rg::contiguous(rg::transpose(t, 0, -1)), 0, -1);
  if (step.has("strided")) return rg::select(rg::stack({t, t}, -1), -1, 0);
  if (step.has("expanded"))
    return rg::expand(rg::narrow(t, 0, 0, std::min<int64_t>(t.size(0), 1)), t.sizes());
  return t;
}

std::string hash_of(const Tensor& t) {
  const Tensor dense = rg::contiguous(t.detach());
  const auto* bytes = static_cast<const unsigned char*>(dense.raw_data());
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (int64_t i = 0; i < dense.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3u;
  return fmt::format("{:016x}", hash);
}

}  // namespace

Tensor random_values(int id, const IntArray& shape, rg::ScalarType dtype, bool ties) {
  std::vector<double> values(static_cast<size_t>(rg::Shape(shape).numel().value()));
  for (size_t i = 0; i < values.size(); ++i) {
    const double u = static_cast<double>(mix(static_cast<uint64_t>(id), i) >> 40) * 0x1p-24;
    values[i] = ties ? static_cast<double>(static_cast<int>(u * 5)) * 0.5 - 1 : u * 3 - 1.5;
  }
  return rg::tensor(values, shape, {dtype});
}

Tensor Machine::make_leaf(const Step& step) const {
  IntArray shape = resolve(step.ints);
  (void)rg::empty(shape);  // refuses sizes that are none
  if (step.has("index")) {
    const int64_t bound = shape.empty() ? 0 : shape.back();
    if (!shape.empty()) shape.pop_back();
    if (bound <= 0) return rg::zeros(shape, {rg::kInt64});
    std::vector<double> entries(static_cast<size_t>(rg::Shape(shape).numel().value()));
    for (size_t i = 0; i < entries.size(); ++i)
      entries[i] = static_cast<double>(mix(static_cast<uint64_t>(step.id), i) % static_cast<uint64_t>(bound));
    return rg::tensor(entries, shape, {dtype_of(step)});
  }
  const Tensor t = random_values(step.id, shape, dtype_of(step), step.has("ties"));
  if (step.has("mask")) return rg::gt(t, 0.0);
  return laid_out(t, step).detach().requires_grad_(step.has("grad"));
}

std::string Machine::text_of(const Tensor& t) const {
  if (!t.defined()) return "-";
  std::string text = fmt::format("{}{} {}", rg::describe(t), t.requires_grad() ? " grad" : "", hash_of(t));
  if (show_values_) {
    text += " =";
    for (const double v : t.to_vector()) text += fmt::format(" {:.9g}", v);
  }
  return text;
}

}  // namespace fuzz
