// See autograd/check_tools.h.
#include "autograd/check_tools.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ops/creation.h"
#include "ops/views.h"

namespace retrograd::inline v0::autograd::check {

double Numbers::next() {
  uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  const double size = 0.5 + static_cast<double>(z >> 11) * 0x1p-53;
  return z & 1 ? size : -size;
}

Tensor Numbers::like(const Shape& shape, Device device) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  for (double& v : values) v = next();
  return tensor(values, shape, {kFloat64, device});
}

Tensor unit(const Shape& shape, size_t at, Device device) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  values[at] = 1;
  return tensor(values, shape, {kFloat64, device});
}

std::string index_text(const Tensor& t, size_t element) {
  std::string text;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    const size_t size = static_cast<size_t>(t.size(d));
    text = fmt::format("{}{}{}", element % size, text.empty() ? "" : ",", text);
    element /= size;
  }
  return "[" + text + "]";
}

std::vector<double> values_of(const Tensor& t, const Tensor& like) {
  return t.defined() ? t.detach().to_vector() : std::vector<double>(static_cast<size_t>(like.numel()));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (!(a.impl().type() == b.impl().type())) return false;
  const Tensor x = a.detach().contiguous().cpu(), y = b.detach().contiguous().cpu();
  return std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes())) == 0;
}

std::vector<int64_t> places_of(const Tensor& t) {
  std::vector<int64_t> places(static_cast<size_t>(t.numel()));
  for (size_t e = 0; e < places.size(); ++e) {
    int64_t rest = static_cast<int64_t>(e);
    for (int64_t d = t.dim() - 1; d >= 0; --d) {
      places[e] += rest % t.size(d) * t.stride(d);
      rest /= t.size(d);
    }
  }
  return places;
}

Tensor strided_leaf(const Tensor& input) {
  const std::vector<int64_t> places = places_of(input);
  int64_t extent = 0;
  for (const int64_t p : places) extent = std::max(extent, p + 1);
  const std::vector<double> values = input.detach().to_vector();
  std::vector<double> memory(static_cast<size_t>(extent));
  for (size_t e = 0; e < places.size(); ++e) memory[static_cast<size_t>(places[e])] = values[e];
  const Tensor buffer = tensor(memory, {extent}, {kFloat64, input.device()});
  return as_strided(buffer, input.sizes(), input.strides(), 0).detach().requires_grad_();
}

}  // namespace retrograd::autograd::check
