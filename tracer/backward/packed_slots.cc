// See tracer/backward/packed_slots.h.
#include "tracer/backward/packed_slots.h"

#include <algorithm>

#include "engine/region.h"

namespace retrograd::inline v0 {
namespace {

class Finder {
 public:
  explicit Finder(Reached& reached) : reached_(reached) {}

  uint64_t find() {
    for (size_t place = 0; place < reached_.records.size(); ++place) {
      const Record& record = *reached_.records[place];
      if (!record.was_packed) continue;
      for (int i = 0; i < record.slots; ++i) add(record.slot(i), place << 8 | static_cast<uint64_t>(i));
    }
    for (size_t r = 0; r < reached_.regions.size(); ++r) {
      const Region& region = *reached_.regions[r];
      fold(region.structure_hash());
      reached_.add_size(region.size_hash());
      for (size_t i = 0; i < region.kept_count(); ++i) add(region.kept_slot(i), ~(r << 32 | i));
    }
    return structure_;
  }

 private:
  void fold(uint64_t word) { structure_ = fold_hash(structure_, word); }
  void add(const Slot& slot, uint64_t place) {
    const Packed* const packed = slot.packed();
    if (!packed) return;
    if (packed->structure) {
      fold(place);
      fold(packed->structure);
      reached_.add_size(packed->sizes);
    }
    Region* const region = packed->hooks->region();
    if (!region) return;
    fold(place);
    fold(number_of(*region) << 32 | static_cast<uint32_t>(Region::value_of(packed->payload)));
  }
  uint64_t number_of(Region& region) {
    const auto [at, is_new] = numbers_.try_emplace(&region, reached_.regions.size());
    if (is_new) reached_.regions.push_back(&region);
    return at->second;
  }

  Reached& reached_;
  std::unordered_map<const Region*, size_t> numbers_;
  uint64_t structure_ = 0;
};

}  // namespace

uint64_t find_packed_slots(Reached& reached) { return Finder(reached).find(); }

}  // namespace retrograd
