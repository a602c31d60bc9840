// See examples/common/digits.h.
#include "examples/common/digits.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "examples/common/data_file.h"

namespace examples {

namespace rg = retrograd;
using rg::Tensor;

namespace {

// Appends the numbers of one line; false when it is not 64 pixels and a digit.
bool parse_line(const char* at, const char* end, std::vector<double>& pixels, std::vector<double>& digits) {
  for (int64_t i = 0; i <= kPixels; ++i) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || value > (i < kPixels ? 16 : 9)) return false;
    if (i < kPixels && (next == end || *next != ',')) return false;
    if (i < kPixels)
      pixels.push_back(value / 16.0);
    else
      digits.push_back(value);
    at = i < kPixels ? next + 1 : next;
  }
  return at == end || (*at == '\r' && at + 1 == end);
}

Images read_images(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<double> pixels, digits;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++line;
    if (!parse_line(text.data() + begin, text.data() + end, pixels, digits))
      throw rg::FileError(fmt::format("{}:{}: 64 pixels from 0 to 16 and a digit are needed", path, line));
    begin = end + 1;
  }
  const auto count = static_cast<int64_t>(digits.size());
  if (count < 10) throw rg::FileError(fmt::format("{}: {} images, at least 10 are needed", path, count));
  return {rg::tensor(pixels, {count, kPixels}), rg::tensor(digits, {count}, {rg::kInt64})};
}

// The images, and each shifted in all four directions.
Images with_moved(const Images& images) {
  const Tensor square = images.pixels.view({-1, kSide, kSide});
  rg::Tensors pixels{images.pixels}, digits{images.digits};
  for (int64_t dim : {1, 2})
    for (int64_t from : {0, 1}) {  // first kept row or column: the first or the last seven are kept
      const Tensor kept = square.narrow(dim, from, kSide - 1),
                   empty = rg::zeros_like(square.narrow(dim, 0, 1));
      pixels.push_back(
          rg::cat(from ? rg::Tensors{kept, empty} : rg::Tensors{empty, kept}, dim).view({-1, kPixels}));
      digits.push_back(images.digits);
    }
  return {rg::cat(pixels, 0), rg::cat(digits, 0)};
}

}  // namespace

Images Images::rows(const Tensor& index) const {
  const Tensor here = index.to(pixels.device());
  return {rg::index_select(pixels, 0, here), rg::index_select(digits, 0, here)};
}

Digits::Digits(const std::string& path, rg::Device device) {
  const Images all = read_images(path);
  const Tensor order = rg::argsort(rg::rand({all.size()}));
  const int64_t held_out = all.size() / 5, count = all.size() - held_out;
  training = with_moved(all.rows(order.narrow(0, 0, count))).to(device);
  test = all.rows(order.narrow(0, count, held_out)).to(device);
}

Marks marks(const Tensor& scores, const Tensor& digits) {
  const Tensor right = rg::eq(rg::argmax(scores, 1), digits);
  return {
      rg::cross_entropy(scores, digits).item<double>(),
      static_cast<double>(rg::count_nonzero(right).item<int64_t>()) / static_cast<double>(digits.size(0))};
}

}  // namespace examples
