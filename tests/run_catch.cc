// Catch2 2.13 is one header, and compiling what runs its cases takes 20 s: here, once.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include "tests/run_catch.h"

namespace retrograd {

int run_catch(int argc, char** argv) { return Catch::Session().run(argc, argv); }

}  // namespace retrograd
