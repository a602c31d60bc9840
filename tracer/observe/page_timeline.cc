// See tracer/observe/page_timeline.h.
#include "tracer/observe/page_timeline.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "tracer/observe/drawing.h"
#include "tracer/observe/held_memory.h"

namespace retrograd::inline v0::page_parts {
namespace {

std::string bytes_text(int64_t bytes) {
  static constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit ? fmt::format("{:.1f} {}", value, units[unit]) : fmt::format("{} B", bytes);
}

// Memory is taken when a step begins and given back when it ends.
class Timeline {
 public:
  explicit Timeline(const Profile::Run& run)
      : run_(run), held_(held_memory(run)), low_(run.live_bytes), high_(low_) {
    int64_t live = run.live_bytes;
    for (const Profile::Step& s : run.steps) {
      if (!s.end) continue;
      low_ = std::min(low_, s.live_bytes), high_ = std::max(high_, s.live_bytes);
      steps_.push_back({&s, s.live_bytes > live});
      live = s.live_bytes;
    }
  }

  std::string text() const {
    return fmt::format(
        "<figure><span>{}</span><svg viewBox=\"0 0 1000 110\" preserveAspectRatio=\"none\">\n{}"
        "<polyline class=\"curve\" points=\"{}\"/>\n{}</svg><span>{}</span><figcaption>{}live bytes and "
        "nodes "
        "over {}</figcaption></figure>",
        bytes_text(high_), areas(), stairs(std::size(kHeldFor)), nodes(), bytes_text(low_), legend(),
        time_text(static_cast<double>(run_.end - run_.begin)));
  }

 private:
  struct Seen {
    const Profile::Step* step;
    bool grows;
  };

  double x(int64_t t) const {
    return 1000.0 * static_cast<double>(t - run_.begin) /
           static_cast<double>(std::max<int64_t>(run_.end - run_.begin, 1));
  }
  double y(int64_t bytes) const {
    return 88 - 84 * static_cast<double>(std::max<int64_t>(bytes - low_, 0)) /
                    static_cast<double>(std::max<int64_t>(high_ - low_, 1));
  }

  // Through the bytes of the first `kinds` kinds.
  std::string stairs(size_t kinds) const {
    int64_t sum = run_.live_bytes;
    std::string points = fmt::format("0,{:.1f}", y(sum));
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto& [step, grows] = steps_[i];
      const int64_t before = sum;
      sum = std::reduce(held_[i].begin(), held_[i].begin() + static_cast<std::ptrdiff_t>(kinds));
      points += fmt::format(" {:.2f},{:.1f} {:.2f},{:.1f}", x(grows ? step->begin : step->end),
                            y(grows ? sum : before), x(step->end), y(sum));
    }
    return points;
  }

  // From the highest one down, each over the one before it.
  std::string areas() const {
    std::string text;
    for (size_t k = std::size(kHeldFor); k-- > 0;)
      text += fmt::format("<polygon class=\"area {}\" points=\"0,90 {} 1000,90\"/>\n", kHeldFor[k],
                          stairs(k + 1));
    return text;
  }

  static std::string legend() {
    constexpr std::string_view kWords[] = {"parameters, inputs, others from before", "saved for the backward",
                                           "recomputed", "gradients", "temporary"};
    std::string text;
    for (size_t k = 0; k < std::size(kHeldFor); ++k)
      text += fmt::format("<i class=\"area {}\"></i>{}", kHeldFor[k], kWords[k]);
    return text + "; ";
  }

  std::string nodes() const {
    std::string text;
    for (const Seen& seen : steps_) {
      const Profile::Step& s = *seen.step;
      const ir::Node& node = run_.graph->nodes()[s.node];
      text += fmt::format(
          "<rect data-n=\"{}\" class=\"{}\" x=\"{:.2f}\" y=\"94\" width=\"{:.2f}\" height=\"16\"><title>{} "
          "{}: {}, {} live</title></rect>\n",
          s.node, s.frees ? "op" : kind_of(node), x(s.begin), std::max(x(s.end) - x(s.begin), 0.3), s.node,
          s.frees ? "free" : drawing::escaped(node.op->name), time_text(static_cast<double>(s.end - s.begin)),
          bytes_text(s.live_bytes));
    }
    return text;
  }

  const Profile::Run& run_;
  const std::vector<HeldBytes> held_;
  std::vector<Seen> steps_;  // those that have ended
  int64_t low_, high_;       // live bytes
};

}  // namespace

std::string timeline(const Profile::Run& run) { return Timeline(run).text(); }

std::string_view kind_of(const ir::Node& node) {
  const auto is_one_of = [&](const auto&... op) { return ((node.op == &op) || ...); };
  if (node.op == &ops::unpack) return "unpack";
  if (is_one_of(ops::hook, ops::post_accumulate, ops::pack, ops::function, ops::function_backward))
    return "hook";
  if (is_one_of(ops::accumulate_grad, ops::retain_grad, ops::give_grad)) return "leaf";
  return "op";
}

std::string time_text(double ns) {
  return ns < 1e4   ? fmt::format("{:.2f} us", ns * 1e-3)
         : ns < 1e7 ? fmt::format("{:.1f} us", ns * 1e-3)
                    : fmt::format("{:.1f} ms", ns * 1e-6);
}

}  // namespace retrograd::page_parts
