// MNIST: handwritten digits, and data sets that come in the same four files (Fashion-MNIST, KMNIST).
#pragma once

#include <string>

#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::datasets {

/// Example i: an image, float32 (1, height, width) from 0 to 1, and its label, int64 ().
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };

  /// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte in the folder `root`, or the two of t10k-. FileError for
  /// a file that is missing or damaged (data/idx_file.h), or when there is not a label for each image.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);

  /// Error(index_out_of_range).
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const { return is_train_; }
  const Tensor& images() const { return images_; }    ///< float32 (n, 1, height, width)
  const Tensor& targets() const { return targets_; }  ///< int64 (n)

 private:
  bool is_train_;
  Tensor images_, targets_;
};

}  // namespace retrograd::inline v0::data::datasets
#pragma GCC visibility pop
