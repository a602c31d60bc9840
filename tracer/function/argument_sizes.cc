// See tracer/function/argument_sizes.h.
#include "tracer/function/argument_sizes.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "ir/replay.h"

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

void ArgumentSizes::add(const TensorGuard& before, const Sizes* known, const TensorGuard& now,
                        Symbols& symbols) {
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
void ArgumentSizes::finish(int32_t count, const LiveSizes& live, SymbolTable& table) {
  live_ = live;
  for (size_t i = 0; live_ && i < live_->size(); ++i, ++count)
    table.add_symbol(Number::of((*live_)[i]->load()));
  count_ = count;
  if (!count_) of_.clear();
  for (Sizes& made : of_) {
    if (made.strides.rank() == made.type.shape.rank()) continue;
    made.strides = dense_strides(made.type.shape);
  }
}

ArgumentSizes ArgumentSizes::that_vary(const std::vector<TensorGuard>& before, const ArgumentSizes& known,
                                       const std::vector<TensorGuard>& now, const LiveSizes& live,
                                       SymbolTable& table) {
  const SymbolTable::Scope scope(&table);
  Symbols symbols(table, false);
  ArgumentSizes made;
  for (size_t a = 0; a < now.size(); ++a)
    made.add(before[a], known.of_.empty() ? nullptr : &known.of_[a], now[a], symbols);
  made.finish(symbols.count(), live, table);
  return made;
}

ArgumentSizes ArgumentSizes::as_known(const ArgumentSizes& known, const std::vector<TensorGuard>& now,
                                      SymbolTable& table) {
  const SymbolTable::Scope scope(&table);
  std::vector<int64_t> values(static_cast<size_t>(known.first_live()));
  const auto note = [&](Dim dim, int64_t now) {
    if (dim.is_symbolic() && dim.id() < known.first_live()) values[static_cast<size_t>(dim.id())] = now;
  };
  ArgumentSizes made;
  for (size_t a = 0; a < known.of_.size(); ++a) {
    const Sizes& sizes = known.of_[a];
    made.of_.push_back({sizes.type, {}});
    for (int d = 0; d < sizes.type.shape.rank(); ++d) note(sizes.type.shape[d], now[a].type.shape[d].raw());
    for (int d = 0; d < sizes.type.shape.rank() && !now[a].is_dense; ++d) {
      note(sizes.strides[d], now[a].strides[d]);
      made.of_.back().strides.push_back(sizes.strides[d]);
    }
  }
  for (int64_t value : values) table.add_symbol(Number::of(value));
  made.finish(known.first_live(), known.live_, table);
  return made;
}

ArgumentSizes ArgumentSizes::all(const std::vector<TensorGuard>& now, const LiveSizes& live,
                                 SymbolTable& table) {
  const SymbolTable::Scope scope(&table);
  Symbols symbols(table, true);
  ArgumentSizes made;
  for (const TensorGuard& a : now) made.add(a, nullptr, a, symbols);
  made.finish(symbols.count(), live, table);
  return made;
}

std::optional<Dim> ArgumentSizes::of_live(const LiveInteger& number) const {
  if (!live_ || !number) return {};
  const auto at = std::ranges::find(*live_, number);
  if (at == live_->end()) return {};
  return Dim::symbol(first_live() + static_cast<int32_t>(at - live_->begin()));
}

void ArgumentSizes::set_strides(size_t argument, TensorImpl& stand_in) const {
  const Shape& strides = of_[argument].strides;
  for (int d = 0; d < strides.rank(); ++d) stand_in.set_stride(d, strides[d]);
}

namespace {

// Which guard does not hold; empty if all do.
std::string failing_guard(const SymbolTable& table, std::span<const Number> values) {
  const int guard = table.failing_guard(values);
  if (guard < 0) return {};
  const SymbolTable::Guard& g = table.guards()[static_cast<size_t>(guard)];
  static constexpr std::string_view kSigns[] = {"==", "<", "<="};
  const auto was = [&](int32_t id) { return to_string(Scalar(table.expr(id).hint)); };
  const auto is = [&](int32_t id) { return to_string(Scalar(values[static_cast<size_t>(id)])); };
  return fmt::format("{} {} {} was {}, for {} and {}, and is not for {} and {}", table.text(g.lhs),
                     kSigns[static_cast<int>(g.op)], table.text(g.rhs), g.holds, was(g.lhs), was(g.rhs),
                     is(g.lhs), is(g.rhs));
}

}  // namespace

std::string ArgumentSizes::evaluate(const std::vector<TensorGuard>& arguments, const SymbolTable& table,
                                    std::vector<Number>& values) const {
  // Strides do not matter without elements, and that of a single entry not in a row-major tensor.
  const auto each = [&](const auto& f) {
    for (size_t a = 0; a < of_.size(); ++a) {
      const bool is_empty = arguments[a].type.shape.numel().raw() == 0;
      for (int d = 0; d < of_[a].strides.rank(); ++d) {
        const int64_t size = arguments[a].type.shape[d].raw();
        f(a, of_[a].type.shape[d], size);
        if (!is_empty && (!arguments[a].is_dense || size > 1))
          f(a, of_[a].strides[d], arguments[a].strides[d]);
      }
    }
  };
  for (size_t i = 0; live_ && i < live_->size(); ++i)
    values[static_cast<size_t>(first_live()) + i] = Number::of((*live_)[i]->load());
  each([&](size_t, Dim dim, int64_t size) {
    if (dim.is_symbolic() && dim.id() < first_live())
      values[static_cast<size_t>(dim.id())] = Number::of(size);
  });
  try {
    table.evaluate(values);
  } catch (const Error& e) {  // a size that does not fit into 63 bits
    return e.what();
  }
  std::string misfit;
  each([&](size_t argument, Dim dim, int64_t size) {
    if (misfit.empty() && size != ir::concrete_dim(dim, values).raw())
      misfit = fmt::format("argument {} is {}: a size is {}, and is not {} as in the recording", argument,
                           arguments[argument].text(), size,
                           dim.is_symbolic() ? table.text(dim.id()) : to_string(dim));
  });
  return misfit.empty() ? failing_guard(table, values) : misfit;
}

}  // namespace retrograd
