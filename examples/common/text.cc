// See examples/common/text.h.
#include "examples/common/text.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "examples/common/data_file.h"

namespace examples {

namespace rg = retrograd;
using rg::Tensor;

Text::Text(const std::string& path, int64_t block) {
  const std::string bytes = read_file(path);
  const std::set<char> distinct(bytes.begin(), bytes.end());
  characters.assign(distinct.begin(), distinct.end());
  for (char c : bytes)
    tokens.push_back(
        static_cast<uint8_t>(std::lower_bound(characters.begin(), characters.end(), c) - characters.begin()));
  training = tokens.size() * 9 / 10;
  if (tokens.size() - training <= static_cast<size_t>(block))
    throw rg::FileError(
        fmt::format("{}: {} characters, at least {} are needed", path, tokens.size(), 10 * (block + 1)));
}

std::string Text::codes() const {
  std::vector<int> numbers;
  for (char c : characters) numbers.push_back(static_cast<unsigned char>(c));
  return fmt::format("{}", fmt::join(numbers, " "));
}

TextBatch draw_batch(std::span<const uint8_t> text, int64_t size, int64_t block) {
  const Tensor starts = rg::randint(0, static_cast<int64_t>(text.size()) - block, {size});
  TextBatch batch{rg::empty({size, block}, {rg::kInt64}), rg::empty({size, block}, {rg::kInt64})};
  int64_t *tokens = batch.tokens.data_ptr<int64_t>(), *next = batch.next.data_ptr<int64_t>();
  for (int64_t row = 0; row < size; ++row) {
    const uint8_t* from = text.data() + starts.data_ptr<int64_t>()[row];
    std::copy_n(from, block, tokens + row * block);
    std::copy_n(from + 1, block, next + row * block);
  }
  return batch;
}

OwnStream::OwnStream(uint64_t seed) : outer_(rg::default_generator().state()) { rg::manual_seed(seed); }
OwnStream::~OwnStream() { rg::default_generator().set_state(outer_); }

size_t draw_index(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double s : scores) sum += std::exp(s - largest);
  double left = rg::rand({1}, {rg::kFloat64}).item<double>() * sum;
  for (size_t i = 0; i + 1 < scores.size(); ++i)
    if ((left -= std::exp(scores[i] - largest)) < 0) return i;
  return scores.size() - 1;
}

}  // namespace examples
