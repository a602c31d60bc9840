// ArgumentSizes: which sizes and strides of the arguments of a recorded function are symbols, and which live numbers it
// uses as sizes.
//
// A size is a symbol if it varies, that is, differed between two calls; or all are, if so wanted. Sizes share a symbol
// if they were equal in both calls, so a coincidence in one of them does not count. Sizes of 0 and 1 are constants:
// they decide what is repeated. The strides of a row-major argument follow from its sizes; those of another one may be
// symbols of their own. Each live number that is used as a size has a symbol, too.
// These symbols are the first expressions of the graph's table, those of live numbers the last of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/recording.h"
#include "tracer/function/tensor_guard.h"

namespace retrograd::inline v0 {

/// Live numbers that are used as sizes; none: where sizes are fixed.
using LiveSizes = std::optional<std::vector<LiveInteger>>;

class ArgumentSizes {
 public:
  /// No size is a symbol.
  ArgumentSizes() = default;
  /// Symbols of `table` for sizes that differ between two calls, and for those that are symbols in `known`, the sizes
  /// of the call before. The arguments differ in sizes only (TensorGuard::differs_in_sizes), or not at all: then only
  /// live numbers are symbols.
  static ArgumentSizes that_vary(const std::vector<TensorGuard>& before, const ArgumentSizes& known,
                                 const std::vector<TensorGuard>& now, const LiveSizes& live,
                                 SymbolTable& table);
  /// The symbols of `known`, in `table`, with the values that arguments have now which differ in sizes only.
  static ArgumentSizes as_known(const ArgumentSizes& known, const std::vector<TensorGuard>& now,
                                SymbolTable& table);
  /// Symbols for all sizes.
  static ArgumentSizes all(const std::vector<TensorGuard>& now, const LiveSizes& live, SymbolTable& table);

  /// The number of symbols.
  int32_t count() const { return count_; }
  TensorType type(size_t argument) const { return of_[argument].type; }
  /// Whether live numbers can be sizes; the size that one is, if it is known as such.
  bool has_live() const { return live_.has_value(); }
  int32_t live_count() const { return static_cast<int32_t>(live_ ? live_->size() : 0); }
  std::optional<Dim> of_live(const LiveInteger& number) const;
  /// Sets the strides of an argument's stand-in.
  void set_strides(size_t argument, TensorImpl& stand_in) const;
  /// Puts the values of all expressions of `table` for these arguments, which differ from the recorded ones in sizes
  /// only, into `values`; other symbols have theirs already. Returns why they do not fit; empty if they do.
  std::string evaluate(const std::vector<TensorGuard>& arguments, const SymbolTable& table,
                       std::vector<Number>& values) const;

 private:
  struct Sizes {
    TensorType type;
    Shape strides;
  };
  class Symbols;
  void add(const TensorGuard& before, const Sizes* known, const TensorGuard& now, Symbols& symbols);
  void finish(int32_t count, const LiveSizes& live, SymbolTable& table);
  int32_t first_live() const { return count_ - live_count(); }

  std::vector<Sizes> of_;  // each argument; empty if there are no symbols
  LiveSizes live_;
  int32_t count_ = 0;
};

}  // namespace retrograd
