// TextCursor: a position in the text of a graph, and the tokens that may follow. There is no list of tokens: the parser
// asks for what may come next. Blanks before a token are skipped; line ends are not, they end a node. Anything
// unexpected becomes Error(bad_argument) "graph text, line 3: ...", with the line of the cursor.
#pragma once

#include <string>
#include <string_view>

namespace retrograd::inline v0::ir {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  /// "graph text, line 3: PROBLEM".
  [[noreturn]] void fail(std::string_view problem) const;
  /// "graph text, line 3: expected WHAT at "rest of the line"".
  [[noreturn]] void expected(std::string_view what) const;

  bool take(std::string_view token);
  void expect(std::string_view token);
  /// Takes `word` unless it is only the beginning of a longer one.
  bool take_word(std::string_view word);
  /// Letters, digits, "_" and "."; at least one.
  std::string_view word();
  /// A decimal number with its sign and exponent, or a word with or without a minus sign.
  std::string_view number();
  /// The next character that is no blank; 0 at the end.
  char peek();
  /// True at the end of the line or of the text.
  bool at_line_end();
  std::string_view until_line_end();
  /// Moves to the next line that is not empty; false if there is none.
  bool next_line();

 private:
  void skip_blanks();
  std::string_view rest() const { return text_.substr(at_); }
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace retrograd::ir
