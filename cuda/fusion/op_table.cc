// See cuda/fusion/op_table.h. Names come from the compiler: there is no second list of ops.
#include "cuda/fusion/op_table.h"

#include <algorithm>
#include <unordered_map>

#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "ops/elementwise_list.h"
#include "ops/full.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

// "ops::Backward<ops::Gelu>": as GCC writes it in the name of a function, without "retrograd::v0::", the namespace of the
// library and that of its version.
template <class Op>
std::string name_of() {
  std::string text = __PRETTY_FUNCTION__;
  text.erase(0, text.find("Op = ") + 5);
  text.erase(text.find_first_of(";]"));
  const std::string ours = "retrograd::";
  for (size_t at; (at = text.find(ours)) != std::string::npos;)
    text.erase(at, text.find("::", at + ours.size()) + 2 - at);
  return text;
}

template <class List>
constexpr std::string_view header_of() {
  if constexpr (std::is_same_v<List, ops::ArithmeticOps>) return "ops/arithmetic.h";
  if constexpr (std::is_same_v<List, ops::UnaryOps>) return "ops/unary.h";
  if constexpr (std::is_same_v<List, ops::ActivationOps>) return "ops/activations.h";
  if constexpr (std::is_same_v<List, ops::BinaryOps>) return "ops/binary.h";
  if constexpr (std::is_same_v<List, ops::ComparisonOps>) return "ops/comparison.h";
  if constexpr (std::is_same_v<List, ops::TernaryOps>) return "ops/ternary.h";
  if constexpr (std::is_same_v<List, ops::LossOps>) return "ops/losses.h";
  if constexpr (std::is_same_v<List, ops::SpecialOps>) return "ops/special.h";
  if constexpr (std::is_same_v<List, ops::FloatOps>) return "ops/float_ops.h";
  if constexpr (std::is_same_v<List, ops::ShrinkageOps>) return "ops/shrinkage.h";
}

using Formulas = std::unordered_map<const OpInfo*, Formula>;

const Formulas& formulas() {
  static const Formulas& all = *[] {
    auto* made = new Formulas;
    ops::ElementwiseFamilies::for_each([&]<class Op, class List>() {
      const bool divides = requires { Op::divides; };
      (*made)[&ops::info<Op>] = {name_of<Op>(), header_of<List>(), Op::promotion == ops::Promotion::boolean,
                                 Op::integers,  Op::booleans,      divides};
    });
    (*made)[&ops::accumulate] = made->at(&ops::info<ops::Add>);
    return made;
  }();
  return all;
}

bool is_computed(ScalarType dtype) { return is_floating(dtype) && !is_float8(dtype); }

// The division of an integer by the number 0 is an error, which a single kernel reports before its launch.
bool takes(const Formula& f, ScalarType dtype) {
  if (is_computed(dtype)) return true;
  if (!is_integral(dtype, true) || !f.integers || f.divides) return false;
  return dtype != kBool || f.booleans;
}

bool is_elementwise(const Formula& f, std::span<const TensorType> operands, ScalarType result) {
  const ScalarType dtype = computed_dtype(operands);
  if (!takes(f, dtype) || result != (f.gives_bool ? kBool : dtype)) return false;
  return std::ranges::all_of(operands, [&](const TensorType& t) {
    return t.dtype == dtype || t.dtype == kBool || t.dtype == ScalarType::Undefined;
  });
}

// Dims of size 1 may be anywhere. The reduction is over the last dims, not only of size 1; or over the first ones.
FusedRole reduction_role(const Shape& shape, const IntList& dims) {
  bool last = false;
  int count = 0, changes = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i].raw() == 1) continue;
    const bool now = std::find(dims.begin(), dims.end(), i) != dims.end();
    changes += count++ > 0 && now != last;
    last = now;
  }
  const bool is_none = count == 0 || changes > 1 || (changes == 0 && !last);
  return is_none ? FusedRole::none : last ? FusedRole::reduce_rows : FusedRole::reduce_columns;
}

}  // namespace

const Formula* formula_of(const OpInfo& op) {
  const auto found = formulas().find(&op);
  return found == formulas().end() ? nullptr : &found->second;
}

const Reducing* reducing_of(const OpInfo& op) {
  static constexpr Reducing sum{Reduction::sum, Finish::value, "Reduction::sum", "Finish::value"},
      mean{Reduction::sum, Finish::mean, "Reduction::sum", "Finish::mean"},
      prod{Reduction::prod, Finish::value, "Reduction::prod", "Finish::value"},
      max{Reduction::max, Finish::value, "Reduction::max", "Finish::value"},
      min{Reduction::min, Finish::value, "Reduction::min", "Finish::value"};
  return &op == &ops::info<ops::Sum>    ? &sum
         : &op == &ops::info<ops::Mean> ? &mean
         : &op == &ops::info<ops::Prod> ? &prod
         : &op == &ops::info<ops::Amax> ? &max
         : &op == &ops::info<ops::Amin> ? &min
                                        : nullptr;
}

ScalarType computed_dtype(std::span<const TensorType> operands) {
  for (size_t i = operands.size(); i-- > 0;)
    if (operands[i].dtype != ScalarType::Undefined) return operands[i].dtype;
  return ScalarType::Undefined;
}

FusedRole role_of(const OpInfo& op, const void* attrs, std::span<const TensorType> operands,
                  const TensorType& result) {
  for (const TensorType& t : operands)
    if (t.dtype != ScalarType::Undefined && !(t.device == result.device)) return FusedRole::none;
  const auto when = [](bool holds) { return holds ? FusedRole::elementwise : FusedRole::none; };
  if (&op == &ops::info<ops::Full> || &op == &ops::info<ops::To>) return when(is_computed(result.dtype));
  if (&op == &ops::info<ops::Clone>) return when(is_computed(result.dtype) || result.dtype == kBool);
  if (const Formula* formula = formula_of(op)) return when(is_elementwise(*formula, operands, result.dtype));
  if (!reducing_of(op) || !is_computed(operands[0].dtype)) return FusedRole::none;
  return reduction_role(operands[0].shape, dims_of(op, attrs));
}

IntList dims_of(const OpInfo& op, const void* attrs) {
  IntList dims;
  ir::for_each_field(op, const_cast<void*>(attrs), [&](std::string_view name, IntList& list) {
    if (name == "dim") dims = list;
  });
  return dims;
}

}  // namespace retrograd::cuda::fusion
