// The text of a file in a cache: an answer, and the question that it answers. A file is used only if its checksum is
// right and its question is exactly the requested one. So neither a damaged file nor two questions with the same name
// can give a wrong answer.
//
//   magic                      one line, which names cache and version
//   digest of the rest
//   length of the question
//   question, answer
#pragma once

#include <string>
#include <string_view>

namespace retrograd::inline v0::io {

/// 128 bits of a hash (XXH3) as 32 hexadecimal digits.
std::string digest(std::string_view text);

/// `magic` ends in a newline.
std::string cache_entry(std::string_view magic, std::string_view question, std::string_view answer);

/// The answer in an entry, as a part of it; or the reason why there is none.
struct CachedAnswer {
  std::string_view text, problem;
};
CachedAnswer cached_answer(std::string_view entry, std::string_view magic, std::string_view question);

}  // namespace retrograd::io
