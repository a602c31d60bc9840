// See tests/cuda/fused_case.h.
#include <algorithm>
#include <random>

#include "engine/each_field.h"
#include "ops/elementwise_list.h"
#include "ops/full.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "tests/cuda/fused_case.h"

namespace retrograd {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : bits_(seed) {}
  size_t below(size_t n) { return bits_() % n; }
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(bits_()) / 4294967296.0);
  }
  Tensor numbers(const IntArray& size, ScalarType dtype) {
    int64_t n = 1;
    for (int64_t s : size) n *= s;
    std::vector<double> values(static_cast<size_t>(n));
    for (double& v : values)
      v = is_integral(dtype, true)
              ? static_cast<double>(below(7)) - (dtype == kInt64 || dtype == kInt32 ? 3 : 0)
              : uniform(-2, 2);
    return tensor(values, size, dtype);
  }
  /// Broadcast to `size`, in one of several layouts.
  Tensor of_any_layout(const IntArray& size, ScalarType dtype) {
    switch (below(6)) {
      case 0: return numbers({size[1], size[0]}, dtype).t();
      case 1: return numbers({size[1]}, dtype);
      case 2: return numbers({size[0], 1}, dtype);
      case 3: return numbers({}, dtype);
      default: return numbers(size, dtype);
    }
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

 private:
  std::mt19937 bits_;
};

struct Op {
  const OpInfo* info;
  int arity;
  bool integers, booleans, divides, gives_bool, has_condition;
};

std::vector<Op> all_ops() {
  std::vector<Op> list;
  ops::ElementwiseFamilies::for_each([&]<class O, class>() {
    const bool divides = requires { O::divides; };
    list.push_back({&ops::info<O>, O::arity, O::integers, O::booleans, divides,
                    O::promotion == ops::Promotion::boolean, std::is_same_v<O, ops::Where>});
  });
  return list;
}

std::vector<std::byte> attributes(const OpInfo& op) {
  std::vector<std::byte> attrs(op.attrs_size);
  double next = 0.75;
  ir::for_each_field(op, attrs.data(),
                     ir::Fields{[&](auto, Scalar& number) { number = std::exchange(next, next * 2); },
                                [&](auto, int64_t& n) { n = 2; }});
  return attrs;
}

bool takes(const Op& op, ScalarType dtype) {
  if (is_floating(dtype)) return true;
  return op.integers && !op.divides && (dtype != kBool || op.booleans);
}

// A chain of the ops of a list in one dtype. One operand of each is a value of the whole size, the others are such
// values or inputs of any layout.
class Chain {
 public:
  Chain(Random& random, ScalarType dtype, const IntArray& size, std::string name)
      : random_(random), dtype_(dtype), size_(size), case_(std::move(name)) {
    whole_.push_back(case_.input(random.numbers(size, dtype)));
  }

  void add(const Op& op, bool is_last) {
    const auto arity = static_cast<size_t>(op.arity);
    std::vector<int32_t> operands(arity);
    for (int32_t& k : operands) k = any();
    operands[random_.below(arity)] = recent();
    if (op.has_condition)
      operands = {conditions_.empty() ? case_.input(random_.numbers(size_, kBool)) : conditions_.back(),
                  any(), recent()};
    if (op.info->has_scalar_operand && random_.below(4) == 0) {
      operands[arity - 2] = recent();
      operands[arity - 1] = FusedCase::kNone;
    }
    std::vector<std::byte> attrs = attributes(*op.info);
    const int32_t result = case_.node(*op.info, operands, attrs.data());
    (case_.value(result).dtype() == dtype_ ? whole_ : conditions_).push_back(result);
    if (is_last || random_.below(6) == 0) case_.output(result);
  }
  FusedCase take() { return std::move(case_); }

 private:
  int32_t recent() { return whole_[whole_.size() - 1 - random_.below(std::min<size_t>(whole_.size(), 3))]; }
  int32_t any() {
    if (random_.below(3) > 0 || case_.inputs().size() == 12) return recent();
    return case_.input(random_.of_any_layout(size_, dtype_));
  }

  Random& random_;
  const ScalarType dtype_;
  const IntArray size_;
  FusedCase case_;
  std::vector<int32_t> whole_, conditions_;
};

// ---- groups of training, on [rows, columns] ----

struct Make {
  Random& random;
  IntArray size;
  ScalarType dtype;
  bool is_turned;  // the inputs are transposed views

  FusedCase named(const char* name) const {
    return FusedCase(std::string(name) + " " + std::string(retrograd::name(dtype)) + " " +
                     std::to_string(size[0]) + "x" + std::to_string(size[1]) + (is_turned ? " turned" : ""));
  }
  Tensor whole(ScalarType type) const {
    return is_turned ? random.numbers({size[1], size[0]}, type).t() : random.numbers(size, type);
  }
  Tensor whole() const { return whole(dtype); }
  Tensor row() const { return random.numbers({size[1]}, dtype); }
  Tensor column() const { return random.numbers({size[0], 1}, dtype); }
};

ops::ReduceAttrs over(IntList dims, bool keepdim = false) { return {dims, keepdim}; }

// The gradient of gelu(x + bias), and of the bias.
FusedCase bias_gelu_backward(const Make& m) {
  FusedCase c = m.named("bias_gelu_backward");
  const int32_t g = c.input(m.whole()), x = c.input(m.whole()), bias = c.input(m.row());
  const int32_t sum = c.node<ops::Add>({x, bias});
  const int32_t grad = c.node<ops::Backward<ops::Gelu>>({g, sum}, {true});
  c.output(grad);
  c.output(c.node<ops::Sum>({grad}, over({0})));
  return c;
}

