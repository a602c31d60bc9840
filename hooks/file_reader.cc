// See hooks/file_reader.h.
#include "hooks/file_reader.h"

#include <unistd.h>

#include <system_error>

namespace retrograd::inline v0 {

FileReader::FileReader() : process_(::getpid()) {}

bool FileReader::is_own() const { return ::getpid() == process_; }

FileReader::~FileReader() {
  if (!is_own()) {  // the thread is the parent's
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  has_work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::future<void> FileReader::begin(std::function<void()> read) {
  if (!is_own()) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  std::future<void> done = requests_.emplace_back(std::move(read)).get_future();
  has_work_.notify_one();
  return done;
}

void FileReader::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return stops_ || !requests_.empty(); });
    if (requests_.empty()) return;
    std::packaged_task<void()> next = std::move(requests_.front());
    requests_.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

}  // namespace retrograd
