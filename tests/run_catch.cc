// Catch2 2.13 is a single header, and compiling its runner takes 20 s: it is compiled once, here.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/run_catch.h"

namespace retrograd {

int run_catch(int argc, char** argv) { return Catch::Session().run(argc, argv); }

}  // namespace retrograd
