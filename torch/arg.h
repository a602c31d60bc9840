// TORCH_ARG(type, name): one option of a class with chained setters, as in libtorch:
//
//   struct LinearOptions {
//     TORCH_ARG(bool, bias) = true;
//   };
//   LinearOptions().bias(false)        // sets, and returns the options
//   options.bias()                     // reads
//
// What follows it in the class is private, until the next option.
#pragma once

#include <utility>

#define TORCH_ARG(T, name)                  \
 public:                                    \
  auto name(T value)->decltype(*this) {     \
    this->name##_ = std::move(value);       \
    return *this;                           \
  }                                         \
  const T& name() const { return name##_; } \
  T& name() { return name##_; }             \
                                            \
 private:                                   \
  T name##_
