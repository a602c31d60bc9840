// HookFailure: what hooks and functions of the fuzzer's own throw. It has to reach the caller of the backward as it is.
#pragma once

namespace fuzz {

struct HookFailure {};

}  // namespace fuzz
