// What charts and pages of this folder share: texts in SVG and HTML, and marks of axes.
#pragma once

#include <string>
#include <string_view>

namespace retrograd::inline v0::drawing {

/// For SVG and HTML, in texts and between double quotes.
std::string escaped(std::string_view text);

/// An SVG text, which is escaped. `anchor`: start, middle or end.
std::string label(double x, double y, std::string_view anchor, std::string_view text);

/// The distance of at most `most` marks from 0 to `high`: 1, 2 or 5 times a power of ten.
double step_of(double high, int most);

/// A self-contained SVG with a white ground, of this many units. `title` is escaped.
std::string svg(double width, double height, std::string_view title, std::string_view content);

}  // namespace retrograd::drawing
