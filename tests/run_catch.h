// Runs the test cases that are linked into a program: main() of every test (catch_main.cc), or a part of a larger
// program.
#pragma once

namespace retrograd {

/// With Catch2's flags. The exit code: 0 when all have passed.
int run_catch(int argc, char** argv);

}  // namespace retrograd
