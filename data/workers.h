// Workers: threads that turn requests into results, for a loader.
//
// Data: one list of tasks in the order in which they were submitted, each waiting, running or done, under one mutex.
// One thread, the owner, submits tasks and takes results; the list is as long as it lets it become. A task's memory is
// allocated where it is submitted, so a worker cannot fail but in user code, and what that throws is the result.
// A task that is running belongs to its worker, who alone touches request and result outside the mutex.
// The destructor lets tasks that are running end, drops the others, and joins the threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/error.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::detail {

template <class Request, class Result>
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { stop(); }

  /// Adds a thread that makes results by produce(Request).
  template <class F>
  void start(F produce) {
    threads_.emplace_back([this, produce = std::move(produce)]() mutable { work(produce); });
  }

  void submit(Request request) {
    Tasks one;
    one.emplace_back(std::move(request));
    {
      const std::lock_guard lock(mutex_);
      tasks_.splice(tasks_.end(), one);
    }
    submitted_.notify_one();
  }

  /// The number of tasks whose results were not taken.
  size_t pending() const {
    const std::lock_guard lock(mutex_);
    return tasks_.size();
  }

  /// What a task has given: a result, or what it threw.
  struct Outcome {
    std::optional<Result> result;
    std::exception_ptr error;
  };

  /// Waits for the oldest task, or, unless `in_order`, for any; there must be one. Throws RuntimeError when the time is
  /// over; then the task can still be taken.
  Outcome take(bool in_order, std::optional<std::chrono::milliseconds> timeout) {
    Tasks taken;
    std::unique_lock lock(mutex_);
    auto ready = tasks_.end();
    const auto is_ready = [&] {
      ready = in_order && tasks_.front().state != State::done ? tasks_.end() : first(State::done);
      return ready != tasks_.end();
    };
    if (!timeout)
      done_.wait(lock, is_ready);
    else if (!done_.wait_for(lock, *timeout, is_ready))
      throw RuntimeError("data loader: no batch within " + std::to_string(timeout->count()) +
                         " ms. Hint: the timeout is an option of the loader");
    taken.splice(taken.end(), tasks_, ready);
    return std::move(taken.front().outcome);
  }

  /// Drops all tasks; waits for those that are running.
  void drop() {
    Tasks dropped;
    std::unique_lock lock(mutex_);
    std::erase_if(tasks_, [](const Task& task) { return task.state == State::waiting; });
    done_.wait(lock, [&] { return first(State::running) == tasks_.end(); });
    dropped.swap(tasks_);
  }

  /// Ends the threads.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    submitted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  enum class State : uint8_t { waiting, running, done };
  struct Task {
    explicit Task(Request request) : request(std::move(request)) {}
    Request request;
    State state = State::waiting;
    Outcome outcome;
  };
  using Tasks = std::list<Task>;

  typename Tasks::iterator first(State state) {
    return std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& task) { return task.state == state; });
  }

  template <class F>
  void work(F& produce) {
    std::unique_lock lock(mutex_);
    while (true) {
      auto next = tasks_.end();
      submitted_.wait(lock, [&] { return is_stopping_ || (next = first(State::waiting)) != tasks_.end(); });
      if (is_stopping_) return;
      Task& task = *next;
      task.state = State::running;
      lock.unlock();
      try {
        task.outcome.result.emplace(produce(std::move(task.request)));
      } catch (...) {
        task.outcome.error = std::current_exception();
      }
      lock.lock();
      task.state = State::done;
      done_.notify_one();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable submitted_, done_;
  Tasks tasks_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace retrograd::inline v0::data::detail
#pragma GCC visibility pop
