// See hooks/file_bytes.h.
#include "hooks/file_bytes.h"

#include <unistd.h>

#include <cerrno>

namespace retrograd::inline v0 {

bool write_bytes(int fd, int64_t at, const void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count =
        ::pwrite(fd, static_cast<const char*>(data) + done, size - done, at + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

int64_t read_bytes(int fd, int64_t at, void* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(fd, static_cast<char*>(data) + done, size - done, at + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<int64_t>(done);
}

}  // namespace retrograd
