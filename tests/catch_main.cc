// main() of every test program.
#include "tests/run_catch.h"

int main(int argc, char** argv) { return retrograd::run_catch(argc, argv); }
