// The standard library for NVRTC, which has none: the parts that the headers of formulas (ops/formulas.h) and kernels
// need, in a few lines. NVRTC gets this text under the names of the standard headers (cuda/fusion/headers.h). It has
// its own std::initializer_list.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;
using size_t = decltype(sizeof(0));

#define __builtin_huge_val() __builtin_bit_cast(double, 0x7ff0000000000000ul)

#define __is_same(A, B) std::is_same_v<A, B>

#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l

namespace std {

using ::int32_t;
using ::int64_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, signed char> || is_same_v<T, unsigned char> || is_same_v<T, short> ||
    is_same_v<T, unsigned short> || is_same_v<T, int> || is_same_v<T, unsigned> || is_same_v<T, long> ||
    is_same_v<T, unsigned long> || is_same_v<T, long long> || is_same_v<T, unsigned long long>;

template <bool chosen, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool chosen, class A, class B>
using conditional_t = typename conditional<chosen, A, B>::type;

template <class T>
struct type_identity {
  using type = T;
};

template <class To, class From>
constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <class T, size_t n>
struct array {
  T values[n];
  constexpr T& operator[](size_t i) { return values[i]; }
  constexpr const T& operator[](size_t i) const { return values[i]; }
  constexpr const T* data() const { return values; }
  constexpr size_t size() const { return n; }
};

template <class T>
struct optional {};  // in the parameters of functions that are never called

class string_view {
 public:
  constexpr string_view() = default;
  constexpr string_view(const char* text) : data_(text) {
    while (text[size_]) ++size_;
  }
  constexpr string_view(const char* text, size_t size) : data_(text), size_(size) {}
  constexpr const char* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr const char* begin() const { return data_; }
  constexpr const char* end() const { return data_ + size_; }
  constexpr char operator[](size_t i) const { return data_[i]; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace std
