// Given: numbers that a kernel is given with its call, and their source.
//
// Examples are learning rates, step counts, and positions of random draws. A single launch gets them by value. A graph
// is started many times with different numbers: its launches find them in device memory, which is written before each
// start (HeldNumbers, cuda/graph.h).
#pragma once

namespace retrograd::inline v0::cuda {

/// N: plain data, of at most HeldNumbers::kMost bytes, all of which are initialised.
template <class N>
struct Given {
  N value{};
  const N* held = nullptr;  // device memory; null: `value` is used

  constexpr N get() const { return held ? *held : value; }
};

}  // namespace retrograd::cuda
