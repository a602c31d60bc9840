// Shared by the tests of planned peaks: a model that shares saved values between records, views them, and has branches
// that live side by side; and the checks of a report.
#pragma once

#include <string_view>

#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace retrograd::testing {

inline constexpr int64_t kPeakRows = 64, kPeakWidth = 96;

inline Tensor peak_leaf(const IntArray& sizes) { return randn(Shape(sizes)).requires_grad_(); }
inline Tensor peak_input() { return randn({kPeakRows, kPeakWidth}); }
inline Tensors peak_parameters() {
  return {peak_leaf({kPeakWidth, kPeakWidth}), peak_leaf({kPeakWidth}), peak_leaf({kPeakWidth}),
          peak_leaf({kPeakWidth})};
}

inline Tensor peak_loss(const Tensor& x, const Tensors& w) {
  const Tensor h = gelu(mm(x, w[0]) + w[1]);
  const Tensor n = layer_norm(h, {kPeakWidth}, w[2], w[3]);
  const Tensor heads = n.view({kPeakRows, 4, kPeakWidth / 4}).transpose(0, 1);
  const Tensor scores = softmax(matmul(heads, heads.transpose(1, 2)), -1);
  const Tensor mixed = matmul(scores, heads).transpose(0, 1).reshape({kPeakRows, kPeakWidth});
  return mean(square(mixed + h) * sigmoid(h)) + sum(exp(-h));
}

inline void check_met(const PeakReport& report, int64_t runs, std::string_view mode = "") {
  INFO(mode);
  CHECK(report.runs == runs);
  CHECK(report.differing == 0);
  CHECK(report.planned_bytes == report.measured_bytes);
  CHECK(report.planned_bytes > 0);
}

}  // namespace retrograd::testing
