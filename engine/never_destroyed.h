// never_destroyed<T>(): the only T of this library, made on first use and never destroyed, so that objects of static
// lifetime and threads that run while the process ends may still use it. It is in static memory, which is freed when
// the library is unloaded. A T that owns further memory has a function unload() noexcept, which frees the unused part;
// the T can be used afterwards.
#pragma once

#include <cstddef>
#include <new>

#include "engine/lifetime.h"

namespace retrograd::inline v0::detail {

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
