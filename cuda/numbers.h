// Converts the attributes of a call to the numbers that its kernel is given (cuda/kernels/given.h): for steps of
// optimizers and random draws, whose numbers change in each run. They must all be taken from here: a graph of such
// launches is not recorded again when they change.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda/gpu.h"
#include "cuda/kernels/given.h"
#include "engine/op.h"

namespace retrograd::inline v0::cuda {

/// `make` computes numbers from attributes; it has no captures. For a launch on Gpu::current(): if it is recorded, the
/// attributes of the call must stay valid as long as the graph. OutOfMemory.
template <class Attrs, class Make>
auto given_numbers(const Call& call, Make make) {
  using N = decltype(make(call.attrs_as<Attrs>()));
  static_assert(std::is_trivially_copyable_v<N> && sizeof(N) <= HeldNumbers::kMost);
  Given<N> numbers{make(call.attrs_as<Attrs>())};
  const HeldNumbers::Write write = [](const void* attrs, void* to) {
    const N now = Make{}(*static_cast<const Attrs*>(attrs));
    std::memcpy(to, &now, sizeof(now));
  };
  if (Recording* recording = Recording::of(Gpu::current()))
    numbers.held = static_cast<const N*>(recording->numbers(call.attrs, sizeof(N), write, call.op->name));
  return numbers;
}

}  // namespace retrograd::cuda
