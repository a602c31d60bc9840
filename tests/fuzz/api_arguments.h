// Arguments of the API fuzzer: for each type that a public function takes, a random value of it, in range or far out of
// it, written down as it is drawn. Tensors come from a pool of all dtypes, ranks and layouts in which many share
// memory, some show an element more than once, and some want a gradient; results of calls are added to the pool. Sizes
// are drawn from a small palette, so that operands fit together often enough. If that does not suffice, a pattern
// describes what fits: "n c h w; o c k k; o" are the shapes of three tensors in which each letter is one size.
//
// With such arguments a function may return or throw Error or RuntimeError. So nothing is drawn that the language
// forbids: no dangling pointers, no invalid enumerators.
//
// The objects of a round would often hold themselves: a hook holds a tensor that depends on the one it is attached to,
// and a gradient made with create_graph refers to its leaf. Therefore closures hold tensors through lend(), and the end
// of a round releases what was lent and clears all gradients.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "retrograd/retrograd.h"
#include "tests/fuzz/random.h"

namespace fuzz {

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

/// A number that had better be in [0, 1).
struct Fraction {
  double value;
};

class Arguments {
 public:
  explicit Arguments(uint64_t seed);
  ~Arguments();
  Arguments(const Arguments&) = delete;

  /// A value for a parameter of type T (without reference). Throws what the constructors of T throw.
  template <class T>
  T get();

  /// Begins a call: forgets what was drawn for the last one. May throw what tensor functions throw. `pattern` has parts
  /// for tensors ("b n m"; capitals are larger sizes), for tensors of indices ("n:c", below the size c), for a shape
  /// ("=d") and for integers ("#c"), in the order in which they are drawn. It is followed most of the time.
  void begin(std::string_view function, std::string_view pattern = {});
  /// The call is made inside of this: "no_grad: ".
  void say_before(std::string_view surroundings) { text_.insert(0, surroundings); }
  /// All arguments are drawn, and the call follows: calls `on_ready`, which can read the complete text().
  void ready() {
    text_ += ")";
    if (on_ready) on_ready(text_);
  }
  std::function<void(const std::string&)> on_ready;
  /// "narrow(f32[2,3] strides 1,2 grad, -1, 0, 4)".
  const std::string& text() const { return text_; }

  // A result: added to the pool if it is not too large.
  void keep(const Tensor& result);
  void keep(const Tensors& results) {
    for (const Tensor& t : results) keep(t);
  }
  void keep(const std::vector<Tensors>& results) {
    for (const Tensors& list : results) keep(list);
  }
  void keep(const std::tuple<Tensor, Tensor>& results) {
    keep(Tensors{std::get<0>(results), std::get<1>(results)});
  }
  /// The tensors of the last result, and all that they may depend on.
  const Tensors& results() const { return results_; }
  const std::vector<Tensor>& pool() const { return pool_; }

  /// For einsum; often wrong.
  std::string equation();
  /// Tensors for a closure that may live as long as the round.
  std::shared_ptr<const Tensors> lend(Tensors tensors);
  /// Leaves outside of the pool that results refer to: the end of a round clears their gradients as well.
  void remember(const Tensors& leaves) { pooled_.insert(pooled_.end(), leaves.begin(), leaves.end()); }

  /// Tensors of the pool that want a gradient.
  Tensors wanting(int64_t most);

  Random random;
  /// Used by the backwards of a round, so that structures and sizes recur.
  rg::CompiledBackward compiled;
  /// While set, some tensors carry a tangent.
  rg::autograd::DualLevel* level = nullptr;

 private:
  static constexpr size_t kPool = 48;
  static constexpr int64_t kMostElements = 20000, kLargestSize = 4096;

  struct Pattern {
    std::deque<std::string_view> tensors, shapes, integers;
    std::array<int64_t, 128> size;  // of each letter
    rg::ScalarType dtype;
  };

  static Pattern parse(std::string_view pattern);
  rg::IntArray sizes_of(std::string_view letters) const;
  Tensor fitting(std::string_view part);
  Tensor fresh();
  Tensor numbers(const rg::IntArray& shape, rg::ScalarType dtype);
  Tensor relaid(Tensor t);
  Tensor tensor();
  int64_t size();
  rg::IntArray shape();
  rg::IntArray ints();
  int64_t integer();
  double number();
  rg::ScalarType dtype();
  std::string_view word();
  rg::Indices indices();
  void add_to_pool(size_t place, const Tensor& t);
  void note(const std::string& argument) { text_ += (text_.back() == '(' ? "" : ", ") + argument; }

