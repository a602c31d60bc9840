// See tracer/observe/log.h. State holds the rarely changing data, under a mutex; backwards read only `switched_on`.
#include "tracer/observe/log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "engine/allocator.h"
#include "engine/never_destroyed.h"
#include "io/atomic_file.h"
#include "tracer/observe/page.h"

namespace retrograd::inline v0::logging {
namespace {

using detail::bit;

constexpr std::string_view kNames[] = {"trace", "recompiles", "exec", "memory", "gradients"};
static_assert(std::size(kNames) == static_cast<size_t>(Topic::gradients) + 1);
constexpr uint32_t kAllTopics = (1u << std::size(kNames)) - 1;

struct State {
  std::once_flag environment;
  std::mutex mutex;  // guards the members below
  std::shared_ptr<const Sink> sink;
  std::string folder;
  int graphs = 0;  // written to the folder

  void unload() noexcept {
    std::lock_guard lock(mutex);
    sink.reset();
    std::string().swap(folder);
  }
};

State& state() { return retrograd::detail::never_destroyed<State>(); }

// Calls f for each of the comma-separated names, without surrounding blanks.
template <class F>
void for_each_name(std::string_view names, F f) {
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) f(name);
  }
}

std::optional<uint32_t> bits_of(std::string_view name) {
  if (name == "all") return kAllTopics;
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return 1u << i;
  return {};
}

std::string known_names() { return fmt::format("{}, all", fmt::join(kNames, ", ")); }

void switch_bits(uint32_t mask, uint32_t on) {
  detail::switched_on.fetch_or(mask & on, std::memory_order_relaxed);
  detail::switched_on.fetch_and(~(mask & ~on), std::memory_order_relaxed);
}

// One call of fwrite, so that lines of several threads do not mix.
void write_to_stderr(std::string_view head, std::string_view message) {
  std::string lines;
  while (!message.empty()) {
    const size_t end = std::min(message.find('\n'), message.size());
    lines += fmt::format("[retrograd{}] {}\n", head, message.substr(0, end));
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void dump(const ir::Graph& graph, const MemoryReport* memory) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.folder.empty()) return;  // another thread has meanwhile failed to write there
  try {
    std::error_code error;
    std::filesystem::create_directories(s.folder, error);
    if (error) throw FileError(s.folder + ": cannot make this folder: " + error.message());
    const std::string path = fmt::format("{}/graph_{:03}", s.folder, s.graphs + 1);
    write_file(path + ".txt", graph.print());
    write_file(path + ".dot", graph.dot());
    write_file(path + ".html", html_page(graph, nullptr, memory));
    ++s.graphs;
  } catch (Exception& e) {
    e.add_context(fmt::format(
        "while a captured graph was written to the folder {} (RETROGRAD_DUMP); no more will be", s.folder));
    s.folder.clear();
    switch_bits(detail::kDump, 0);
    throw;
  }
}

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

void write(Topic topic, std::string_view message) {
  std::shared_ptr<const Sink> sink;
  {
    std::lock_guard lock(state().mutex);
    sink = state().sink;
  }
  if (sink)
    (*sink)(topic, message);
  else
    write_to_stderr(fmt::format(":{}", to_string(topic)), message);
}

std::string_view to_string(Topic topic) { return kNames[static_cast<size_t>(topic)]; }

uint32_t detail::read_environment() {
  State& s = state();
  std::call_once(s.environment, [&s] {
    uint32_t on = 0;
    if (const char* names = secure_getenv("RETROGRAD_LOGS"))
      for_each_name(names, [&](std::string_view name) {
        if (const auto bits = bits_of(name))
          on |= *bits;
        else
          write_to_stderr(
              "", fmt::format("RETROGRAD_LOGS: there is no topic '{}'. Known are: {}", name, known_names()));
      });
    if (const char* folder = secure_getenv("RETROGRAD_DUMP"); folder && *folder) {
      std::lock_guard lock(s.mutex);
      s.folder = folder;
      on |= kDump;
    }
    switched_on.store(on, std::memory_order_relaxed);
  });
  return switched_on.load(std::memory_order_relaxed);
}

void set_topics(std::string_view topics) {
  uint32_t on = 0;
  for_each_name(topics, [&](std::string_view name) {
    const auto bits = bits_of(name);
    if (!bits)
      fail(Category::bad_argument, "set_topics",
           fmt::format("there is no topic '{}'. Known are: {}", name, known_names()));
    on |= *bits;
  });
  detail::read_environment();
  switch_bits(kAllTopics, on);
}

void set_sink(Sink sink) {
  std::shared_ptr<const Sink> shared = sink ? std::make_shared<const Sink>(std::move(sink)) : nullptr;
  std::lock_guard lock(state().mutex);
  state().sink.swap(shared);
}

void set_dump_folder(std::string_view folder) {
  detail::read_environment();
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.folder = folder;
  s.graphs = 0;
  switch_bits(detail::kDump, folder.empty() ? 0 : detail::kDump);
}

void captured(const ir::Graph& graph, std::string_view reason, const MemoryReport* memory) {
  const uint32_t on = detail::wanted(bit(Topic::trace) | bit(Topic::recompiles) | detail::kDump);
  if (on & bit(Topic::recompiles))
    write(Topic::recompiles, fmt::format("captured {} nodes: {}", graph.nodes().size(), reason));
  if (on & bit(Topic::trace)) write(Topic::trace, graph.print());
  if (on & detail::kDump) dump(graph, memory);
}

// Saves the peak of the process while the peak of this backward is measured; end() restores it.
void RunLog::begin() {
  if (on_ & bit(Topic::memory)) {
    live_before_ = memory::stats().live_bytes;
    outer_peak_ = memory::reset_peak();
  }
  began_ = now();
}

void RunLog::end() {
  if (on_ & bit(Topic::memory)) memory::reset_peak(std::max(outer_peak_, memory::stats().peak_bytes));
}

void RunLog::report(const ir::Graph& graph, bool was_captured) {
  const int64_t took = now() - began_;
  const memory::Stats memory = memory::stats();
  if (on_ & bit(Topic::exec))
    write(Topic::exec, fmt::format("{}, {} nodes, {:.1f} us", was_captured ? "captured" : "structure hit",
                                   graph.nodes().size(), static_cast<double>(took) * 1e-3));
  if (on_ & bit(Topic::memory))
    write(Topic::memory, fmt::format("live {} -> {} bytes, peak {} bytes", live_before_, memory.live_bytes,
                                     memory.peak_bytes));
}

}  // namespace retrograd::logging
