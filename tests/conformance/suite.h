// A suite in memory: the manifest and the tensors that it names.
//
// Tensors are kept as bytes; every request makes a new tensor, so that programs may write into it.
#pragma once

#include <string>

#include "engine/tensor.h"
#include "io/safetensors_file.h"
#include "tests/conformance/json.h"

namespace retrograd::conformance {

struct Tolerance {
  double rtol = 0, atol = 0;
};

class Suite {
 public:
  /// Reads the manifest and the tensor file next to it. Its tensors will be on `device`. Throws BadManifest or
  /// FileError.
  explicit Suite(const std::string& path, Device device = kCPU);

  const std::string& name() const { return name_; }
  const Json& cases() const { return manifest_["cases"]; }

  /// A fresh contiguous tensor with the values of `key`. Throws BadManifest for a key that is not a string or
  /// not in the file.
  Tensor tensor(const Json& key) const;
  /// A fresh leaf as an entry of `inputs` describes it; it requires a gradient only where `differentiable`.
  Tensor leaf(const Json& input, bool differentiable) const;
  /// How near a tensor of this dtype must be; zero for dtypes without a tolerance.
  Tolerance tolerance(const Json& test_case, ScalarType dtype) const;

 private:
  const TensorEntry& entry(const Json& key) const;

  Json manifest_;
  std::string name_;
  Device device_;
  SafetensorsFile tensors_;
};

}  // namespace retrograd::conformance