  std::optional<Pattern> pattern_;  // while it is followed
  std::array<int64_t, 3> palette_;
  rg::ScalarType main_dtype_;
  std::vector<Tensor> pool_;
  Tensors results_;
  Tensors pooled_;               // all that were ever in the pool, and what remember() was given
  std::deque<Tensor> operands_;  // what Operands point to
  std::vector<std::shared_ptr<Tensors>> lent_;
  std::string text_ = "(";
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
T Arguments::get() {
  if constexpr (IsOptional<T>::value) {
    if (random.chance(0.5)) return note("{}"), T();
    return T(get<typename T::value_type>());
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return tensor();
  } else if constexpr (std::is_same_v<T, rg::Operand>) {
    if (!pattern_ && random.chance(0.1)) return rg::Operand(get<rg::Scalar>(), rg::SourceLocation::current());
    operands_.push_back(tensor());
    return rg::Operand(operands_.back());
  } else if constexpr (std::is_same_v<T, Tensors>) {
    Tensors list(static_cast<size_t>(random.below(4)));
    for (Tensor& t : list) t = tensor();
    return list;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return integer();
  } else if constexpr (std::is_same_v<T, rg::Dim>) {
    return rg::Dim(integer());
  } else if constexpr (std::is_same_v<T, bool>) {
    const bool b = random.chance(0.5);
    return note(b ? "true" : "false"), b;
  } else if constexpr (std::is_same_v<T, double>) {
    return number();
  } else if constexpr (std::is_same_v<T, Fraction>) {
    return Fraction{random.chance(0.8) ? random.number(0, 1) : number()};
  } else if constexpr (std::is_same_v<T, rg::Scalar>) {
    if (random.chance(0.4)) return rg::Scalar(integer());
    return random.chance(0.1) ? rg::Scalar(get<bool>()) : rg::Scalar(number());
  } else if constexpr (std::is_same_v<T, rg::Shape>) {
    return rg::Shape(shape());
  } else if constexpr (std::is_same_v<T, rg::IntArray>) {
    return (pattern_ && !pattern_->shapes.empty()) || random.chance(0.5) ? shape() : ints();
  } else if constexpr (std::is_same_v<T, rg::IntList>) {
    return rg::IntList(ints());
  } else if constexpr (std::is_same_v<T, rg::ScalarType>) {
    return dtype();
  } else if constexpr (std::is_same_v<T, rg::TensorOptions>) {
    const rg::ScalarType type = dtype();
    const bool elsewhere = random.chance(0.02);
    if (elsewhere) note("cuda");
    return rg::TensorOptions(type, elsewhere ? rg::kCUDA : rg::kCPU, get<bool>());
  } else if constexpr (std::is_same_v<T, std::string_view> || std::is_same_v<T, rg::LossReduction>) {
    return word();
  } else if constexpr (std::is_same_v<T, rg::ConvPadding>) {
    return random.chance(0.3) ? rg::ConvPadding(word()) : rg::ConvPadding(rg::IntList(ints()));
  } else if constexpr (std::is_same_v<T, rg::AdaptiveSize>) {
    if (random.chance(0.5)) return rg::AdaptiveSize(get<std::optional<int64_t>>());
    std::vector<std::optional<int64_t>> list;
    for (const int64_t i : ints()) list.push_back(i);
    return rg::AdaptiveSize(list);
  } else if constexpr (std::is_same_v<T, rg::InterpolateOptions>) {
    rg::InterpolateOptions options{.mode = std::string(word())};
    if (random.chance(0.6))
      options.size = get<int64_t>();
    else
      options.scale_factor = number();
    options.align_corners = get<std::optional<bool>>();
    options.recompute_scale_factor = random.chance(0.1);
    options.antialias = random.chance(0.2);
    return options;
  } else if constexpr (std::is_same_v<T, rg::Indices>) {
    return indices();
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    std::vector<double> list(static_cast<size_t>(random.below(7)));
    for (double& v : list) v = number();
    return list;
  } else {
    static_assert(std::is_same_v<T, rg::SourceLocation>, "no way to draw it");
    return rg::SourceLocation::current();
  }
}

}  // namespace fuzz