FusedCase dropout_residual(const Make& m) {
  FusedCase c = m.named("dropout_residual");
  const int32_t x = c.input(m.whole()), y = c.input(m.whole()), mask = c.input(m.whole(kBool));
  const int32_t kept =
      c.with_number<ops::Mul>(c.node<ops::Where>({mask, x, c.input(m.random.numbers({}, m.dtype))}), 1.25);
  c.output(c.node<ops::Add>({kept, y}));
  return c;
}

FusedCase squared_error(const Make& m) {
  FusedCase c = m.named("squared_error");
  const int32_t d = c.node<ops::Sub>({c.input(m.whole()), c.input(m.whole())});
  c.output(c.node<ops::Mean>({c.node<ops::Square>({d})}, over({0, 1})));
  c.output(c.with_number<ops::Mul>(d, 2.0 / 64));
  return c;
}

// (x - mean) * deviation * weight + bias, and what its gradient sums over rows.
FusedCase normalised(const Make& m) {
  FusedCase c = m.named("normalised");
  const int32_t x = c.input(m.whole()), g = c.input(m.whole()), mean = c.input(m.column()),
                inverse = c.input(m.column());
  const int32_t weight = c.input(m.row()), bias = c.input(m.row());
  const int32_t hat = c.node<ops::Mul>({c.node<ops::Sub>({x, mean}), inverse});
  c.output(c.node<ops::Add>({c.node<ops::Mul>({hat, weight}), bias}));
  const int32_t scaled = c.node<ops::Mul>({g, weight});
  c.output(c.node<ops::Sum>({scaled}, over({1}, true)));
  c.output(c.node<ops::Sum>({c.node<ops::Mul>({scaled, hat})}, over({1}, true)));
  return c;
}

FusedCase row_extremes(const Make& m) {
  FusedCase c = m.named("row_extremes");
  const int32_t x = c.node<ops::Mul>({c.input(m.whole()), c.input(m.row())});
  c.output(c.node<ops::Amax>({x}, {over({1})}));
  c.output(c.node<ops::Amin>({x}, {over({1})}));
  c.output(c.node<ops::Prod>({c.node<ops::Tanh>({x})}, over({1})));
  c.output(c.node<ops::Mean>({x}, over({1})));
  return c;
}

FusedCase column_means(const Make& m) {
  FusedCase c = m.named("column_means");
  const int32_t x = c.node<ops::Silu>({c.input(m.whole())});
  c.output(x);
  c.output(c.node<ops::Mean>({x}, over({0})));
  c.output(c.node<ops::Amax>({x}, {over({0}, true)}));
  return c;
}

// Between dtypes, and with a constant.
FusedCase mixed(const Make& m) {
  FusedCase c = m.named("mixed");
  const ScalarType other = m.dtype == kFloat32 ? kBFloat16 : kFloat32;
  const int32_t x = c.node<ops::To>({c.input(m.whole())}, {other}), y = c.input(m.whole(other));
  ops::Full::Attrs full;
  full.size = IntArray(m.size);
  full.value = 0.3;
  full.dtype = other;
  const int32_t sum = c.node<ops::Add>({c.node<ops::Mul>({x, y}), c.node<ops::Full>({}, full)});
  c.output(c.node<ops::To>({sum}, {m.dtype}));
  c.output(c.node<ops::Lt>({x, y}));
  c.output(c.node<ops::Clone>({sum}));
  return c;
}

FusedCase entropy(const Make& m) {
  FusedCase c = m.named("entropy");
  const int32_t p = c.node<ops::Exp>({c.node<ops::Sub>({c.input(m.whole()), c.input(m.column())})});
  const int32_t target = c.node<ops::Sigmoid>({c.input(m.whole())});
  const int32_t clamped = c.node<ops::Clamp>({p}, {1e-3, 1 - 1e-3});
  const int32_t loss = c.node<ops::BinaryCrossEntropy>({clamped, target});
  c.output(c.node<ops::Sum>({c.node<ops::Huber>({loss}, {1.5})}, over({0, 1})));
  return c;
}

}  // namespace

std::vector<FusedCase> every_op() {
  Random random(20);
  constexpr size_t kLength = 8;
  std::vector<FusedCase> cases;
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kFloat16, kInt64, kInt32, kUInt8, kBool}) {
    std::vector<Op> list = all_ops();
    std::erase_if(list, [&](const Op& op) { return !takes(op, dtype); });
    random.shuffle(list);
    for (size_t at = 0; at < list.size(); at += kLength) {
      Chain chain(random, dtype, {6, 16},
                  std::string(list[at].info->name) + "... " + std::string(name(dtype)));
      const size_t end = std::min(list.size(), at + kLength);
      for (size_t i = at; i < end; ++i) chain.add(list[i], i + 1 == end);
      cases.push_back(chain.take());
    }
  }
  return cases;
}

std::vector<FusedCase> training_groups() {
  Random random(21);
  std::vector<FusedCase> cases;
  const auto add = [&](const Make& m) {
    for (auto make : {bias_gelu_backward, dropout_residual, squared_error, normalised, row_extremes,
                      column_means, mixed, entropy})
      cases.push_back(make(m));
  };
  for (ScalarType dtype : {kFloat32, kBFloat16, kFloat64, kFloat16}) add({random, {6, 64}, dtype, false});
  add({random, {7, 33}, kFloat32, false});
  add({random, {5, 24}, kFloat32, true});
  add({random, {2, 9000}, kFloat32, false});
  add({random, {900, 40}, kBFloat16, false});
  add({random, {1, 1}, kFloat32, false});
  return cases;
}

}  // namespace retrograd
