// GraphRunner: a run of a plan whose segments are each started as one graph of launches (a CUDA graph). Start reading
// at go(), then start().
//
// The first run of a frame launches step by step: libraries are opened, pools filled, and addresses observed. The
// second run records each segment: its steps run as usual, between begin() and end() of a graph, and then the graph
// is started. From then on the host does only the necessary work for a segment: it checks that memory addresses are
// unchanged, fills staging cells, starts the graph, which reads the numbers of the run by itself, and leaves the
// registers as the steps would have. A failure leaves nothing half done: until the graph is started nothing of the
// segment has run, so its steps can be launched one by one instead.
#pragma once

#include "tracer/plan/recordings.h"
#include "tracer/plan/run.h"

namespace retrograd::inline v0 {

class GraphRunner {
 public:
  explicit GraphRunner(PlanRun& run);
  /// Runs all steps. Runs without an observer never stop.
  bool go();

 private:
  class WhileRecorded;
  using Recorded = Recordings::Recorded;

  bool start(size_t number);
  bool find_moved_reads(const Segment& segment, Recorded& recorded);
  bool take_memory(const Segment& segment, Recorded& recorded);
  void fill_staging(const Segment& segment, const Recorded& recorded);
  void record(const Segment& segment, Recorded& recorded);
  void note_updates(const Segment& segment, Recorded& recorded);
  bool have_numbers_parted(const Recorded& recorded) const;
  void finish(const Segment& segment);
  RefPtr<Storage> memory_for(const TensorType& type) const;
  void copy(TensorImpl* from, TensorImpl* to);
  Tensor copy_of(TensorImpl* x);

  PlanRun& run_;
  const Program& program_;
  Frame& frame_;
  Recordings& all_;
};

}  // namespace retrograd
