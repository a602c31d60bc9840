// See examples/common/program.h.
#include "examples/common/program.h"

#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>

#include <CLI/CLI.hpp>

#include "retrograd/retrograd.h"

namespace examples {
namespace {

volatile sig_atomic_t interrupted = 0;

void catch_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = SA_RESETHAND;  // the second one has its usual effect
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe is an ordinary error
}

// One line: line breaks become "; ".
int report(const std::string& program, const char* what, int code) {
  std::string line;
  for (const char* c = what; *c; ++c)
    if (*c != '\n')
      line += *c;
    else if (c[1])
      line += ';';
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), line.c_str());
  return code;
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw retrograd::FileError(std::string("standard output: cannot write: ") + std::strerror(errno));
}

}  // namespace

void check_interrupted() {
  if (interrupted) throw Interrupted();
}

int run_program(int argc, char** argv, const std::string& description, Options& options,
                const std::function<void()>& body, const std::function<void(CLI::App&)>& more_flags) {
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  CLI::App app(description, program);
  add_flags(app, options);
  if (more_flags) more_flags(app);
  try {
    catch_signals();
    app.parse(argc, argv);
    apply(options);
    body();
    flush_output();
    return 0;
  } catch (const CLI::Success& e) {  // --help
    const int code = app.exit(e);
    std::cout.flush();
    return std::cout ? code : report(program, "standard output: cannot write", 2);
  } catch (const Interrupted& e) {
    return report(program, e.what(), 130);
  } catch (const retrograd::InternalError& e) {
    return report(program, e.what(), 3);
  } catch (const std::bad_alloc&) {
    return report(program, "out of memory", 2);
  } catch (const std::exception& e) {
    return report(program, e.what(), 2);
  }
}

}  // namespace examples
