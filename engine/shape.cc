// Shapes and their arithmetic; see engine/shape.h.
#include "engine/shape.h"

#include <algorithm>
#include <charconv>
#include <ostream>

#include <fmt/format.h>

#include "engine/named_call.h"

namespace retrograd::inline v0 {

Device Device::parse(std::string_view text, SourceLocation where) {
  if (text == "cpu") return kCPU;
  int8_t number = 0;
  bool is_device = text == "cuda";
  if (text.starts_with("cuda:")) {
    const char *const begin = text.data() + 5, *const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, number);
    is_device = stop == end && error == std::errc() && number >= 0;
  }
  if (!is_device)
    fail(Category::bad_argument, "device",
         fmt::format("\"{}\" is no device; \"cpu\", \"cuda\" and \"cuda:1\" are", text), where);
  return {kCUDA, number};
}

int8_t Device::refuse(int index) {
  fail_somewhere(Category::bad_argument, fmt::format("{} is no index of a device", index));
}

std::string Device::str() const { return is_cpu() ? "cpu" : fmt::format("cuda:{}", index_); }
std::string to_string(Device device) { return device.str(); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << device.str(); }

void Shape::too_many() {
  fail_somewhere(Category::bad_dim, fmt::format("a tensor has at most {} dimensions", kMaxRank));
}
void Shape::too_many(SourceLocation where) {
  fail(Category::bad_dim, "shape", fmt::format("a tensor has at most {} dimensions", kMaxRank), where);
}

void Shape::insert(int at, Dim d) {
  push_back(d);
  for (int i = rank_ - 1; i > at; --i) dims_[i] = dims_[i - 1];
  dims_[at] = d;
}

void Shape::erase(int at) {
  for (int i = at; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
  --rank_;
}

void Shape::resize(int rank, Dim fill) {
  if (rank > kMaxRank) too_many();
  for (int i = rank_; i < rank; ++i) dims_[i] = fill;
  rank_ = static_cast<uint8_t>(rank);
}

bool Shape::is_symbolic() const {
  return std::any_of(begin(), end(), [](Dim d) { return d.is_symbolic(); });
}

IntArray Shape::ints() const {
  IntArray out;
  for (Dim d : *this) out.push_back(d.value());
  return out;
}

IntArray Shape::hints() const {
  IntArray out;
  for (Dim d : *this) out.push_back(d.hint());
  return out;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.rank(); ++i) out += (i ? "," : "") + to_string(shape[i]);
  return out + "]";
}

std::string to_string(const TensorType& type) {
  std::string out = std::string(short_name(type.dtype)) + to_string(type.shape);
  return type.device == Device{} ? out : out + " " + to_string(type.device);
}

Dim symbolic_strides(const Shape& shape, int64_t* strides) {
  Dim step = 1;
  bool is_empty = false;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step.raw();
    is_empty |= shape[i].raw() == 0;
    if (shape[i].raw() != 0) step *= shape[i];
  }
  return is_empty ? Dim(0) : step;
}

Shape dense_strides(const Shape& shape) {
  int64_t strides[kMaxRank];
  contiguous_strides(shape, strides);
  Shape list;
  for (int i = 0; i < shape.rank(); ++i) list.push_back(Dim::from_raw(strides[i]));
  return list;
}

int wrap_dim(int64_t dim, int rank, std::string_view op) {
  const int range = std::max(rank, 1);
  if (dim < -range || dim >= range)
    fail(Category::bad_dim, op,
         fmt::format("dim {} is out of range for a tensor of {} dimensions", dim, rank));
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op, SourceLocation where) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int skip = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const Dim l = longer[i + skip], s = shorter[i];
    if (l.raw() == 1)
      out[i + skip] = s;
    else if (s.raw() != 1 && !(l == s))
      fail(Category::shape_mismatch, op,
           fmt::format("shapes {} and {} cannot be broadcast together", to_string(a), to_string(b)), where);
  }
  return out;
}

}  // namespace retrograd
