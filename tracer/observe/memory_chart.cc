// Profile::memory_svg: see tracer/observe/profile.h.
//
// The curve is a staircase through the live bytes after each call and step: memory is taken when one begins and given
// back when it ends. Backwards that ran from plans have a darker background. The chart is one SVG with its own
// colours.
#include <algorithm>

#include <fmt/format.h>

#include "tracer/observe/drawing.h"
#include "tracer/observe/profile.h"

namespace retrograd::inline v0 {
namespace {

constexpr double kWidth = 1000, kHeight = 360, kLeft = 78, kRight = 16, kTop = 28, kBottom = 40;

struct Point {
  int64_t begin, end, bytes;
};

std::vector<Point> points_of(const Profile& profile) {
  std::vector<Point> points;
  for (const Profile::Call& c : profile.calls()) points.push_back({c.begin, c.end, c.live_bytes});
  for (const Profile::Run& run : profile.runs())
    for (const Profile::Step& s : run.steps)
      if (s.end) points.push_back({s.begin, s.end, s.live_bytes});
  std::ranges::stable_sort(points, {}, &Point::end);
  return points;
}

class Chart {
 public:
  explicit Chart(const Profile& profile) : profile_(profile), points_(points_of(profile)) {
    if (points_.empty()) return;
    begin_ = std::ranges::min(points_, {}, &Point::begin).begin;
    end_ = points_.back().end;
    peak_ = std::ranges::max(points_, {}, &Point::bytes);
  }

  std::string text() const {
    return drawing::svg(kWidth, kHeight, "live bytes of tensor data", grounds() + axes() + curve() + peak());
  }

 private:
  double x(int64_t t) const {
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(t - begin_) /
                       static_cast<double>(std::max<int64_t>(end_ - begin_, 1));
  }
  double y(double bytes) const {
    const double high = std::max(static_cast<double>(peak_.bytes), 1.0);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * bytes / high;
  }

  std::string grounds() const {
    std::string text;
    for (const Profile::Run& run : profile_.runs())
      if (run.end)
        text += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#e9eef5\"><title>backward, {} "
            "nodes</title></rect>\n",
            x(run.begin), kTop, x(run.end) - x(run.begin), kHeight - kTop - kBottom,
            run.graph->nodes().size());
    return text;
  }

  std::string axes() const {
    std::string text;
    const double megabytes = static_cast<double>(peak_.bytes) * 1e-6, up = drawing::step_of(megabytes, 5);
    for (int i = 0; i * up <= megabytes; ++i) {
      const double at = y(i * up * 1e6);
      text += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#d5dbe3\"/>\n", kLeft, at, kWidth - kRight);
      text += drawing::label(kLeft - 6, at + 4, "end", fmt::format("{:g} MB", i * up));
    }
    const double ms = static_cast<double>(end_ - begin_) * 1e-6, across = drawing::step_of(ms, 10);
    for (int i = 0; i * across <= ms; ++i)
      text += drawing::label(x(begin_ + static_cast<int64_t>(i * across * 1e6)), kHeight - kBottom + 18,
                             "middle", fmt::format("{:g} ms", i * across));
    return text;
  }

  std::string curve() const {
    if (points_.empty()) return "";
    std::string path;
    int64_t live = points_.front().bytes;
    const auto go = [&](int64_t t, int64_t bytes) {
      path += fmt::format(" {:.1f},{:.1f}", x(t), y(static_cast<double>(bytes)));
    };
    go(begin_, live);
    for (const Point& p : points_) {
      const int64_t at = p.bytes > live ? p.begin : p.end;
      go(at, live);
      go(at, p.bytes);
      live = p.bytes;
    }
    go(end_, live);
    return fmt::format(
        "<polygon points=\"{0:.1f},{2:.1f}{3} {1:.1f},{2:.1f}\" fill=\"#7f95b2\" fill-opacity=\"0.35\"/>\n"
        "<polyline points=\"{3}\" fill=\"none\" stroke=\"#4a6285\"/>\n",
        x(begin_), x(end_), y(0), path);
  }

  std::string peak() const {
    const double at = x(peak_.begin), megabytes = static_cast<double>(peak_.bytes) * 1e-6;
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#e0812b\"/>\n", at,
                       y(static_cast<double>(peak_.bytes))) +
           drawing::label(std::clamp(at, kLeft + 60, kWidth - kRight - 60), kTop - 10, "middle",
                          fmt::format("peak {:.2f} MB", megabytes));
  }

  const Profile& profile_;
  std::vector<Point> points_;
  int64_t begin_ = 0, end_ = 0;
  Point peak_ = {0, 0, 0};
};

}  // namespace

std::string Profile::memory_svg() const { return Chart(*this).text(); }

}  // namespace retrograd
