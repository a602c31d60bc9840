// Parsing has two steps: HeaderParser converts the events of the JSON library to entries and checks each separately;
// then check_names and check_layout check all of them together.
//
// The JSON library is used through its event interface, since its document type silently keeps the last of two equal
// keys. Its lexer treats a NUL byte as the end of the text, so NUL is refused before the text is parsed.
#include "io/safetensors_header.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "engine/error.h"

namespace retrograd::inline v0 {
namespace {

constexpr size_t kMaxDims = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

// In the order of ScalarType.
constexpr std::array<std::string_view, kScalarTypeCount> kTags = {"F64",     "F32", "F16", "BF16", "F8_E4M3",
                                                                  "F8_E5M2", "I64", "I32", "U8",   "BOOL"};

// The fields of a tensor; all three are needed.
constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
enum class Field { Dtype, Shape, Offsets };

[[noreturn]] void refuse_entry(const std::string& path, std::string_view name, const std::string& reason) {
  throw FileError(path + ": header entry " + printable(name) + ": " + reason);
}

// Refuses every event that is not allowed at its place. The state is the innermost open container and the last key of
// each kind of object.
class HeaderParser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderParser(const std::string& path, SafetensorsHeader& header) : path_(path), header_(header) {}

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    unexpected("a number with a fraction, an exponent or more than 64 bits");
  }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (inside_ != Inside::Shape && inside_ != Inside::Offsets) unexpected("a number");
    if (!std::in_range<int64_t>(value)) refuse("a number does not fit in int64");
    if (inside_ == Inside::Offsets) {
      if (offset_count_ == 2) refuse("data_offsets has more than two numbers");
      offsets_[offset_count_++] = static_cast<size_t>(value);
    } else {
      if (entry_.shape.size() == kMaxDims) refuse("a shape has more than 64 dims");
      entry_.shape.push_back(static_cast<int64_t>(value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (inside_ == Inside::Metadata) {
      header_.metadata[metadata_key_] = value;
      return true;
    }
    if (inside_ != Inside::Tensor || field_ != Field::Dtype) unexpected("a string");
    const auto tag = std::find(kTags.begin(), kTags.end(), value);
    if (tag == kTags.end()) refuse("the dtype " + printable(value) + " is not known");
    entry_.dtype = static_cast<ScalarType>(tag - kTags.begin());
    return true;
  }

  bool start_object(size_t) override {
    if (inside_ == Inside::Nothing) {
      inside_ = Inside::Header;
    } else if (inside_ != Inside::Header) {
      unexpected("an object");
    } else if (entry_.name == kMetadataKey) {
      inside_ = Inside::Metadata;
    } else {
      inside_ = Inside::Tensor;
      fields_seen_ = offset_count_ = 0;
    }
    return true;
  }

  bool key(string_t& value) override {
    if (value.find('\0') != std::string::npos) refuse("a key has a NUL character");
    if (inside_ == Inside::Header) {
      entry_ = TensorEntry{value, ScalarType::Undefined, {}, 0, 0};
      if (value == kMetadataKey && std::exchange(has_metadata_, true)) refuse("it occurs twice");
    } else if (inside_ == Inside::Metadata) {
      const bool is_new = header_.metadata.try_emplace(value).second;
      if (!is_new) refuse("the key " + printable(value) + " occurs twice");
      metadata_key_ = value;
    } else {
      start_field(value);
    }
    return true;
  }

  bool end_object() override {
    if (inside_ == Inside::Tensor) finish_tensor();
    inside_ = inside_ == Inside::Header ? Inside::Nothing : Inside::Header;
    return true;
  }

  bool start_array(size_t) override {
    if (inside_ != Inside::Tensor || field_ == Field::Dtype) unexpected("an array");
    inside_ = field_ == Field::Shape ? Inside::Shape : Inside::Offsets;
    return true;
  }

  bool end_array() override {
    inside_ = Inside::Tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw FileError(path_ + ": the header is not valid UTF-8 JSON, at byte " + std::to_string(position));
  }

 private:
  enum class Inside { Nothing, Header, Metadata, Tensor, Shape, Offsets };

  void start_field(const std::string& key) {
    const auto place = std::find(kFields.begin(), kFields.end(), key) - kFields.begin();
    if (place == std::ssize(kFields)) refuse("the field " + printable(key) + " is not known");
    if (fields_seen_ >> place & 1) refuse("the field " + key + " occurs twice");
    fields_seen_ |= 1u << place;
    field_ = static_cast<Field>(place);
  }

  void finish_tensor() {
    if (fields_seen_ != (1u << kFields.size()) - 1) refuse("dtype, shape or data_offsets is missing");
    if (offset_count_ != 2) refuse("data_offsets has fewer than two numbers");
    const auto [begin, end] = offsets_;
    entry_.offset = begin;
    entry_.nbytes = checked_nbytes(path_, entry_.name, entry_.dtype, entry_.shape);
    if (end < begin || end - begin != entry_.nbytes) {
      refuse("data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "] do not hold the " +
             std::to_string(entry_.nbytes) + " bytes of the tensor");
    }
    header_.entries.push_back(std::move(entry_));
  }

  [[noreturn]] void refuse(const std::string& reason) const { refuse_entry(path_, entry_.name, reason); }
  [[noreturn]] void unexpected(const char* what) const { refuse(std::string(what) + " is not allowed here"); }

  const std::string& path_;
  SafetensorsHeader& header_;
  Inside inside_ = Inside::Nothing;
  TensorEntry entry_{};       // its name: the last key of the header object
  std::string metadata_key_;  // the last key of the metadata object
  Field field_{};             // the last key of the tensor object
  unsigned fields_seen_ = 0;  // one bit per Field
  std::array<size_t, 2> offsets_{};
  unsigned offset_count_ = 0;
  bool has_metadata_ = false;
};

// No two entries have the same name.
void check_names(const std::string& path, const std::vector<TensorEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const TensorEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse_entry(path, *twice, "it occurs twice");
}

// The entries, ordered by offset, tile [0, data_size).
void check_layout(const std::string& path, const std::vector<TensorEntry>& entries, size_t data_size) {
  size_t end = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.offset != end) {
      refuse_entry(path, entry.name,
                   "its data begins at " + std::to_string(entry.offset) + ", but what is before it ends at " +
                       std::to_string(end));
    }
    if (entry.nbytes > data_size - end) {
      refuse_entry(path, entry.name,
                   "its data ends at " + std::to_string(end + entry.nbytes) + ", but there are only " +
                       std::to_string(data_size) + " bytes");
    }
    end += entry.nbytes;
  }
  if (end != data_size) {
    throw FileError(path + ": the last " + std::to_string(data_size - end) + " bytes belong to no tensor");
  }
}

