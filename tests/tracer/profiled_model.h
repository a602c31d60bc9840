// The small graph that the tests of profiles and traces run: exp(x w) x w, summed.
#pragma once

#include "retrograd/retrograd.h"

namespace retrograd::testing {

struct Model {
  Tensor x = tensor({0.1, -0.4, 0.7, 1.3, -0.2, 0.5}, {3, 2});
  Tensor w = tensor({0.3, 0.9, -0.6, 0.2}, {2, 2}, {kFloat32, kCPU, true});

  Tensor loss() const {
    const Tensor h = mm(x, w);
    return sum(exp(h) * h);
  }
};

}  // namespace retrograd::testing
