// Damage: texts and files with something changed, for the fuzzers of input. A change replaces bytes, or a word by
// another word of the same text or of a list of unusual ones. Most texts with changed words still parse, and reach
// later checks.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/random.h"

namespace fuzz {

class Damage {
 public:
  Damage(Random& random, std::vector<std::string> odd_words) : random_(random), odd_(std::move(odd_words)) {}

  /// `text` after one to four changes.
  std::string operator()(std::string text) {
    for (int64_t changes = random_.between(1, 4); changes > 0; --changes) change(text);
    return text;
  }

 private:
  struct Span {
    size_t begin, size;
  };

  void change(std::string& text) {
    if (text.empty()) return;
    switch (random_.below(8)) {
      case 0: text[place(text)] = static_cast<char>(random_.below(256)); break;
      case 1: text.erase(place(text), static_cast<size_t>(random_.between(1, 8))); break;
      case 2:
        text.insert(place(text), text.substr(place(text), static_cast<size_t>(random_.between(1, 40))));
        break;
      case 3: text.resize(place(text)); break;
      default: change_word(text);
    }
  }
  void change_word(std::string& text) {
    const std::vector<Span> words = words_of(text);
    if (words.empty()) return;
    const Span to = random_.pick(words), from = random_.pick(words);
    const std::string word =
        !odd_.empty() && random_.chance(0.5) ? random_.pick(odd_) : text.substr(from.begin, from.size);
    text.replace(to.begin, to.size, word);
  }
  size_t place(const std::string& text) { return static_cast<size_t>(random_.below(std::ssize(text))); }

  // Runs of letters, digits and other characters of numbers and names.
  static std::vector<Span> words_of(const std::string& text) {
    std::vector<Span> words;
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    };
    for (size_t i = 0; i < text.size(); ++i) {
      if (!is_part(text[i])) continue;
      const size_t begin = i;
      while (i < text.size() && is_part(text[i])) ++i;
      words.push_back({begin, i - begin});
    }
    return words;
  }

  Random& random_;
  std::vector<std::string> odd_;
};

/// Integers at the ends of their types, and beyond.
inline std::vector<std::string> odd_numbers() {
  return {"0",
          "-1",
          "1",
          "2",
          "8",
          "9",
          "64",
          "65536",
          "2147483647",
          "2147483648",
          "4294967296",
          "281474976710656",
          "4611686018427387904",
          "9223372036854775807",
          "-9223372036854775808",
          "18446744073709551616",
          "1e300",
          "nan",
          "inf",
          "0.5"};
}

}  // namespace fuzz
