// FileReader: a thread that reads what is asked for, one after the other: files that will be wanted soon,
// while others compute. The thread begins with the first request and ends with the object, when all requests
// are done. A child that is forked has no such thread: it is refused there.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace retrograd {

class FileReader {
 public:
  FileReader();
  ~FileReader();
  FileReader(const FileReader&) = delete;

  /// Runs `read` on the thread. What it throws is the future's. std::system_error when there can be no thread, and in a child of the process that
  /// made the object.
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
