// The frame of an example's main(): flags, signals, and errors as one line on stderr.
//
// An interrupted training unwinds like one that fails, so files of --saved offload-file are removed; it looks
// for a signal at every step, never inside one.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "examples/common/options.h"

namespace examples {

/// SIGINT, SIGTERM or SIGHUP came: the program unwinds, so that temporary files go. A second signal ends it at once.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};
/// Throws Interrupted if such a signal has come. Called at every step.
void check_interrupted();

/// Parses the flags into `options`, then runs `body`. The exit code: 0; 2 with one line on stderr for what is
/// wrong with flags, files or the machine; 3 for a bug of the library; 130 when interrupted. `more_flags` declares those of the example alone.
int run_program(int argc, char** argv, const std::string& description, Options& options,
                const std::function<void()>& body, const std::function<void(CLI::App&)>& more_flags = {});

}  // namespace examples
