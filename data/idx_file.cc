// See data/idx_file.h.
#include "data/idx_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "ops/creation.h"

namespace retrograd::inline v0::data {
namespace {

// An open file, and what its messages begin with.
class Input {
 public:
  explicit Input(const std::string& path) : path_(path) {
    std::error_code error;
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
      fail("it is not a regular file");
    errno = 0;
    file_.open(path, std::ios::binary | std::ios::ate);
    if (!file_) fail(fmt::format("cannot open: {}", std::strerror(errno)));
    left_ = static_cast<int64_t>(file_.tellg());
    file_.seekg(0);
  }
  int64_t left() const { return left_; }
  void read(void* to, int64_t count) {
    if (count > left_) fail("it ends within its header");
    if (!file_.read(static_cast<char*>(to), count)) fail("cannot read");
    left_ -= count;
  }
  uint32_t read_number() {
    unsigned char bytes[4];
    read(bytes, sizeof bytes);
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }
  [[noreturn]] void fail(std::string_view text) const { throw FileError(fmt::format("{}: {}", path_, text)); }

 private:
  std::string path_;
  std::ifstream file_;
  int64_t left_ = 0;
};

ScalarType type_of(const Input& file, uint32_t magic) {
  if (magic >> 16 == 0x1f8b) file.fail("it is compressed. Hint: gunzip it");
  if (magic >> 16 != 0) file.fail(fmt::format("not an IDX file: it begins with {:#010x}", magic));
  switch (magic >> 8) {
    case 0x08: return kUInt8;
    case 0x0c: return kInt32;
    case 0x0d: return kFloat32;
    case 0x0e: return kFloat64;
    default:
      file.fail(fmt::format("elements of the type {:#04x}; uint8, int32, float32 and float64 are read",
                            magic >> 8));
  }
}

// The sizes; their product, in bytes, is what is left of the file.
Shape read_sizes(Input& file, uint32_t rank, int64_t element_size) {
  if (rank > kMaxRank) file.fail(fmt::format("{} dims, at most {} are read", rank, kMaxRank));
  Shape sizes;
  for (uint32_t i = 0; i < rank; ++i) sizes.push_back(static_cast<int64_t>(file.read_number()));
  int64_t bytes = element_size;
  bool is_too_large = false;
  for (int i = 0; i < sizes.rank(); ++i)
    is_too_large |= __builtin_mul_overflow(bytes, sizes[i].value(), &bytes);
  if (is_too_large || bytes != file.left())
    file.fail(fmt::format("{} elements of {} bytes are {} bytes, not {}", to_string(sizes), element_size,
                          is_too_large ? "too many" : fmt::format("{}", bytes), file.left()));
  return sizes;
}

}  // namespace

Tensor read_idx(const std::string& path) {
  Input file(path);
  const uint32_t magic = file.read_number();
  const ScalarType dtype = type_of(file, magic);
  const auto width = static_cast<int64_t>(element_size(dtype));
  const Tensor result = empty(read_sizes(file, magic & 0xff, width), {dtype});
  auto* const bytes = static_cast<char*>(result.raw_data());
  const int64_t count = file.left();
  if (count > 0) file.read(bytes, count);
  for (char* at = bytes; width > 1 && at < bytes + count; at += width) std::reverse(at, at + width);
  return result;
}

}  // namespace retrograd::inline v0::data
