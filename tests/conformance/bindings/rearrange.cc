// Copies of elements in another order: joining, repeating, padding.
#include "ops/rearrange.h"
#include "ops/join.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

Tensor repeat_interleave_of(Operand x, Operand repeats, std::optional<int64_t> dim) {
  if (repeats.is_scalar()) return repeat_interleave(x, repeats.scalar().to_int(), dim);
  return repeat_interleave(x, repeats.tensor(), dim);
}

Tensor flip_of(Operand input, const IntArray& dims) { return flip(input, dims); }
Tensor roll_of(Operand input, const IntArray& shifts, const IntArray& dims) {
  return roll(input, shifts, dims);
}

constexpr Binding kBindings[] = {
    {"cat", call<cat>},
    {"stack", call<stack>},
    {"flip", call<flip_of>},
    {"roll", call<roll_of>},
    {"repeat", call<repeat>},
    {"tile", call<tile>},
    {"repeat_interleave", call<repeat_interleave_of>},
    {"tril", call<tril>},
    {"triu", call<triu>},
    {"diag", call<diag>},
    {"pad", call<pad>},
};

}  // namespace

BindingList rearrange_bindings() { return kBindings; }

}  // namespace retrograd::conformance
