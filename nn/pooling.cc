// See nn/pooling.h. Each forward opens a scope with its caller's line, so that no error names a line of this file.
#include "nn/pooling.h"

namespace retrograd::inline v0::nn {

Tensor MaxPool2d::forward(Operand x) const {
  CallScope scope(x.where());
  return max_pool2d(x, kernel_size_, options_.stride, options_.padding, options_.dilation,
                    options_.ceil_mode);
}

Tensor AvgPool2d::forward(Operand x) const {
  CallScope scope(x.where());
  return avg_pool2d(x, kernel_size_, options_.stride, options_.padding, options_.ceil_mode,
                    options_.count_include_pad, options_.divisor_override);
}

Tensor AdaptiveAvgPool2d::forward(Operand x) const {
  CallScope scope(x.where());
  return adaptive_avg_pool2d(x, output_size_);
}

Tensor Upsample::forward(Operand x) const {
  CallScope scope(x.where());
  return interpolate(x, options_);
}

}  // namespace retrograd::nn
