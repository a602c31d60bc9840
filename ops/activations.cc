// Functions that are another function with fixed numbers.
#include "ops/activations.h"

#include "engine/named_call.h"

#include <fmt/format.h>

namespace retrograd::inline v0 {

Tensor relu6(Operand x) {
  const NamedCall call("relu6", x.where());
  return hardtanh(x, 0.0, 6.0);
}

Tensor gelu(Operand x, std::string_view approximate) {
  const NamedCall call("gelu", x.where());
  if (approximate != "none" && approximate != "tanh")
    fail(Category::bad_argument, "gelu",
         fmt::format("approximate is \"{}\", not \"none\" or \"tanh\"", approximate), x.where());
  return ops::Function<ops::Gelu>()(x, approximate == "tanh");
}

Tensor elu(Operand x, Scalar alpha) {
  const NamedCall call("elu", x.where());
  return ops::Function<ops::Elu>()(x, alpha);
}

Tensor celu(Operand x, Scalar alpha) {
  const NamedCall call("celu", x.where());
  return ops::Function<ops::Elu>()(x, alpha, 1.0, Scalar(1.0) / alpha);
}

Tensor selu(Operand x) {
  const NamedCall call("selu", x.where());
  return ops::Function<ops::Elu>()(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946);
}

}  // namespace retrograd
