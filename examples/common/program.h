// The common part of the examples' main(): flags, signals, and errors as one line on stderr.
//
// An interrupted training unwinds like one that fails, so files of --saved offload-file are removed; it checks for a
// signal at every step, never inside one.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "examples/common/options.h"

namespace examples {

/// SIGINT, SIGTERM or SIGHUP was received: the program unwinds, so that temporary files are removed. A second signal
/// ends it immediately.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};
/// Throws Interrupted if such a signal has come. Called at every step.
void check_interrupted();

/// Parses the flags into `options`, then runs `body`. Exit code: 0; 2 with one line on stderr for errors of flags,
/// files or the machine; 3 for a bug of the library; 130 when interrupted. `more_flags` declares the flags of this
/// example only.
int run_program(int argc, char** argv, const std::string& description, Options& options,
                const std::function<void()>& body, const std::function<void(CLI::App&)>& more_flags = {});

}  // namespace examples
