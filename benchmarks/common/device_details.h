// What figures on a CUDA device tell about it. A program without the CUDA component has no device to ask for.
#pragma once

#include <cstdint>
#include <string>

namespace bench::device_details {

/// Throws rg::Error for a missing device, with the reason.
std::string name(int index);
void finish_compiling();
/// Convolutions that the vendor's library has computed so far, and matrices that it has factored.
int64_t library_convolutions(int index);
int64_t library_factorisations(int index);

}  // namespace bench::device_details
