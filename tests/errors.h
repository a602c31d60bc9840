// The exception of a call, for tests of errors.
#pragma once

#include <catch2/catch.hpp>

#include "engine/error.h"

namespace retrograd {

/// The Error that f() throws; the test fails if it throws none.
template <class F>
Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  FAIL("nothing was thrown");
  return Error(Category::unsupported, "");
}

template <class F>
Category category_of(const F& f) {
  return error_of(f).category();
}

}  // namespace retrograd
