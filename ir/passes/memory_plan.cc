// See ir/passes/memory_plan.h.
#include "ir/passes/memory_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

namespace retrograd::inline v0::ir {
namespace {

constexpr int kMostTries = 48;
constexpr int64_t kGoodEnough = 512;  // an arena larger than the bound by less than one part in so many
constexpr int64_t kMostVisits = 40;   // of an item, on average
constexpr int kMostHoles = 8;         // checked for one item

struct Item {
  int64_t size, alignment;
  int32_t first, last;
  int64_t offset = -1;
  int64_t top() const { return offset + size; }
};

int64_t aligned(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// The placed items, by time. Those that live at a moment are on the path to it in an interval tree; those that begin
// later are in a list per moment.
class Placed {
 public:
  Placed(const std::vector<Item>& items, int32_t moments)
      : items_(items),
        leaves_(std::bit_ceil(static_cast<size_t>(moments) + 1)),
        head_(leaves_ * 2, -1),
        begins_(leaves_, -1),
        next_begin_(items.size(), -1),
        some_begin_(leaves_ / 64 + 1) {}

  void add(int32_t item) {
    const Item& x = items_[static_cast<size_t>(item)];
    const auto first = static_cast<size_t>(x.first);
    next_begin_[static_cast<size_t>(item)] = begins_[first];
    begins_[first] = item;
    some_begin_[first / 64] |= uint64_t{1} << first % 64;
    size_t low = leaves_ + first, high = leaves_ + static_cast<size_t>(x.last) + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2) link(low++, item);
      if (high % 2) link(--high, item);
    }
  }

  /// Calls f for each placed item whose lifetime overlaps that of x.
  template <class F>
  void for_each_beside(const Item& x, F f) const {
    for (size_t node = leaves_ + static_cast<size_t>(x.first); node >= 1; node /= 2)
      for (int32_t at = head_[node]; at >= 0; at = links_[static_cast<size_t>(at)].next)
        f(items_[static_cast<size_t>(links_[static_cast<size_t>(at)].item)]);
    const auto last = static_cast<size_t>(x.last);
    for (size_t word = (static_cast<size_t>(x.first) + 1) / 64; word <= last / 64; ++word)
      for (uint64_t bits = some_begin_[word]; bits; bits &= bits - 1) {
        const size_t moment = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        if (moment <= static_cast<size_t>(x.first)) continue;
        if (moment > last) return;
        for (int32_t item = begins_[moment]; item >= 0; item = next_begin_[static_cast<size_t>(item)])
          f(items_[static_cast<size_t>(item)]);
      }
  }

 private:
  struct Link {
    int32_t item, next;
  };
  void link(size_t node, int32_t item) {
    links_.push_back({item, head_[node]});
    head_[node] = static_cast<int32_t>(links_.size()) - 1;
  }

  const std::vector<Item>& items_;
  size_t leaves_;
  std::vector<int32_t> head_, begins_, next_begin_;
  std::vector<uint64_t> some_begin_;
  std::vector<Link> links_;
};

class Packer {
 public:
  Packer(std::vector<Item> items, int32_t moments)
      : items_(std::move(items)),
        moments_(moments),
        most_visits_(kMostVisits * (static_cast<int64_t>(items_.size()) + 100)) {}

  int64_t lower_bound() const {
    std::vector<int64_t> change(static_cast<size_t>(moments_) + 2);
    for (const Item& x : items_) {
      change[static_cast<size_t>(x.first)] += x.size;
      change[static_cast<size_t>(x.last) + 1] -= x.size;
    }
    int64_t live = 0, most = 0;
    for (int64_t c : change) most = std::max(most, live += c);
    return most;
  }

  void pack(int64_t bound, int64_t most) {
    std::vector<int32_t> by_size(items_.size());
    std::iota(by_size.begin(), by_size.end(), 0);
    keep_better(pack_by_time(by_size, 0));
    const int64_t enough = std::min(bound + bound / kGoodEnough, most);
    if (bound > most || best_size_ <= enough) return;
    std::vector<int32_t> by_area = by_size;
    std::ranges::stable_sort(by_size, std::greater(), [&](int32_t i) { return item(i).size; });
    std::ranges::stable_sort(by_area, std::greater(),
                             [&](int32_t i) { return item(i).size * (item(i).last - item(i).first + 1); });
    for (int tries = 0; tries < kMostTries && visits_ < most_visits_ && best_size_ > enough; ++tries)
      improve(tries % 2 ? by_area : by_size);
  }

  // Packs in this order. Then the topmost item moves to its front.
  void improve(std::vector<int32_t>& order) {
    keep_better(pack_by_size(order));
    const auto top = std::ranges::max_element(order, {}, [&](int32_t i) { return item(i).top(); });
    std::rotate(order.begin(), top, top + 1);
  }

  const std::vector<int64_t>& offsets() const { return best_; }
  int64_t size() const { return best_size_; }

 private:
  Item& item(int32_t i) { return items_[static_cast<size_t>(i)]; }

  void keep_better(int64_t size) {
    if (best_size_ >= 0 && size >= best_size_) return;
    best_size_ = size;
    best_.clear();
    for (const Item& x : items_) best_.push_back(x.offset);
  }

