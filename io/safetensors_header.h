// The header of a safetensors file: JSON text to checked entries, and back.
//
//   {"__metadata__": {"k": "v"}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// data_offsets are [begin, end) within the data that follows the header. Files come from anywhere, so parsing
// is strict: every rule holds or FileError is thrown.
//   - the text begins with {, is UTF-8 JSON, and has no NUL, neither as a byte nor as an escape in a key;
//   - no key occurs twice; a tensor has exactly dtype, shape and data_offsets; metadata values are strings;
//   - the dtype is one of ours; at most 64 dims; sizes and their product, zeros left aside, fit in int64;
//   - the tensors, ordered by offset, follow each other without hole or overlap and cover the data exactly.
// What format_safetensors_header() writes, parse_safetensors_header() reads as the same header.
//
// Limit: a parsed header takes about 10 bytes of memory per byte of text at worst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dtype.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// One tensor in a file.
struct TensorEntry {
  std::string name;
  ScalarType dtype;
  std::vector<int64_t> shape;
  size_t offset;  ///< first byte, counted from the start of the data; not necessarily aligned
  size_t nbytes;

  bool operator==(const TensorEntry&) const = default;
};

using SafetensorsMetadata = std::map<std::string, std::string, std::less<>>;

/// Entries in the order of their data.
struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  SafetensorsMetadata metadata;
};

/// Parses the header of a file with `data_size` bytes of data. FileError's text begins with `path`.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text, size_t data_size);

/// The JSON text of a header. Throws FileError if parsing it would: a name twice, a wrong shape or offset,
/// ...
std::string format_safetensors_header(const std::string& path, const SafetensorsHeader& header);

/// Bytes of a contiguous tensor. Throws FileError if a size is negative or the product does not fit in int64.
size_t checked_nbytes(const std::string& path, std::string_view name, ScalarType dtype,
                      const std::vector<int64_t>& shape);

/// A name for a message: quoted, short, no control characters.
std::string printable(std::string_view name);

}  // namespace retrograd
#pragma GCC visibility pop
