// torch::data::transforms, and Example.
#pragma once

#include "data/transforms.h"

#pragma GCC visibility push(default)
namespace torch::data {

using retrograd::data::Example;
using retrograd::data::TensorExample;
namespace example {
using namespace retrograd::data::example;
}
namespace transforms {
using namespace retrograd::data::transforms;
}

}  // namespace torch::data
#pragma GCC visibility pop