  // Puts each item into the lowest gap between those with overlapping lifetimes.
  int64_t pack_by_size(std::span<const int32_t> order) {
    Placed placed(items_, moments_);
    std::vector<std::pair<int64_t, int64_t>> taken;
    int64_t size = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      if (visits_ > most_visits_) return pack_by_time(order.subspan(n), size);
      Item& x = item(order[n]);
      taken.clear();
      placed.for_each_beside(x, [&](const Item& other) { taken.push_back({other.offset, other.top()}); });
      visits_ += static_cast<int64_t>(taken.size());
      std::ranges::sort(taken);
      x.offset = 0;
      for (const auto& [begin, end] : taken) {
        if (begin - x.offset >= x.size) break;
        x.offset = std::max(x.offset, aligned(end, x.alignment));
      }
      placed.add(order[n]);
      size = std::max(size, x.top());
    }
    return size;
  }

  // Puts each item into the smallest hole that is free when it begins; holes are above `base`.
  int64_t pack_by_time(std::span<const int32_t> items, int64_t base) {
    std::vector<int32_t> begins(items.begin(), items.end()), ends = begins;
    std::ranges::stable_sort(begins, {}, [&](int32_t i) { return std::pair(item(i).first, -item(i).size); });
    std::ranges::stable_sort(ends, {}, [&](int32_t i) { return item(i).last; });
    Holes holes;
    int64_t size = base;
    auto ending = ends.begin();
    for (int32_t i : begins) {
      for (; ending != ends.end() && item(*ending).last < item(i).first; ++ending)
        holes.give(item(*ending).offset, item(*ending).size);
      item(i).offset = holes.take(item(i), size);
      size = std::max(size, item(i).top());
    }
    return size;
  }

  class Holes {
   public:
    /// The offset of an item: in a hole, or at `top`, including a hole directly below it.
    int64_t take(const Item& x, int64_t top) {
      auto fits = by_size_.lower_bound({x.size, 0});
      for (int tries = 0; fits != by_size_.end() && tries < kMostHoles; ++fits, ++tries) {
        const auto [length, offset] = *fits;
        if (aligned(offset, x.alignment) + x.size <= offset + length)
          return cut(x, offset, length, offset + length);
      }
      if (!by_offset_.empty()) {
        const auto [offset, length] = *by_offset_.rbegin();
        if (offset + length == top) return cut(x, offset, length, top);
      }
      return cut(x, top, 0, top);
    }
    void give(int64_t offset, int64_t size) {
      if (size == 0) return;
      auto above = by_offset_.lower_bound(offset);
      if (above != by_offset_.end() && above->first == offset + size) {
        const auto [begin, length] = *above;
        erase(begin, length);
        size += length;
      }
      auto below = by_offset_.lower_bound(offset);
      if (below != by_offset_.begin() && (--below)->first + below->second == offset) {
        const auto [begin, length] = *below;
        erase(begin, length);
        offset = begin;
        size += length;
      }
      add(offset, size);
    }

   private:
    // Puts the item into a hole of this length (0: none); at `top` it may extend beyond the hole. Returns the unused
    // parts before and after it.
    int64_t cut(const Item& x, int64_t offset, int64_t length, int64_t end) {
      if (length > 0) erase(offset, length);
      const int64_t at = aligned(offset, x.alignment);
      if (at > offset) add(offset, at - offset);
      if (end > at + x.size) add(at + x.size, end - at - x.size);
      return at;
    }
    void add(int64_t offset, int64_t length) {
      by_offset_.emplace(offset, length);
      by_size_.emplace(length, offset);
    }
    void erase(int64_t offset, int64_t length) {
      by_offset_.erase(offset);
      by_size_.erase({length, offset});
    }
    std::map<int64_t, int64_t> by_offset_;
    std::set<std::pair<int64_t, int64_t>> by_size_;
  };

  std::vector<Item> items_;
  int32_t moments_;
  int64_t most_visits_, visits_ = 0;
  std::vector<int64_t> best_;
  int64_t best_size_ = -1;
};

}  // namespace

int64_t MemoryPlan::alignment_of(int64_t bytes) {
  return bytes == 0 || bytes >= kLarge ? kAlignment : std::min(kAlignment, bytes & -bytes);
}

MemoryPlan plan_memory(const Lifetimes& lifetimes, int64_t most) {
  std::vector<Item> items;
  for (const Block& b : lifetimes.blocks)
    if (!b.escapes) items.push_back({b.bytes, MemoryPlan::alignment_of(b.bytes), b.first, b.last});
  Packer packer(std::move(items), lifetimes.nodes);
  MemoryPlan plan;
  plan.lower_bound = packer.lower_bound();
  plan.peak_bytes = lifetimes.peak_bytes();
  packer.pack(plan.lower_bound, most);
  plan.arena_bytes = packer.size();
  auto offset = packer.offsets().begin();
  for (const Block& b : lifetimes.blocks) plan.offsets.push_back(b.escapes ? -1 : *offset++);
  return plan;
}

}  // namespace retrograd::ir
