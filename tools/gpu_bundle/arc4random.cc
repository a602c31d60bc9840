// arc4random() for the bundle. The static libstdc++ asks glibc for it (std::random_device), which has it from
// 2.36 on, and it is all that the programs would want of a glibc as new as that: with this they start on
// machines that have 2.35, Ubuntu 22.04 among them.
//
// Random bits come from the kernel, as glibc's own do. Without them the program ends: there is no way to say
// that there are none.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() {
  uint32_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits))) std::abort();
  return bits;
}
