// See benchmarks/common/program.h.
#include "benchmarks/common/program.h"

#include <cstdio>
#include <exception>
#include <string>

namespace bench {

int run_program(CLI::App& app, int argc, char** argv, const std::function<void(const Place&)>& body) {
  std::string device = "cpu";
  app.add_option("--device", device, "where to compute: cpu, cuda or, of several devices, cuda:N");
  try {
    app.parse(argc, argv);
    body(Place(device));
    return 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 2;
  }
}

}  // namespace bench