std::string json_string(const std::string& path, std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw FileError(path + ": cannot write the name or metadata " + printable(text) + ": it is not UTF-8");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text, size_t data_size) {
  if (!text.starts_with('{')) throw FileError(path + ": the header does not begin with {");
  if (text.find('\0') != std::string_view::npos) throw FileError(path + ": the header has a NUL byte");
  SafetensorsHeader header;
  HeaderParser parser(path, header);
  nlohmann::json::sax_parse(text, &parser);
  // Offsets in the text may be in any order; an empty tensor may share its offset with others.
  std::sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.offset, a.nbytes, a.name) < std::tie(b.offset, b.nbytes, b.name);
  });
  check_names(path, header.entries);
  check_layout(path, header.entries, data_size);
  return header;
}

std::string format_safetensors_header(const std::string& path, const SafetensorsHeader& header) {
  std::string text = "{";
  const auto add_key = [&](std::string_view key) {
    if (text.back() != '{') text += ',';
    text += json_string(path, key) + ':';
  };
  if (!header.metadata.empty()) {
    add_key(kMetadataKey);
    text += '{';
    for (const auto& [key, value] : header.metadata) {
      add_key(key);
      text += json_string(path, value);
    }
    text += '}';
  }
  size_t end = 0;
  for (const TensorEntry& entry : header.entries) {
    if (entry.dtype == ScalarType::Undefined) refuse_entry(path, entry.name, "it has no dtype");
    add_key(entry.name);
    end = entry.offset + entry.nbytes;
    text += "{\"dtype\":\"" + std::string(kTags[static_cast<size_t>(entry.dtype)]) +
            "\",\"shape\":" + fmt::format("[{}]", fmt::join(entry.shape, ",")) + ",\"data_offsets\":[" +
            std::to_string(entry.offset) + "," + std::to_string(end) + "]}";
  }
  text += '}';
  parse_safetensors_header(path, text, end);
  return text;
}

std::string printable(std::string_view name) {
  constexpr size_t longest = 80;
  std::string result = "'";
  for (const char c : name.substr(0, longest)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (name.size() > longest ? "...'" : "'");
}

size_t checked_nbytes(const std::string& path, std::string_view name, ScalarType dtype,
                      const std::vector<int64_t>& shape) {
  auto nbytes = static_cast<int64_t>(element_size(dtype));
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) refuse_entry(path, name, "a size is negative");
    if (size == 0) {
      empty = true;  // the other sizes are multiplied nevertheless: strides have to fit too
    } else if (__builtin_mul_overflow(nbytes, size, &nbytes)) {
      refuse_entry(path, name, "the product of the shape does not fit in int64");
    }
  }
  return empty ? 0 : static_cast<size_t>(nbytes);
}

}  // namespace retrograd
