// Given: numbers that a kernel is given with its call, and what they are made of.
//
// They are learning rates, counts of steps, places of random draws. A launch has them by value. A graph is started again and again with other
// numbers: its launches find them in memory of the device, which is written before a start (HeldNumbers, cuda/graph.h).
#pragma once

namespace retrograd::cuda {

/// N: plain data, of at most HeldNumbers::kMost bytes, all of which have a value.
template <class N>
struct Given {
  N value{};
  const N* held = nullptr;  // memory of the device; null: `value` holds

  constexpr N get() const { return held ? *held : value; }
};

}  // namespace retrograd::cuda
