// The canonical form: each maximal run of events that may be reordered is sorted.
#include "tests/conformance/events.h"

#include <algorithm>
#include <tuple>

namespace retrograd::conformance {
namespace {

// Calls sort(begin, end) for each maximal run of events of which `same(first of the run, event)` holds.
template <class Events, class Same, class Sort>
void for_each_run(Events& events, Same same, Sort sort) {
  for (auto begin = events.begin(); begin != events.end();) {
    auto end = std::next(begin);
    while (end != events.end() && same(*begin, *end)) ++end;
    sort(begin, end);
    begin = end;
  }
}

}  // namespace

std::vector<std::string> EventLog::canonical() const {
  std::vector<Event> events = events_;
  for_each_run(
      events,
      [](const Event& a, const Event& b) {
        return a.kind == Kind::saved && b.kind == Kind::saved && a.key == b.key;
      },
      [](auto begin, auto end) {
        if (begin->kind == Kind::saved)
          std::sort(begin, end, [](const Event& a, const Event& b) { return a.text < b.text; });
      });
  for_each_run(
      events, [](const Event& a, const Event& b) { return a.is_leaf() && b.is_leaf(); },
      [](auto begin, auto end) {
        if (begin->is_leaf())
          std::stable_sort(begin, end, [](const Event& a, const Event& b) {
            return std::tie(a.kind, a.key) < std::tie(b.kind, b.key);
          });
      });
  std::vector<std::string> texts;
  for (Event& event : events) texts.push_back(std::move(event.text));
  return texts;
}

}  // namespace retrograd::conformance
