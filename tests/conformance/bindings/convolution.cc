// Convolutions and their transposes.
#include "ops/convolution.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

using Convolve = Tensor (*)(Operand, const Tensor&, const Tensor&, const IntList&, const ConvPadding&,
                            const IntList&, int64_t);

IntList list_of(const Json& numbers) {
  return numbers.is_number_integer() ? IntList(numbers.get<int64_t>()) : IntList(numbers.get<IntArray>());
}

template <Convolve F>
Tensor convolve(Operand input, const Tensor& weight, const Tensor& bias, const IntList& stride,
                const Json& padding, const IntList& dilation, int64_t groups) {
  if (!padding.is_string()) return F(input, weight, bias, stride, list_of(padding), dilation, groups);
  return F(input, weight, bias, stride, std::string_view(padding.get_ref<const std::string&>()), dilation,
           groups);
}

constexpr Binding kBindings[] = {
    {"conv1d", call<convolve<conv1d>>},           {"conv2d", call<convolve<conv2d>>},
    {"conv3d", call<convolve<conv3d>>},           {"conv_transpose1d", call<conv_transpose1d>},
    {"conv_transpose2d", call<conv_transpose2d>}, {"conv_transpose3d", call<conv_transpose3d>},
};

}  // namespace

BindingList convolution_bindings() { return kBindings; }

}  // namespace retrograd::conformance
