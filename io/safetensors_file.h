// Safetensors files, without tensors: names, dtypes, shapes and bytes.
//
// A file is an 8-byte little-endian header length (at most 100 MB), the JSON header (io/safetensors_header.h
// has its rules), and the data, which the header's offsets cover exactly. Reading checks everything before it
// takes memory for the data, never more than the file has; a BOOL byte other than 0 or 1 is refused too.
// Writing is atomic (io/atomic_file.h) and puts wider elements first, so that every tensor is aligned in the
// file.
//
// SafetensorsReader reads one tensor at a time to a given address; SafetensorsFile holds a whole file.
//
// Limits: no mmap, since a shrinking file would cause a signal. Little-endian machines only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors_header.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// An open file: its header has been checked, its data are on the disk.
class SafetensorsReader {
 public:
  /// Reads the header. Throws FileError if the file cannot be read or breaks a rule of the format; for a file of
  /// PyTorch's torch.save with a hint.
  explicit SafetensorsReader(const std::string& path);
  /// The same of bytes in memory, which outlive the reader. `name` stands for the path in errors.
  SafetensorsReader(std::span<const std::byte> file, const std::string& name);
  ~SafetensorsReader();
  SafetensorsReader(const SafetensorsReader&) = delete;

  /// In the order of their data.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const SafetensorsMetadata& metadata() const { return header_.metadata; }
  /// Bytes of all entries together.
  size_t data_size() const { return data_size_; }

  /// Reads the bytes of an entry of this file, row-major, to memory of sufficient size. FileError if they cannot be
  /// read, and for a BOOL byte that is neither 0 nor 1.
  void read(const TensorEntry& entry, void* to);

 private:
  friend class SafetensorsFile;
  class Input;
  class FileInput;
  class MemoryInput;

  explicit SafetensorsReader(std::unique_ptr<Input> input);

  std::unique_ptr<Input> input_;
  SafetensorsHeader header_;
  size_t data_begin_ = 0, data_size_ = 0;  // in the file
};

/// A file in memory.
class SafetensorsFile {
 public:
  /// Reads the file. Throws FileError if it cannot be read or breaks a rule of the format.
  explicit SafetensorsFile(const std::string& path);

  /// In the order of their data.
  const std::vector<TensorEntry>& entries() const { return header_.entries; }
  const SafetensorsMetadata& metadata() const { return header_.metadata; }

  /// The entry of this name, or null.
  const TensorEntry* find(std::string_view name) const;

  /// The bytes of an entry of this file: row-major, valid as long as the file. In a file of another writer they may be
  /// unaligned: copy, do not cast.
  std::span<const std::byte> bytes(const TensorEntry& entry) const {
    return {data_.get() + entry.offset, entry.nbytes};
  }

 private:
  SafetensorsHeader header_;
  std::vector<size_t> by_name_;  // indices into header_.entries
  std::unique_ptr<std::byte[]> data_;
};

/// One tensor to write; `data` is contiguous, row-major, and may be null if a size is 0.
struct TensorSource {
  std::string name;
  ScalarType dtype;
  std::vector<int64_t> shape;
  const void* data;
};

/// Writes the tensors to `path`, all or nothing: when FileError is thrown the old file is still there. (The
/// one exception: the new file is in place, but flushing its directory failed.) Equal arguments give equal
/// bytes.
void write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                       const SafetensorsMetadata& metadata = {});

/// Takes the next bytes of a file.
using ByteSink = std::function<void(const void* data, size_t size)>;

/// Gives the bytes of the same file to `sink`. `name` stands for the path in errors.
void write_safetensors(const ByteSink& sink, const std::string& name, std::span<const TensorSource> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace retrograd
#pragma GCC visibility pop
