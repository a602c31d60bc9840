// See tracer/function/argument_sizes.h.
#include "tracer/function/argument_sizes.h"

#include <map>

#include <fmt/format.h>

namespace retrograd::inline v0 {

// One symbol for each pair of values, in the call before and now.
class ArgumentSizes::Symbols {
 public:
  Symbols(SymbolTable& table, bool all) : table_(table), all_(all) {}

  Dim of(int64_t before, int64_t now, bool was_symbol) {
    if (now <= 1 || (before == now && !was_symbol && !all_)) return now;
    const auto [it, fresh] = known_.try_emplace({before, now}, now);
    if (fresh) it->second = Dim::symbol(table_.add_symbol(Number::of(now)));
    return it->second;
  }
  int32_t count() const { return static_cast<int32_t>(known_.size()); }

 private:
  SymbolTable& table_;
  const bool all_;
  std::map<std::pair<int64_t, int64_t>, Dim> known_;
};

void ArgumentSizes::add(const TensorGuard& before, const Sizes* known, const TensorGuard& now, Symbols& symbols) {
  Sizes made{now.type, {}};
  Shape& shape = made.type.shape;
  for (int d = 0; d < shape.rank(); ++d)
    shape[d] = symbols.of(before.type.shape[d].raw(), now.type.shape[d].raw(),
                          known && known->type.shape[d].is_symbolic());
  for (int d = 0; d < shape.rank() && !now.is_dense; ++d)
    made.strides.push_back(
        symbols.of(before.strides[d], now.strides[d], known && known->strides[d].is_symbolic()));
  of_.push_back(made);
}

// The strides of row-major arguments are expressions: they come after all symbols.
void ArgumentSizes::finish(int32_t count) {
  count_ = count;
  if (!count_) of_.clear();
  for (Sizes& made : of_) {
    if (made.strides.rank() == made.type.shape.rank()) continue;
    int64_t dense[kMaxRank];
    contiguous_strides(made.type.shape, dense);
    for (int d = 0; d < made.type.shape.rank(); ++d) made.strides.push_back(Dim::from_raw(dense[d]));
  }
}

ArgumentSizes ArgumentSizes::that_vary(const std::vector<TensorGuard>& before, const ArgumentSizes& known,
                                       const std::vector<TensorGuard>& now, SymbolTable& table) {
  const SymbolTable::Scope scope(&table);
  Symbols symbols(table, false);
  ArgumentSizes made;
  for (size_t a = 0; a < now.size(); ++a)
    made.add(before[a], known.of_.empty() ? nullptr : &known.of_[a], now[a], symbols);
  made.finish(symbols.count());
  return made;
}

ArgumentSizes ArgumentSizes::all(const std::vector<TensorGuard>& now, SymbolTable& table) {
  const SymbolTable::Scope scope(&table);
  Symbols symbols(table, true);
  ArgumentSizes made;
  for (const TensorGuard& a : now) made.add(a, nullptr, a, symbols);
  made.finish(symbols.count());
  return made;
}

void ArgumentSizes::set_strides(size_t argument, TensorImpl& stand_in) const {
  const Shape& strides = of_[argument].strides;
  for (int d = 0; d < strides.rank(); ++d) stand_in.set_stride(d, strides[d]);
}

namespace {

// Takes the values of symbols from sizes, and compares sizes with them.
class Binder {
 public:
  explicit Binder(const SymbolTable& table) : table_(table) {
    for (int32_t id = 0; id < table.size(); ++id) values_.push_back(table.expr(id).hint);
    is_known_.resize(values_.size());
  }

  void take(Dim dim, int64_t size) {
    if (!dim.is_symbolic() || table_.expr(dim.id()).op != Arith::symbol) return;
    const auto id = static_cast<size_t>(dim.id());
    if (!is_known_[id]) values_[id] = Number::of(size);
    is_known_[id] = true;
  }
  void evaluate() { table_.evaluate(values_); }
  bool fits(Dim dim, int64_t size) const {
    return size == (dim.is_symbolic() ? values_[static_cast<size_t>(dim.id())].i : dim.raw());
  }
  /// Which guard does not hold; empty if all do.
  std::string failing() const {
    const int guard = table_.failing_guard(values_);
    if (guard < 0) return {};
    const SymbolTable::Guard& g = table_.guards()[static_cast<size_t>(guard)];
    static constexpr std::string_view kSigns[] = {"==", "<", "<="};
    return fmt::format("{} {} {} was {}, for {} and {}, and is not for {} and {}", table_.text(g.lhs),
                       kSigns[static_cast<int>(g.op)], table_.text(g.rhs), g.holds, number(g.lhs), number(g.rhs),
                       value(g.lhs), value(g.rhs));
  }
  std::vector<Number> take_values() { return std::move(values_); }

 private:
  std::string number(int32_t id) const { return to_string(Scalar(table_.expr(id).hint)); }
  std::string value(int32_t id) const { return to_string(Scalar(values_[static_cast<size_t>(id)])); }

  const SymbolTable& table_;
  std::vector<Number> values_;
  std::vector<bool> is_known_;
};

}  // namespace

std::optional<std::vector<Number>> ArgumentSizes::values(const std::vector<TensorGuard>& arguments,
                                                         const SymbolTable& table, std::string& misfit) const {
  Binder binder(table);
  const auto each = [&](const auto& f) {
    for (size_t a = 0; a < of_.size(); ++a)
      for (int d = 0; d < of_[a].strides.rank(); ++d)
        f(a, of_[a].type.shape[d], arguments[a].type.shape[d].raw()), f(a, of_[a].strides[d], arguments[a].strides[d]);
  };
  each([&](size_t, Dim dim, int64_t size) { binder.take(dim, size); });
  binder.evaluate();
  each([&](size_t argument, Dim dim, int64_t size) {
    if (misfit.empty() && !binder.fits(dim, size))
      misfit = fmt::format("argument {} is {}: a size is {}, and is not {} as in the recording", argument,
                           arguments[argument].text(), size, dim.is_symbolic() ? table.text(dim.id()) : to_string(dim));
  });
  if (misfit.empty()) misfit = binder.failing();
  if (!misfit.empty()) return {};
  return binder.take_values();
}

}  // namespace retrograd
