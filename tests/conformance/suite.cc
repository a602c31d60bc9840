// Reading a suite; making tensors from its bytes.
#include "tests/conformance/suite.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "ops/creation.h"
#include "tests/conformance/schema.h"

namespace retrograd::conformance {
namespace {

constexpr int64_t kMostLayoutElements = int64_t{1} << 28;

Json read_manifest(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw BadManifest(path + ": cannot be read");
  Json manifest;
  try {
    manifest = Json::parse(file);
  } catch (const Json::exception& e) {
    throw BadManifest(path + ": " + e.what());
  }
  check_manifest(manifest);
  if (manifest["format"] != "retrograd-conformance/1")
    throw BadManifest(path + ": not a retrograd-conformance/1 suite");
  return manifest;
}

std::string beside(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

// Throws BadManifest unless each element of the entry has a place in the memory of the layout.
void check_layout(const TensorEntry& entry, const Json& layout) {
  const IntArray strides = layout["strides"];
  const int64_t storage = layout["storage"];
  const auto refuse = [&](const char* why) { throw BadManifest("layout " + layout.dump() + " " + why); };
  if (strides.size() != entry.shape.size()) refuse("has another rank than its tensor");
  if (storage < 0 || storage > kMostLayoutElements) refuse("has no such storage");
  int64_t last = layout["offset"];
  if (last < 0 || last > storage) refuse("begins outside of its storage");
  for (size_t d = 0; d < strides.size(); ++d) {
    if (entry.shape[d] == 0) return;
    int64_t reach;
    if (strides[d] < 0 || __builtin_mul_overflow(entry.shape[d] - 1, strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      refuse("has strides without a place");
  }
  if (last >= storage) refuse("ends outside of its storage");
}

// A leaf with strides and an offset, with values from `bytes`.
Tensor strided_leaf(const TensorEntry& entry, const std::byte* bytes, const Json& layout) {
  check_layout(entry, layout);
  const IntArray strides = layout["strides"];
  const Tensor memory = zeros(IntArray{layout["storage"].get<int64_t>()}, entry.dtype);
  const auto impl = TensorImpl::make();
  impl->set_type(entry.dtype, kCPU, entry.shape);
  impl->set_storage(memory.impl().storage());
  impl->set_storage_offset(layout["offset"].get<int64_t>());
  std::copy(strides.begin(), strides.end(), impl->mutable_strides());

  const int rank = static_cast<int>(entry.shape.size());
  const size_t width = element_size(entry.dtype);
  IntArray index(rank, 0);
  for (size_t at = 0; at < entry.nbytes; at += width) {
    int64_t place = 0;
    for (int d = 0; d < rank; ++d) place += index[d] * strides[d];
    std::memcpy(static_cast<std::byte*>(impl->data()) + place * static_cast<int64_t>(width), bytes + at,
                width);
    for (int d = rank - 1; d >= 0 && ++index[d] == entry.shape[d]; --d) index[d] = 0;
  }
  return Tensor(impl);
}

// `x` on a device, in memory of the same layout.
Tensor with_layout_on(const Tensor& x, Device device) {
  if (device == kCPU) return x;
  const Storage& memory = *x.impl().storage();
  const Tensor bytes = from_blob(memory.data(), {memory.nbytes()}, {kUInt8}).to(device);
  const auto impl = TensorImpl::make();
  impl->alias(x.impl());
  impl->set_dtype(x.dtype(), device);
  impl->set_storage(bytes.impl().storage());
  return Tensor(impl);
}

}  // namespace

Suite::Suite(const std::string& path, Device device)
    : manifest_(read_manifest(path)),
      name_(manifest_["suite"]),
      device_(device),
      tensors_(beside(path, manifest_["tensors"])) {}

const TensorEntry& Suite::entry(const Json& key) const {
  const TensorEntry* entry = key.is_string() ? tensors_.find(key.get_ref<const std::string&>()) : nullptr;
  if (!entry) throw BadManifest("missing key " + key.dump());
  return *entry;
}

Tensor Suite::tensor(const Json& key) const {
  const TensorEntry& from = entry(key);
  const Tensor made = empty(from.shape, from.dtype);
  if (from.nbytes) std::memcpy(made.raw_data(), tensors_.bytes(from).data(), from.nbytes);
  return made.to(device_);
}

Tensor Suite::leaf(const Json& input, bool differentiable) const {
  const Json* layout = find(input, "layout");
  const TensorEntry& from = entry(input["tensor"]);
  const Tensor made = layout
                          ? with_layout_on(strided_leaf(from, tensors_.bytes(from).data(), *layout), device_)
                          : tensor(input["tensor"]);
  if (differentiable && optional_bool(input, "requires_grad").value_or(false)) made.requires_grad_();
  return made;
}

Tolerance Suite::tolerance(const Json& test_case, ScalarType dtype) const {
  if (!is_floating(dtype)) return {};
  if (const Json* own = find(test_case, "tolerance")) return {(*own)["rtol"], (*own)["atol"]};
  const Json* usual = find(manifest_["tolerance"], std::string(retrograd::name(dtype)).c_str());
  return usual ? Tolerance{(*usual)[0], (*usual)[1]} : Tolerance{};
}

}  // namespace retrograd::conformance
