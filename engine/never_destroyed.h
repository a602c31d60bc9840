// never_destroyed<T>(): the one T of this library that is made when it is first asked for and never destroyed, so that objects of static lifetime
// and threads that run while the process ends may still use it. It lies in static memory, which goes with the library when that is unloaded.
#pragma once

#include <cstddef>
#include <new>

namespace retrograd::detail {

template <class T>
T& never_destroyed() {
  alignas(T) static std::byte place[sizeof(T)];
  static T& object = *new (place) T;
  return object;
}

}  // namespace retrograd::detail
