// The text of a file in a cache: an answer, and the question that it answers. A file counts only if its
// checksum holds and its question is the one that is asked, to the letter; so neither a damaged file nor two
// questions of one name can give a wrong answer.
//
//   magic                      one line, which names cache and version
//   digest of what follows
//   length of the question
//   question, answer
#pragma once

#include <string>
#include <string_view>

namespace retrograd::io {

/// 128 bits of a hash (XXH3) as 32 hexadecimal digits.
std::string digest(std::string_view text);

/// `magic` ends in a newline.
std::string cache_entry(std::string_view magic, std::string_view question, std::string_view answer);

/// The answer in an entry, a part of it; or why there is none.
struct CachedAnswer {
  std::string_view text, problem;
};
CachedAnswer cached_answer(std::string_view entry, std::string_view magic, std::string_view question);

}  // namespace retrograd::io
