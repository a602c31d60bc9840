// Bytes of tensors to and from a place in a file, whole: interrupted and partial calls go on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace retrograd::inline v0 {

/// False, with errno, if not all could be written.
bool write_bytes(int fd, int64_t at, const void* data, size_t size);
/// The number of bytes read: fewer than `size` at the end of the file; -1, with errno, for an error.
int64_t read_bytes(int fd, int64_t at, void* data, size_t size);

}  // namespace retrograd
