// Named tensors, saved to and loaded from safetensors files: the content of a checkpoint.
// Any tool that reads the format reads them; keys of modules are PyTorch's (nn/module.h). A file holds values, not the
// sharing of memory.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <span>
#include <string>

#include "engine/tensor.h"
#include "io/safetensors_file.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Tensors by name.
using StateDict = std::map<std::string, Tensor, std::less<>>;

/// Writes the tensors and the metadata to `path`, all or nothing: after an error the old file is still there. Any
/// dtype, device, shape and strides. Throws FileError; Error(bad_argument) for an undefined tensor.
void save(const StateDict& state, const std::string& path, const SafetensorsMetadata& metadata = {},
          SourceLocation where = SourceLocation::current());

/// Writes the same bytes to a stream, or to a function. FileError when the stream fails.
void save(const StateDict& state, std::ostream& out, const SafetensorsMetadata& metadata = {},
          SourceLocation where = SourceLocation::current());
void save(const StateDict& state, const ByteSink& sink, const SafetensorsMetadata& metadata = {},
          SourceLocation where = SourceLocation::current());

/// Reads all tensors of a file, each into memory of its own on the CPU, and its metadata if requested. Throws
/// FileError.
StateDict load(const std::string& path, SafetensorsMetadata* metadata = nullptr);
/// The same from what is left in a stream, or from bytes in memory.
StateDict load(std::istream& in, SafetensorsMetadata* metadata = nullptr);
StateDict load(std::span<const std::byte> file, SafetensorsMetadata* metadata = nullptr);

}  // namespace retrograd
#pragma GCC visibility pop
