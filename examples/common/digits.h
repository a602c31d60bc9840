// Handwritten digits of 8 by 8 pixels, for the examples that read them: a file with one image a line, 64
// pixels from 0 to 16, then the digit. The lines are shuffled by the seed and the last fifth is held out.
#pragma once

#include <string>

#include "retrograd/retrograd.h"

namespace examples {

inline constexpr int64_t kSide = 8, kPixels = kSide * kSide, kDigits = 10;

struct Images {
  retrograd::Tensor pixels;  // float32 [n, 64] from 0 to 1
  retrograd::Tensor digits;  // int64 [n]
  int64_t size() const { return digits.size(0); }
  Images rows(const retrograd::Tensor& index) const;
  Images to(retrograd::Device device) const { return {pixels.to(device), digits.to(device)}; }
};

struct Digits {
  Images training, test;

  /// Reads a file. Each training image is used five times: unchanged, and shifted by a pixel to the left, right, up and
  /// down, since its position does not tell which digit it is. All are on `device`. FileError for a file of another
  /// form.
  Digits(const std::string& path, retrograd::Device device);
};

/// Over all images: the mean cross entropy of the scores [n, 10], and the share of digits with the highest score.
struct Marks {
  double loss, accuracy;
};
Marks marks(const retrograd::Tensor& scores, const retrograd::Tensor& digits);

}  // namespace examples
