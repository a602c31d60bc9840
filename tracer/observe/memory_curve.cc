// MemoryReport::svg: see tracer/observe/memory_report.h.
//
// The plans are a staircase: with so much more time, so many bytes. Levels are dashed lines across it, with their names
// on the right: an eager run, order alone, the budget, the plan that was chosen, the lower bound. A budget above
// everything else is left out. The picture has its own colours, and depends on the report alone, without `plan_ms`.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tracer/observe/drawing.h"
#include "tracer/observe/memory_report.h"

namespace retrograd::inline v0 {
namespace {

class PlanCurve {
 public:
  explicit PlanCurve(const MemoryReport& report)
      : report_(report),
        high_(std::max({report.eager_bytes, report.ordered_bytes, report.planned_bytes, int64_t{1}})),
        most_share_(report.pareto.empty() ? 0 : report.pareto.back().recomputed_share) {
    most_share_ = std::max({most_share_, report.recomputed_share, 0.01});
  }

  std::string text() const {
    return drawing::svg(kAcross, kDown, "memory that a run adds, against estimated time",
                        axes() + levels() + staircase() + plans());
  }

 private:
  static constexpr double kAcross = 1000, kDown = 360, kBefore = 78, kBehind = 190, kAbove = 20, kBelow = 48;
  static constexpr std::string_view kLevel = "#8a96a8", kPlan = "#4a6285", kChosen = "#e0812b";

  double x(double share) const { return kBefore + (kAcross - kBefore - kBehind) * share / most_share_; }
  double y(double bytes) const {
    return kDown - kBelow - (kDown - kAbove - kBelow) * bytes / static_cast<double>(high_);
  }
  double y_of(int64_t bytes) const { return y(static_cast<double>(bytes)); }
  static std::string megabytes(int64_t bytes) {
    return fmt::format("{:.2f} MB", static_cast<double>(bytes) * 1e-6);
  }

  std::string axes() const {
    std::string text;
    const double most = static_cast<double>(high_) * 1e-6, up = drawing::step_of(most, 5);
    for (int i = 0; i * up <= most; ++i) {
      const double at = y(i * up * 1e6);
      text += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#e3e7ec\"/>\n", kBefore, at, kAcross - kBehind);
      text += drawing::label(kBefore - 6, at + 4, "end", fmt::format("{:g} MB", i * up));
    }
    const double percent = 100 * most_share_, across = drawing::step_of(percent, 10);
    for (int i = 0; i * across <= percent; ++i)
      text += drawing::label(x(i * across / 100), kDown - kBelow + 18, "middle",
                             fmt::format("{:g} %", i * across));
    return text + drawing::label((kBefore + kAcross - kBehind) / 2, kDown - kBelow + 36, "middle",
                                 "computed again, of the estimated time of all operations");
  }

  struct Level {
    std::string_view name;
    int64_t bytes;
    std::string_view colour;
    std::string note = {};  // shown at the pointer
  };
  // By falling bytes, so that names are in the order of their lines.
  std::vector<Level> levels_in_order() const {
    std::vector<Level> all{{"eager", report_.eager_bytes, kLevel},
                           {"order alone", report_.ordered_bytes, kLevel},
                           {"planned", report_.planned_bytes, kChosen},
                           {"lower bound", report_.lower_bound_bytes, kLevel}};
    if (report_.budget_bytes <= high_) all.push_back({"budget", report_.budget_bytes, kChosen});
    if (const MemoryCertificate& c = report_.certificate; c.widest_run >= 0) {
      const MemoryCertificate::Run& widest = c.runs[static_cast<size_t>(c.widest_run)];
      all[3].note = fmt::format("needed by {} at {}", widest.op, to_string(widest.where));
    }
    std::ranges::stable_sort(all, std::greater(), &Level::bytes);
    return all;
  }

  std::string levels() const {
    constexpr double kLine = 14;
    std::string text;
    double below = 0;  // the last name
    for (const Level& level : levels_in_order()) {
      const double at = y_of(level.bytes);
      text += fmt::format(
          "<path class=\"level\" d=\"M{} {:.1f}H{}\" stroke=\"{}\" stroke-dasharray=\"5 "
          "4\"><title>{}</title></path>\n",
          kBefore, at, kAcross - kBehind, level.colour,
          drawing::escaped(fmt::format("{}: {} bytes{}{}", level.name, level.bytes,
                                       level.note.empty() ? "" : ", ", level.note)));
      below = std::max(at + 4, below + kLine);
      text += drawing::label(kAcross - kBehind + 8, below, "start",
                             fmt::format("{} {}", level.name, megabytes(level.bytes)));
    }
    return text;
  }

  std::string staircase() const {
    std::string points;
    for (size_t i = 0; i < report_.pareto.size(); ++i) {
      const MemoryReport::Point& p = report_.pareto[i];
      const double right =
          i + 1 < report_.pareto.size() ? report_.pareto[i + 1].recomputed_share : most_share_;
      points += fmt::format("{}{:.1f},{:.1f} {:.1f},{:.1f}", i ? " " : "", x(p.recomputed_share),
                            y_of(p.bytes), x(right), y_of(p.bytes));
    }
    return fmt::format("<polyline class=\"plans\" points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points,
                       kPlan);
  }

  static std::string mark(double x, double y, std::string_view name, double radius, std::string_view colour,
                          std::string_view title) {
    return fmt::format(
        "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title></circle>\n",
        name, x, y, radius, colour, drawing::escaped(title));
  }
  std::string plans() const {
    std::string text = mark(x(0), y_of(report_.eager_bytes), "eager", 3.5, kLevel,
                            fmt::format("eager: {} bytes", report_.eager_bytes));
    for (const MemoryReport::Point& p : report_.pareto)
      text += mark(x(p.recomputed_share), y_of(p.bytes), "plan", 2.5, kPlan,
                   fmt::format("{} bytes, {:.1f} % more time", p.bytes, 100 * p.recomputed_share));
    return text + mark(x(report_.recomputed_share), y_of(report_.planned_bytes), "chosen", 5, kChosen,
                       fmt::format("this plan: {} bytes, {:.1f} % more time", report_.planned_bytes,
                                   100 * report_.recomputed_share));
  }

  const MemoryReport& report_;
  const int64_t high_;
  double most_share_;
};

}  // namespace

std::string MemoryReport::svg() const { return PlanCurve(*this).text(); }

}  // namespace retrograd
