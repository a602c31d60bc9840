// The error that a call is expected to end with.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "retrograd/retrograd.h"

namespace retrograd::testing {

inline Category category_of(const std::function<void()>& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (text) *text = e.what();
    return e.category();
  }
  FAIL("nothing was thrown");
  return Category::unsupported;
}

}  // namespace retrograd::testing
