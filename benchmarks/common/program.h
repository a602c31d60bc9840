// The common part of the benchmarks' main(): flags, and errors as one line with exit code 2.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

#include "benchmarks/common/place.h"

namespace bench {

/// Parses the flags of `app`, including --device, then runs `body` there. Exit code: 0; CLI11's for wrong flags; 2 with
/// one line on stderr for a missing device and for other errors.
int run_program(CLI::App& app, int argc, char** argv, const std::function<void(const Place&)>& body);

}  // namespace bench
