// What nearly every test includes, precompiled (tests/BUILD.bazel). A test includes what it uses all the same
// (tools/precompiled.bzl). It has no #pragma once: the compiler warns about that in the file that it is given.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <thread>

#include "ops/all_ops.h"
#include "retrograd/retrograd.h"
