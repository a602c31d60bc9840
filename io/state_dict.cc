// See io/state_dict.h.
#include "io/state_dict.h"

#include <fmt/format.h>

#include "engine/emitter.h"
#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

void save(const StateDict& state, const std::string& path, const SafetensorsMetadata& metadata,
          SourceLocation where) {
  NoGradGuard no_grad;
  Tensors dense;  // keeps copies of strided tensors, and of those on other devices, until they are written
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined())
      fail(Category::bad_argument, "save", fmt::format("{} is undefined", printable(name)), where);
    dense.push_back(contiguous(Operand(tensor.cpu(where), where)));
    sources.push_back({name, tensor.dtype(), tensor.sizes(), dense.back().raw_data(where)});
  }
  write_safetensors(path, sources, metadata);
}

StateDict load(const std::string& path, SafetensorsMetadata* metadata) {
  SafetensorsReader file(path);
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

}  // namespace retrograd
