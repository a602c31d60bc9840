// Profile::chrome_trace: see tracer/observe/profile.h.
//
// One process. Track 1 is the thread: runs, their steps and eager calls, properly nested. Track 2 has the marks of
// records whose call was not seen. A slice is an event of phase X, an arrow a pair of s and f with a unique id, which
// viewers bind to the slices that begin there. Times are microseconds with three decimals, counted from the first
// event.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/text.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {
namespace {

constexpr int kThread = 1, kMarks = 2;
constexpr int64_t kMarkLength = 1000;  // ns; shorter if there is no room

// Length of the UTF-8 character at the beginning of `text`; 0 if invalid (Unicode 15, table 3-7).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto continues = [&](size_t i) { return byte(i) >> 6 == 2; };
  const unsigned a = byte(0), b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return continues(1) ? 2 : 0;
  const bool in_range = a == 0xE0   ? b >= 0xA0
                        : a == 0xED ? b < 0xA0
                        : a == 0xF0 ? b >= 0x90
                        : a == 0xF4 ? b < 0x90
                                    : true;
  if (!continues(1) || !in_range || !continues(2)) return 0;
  if (a >= 0xE0 && a <= 0xEF) return 3;
  return a >= 0xF0 && a <= 0xF4 && continues(3) ? 4 : 0;
}

// A JSON string. Invalid UTF-8 becomes U+FFFD.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0)
      out += "\\ufffd";
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + '"';
}

class Writer {
 public:
  explicit Writer(const Profile& profile) : profile_(profile) {
    for (const Profile::Call& c : profile.calls()) {
      first_ = std::min(first_, c.begin);
      if (c.record != Profile::kNoRecord) seen_[c.record] = c.begin;
    }
    size_t most = 0;
    for (const Profile::Run& r : profile.runs()) {
      first_ = std::min(first_, r.begin);
      most = std::max(most, r.records.size());
    }
    first_ -= static_cast<int64_t>(most) * kMarkLength;  // room for the marks of the first run
    marks_end_ = first_;
  }

  std::string text() {
    track(kThread, "thread");
    track(kMarks, "forward records (in order, not timed)");
    for (const Profile::Call& c : profile_.calls()) {
      slice(kThread, c.op, "eager", c.begin, c.end, fmt::format("\"where\":{}", quoted(to_string(c.where))));
      counter(c.end, c.live_bytes);
    }
    for (const Profile::Run& r : profile_.runs()) run(r);
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  struct Mark {
    int track;
    int64_t begin;
  };

  std::string time(int64_t ns) const {
    return fmt::format("{}.{:03}", (ns - first_) / 1000, (ns - first_) % 1000);
  }
  void event(std::string_view phase, std::string_view rest) {
    events_ += fmt::format("{}{{\"ph\":\"{}\",\"pid\":1,{}}}", events_.empty() ? "" : ",\n", phase, rest);
  }
  void track(int id, std::string_view name) {
    event("M", fmt::format(R"("tid":{},"name":"thread_name","args":{{"name":{}}})", id, quoted(name)));
  }
  void slice(int track, std::string_view name, std::string_view category, int64_t begin, int64_t end,
             std::string_view args) {
    event("X",
          fmt::format(R"("tid":{},"name":{},"cat":"{}","ts":{},"dur":{}.{:03},"args":{{{}}})", track,
                      quoted(name), category, time(begin), (end - begin) / 1000, (end - begin) % 1000, args));
  }
  void counter(int64_t at, int64_t bytes) {
    event("C", fmt::format(R"("tid":{},"name":"live bytes","ts":{},"args":{{"bytes":{}}})", kThread, time(at),
                           bytes));
  }
  void arrow(const Mark& from, int64_t to) {
    ++arrows_;
    event("s", fmt::format(R"("tid":{},"name":"derivative","cat":"derivative","id":{},"ts":{})", from.track,
                           arrows_, time(from.begin)));
    event("f", fmt::format(R"("tid":{},"name":"derivative","cat":"derivative","id":{},"ts":{},"bp":"e")",
                           kThread, arrows_, time(to)));
  }

  void run(const Profile::Run& run) {
    if (run.end == 0) return;
    const ir::Graph& graph = *run.graph;
    SymbolTable::Scope scope(const_cast<SymbolTable*>(&graph.symbols));  // for the texts of sizes
    slice(kThread, graph.name, "backward", run.begin, run.end,
          fmt::format("\"nodes\":{}", graph.nodes().size()));
    counter(run.begin, run.live_bytes);
    const std::vector<Mark> forward = forward_of(run);
    for (size_t i = 0; i < run.steps.size(); ++i)
      if (run.steps[i].end) step(graph, run.steps[i], run.nodes_of(i).size() > 1, forward);
  }

  void step(const ir::Graph& graph, const Profile::Step& s, bool is_fused, const std::vector<Mark>& forward) {
    const ir::Node& node = graph.nodes()[s.node];
    const ir::Origin* origin = node.origin >= 0 ? &graph.origin(node.origin) : nullptr;
    std::string args = fmt::format(R"("node":{},"text":{},"live_bytes":{})", s.node,
                                   quoted(ir::to_string(graph, node)), s.live_bytes);
    if (origin)
      args += fmt::format(R"(,"record":{},"of":{},"part":{})", origin->ordinal, quoted(origin->op),
                          quoted(origin->part));
    if (node.where) args += fmt::format(R"(,"where":{})", quoted(to_string(node.where)));
    slice(kThread,
          s.frees    ? "free"
          : is_fused ? "fused"
                     : node.op->name,
          s.frees ? "free" : "node", s.begin, s.end, args);
    counter(s.end, s.live_bytes);
    if (origin && !s.frees && origin->ordinal < forward.size()) arrow(forward[origin->ordinal], s.begin);
  }

  // The start of the arrows of each record: its call, or a mark right before the run. Marks never overlap those of an
  // earlier run.
  std::vector<Mark> forward_of(const Profile::Run& run) {
    std::vector<Mark> marks(run.records.size());
    const auto unseen =
        std::ranges::count_if(run.records, [&](const auto& r) { return !seen_.contains(r.seq); });
    const int64_t length = std::min(kMarkLength, unseen ? (run.begin - marks_end_) / unseen : 0);
    int64_t at = run.begin - length * unseen;
    for (size_t i = run.records.size(); i-- > 0;) {  // the last in the walk was made first
      const Profile::ForwardRecord& r = run.records[i];
      if (const auto it = seen_.find(r.seq); it != seen_.end()) {
        marks[i] = {kThread, it->second};
        continue;
      }
      marks[i] = {kMarks, at};
      slice(kMarks, r.op, "forward", at, at + length,
            fmt::format(R"("record":{},"where":{})", i, quoted(to_string(r.where))));
      at += length;
    }
    marks_end_ = std::max(marks_end_, at);
    return marks;
  }

  const Profile& profile_;
  int64_t first_ = std::numeric_limits<int64_t>::max();
  int64_t marks_end_ = 0;
  std::unordered_map<uint64_t, int64_t> seen_;  // when the call of a record began
  std::string events_;
  int64_t arrows_ = 0;
};

}  // namespace

std::string Profile::chrome_trace() const { return Writer(*this).text(); }

}  // namespace retrograd
