// See ir/text_cursor.h.
#include "ir/text_cursor.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/error.h"

namespace retrograd::inline v0::ir {
namespace {

// Not std::isalnum: names must not depend on the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

size_t word_length(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_word) - text.begin());
}

}  // namespace

void TextCursor::fail(std::string_view problem) const {
  const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
  throw Error(Category::bad_argument, fmt::format("graph text, line {}: {}", line, problem));
}

void TextCursor::expected(std::string_view what) const {
  const std::string_view here = rest().substr(0, std::min<size_t>(rest().find('\n'), 24));
  fail(here.empty() ? fmt::format("expected {} at the end of the line", what)
                    : fmt::format("expected {} at \"{}\"", what, here));
}

void TextCursor::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

bool TextCursor::take(std::string_view token) {
  skip_blanks();
  if (!rest().starts_with(token)) return false;
  at_ += token.size();
  return true;
}

void TextCursor::expect(std::string_view token) {
  if (!take(token)) expected(fmt::format("\"{}\"", token));
}

bool TextCursor::take_word(std::string_view word) {
  skip_blanks();
  if (rest().substr(0, word_length(rest())) != word) return false;
  at_ += word.size();
  return true;
}

std::string_view TextCursor::word() {
  skip_blanks();
  const std::string_view word = rest().substr(0, word_length(rest()));
  if (word.empty()) expected("a name");
  at_ += word.size();
  return word;
}

std::string_view TextCursor::number() {
  skip_blanks();
  const std::string_view text = rest();
  const size_t sign = text.starts_with('-');
  size_t length = sign + word_length(text.substr(sign));
  // In 1e-05 the word ends at the sign of the exponent.
  const bool exponent = length > sign + 1 && is_digit(text[sign]) && text[length - 1] == 'e' &&
                        length < text.size() && (text[length] == '-' || text[length] == '+');
  if (exponent) length += 1 + word_length(text.substr(length + 1));
  if (length == sign) expected("a number");
  at_ += length;
  return text.substr(0, length);
}

char TextCursor::peek() {
  skip_blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextCursor::at_line_end() { return peek() == '\n' || at_ == text_.size(); }

std::string_view TextCursor::until_line_end() {
  const std::string_view line = rest().substr(0, rest().find('\n'));
  at_ += line.size();
  return line;
}

bool TextCursor::next_line() {
  while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == '\n')) ++at_;
  return at_ < text_.size();
}

}  // namespace retrograd::ir
