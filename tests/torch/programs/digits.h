// A data set of handwritten digits in a text file: 64 pixels from 0 to 16 and the digit in each line.
#pragma once

#include <torch/torch.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

class Digits : public torch::data::datasets::Dataset<Digits> {
 public:
  enum class Mode { kTrain, kTest };

  /// Every fifth line is for the test.
  explicit Digits(const std::string& path, Mode mode = Mode::kTrain) {
    std::ifstream file(path);
    TORCH_CHECK(file.good(), "cannot open ", path);
    std::vector<float> pixels;
    std::vector<int64_t> digits;
    std::string line;
    for (size_t number = 0; std::getline(file, line); ++number) {
      if ((number % 5 == 4) != (mode == Mode::kTest)) continue;
      std::stringstream cells(line);
      std::string cell;
      for (int i = 0; i < 64 && std::getline(cells, cell, ','); ++i) pixels.push_back(std::stof(cell) / 16);
      std::getline(cells, cell, ',');
      digits.push_back(std::stoll(cell));
    }
    const auto count = static_cast<int64_t>(digits.size());
    images_ = torch::from_blob(pixels.data(), {count, 1, 8, 8}, torch::kFloat32).clone();
    targets_ = torch::tensor(digits, torch::kInt64);
  }

  torch::data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {images_[i], targets_[i]};
  }
  torch::optional<size_t> size() const override { return images_.size(0); }

  const torch::Tensor& images() const { return images_; }
  const torch::Tensor& targets() const { return targets_; }

 private:
  torch::Tensor images_, targets_;
};
