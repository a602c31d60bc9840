// FileReader: a thread that processes read requests one after the other: files that will be needed soon are read while
// other threads compute. The thread begins with the first request and ends with the object, after all requests are
// done. A forked child process does not have this thread: requests are refused there.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace retrograd::inline v0 {

class FileReader {
 public:
  FileReader();
  ~FileReader();
  FileReader(const FileReader&) = delete;

  /// Runs `read` on the thread. The future gets its exception. std::system_error when no thread can be made, and in a
  /// child of the process that made the object.
  std::future<void> begin(std::function<void()> read);

 private:
  void work();
  bool is_own() const;

  const int process_;
  std::mutex mutex_;
  std::condition_variable has_work_;
  std::deque<std::packaged_task<void()>> requests_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace retrograd
