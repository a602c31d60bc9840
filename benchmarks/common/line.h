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
  /// With `digits` digits after the point; null for NaN and infinity.
  Line& number(std::string_view key, double value, int digits);
  /// Prints to standard output immediately.
  void print() const;

 private:
  Line& raw(std::string_view key, const std::string& value);
  std::string line_;
};

}  // namespace bench
