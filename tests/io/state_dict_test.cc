// State dictionaries: what is saved loads as the same tensors; what cannot be saved or loaded is refused.
//
// Not tested here: the file format and failing writes (safetensors_file_test.cc), modules (tests/nn).
#include <catch2/catch.hpp>

#include <stdlib.h>

#include <filesystem>

#include "retrograd/retrograd.h"
#include "tests/own_folder.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

using Folder = rg::testing::OwnFolder;

}  // namespace

TEST_CASE("any dtype, shape and strides is saved and loaded") {
  const Folder folder;
  const std::string path = folder.path + "/a.safetensors";
  const Tensor matrix = rg::tensor({1.0, 2, 3, 4, 5, 6}, {2, 3});
  const rg::StateDict state{{"t", matrix.t()},
                            {"leaf", rg::tensor({0.5, 1}).requires_grad_()},
                            {"double", rg::tensor({1e-300}, {rg::kFloat64})},
                            {"half", rg::tensor({0.5}, {rg::kFloat16})},
                            {"fp8", rg::tensor({448, -1}, {rg::kFloat8_e4m3fn})},
                            {"int", rg::tensor({-7}, {rg::kInt64})},
                            {"bool", rg::tensor({1, 0}, {rg::kBool})},
                            {"scalar", rg::scalar_tensor(3)},
                            {"empty", rg::zeros({0, 4})}};
  rg::save(state, path, {{"note", "x"}});
  rg::SafetensorsMetadata metadata;
  const rg::StateDict loaded = rg::load(path, &metadata);
  CHECK(metadata.at("note") == "x");
  REQUIRE(loaded.size() == state.size());
  for (const auto& [name, tensor] : state) {
    INFO(name);
    const Tensor& other = loaded.at(name);
    CHECK(other.sizes() == tensor.sizes());
    CHECK(other.dtype() == tensor.dtype());
    CHECK(other.to_vector() == tensor.to_vector());
    CHECK_FALSE(other.requires_grad());
  }
}

TEST_CASE("what cannot be saved or loaded is refused") {
  const Folder folder;
  CHECK_THROWS_AS(rg::save({{"a", Tensor()}}, folder.path + "/a"), rg::Error);
  CHECK_THROWS_AS(rg::save({{"a", rg::ones({1})}}, folder.path + "/none/a"), rg::FileError);
  CHECK_THROWS_AS(rg::load(folder.path + "/missing"), rg::FileError);

  const float value = 1;
  const rg::TensorSource deep{"deep", rg::kFloat32, std::vector<int64_t>(9, 1), &value};
  rg::write_safetensors(folder.path + "/deep", {&deep, 1});
  CHECK_THROWS_AS(rg::load(folder.path + "/deep"), rg::FileError);
}
