// See data/mnist.h.
#include "data/mnist.h"

#include <filesystem>

#include <fmt/format.h>

#include "data/idx_file.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0::data::datasets {
namespace {

Tensor read_bytes(const std::string& path, int64_t rank) {
  const Tensor bytes = read_idx(path);
  if (bytes.dtype() != kUInt8 || bytes.dim() != rank)
    throw FileError(fmt::format("{}: {}, not {} dims of uint8", path, describe(bytes), rank));
  return bytes;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : is_train_(mode == Mode::kTrain) {
  const std::string prefix = (std::filesystem::path(root) / (is_train_ ? "train" : "t10k")).string();
  const Tensor images = read_bytes(prefix + "-images-idx3-ubyte", 3);
  const std::string labels = prefix + "-labels-idx1-ubyte";
  targets_ = read_bytes(labels, 1).to(kInt64);
  if (targets_.size(0) != images.size(0))
    throw FileError(fmt::format("{}: {} labels for {} images", labels, targets_.size(0), images.size(0)));
  images_ = images.unsqueeze(1).to(kFloat32) / 255;
}

Example<> MNIST::get(size_t index) {
  const auto i = static_cast<int64_t>(index);
  return {select(images_, 0, i), select(targets_, 0, i)};
}

std::optional<size_t> MNIST::size() const { return static_cast<size_t>(images_.size(0)); }

}  // namespace retrograd::inline v0::data::datasets
