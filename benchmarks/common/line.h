// A figure of a benchmark: one line of JSON, an object of texts and numbers.
//
//   Line().text("bench", "adamw").count("elements", n).number("step_ms", ms, 3).print();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

class Line {
 public:
  Line& text(std::string_view key, std::string_view value);
  Line& count(std::string_view key, int64_t value);
  /// With so many digits behind the point; null for what is no number.
  Line& number(std::string_view key, double value, int digits);
  /// To the standard output, at once.
  void print() const;

 private:
  Line& raw(std::string_view key, const std::string& value);
  std::string line_;
};

}  // namespace bench
