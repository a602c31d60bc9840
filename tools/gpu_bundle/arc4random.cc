// arc4random() for the bundle. The static libstdc++ takes it from glibc (std::random_device), which has it from 2.36
// on, and it is the only function in the programs that needs such a new glibc. With this definition they start on
// machines with glibc 2.35, including Ubuntu 22.04.
//
// Random bits come from the kernel, like those of glibc. Without them the program ends: the function cannot report an
// error.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" uint32_t arc4random() {
  uint32_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits))) std::abort();
  return bits;
}
