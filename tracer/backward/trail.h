// Trail: the structure of one backward, kept to recognise the next one by comparison, which costs a fraction of
// walking and hashing.
//
// From the roots down, each record in the order of the walk must have the structure and the annotations of the trail
// at its place, and each of its edges must lead to the record or leaf that the trail names. The record first reached
// at a place is assumed to be the one of the walk. The sequence numbers then confirm it: since they decrease strictly
// from place to place, no two places hold the same record and the order is that of the walk. difference() describes
// where a backward left the trail, with the old and the new state (tracer/backward/trail_difference.cc).
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "tracer/backward/key.h"

namespace retrograd::inline v0 {

class Trail {
 public:
  /// `packed`: what find_packed_slots() gave; 0: there are none.
  Trail(const BackwardRequest& request, Walk& walk, uint64_t packed = 0);
  /// True if `request` has this structure; then `reached` has its records and leaves.
  bool matches(const BackwardRequest& request, Reached& reached) const;
  /// The first difference: "record 3 was mul [f32 rank 2], is add [f32 rank 2]".
  std::string difference(const BackwardRequest& request, Walk& walk) const;
  size_t size() const { return steps_.size(); }
  uint64_t annotations(uint32_t record) const { return steps_[record].annotations; }
  uint64_t leaf_annotations(uint32_t leaf) const { return leaf_annotations_[leaf]; }

 private:
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  // The target of an edge: record `place`, result `output_nr`; or leaf `place`, Edge::kLeaf. An input that was not
  // reached has none.
  struct Target {
    uint32_t place = kNowhere, output_nr = 0;
    friend bool operator==(const Target&, const Target&) = default;
  };
  struct Step {
    uint64_t structure, annotations;
    uint32_t operands;
  };
  // The description of a record, for difference(): where its types (operands, then outputs), sizes and attributes
  // begin.
  struct Portrait {
    const OpInfo* op;
    uint32_t first_type, first_dim, first_attr;
    uint16_t operands;
  };

  static Target target_of(const Edge& edge, Walk& walk);
  bool same_question(const BackwardRequest& request) const;
  bool inputs_match(const BackwardRequest& request, const Reached& reached) const;
  void add_portrait(const Record& record);

  // For difference():
  static std::string annotation_text(const Record& record);
  static std::string annotation_text(const TensorImpl& leaf);
  std::string step_text(size_t place) const;
  std::string question_difference(const BackwardRequest& request) const;
  std::string record_difference(size_t place, const Record& record, const Target* targets, Walk& walk) const;
  std::string leaf_difference(const Walk& walk) const;

  bool accumulate_, create_graph_, packs_, to_inputs_;
  uint64_t cotangents_, packed_;
  std::vector<Target> roots_, inputs_;
  std::vector<Step> steps_;
  std::vector<Target> targets_;  // of the edges of each step, last operand first
  std::vector<uint64_t> leaf_annotations_;
  std::vector<Portrait> portraits_;
  std::vector<TypeMeta> types_;
  std::vector<Dim> dims_;
  std::vector<std::byte> attrs_;
  std::vector<TensorType> cotangent_types_;
  std::unordered_map<size_t, std::string> annotation_texts_, leaf_annotation_texts_;  // if there are any
};

}  // namespace retrograd
