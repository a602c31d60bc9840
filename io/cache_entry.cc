// See io/cache_entry.h.
#include "io/cache_entry.h"

#include <xxhash.h>

#include <fmt/format.h>

namespace retrograd::inline v0::io {
namespace {

constexpr size_t kDigest = 32;  // hexadecimal digits

}  // namespace

std::string digest(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::string cache_entry(std::string_view magic, std::string_view question, std::string_view answer) {
  const std::string body = fmt::format("{}\n{}{}", question.size(), question, answer);
  return fmt::format("{}{}\n{}", magic, digest(body), body);
}

CachedAnswer cached_answer(std::string_view entry, std::string_view magic, std::string_view question) {
  if (!entry.starts_with(magic)) return {{}, "it is not an entry of this version"};
  entry.remove_prefix(magic.size());
  if (entry.size() <= kDigest || entry[kDigest] != '\n') return {{}, "it is cut off"};
  const std::string_view body = entry.substr(kDigest + 1);
  if (entry.substr(0, kDigest) != digest(body)) return {{}, "its checksum does not hold"};
  const std::string head = fmt::format("{}\n", question.size());
  if (!body.starts_with(head) || !body.substr(head.size()).starts_with(question))
    return {{}, "it answers another question"};
  return {body.substr(head.size() + question.size()), {}};
}

}  // namespace retrograd::io
