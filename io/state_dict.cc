// See io/state_dict.h.
#include "io/state_dict.h"

#include <istream>
#include <iterator>
#include <ostream>

#include <fmt/format.h>

#include "engine/emitter.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

namespace {

// Calls write() with the tensors as a file has them: on the CPU, without gaps.
void with_sources(const StateDict& state, SourceLocation where,
                  const std::function<void(std::span<const TensorSource>)>& write) {
  NoGradGuard no_grad;
  Tensors dense;  // keeps copies of strided tensors, and of those on other devices, until they are written
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined())
      fail(Category::bad_argument, "save", fmt::format("{} is undefined", printable(name)), where);
    dense.push_back(contiguous(Operand(tensor.cpu(where), where)));
    sources.push_back({name, tensor.dtype(), tensor.sizes(), dense.back().raw_data(where)});
  }
  write(sources);
}

StateDict read(SafetensorsReader& file, const std::string& path, SafetensorsMetadata* metadata) {
  StateDict state;
  for (const TensorEntry& entry : file.entries()) {
    if (entry.shape.size() > static_cast<size_t>(kMaxRank))
      throw FileError(fmt::format("{}: {} has {} dims, at most {} are possible", path, printable(entry.name),
                                  entry.shape.size(), kMaxRank));
    const Tensor tensor = empty(entry.shape, {entry.dtype});
    if (entry.nbytes > 0) file.read(entry, tensor.raw_data());
    state.emplace(entry.name, tensor);
  }
  if (metadata) *metadata = file.metadata();
  return state;
}

}  // namespace

void save(const StateDict& state, const std::string& path, const SafetensorsMetadata& metadata,
          SourceLocation where) {
  with_sources(state, where, [&](auto sources) { write_safetensors(path, sources, metadata); });
}

void save(const StateDict& state, const ByteSink& sink, const SafetensorsMetadata& metadata,
          SourceLocation where) {
  with_sources(state, where, [&](auto sources) { write_safetensors(sink, "the data", sources, metadata); });
}

void save(const StateDict& state, std::ostream& out, const SafetensorsMetadata& metadata,
          SourceLocation where) {
  const ByteSink sink = [&](const void* data, size_t size) {
    if (!out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size)))
      throw FileError("the stream: cannot write");
  };
  save(state, sink, metadata, where);
}

StateDict load(const std::string& path, SafetensorsMetadata* metadata) {
  SafetensorsReader file(path);
  return read(file, path, metadata);
}

StateDict load(std::span<const std::byte> bytes, SafetensorsMetadata* metadata) {
  SafetensorsReader file(bytes, "the data");
  return read(file, "the data", metadata);
}

StateDict load(std::istream& in, SafetensorsMetadata* metadata) {
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  return load(std::as_bytes(std::span(bytes)), metadata);
}

}  // namespace retrograd
