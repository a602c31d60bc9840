// HookFailure: thrown by hooks and functions of the fuzzer itself. It must reach the caller of the backward unchanged.
#pragma once

namespace fuzz {

struct HookFailure {};

}  // namespace fuzz
