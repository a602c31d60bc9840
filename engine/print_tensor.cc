// Tensors as text: nested brackets as PyTorch prints them, one row a line. Of a tensor with more than 1,000 elements,
// or rows, only the ends of each dim are printed, and only these are read.
#include <ostream>

#include <fmt/format.h>

#include "engine/basic_ops.h"
#include "engine/batching.h"
#include "engine/runner.h"
#include "engine/tensor.h"

namespace retrograd::inline v0 {
namespace {

constexpr int64_t kAll = 1000, kEdge = 3;

std::string element_text(double v, ScalarType) { return fmt::format("{:.4f}", v); }
std::string element_text(int64_t v, ScalarType dtype) {
  return dtype == kBool ? v ? "true" : "false" : fmt::format("{}", v);
}

// Whether there are more than kAll elements, or brackets when there is no element.
bool is_shortened(const IntArray& sizes) {
  int64_t shown = 1;
  for (int64_t n : sizes) {
    if (n == 0) return false;
    if (__builtin_mul_overflow(shown, n, &shown) || shown > kAll) return true;
  }
  return false;
}

// The ends of each dim that is shortened.
Tensor ends_of(Tensor x, const std::vector<bool>& is_cut) {
  const NoGradGuard no_grad;
  const Emitter::Scope now(eager_runner());
  for (size_t d = 0; d < is_cut.size(); ++d) {
    const auto dim = static_cast<int64_t>(d);
    if (is_cut[d]) x = basic::cat({x.narrow(dim, 0, kEdge), x.narrow(dim, x.size(dim) - kEdge, kEdge)}, dim);
  }
  return x;
}

// T: double, or int64_t for integers, which keep all their digits.
template <class T>
class Printer {
 public:
  explicit Printer(const Tensor& tensor) : dtype_(tensor.dtype()), sizes_(tensor.sizes()) {
    const bool shortens = is_shortened(sizes_);
    for (int64_t& n : sizes_) {
      is_cut_.push_back(shortens && n > 2 * kEdge);
      if (is_cut_.back()) n = 2 * kEdge;
    }
    values_ = ends_of(tensor.detach(), is_cut_).to_vector<T>();
  }
  // Depth is the number of dims, at most kMaxRank.
  std::string text(size_t dim, int64_t at) const {
    if (dim == sizes_.size()) return element_text(values_[static_cast<size_t>(at)], dtype_);
    int64_t step = 1;
    for (size_t d = dim + 1; d < sizes_.size(); ++d) step *= sizes_[d];
    const bool last = dim + 1 == sizes_.size();
    const std::string next = last ? ", " : ",\n" + std::string(dim + 1, ' ');
    std::string out = "[";
    for (int64_t i = 0; i < sizes_[dim]; ++i) {
      if (i) out += next;
      if (is_cut_[dim] && i == kEdge) out += "..." + next;
      out += text(dim + 1, at + i * step);
    }
    return out + "]";
  }

 private:
  ScalarType dtype_;
  IntArray sizes_;  // of the printed part
  std::vector<bool> is_cut_;
  std::vector<T> values_;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  if (is_batched(tensor.impl())) {
    const BatchedValue& batched = tensor.impl().meta->batched;
    return fmt::format("BatchedTensor(lvl={}, bdim=0, value=\n{})", batched.level, to_string(batched.value));
  }
  if (tensor.impl().graph) return "tensor(recorded " + describe(tensor) + ")";
  const std::string text =
      is_floating(tensor.dtype()) ? Printer<double>(tensor).text(0, 0) : Printer<int64_t>(tensor).text(0, 0);
  return text + "\n" + describe(tensor);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }
std::ostream& operator<<(std::ostream& out, ScalarType dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  return out << fmt::format("TensorOptions(dtype={}, device={}, layout=Strided, requires_grad={})",
                            name(options.dtype()), options.device().str(), options.requires_grad());
}
std::ostream& operator<<(std::ostream& out, const Sizes& sizes) {
  return out << fmt::format("[{}]", fmt::join(sizes.vec(), ", "));
}

}  // namespace retrograd
