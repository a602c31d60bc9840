// The device of --device cuda: the machine's first one, or, in the runner that is linked with device_on_host.cc,
// kernels that are compiled for the host and run in its memory, so that suites run on machines without a device.
#pragma once

namespace retrograd::conformance {

/// To be called before cuda:0 is used. `waits`: for each launch, so that the errors of indices are those of the
/// statement; then nothing is recorded as a graph.
void prepare_device(bool waits);

/// Whether it has had an error after which it cannot be used any more.
bool is_device_lost();

}  // namespace retrograd::conformance
