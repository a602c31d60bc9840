// Tensors as text: nested brackets as PyTorch prints them, one row a line; of more than 1,000 elements only the ends of each dim.
#include <ostream>

#include <fmt/format.h>

#include "engine/tensor.h"

namespace retrograd {
namespace {

constexpr int64_t kAll = 1000, kEdge = 3;

std::string element_text(double v, ScalarType) { return fmt::format("{:.4f}", v); }
std::string element_text(int64_t v, ScalarType dtype) {
  return dtype == kBool ? v ? "true" : "false" : fmt::format("{}", v);
}

// T: double, or int64_t for integers, which keep all their digits.
template <class T>
class Printer {
 public:
  Printer(const Tensor& t)
      : dtype_(t.dtype()), sizes_(t.sizes()), values_(t.to_vector<T>()), shorten_(t.numel() > kAll) {}
  // Depth is the number of dims, at most kMaxRank.
  std::string text(size_t dim, int64_t at) const {
    if (dim == sizes_.size()) return element_text(values_[static_cast<size_t>(at)], dtype_);
    int64_t step = 1;
    for (size_t d = dim + 1; d < sizes_.size(); ++d) step *= sizes_[d];
    const bool last = dim + 1 == sizes_.size();
    std::string out = "[";
    for (int64_t i = 0; i < sizes_[dim]; ++i) {
      if (i) out += last ? ", " : ",\n" + std::string(dim + 1, ' ');
      if (shorten_ && i == kEdge && sizes_[dim] > 2 * kEdge) {
        out += last ? "..., " : "...,\n" + std::string(dim + 1, ' ');
        i = sizes_[dim] - kEdge;
      }
      out += text(dim + 1, at + i * step);
    }
    return out + "]";
  }

 private:
  ScalarType dtype_;
  IntArray sizes_;
  std::vector<T> values_;
  bool shorten_;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  if (tensor.impl().graph) return "tensor(recorded " + describe(tensor) + ")";
  const std::string text =
      is_floating(tensor.dtype()) ? Printer<double>(tensor).text(0, 0) : Printer<int64_t>(tensor).text(0, 0);
  return text + "\n" + describe(tensor);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace retrograd
