// never_destroyed<T>(): the one T of this library that is made when it is first asked for and never destroyed, so that objects of static lifetime
// and threads that run while the process ends may still use it. It lies in static memory, which goes with the library when that is unloaded. A T
// that has memory beyond itself has a function unload() noexcept, which lets go of what nobody uses; the T can be used afterwards.
#pragma once

#include <cstddef>
#include <new>

#include "engine/lifetime.h"

namespace retrograd::detail {

template <class T>
T& never_destroyed() {
  alignas(T) static std::byte place[sizeof(T)];
  static T& object = *[] {
    if constexpr (requires(T & t) { t.unload(); }) {
      static constinit AtEnd at_end{[]() noexcept { never_destroyed<T>().unload(); }};
      at_unload(at_end);
    }
    return new (place) T;
  }();
  return object;
}

}  // namespace retrograd::detail
