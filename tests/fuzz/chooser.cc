// Choosing operands; see chooser.h.
#include "tests/fuzz/chooser.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fuzz {
namespace {

constexpr double kLargest = 50;

/// Numbers that a formula may be given without leaving its range soon.
bool is_moderate(const Tensor& t) {
  for (const double v : t.to_vector())
    if (!std::isfinite(v) || std::abs(v) > kLargest) return false;
  return true;
}

std::string_view name_of(rg::ScalarType dtype) {
  switch (dtype) {
    case rg::kFloat64: return "f64";
    case rg::kBFloat16: return "bf16";
    case rg::kFloat16: return "f16";
    default: return "f32";
  }
}

}  // namespace

bool Chooser::commit(Step next) {
  next.id = next_id();
  program_.steps.push_back(std::move(next));
  return machine_.run(program_.steps.back());
}

std::vector<Ref> Chooser::candidates(const Accept& accept) const {
  std::vector<Ref> refs;
  for (const auto& [ref, t] : machine_.values())
    if (accept(t)) refs.push_back(ref);
  return refs;
}

Ref Chooser::favour_late(const std::vector<Ref>& refs) {
  const auto n = static_cast<int64_t>(refs.size());
  return refs[static_cast<size_t>(std::max(random.below(n), random.below(n)))];
}

Tensor Chooser::add(Ref ref) {
  step.operands.push_back(ref);
  return *machine_.find(ref);
}

Int Chooser::as_size(int64_t value) const {
  const auto at = std::ranges::find(program_.palette, value);
  return {value, at == program_.palette.end() ? -1 : static_cast<int>(at - program_.palette.begin())};
}

std::string_view Chooser::some_dtype() {
  if (!random.chance(other_dtypes)) return main_dtype;
  return random.pick(std::array<std::string_view, 4>{"f32", "f64", "bf16", "f16"});
}

Ref Chooser::leaf(const IntArray& shape, std::string_view dtype, std::vector<std::string_view> words) {
  Step made{.kind = Kind::leaf, .words = std::move(words)};
  made.words.push_back(dtype);
  for (const int64_t size : shape) made.ints.push_back(as_size(size));
  commit(std::move(made));
  return {static_cast<int>(program_.steps.size()), 0};
}

Tensor Chooser::value(int min_rank, int max_rank, const Accept& accept) {
  return pick_or_make(min_rank, max_rank, accept, std::numeric_limits<int>::max());
}

Tensor Chooser::forward_value(int min_rank, int max_rank, const Accept& accept) {
  return pick_or_make(min_rank, max_rank, accept, 0);
}

Tensor Chooser::pick_or_make(int min_rank, int max_rank, const Accept& accept, int highest_order) {
  std::vector<Ref> fit = candidates([&](const Tensor& t) {
    return t.is_floating_point() && t.dim() >= min_rank && t.dim() <= max_rank &&
           t.numel() <= kMostElements && (!accept || accept(t)) && is_moderate(t);
  });
  std::erase_if(fit, [&](Ref ref) { return machine_.order(ref) > highest_order; });
  if (!fit.empty() && random.chance(0.95)) return add(favour_late(fit));
  IntArray shape(static_cast<size_t>(random.between(min_rank, std::min(max_rank, min_rank + 2))));
  for (int64_t& size : shape) size = this->size();
  std::vector<std::string_view> words;
  if (random.chance(0.7)) words.push_back("grad");
  if (random.chance(0.15)) words.push_back("ties");
  if (random.chance(0.3))
    words.push_back(random.pick(std::array<std::string_view, 3>{"transposed", "strided", "expanded"}));
  return add(leaf(shape, some_dtype(), words));
}

Tensor Chooser::shaped(const IntArray& shape) {
  const rg::ScalarType dtype = machine_.find(step.operands.at(0))->dtype();
  const std::vector<Ref> fit =
      candidates([&](const Tensor& t) { return t.dtype() == dtype && t.sizes() == shape && is_moderate(t); });
  if (!fit.empty() && random.chance(0.6)) return add(favour_late(fit));
  std::vector<std::string_view> words;
  if (random.chance(0.6)) words.push_back("grad");
  if (random.chance(0.2)) words.push_back("transposed");
  return add(leaf(shape, name_of(dtype), words));
}

Tensor Chooser::partner() {
  const Tensor first = *machine_.find(step.operands.at(0));
  const IntArray to = first.sizes();
  const auto broadcasts = [&](const Tensor& t) {
    const IntArray from = t.sizes();
    for (size_t i = 1; i <= std::min(from.size(), to.size()); ++i) {
      const int64_t a = from[from.size() - i], b = to[to.size() - i];
      if (a != b && a != 1 && b != 1) return false;
    }
    return t.is_floating_point() && t.dim() <= 4 && t.numel() * std::max<int64_t>(first.numel(), 1) <= 4096 &&
           is_moderate(t);
  };
  const std::vector<Ref> fit = candidates(broadcasts);
  if (!fit.empty() && random.chance(0.8)) return add(favour_late(fit));
  IntArray shape = to;
  for (int64_t& size : shape)
    if (random.chance(0.3)) size = 1;
  if (!shape.empty() && random.chance(0.3)) shape.erase(shape.begin());
  return add(
      leaf(shape, some_dtype(),
           random.chance(0.6) ? std::vector<std::string_view>{"grad"} : std::vector<std::string_view>{}));
}

Tensor Chooser::indices(const IntArray& shape, int64_t bound) {
  IntArray shape_and_bound = shape;
  shape_and_bound.push_back(bound);
  return add(leaf(shape_and_bound, "i64", {"index"}));
}

Tensor Chooser::mask(const IntArray& shape) { return add(leaf(shape, "f32", {"mask"})); }

int64_t Chooser::dim(const Tensor& t) {
  const int64_t dim = random.below(t.dim());
  integer(random.chance(0.3) ? dim - t.dim() : dim);
  return dim;
}

}  // namespace fuzz
