// main() of every test program. Catch2 2.13 is one header, and compiling its main takes 20 s: here, once.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
