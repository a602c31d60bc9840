// Device, Shape and TensorType: the results of a type rule and the types of IR values.
// A Shape keeps its sizes inline, at most kMaxRank of them, and copies only as many as it has: copying types is the
// largest cost of an eager op after malloc, and a fixed-size block copy right after scalar stores stalls on store
// forwarding.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dtype.h"
#include "engine/symbols.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

inline constexpr int kMaxRank = 8;

using IntArray = std::vector<int64_t>;
class Sizes;

enum class DeviceType : uint8_t { CPU, CUDA };
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;

/// A device: the CPU, or a CUDA device by its index, as libtorch's torch::Device.
class Device {
 public:
  /// Error(bad_argument) for an index that is no 8-bit integer.
  constexpr Device(DeviceType type = DeviceType::CPU, int index = 0)
      : type_(type),
        index_(index == static_cast<int8_t>(index) ? static_cast<int8_t>(index) : refuse(index)) {}
  /// "cpu", "cuda" (that of index 0) or "cuda:1". Error(bad_argument) for another text.
  template <std::convertible_to<std::string_view> T>
  Device(const T& text, SourceLocation where = SourceLocation::current()) : Device(parse(text, where)) {}

  constexpr DeviceType type() const { return type_; }
  constexpr int8_t index() const { return index_; }
  constexpr bool is_cpu() const { return type_ == DeviceType::CPU; }
  constexpr bool is_cuda() const { return type_ == DeviceType::CUDA; }
  std::string str() const;  ///< "cpu", "cuda:0"
  friend constexpr bool operator==(Device, Device) = default;

 private:
  static Device parse(std::string_view text, SourceLocation where);
  [[noreturn]] static int8_t refuse(int index);

  DeviceType type_;
  int8_t index_;
};
std::string to_string(Device device);
std::ostream& operator<<(std::ostream& out, Device device);

class Shape {
 public:
  Shape() : rank_(0) {}
  // Implicit conversions know the line of the call that they are made for.
  Shape(std::initializer_list<Dim> dims, SourceLocation where = SourceLocation::current()) : rank_(0) {
    append(dims, where);
  }
  explicit Shape(std::span<const Dim> dims) : rank_(0) {
    for (Dim d : dims) push_back(d);
  }
  Shape(const IntArray& dims, SourceLocation where = SourceLocation::current()) : rank_(0) {
    append(dims, where);
  }
  Shape(const Sizes& sizes);
  /// One size: zeros(3).
  template <std::integral T>
  requires(!std::same_as<T, bool>)  // a flag is no size
      Shape(T size)
      : rank_(0) {
    push_back(static_cast<int64_t>(size));
  }
  Shape(const Shape& other) : rank_(other.rank_) { copy(other); }
  Shape& operator=(const Shape& other) {
    rank_ = other.rank_;
    copy(other);
    return *this;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  Dim operator[](int i) const { return dims_[i]; }
  Dim& operator[](int i) { return dims_[i]; }
  const Dim* begin() const { return dims_; }
  const Dim* end() const { return dims_ + rank_; }
  Dim back() const { return dims_[rank_ - 1]; }
  void push_back(Dim d) {
    if (rank_ == kMaxRank) too_many();
    dims_[rank_++] = d;
  }
  void insert(int at, Dim d);
  void erase(int at);
  void resize(int rank, Dim fill = 1);

  /// Number of elements; Error(bad_argument) when it does not fit into 63 bits.
  Dim numel() const {
    Dim n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  bool is_symbolic() const;
  IntArray ints() const;   // values (a symbol is specialised)
  IntArray hints() const;  // values without guards

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (!(a.dims_[i] == b.dims_[i])) return false;
    return true;
  }
  /// The same integers and symbols: unlike ==, this asks no symbol for its value.
  bool is_same(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (dims_[i].raw() != other.dims_[i].raw()) return false;
    return true;
  }

 private:
  void copy(const Shape& other) {
    for (int i = 0; i < rank_; ++i) dims_[i] = other.dims_[i];
  }
  template <class Dims>
  void append(const Dims& dims, SourceLocation where) {
    if (dims.size() > kMaxRank) too_many(where);
    for (const auto& d : dims) push_back(d);
  }
  [[noreturn]] static void too_many();
  [[noreturn]] static void too_many(SourceLocation where);

  uint8_t rank_;
  Dim dims_[kMaxRank];
};

std::string to_string(const Shape& shape);  // "[32,64]"

struct TensorType {
  ScalarType dtype = ScalarType::Undefined;
  Device device;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string to_string(const TensorType& type);  // "f32[32,64]", with " cuda:0" when not on the CPU
/// The bytes of its elements without gaps; sizes must not be symbols. Error(bad_argument) when they do not fit into 63
/// bits.
inline int64_t bytes_of(const TensorType& type) {
  return Dim::checked_mul(type.shape.numel().raw(), static_cast<int64_t>(element_size(type.dtype)));
}

/// `dim` counted from the front; Error(bad_dim) when it is outside [-rank, rank) (a 0-dim tensor counts as one of rank
/// 1).
int wrap_dim(int64_t dim, int rank, std::string_view op);

/// Error(bad_argument) unless the product of the sizes other than 0 fits into 63 bits. Symbols are not checked.
inline void check_extent(const Shape& shape) {
  int64_t n = 1;
  for (Dim d : shape)
    if (!d.is_symbolic() && d.raw() > 1) n = Dim::checked_mul(n, d.raw());
}

/// Row-major strides of a shape with symbols, as contiguous_strides() gives them.
Dim symbolic_strides(const Shape& shape, int64_t* strides);

/// Row-major strides of `shape`, in elements, as raw Dims; returns the number of elements. Error(bad_argument) as for
/// check_extent.
inline Dim contiguous_strides(const Shape& shape, int64_t* strides) {
  int64_t step = 1;
  bool is_empty = false;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    const Dim size = shape[i];
    if (size.is_symbolic()) [[unlikely]]
      return symbolic_strides(shape, strides);
    is_empty |= size.raw() == 0;
    if (size.raw() > 1) step = Dim::checked_mul(step, size.raw());
  }
  return is_empty ? 0 : step;
}

/// The same strides as a list.
Shape dense_strides(const Shape& shape);

/// The shape that `a` and `b` broadcast to (NumPy's rule). Error(shape_mismatch) otherwise.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::string_view op, SourceLocation where = {});

}  // namespace retrograd
#pragma GCC visibility pop
