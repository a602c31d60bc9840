// See cuda/health.h.
#include "cuda/health.h"

#include <fmt/format.h>

namespace retrograd::inline v0::cuda {

// Errors after which the process must be terminated, according to the runtime's header, ECC and NVLink errors, a lost
// context, and unknown errors: ECCUncorrectable 214, NvlinkUncorrectable 220, Contained 226, IllegalAddress 700,
// LaunchTimeout 702, ContextIsDestroyed 709, Assert 710, HardwareStackError 714, IllegalInstruction 715,
// MisalignedAddress 716, InvalidAddressSpace 717, InvalidPc 718, LaunchFailure 719, TensorMemoryLeak 721,
// MpsClientTerminated 810, ExternalDevice 911, Unknown 999.
bool is_sticky(Status code) {
  switch (code) {
    case 214:
    case 220:
    case 226:
    case 700:
    case 702:
    case 709:
    case 710:
    case 721:
    case 810:
    case 911:
    case 999: return true;
    default: return code >= 714 && code <= 719;
  }
}

std::string Health::text(Status status, std::string_view what) const {
  return fmt::format("cuda:{}: {}: {} (CUDA error {})", device_, what, driver_.text(status), status);
}

void Health::check(Status status, std::string_view what) {
  if (status == kSuccess) [[likely]]
    return;
  if (!is_sticky(status)) {
    require();
    throw DeviceError(text(status, what), status, false);
  }
  note(status, what);
  require();
}

void Health::note(Status status, std::string_view what) noexcept {
  if (!is_sticky(status)) return;
  std::lock_guard lock(mutex_);
  if (first_ != kSuccess) return;
  first_ = status;
  try {
    first_text_ = text(status, what) +
                  ". The device is lost to this process, and what was computed on it. Hint: "
                  "RETROGRAD_CUDA_DEBUG=1 names the kernel";
  } catch (...) {  // no memory for the text: the code must suffice
  }
}

void Health::require() {
  std::lock_guard lock(mutex_);
  if (first_ != kSuccess) throw DeviceError(first_text_, first_, true);
}

bool Health::is_lost() const {
  std::lock_guard lock(mutex_);
  return first_ != kSuccess;
}

}  // namespace retrograd::cuda
