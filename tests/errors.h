// The exception of a call, for tests of errors.
#pragma once

#include <catch2/catch.hpp>
#include <string>

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

/// Its category; `text` receives its text.
template <class F>
Category category_of(const F& f, std::string* text = nullptr) {
  const Error error = error_of(f);
  if (text) *text = error.what();
  return error.category();
}

}  // namespace retrograd
