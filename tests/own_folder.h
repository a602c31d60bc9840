// A folder for the files of one test case.
#pragma once

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/test_folder.h"

namespace retrograd::testing {

/// A folder of its own, removed with all that is in it at the end.
struct OwnFolder {
  OwnFolder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~OwnFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;

  std::string path = in_test_folder("own-XXXXXX");
};

}  // namespace retrograd::testing
