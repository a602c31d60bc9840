// Logs of captures and of their runs, and files of captured graphs.
//
//   topic       what is written
//   trace       the text of each graph that is captured
//   recompiles  why each capture was needed, with the old and the new value
//   exec        a line per run: hit or captured, nodes, microseconds
//   memory      a line per run: live bytes before and after, peak bytes of it, of the whole process
//   gradients   of each step that is captured, the gradients that it is given and does not plan
//
// Topics come from the environment variable RETROGRAD_LOGS ("trace,exec", "all"), the folder for graphs from
// RETROGRAD_DUMP. Both are read once, when first needed; the functions below override them at any time, from any
// thread. One word holds the topics switched on, so that a run checks them with one relaxed load.
//
// A run is a backward of a CompiledBackward, or a call of a recorded function or step.
// A sink is called on the thread of the run, possibly by several threads at once; its exceptions reach the caller.
// Limits: eager backwards are not logged, and a run that throws writes no line of exec and memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ir/graph.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {
struct MemoryReport;
}
namespace retrograd::inline v0::logging {

enum class Topic : uint8_t { trace, recompiles, exec, memory, gradients };
std::string_view to_string(Topic topic);

/// Comma-separated names, "all", or "" for none. Error(bad_argument) on any other name; nothing is changed then.
void set_topics(std::string_view topics);

/// Receives the messages, without a final newline; a graph is one message of many lines. An empty sink is the
/// default: lines on stderr that begin with "[retrograd:TOPIC] ".
using Sink = std::function<void(Topic topic, std::string_view message)>;
void set_sink(Sink sink);

/// Each graph captured from now on is written to FOLDER/graph_001.txt, .dot and .html, graph_002 and so on, replacing
/// older files; each file appears atomically. The folder is created when the first graph is written. If this or a
/// file fails, the call that captured the graph throws FileError (a RuntimeError) once, before it runs, and nothing
/// is written any more. "": no files.
void set_dump_folder(std::string_view folder);

// For the tracer.

namespace detail {
inline constexpr uint32_t bit(Topic topic) { return 1u << static_cast<unsigned>(topic); }
inline constexpr uint32_t kDump = 1u << 30, kUnread = 1u << 31;  // kUnread: the environment has not been read
inline constinit std::atomic<uint32_t> switched_on{kUnread};
uint32_t read_environment();
/// The bits of `bits` that are switched on.
inline uint32_t wanted(uint32_t bits) {
  uint32_t on = switched_on.load(std::memory_order_relaxed);
  if (on & kUnread) [[unlikely]]
    on = read_environment();
  return on & bits;
}
}  // namespace detail

/// For what is not a captured graph or a run.
inline bool wants(Topic topic) { return detail::wanted(detail::bit(topic)); }
void write(Topic topic, std::string_view message);
/// Logs and writes a graph that was just captured. `memory`: of one with a memory budget, for its page.
void captured(const ir::Graph& graph, std::string_view reason, const MemoryReport* memory = nullptr);

/// Logs one run, from its call on.
class RunLog {
 public:
  RunLog() : on_(detail::wanted(detail::bit(Topic::exec) | detail::bit(Topic::memory))) {
    if (on_) [[unlikely]]
      begin();
  }
  ~RunLog() {
    if (on_) [[unlikely]]
      end();
  }
  RunLog(const RunLog&) = delete;
  /// The run has ended.
  void ran(const ir::Graph& graph, bool was_captured) {
    if (on_) [[unlikely]]
      report(graph, was_captured);
  }

 private:
  void begin();
  void end();
  void report(const ir::Graph& graph, bool was_captured);

  const uint32_t on_;
  int64_t began_ = 0, live_before_ = 0, outer_peak_ = 0;
};

}  // namespace retrograd::logging
#pragma GCC visibility pop
