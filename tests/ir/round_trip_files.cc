// round_trip_files FILE...: fails unless each file has the text of a graph that parses and prints as the same text.
// Exit code: 0, 1 if a text does not, 2 if a file cannot be read or none is named.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/ir/round_trip.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "round_trip_files: no file is named\n");
    return 2;
  }
  int status = 0;
  for (int i = 1; i < argc; ++i) {
    std::stringstream text;
    if (!(text << std::ifstream(argv[i]).rdbuf())) {
      std::fprintf(stderr, "%s: it cannot be read\n", argv[i]);
      return 2;
    }
    const std::string fault = ir_test::fault_of_text(text.str());
    if (fault.empty()) continue;
    std::fprintf(stderr, "%s: %s\n", argv[i], fault.c_str());
    status = 1;
  }
  return status;
}
