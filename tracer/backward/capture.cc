// See tracer/backward/capture.h.
#include "tracer/backward/capture.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/region.h"
#include "engine/runner.h"
#include "ir/verify.h"

namespace retrograd::inline v0 {
namespace {

template <class T>
const T& attr_at(const SymbolUse& use, const Reached& reached) {
  const void* attrs =
      use.of_region ? reached.regions[use.place]->attrs() : reached.records[use.place]->attrs();
  return *reinterpret_cast<const T*>(static_cast<const char*>(attrs) + use.index);
}

}  // namespace

std::shared_ptr<Capture> Capture::record(const BackwardRequest& request, Walk& walk, const Reached& reached,
                                         bool inlines) {
  auto capture = std::make_shared<Capture>();
  RecordedBackward& recorded = capture->recorded_;
  Recorder recorder(recorded.graph, walk, &request, reached.regions);
  recorder.inlines_pairs = inlines && !request.create_graph;
  BackwardRequest symbolic = request;
  symbolic.retain_graph = true;  // the run releases the slots, not the recording
  for (size_t i = 0; i < request.cotangents.size(); ++i)
    symbolic.cotangents[i] = recorder.root(static_cast<uint32_t>(i), request.cotangents[i].impl().type());
  const Tensors gradients = record_backward(symbolic, walk, recorder, &recorder);
  std::vector<ir::ValueId> outputs;
  for (const Tensor& g : gradients) outputs.push_back(recorder.value_of(g));
  recorded.graph.set_outputs(std::move(outputs));
  recorded.take(recorder);
  capture->inlined_ = std::move(recorder.inlined);
  capture->inlined_pairs_ = std::move(recorder.inlined_pairs);
  capture->lives_ = std::move(recorder.lives);
  for (SymbolUse& use : recorder.uses)
    (use.kind == SymbolUse::Kind::attr_number ? capture->numbers_ : capture->sizes_).push_back(use);
  for (const RuleRun& rule : recorded.rules) capture->unpacks_ += rule.unpacks;
  capture->is_replayed_ = request.create_graph;
  if (!capture->is_replayed_) capture->fuse(request, reached);
  ir::verify(recorded.graph);
  return capture;
}

int64_t Capture::size_at(const SymbolUse& use, const BackwardRequest& request, const Reached& reached) const {
  if (use.kind == SymbolUse::Kind::root_dim)
    return request.cotangents[use.place].impl().shape()[static_cast<int>(use.dim)].raw();
  if (use.kind == SymbolUse::Kind::payload_dim) {
    const Packed& packed = *reached.records[use.place]->slot(static_cast<int>(use.index)).packed();
    return payload_tensors(packed)[use.part]->impl().shape()[static_cast<int>(use.dim)].raw();
  }
  if (use.kind == SymbolUse::Kind::attr_dim) return attr_at<Dim>(use, reached).raw();
  if (use.of_region)
    return reached.regions[use.place]->kept_type(use.index).shape[static_cast<int>(use.dim)].raw();
  const Record& record = *reached.records[use.place];
  return record.dims()[record.type_meta(static_cast<int>(use.index)).first_dim + use.dim].raw();
}

std::vector<Number> Capture::values(const BackwardRequest& request, const Reached& reached,
                                    std::string& misfit) const {
  std::vector<Number> values(static_cast<size_t>(graph().symbols.size()));
  std::vector<bool> known(values.size());
  take_numbers(reached, values);
  for (const SymbolUse& use : sizes_) {
    const int64_t size = size_at(use, request, reached);
    const auto id = use.size.is_symbolic() ? static_cast<size_t>(use.size.id()) : values.size();
    if (id < values.size() && !known[id]) {
      known[id] = true;
      values[id] = Number::of(size);
      continue;
    }
    const int64_t expected = id < values.size() ? values[id].i : use.size.raw();
    if (size != expected) {
      const std::string_view op = use.kind == SymbolUse::Kind::root_dim ? "root"
                                  : use.of_region                       ? "checkpoint"
                                                  : reached.records[use.place]->op->name;
      misfit = fmt::format("a size of {}#{} was {}, as another size was, and is now {}", op, use.place,
                           expected, size);
      return {};
    }
  }
  graph().symbols.evaluate(values);
  if (const int guard = graph().symbols.failing_guard(values); guard >= 0) {
    const SymbolTable::Guard& g = graph().symbols.guards()[static_cast<size_t>(guard)];
    misfit = fmt::format(
        "a comparison of {} and {} comes out otherwise: they were {} and {}, are {} and {}",
        graph().symbols.text(g.lhs), graph().symbols.text(g.rhs),
        graph().symbols.expr(g.lhs).hint.as_double(), graph().symbols.expr(g.rhs).hint.as_double(),
        values[static_cast<size_t>(g.lhs)].as_double(), values[static_cast<size_t>(g.rhs)].as_double());
    return {};
  }
  if (values.empty()) values.resize(1);  // an empty list means "does not fit"
  return values;
}

void Capture::take_numbers(const Reached& reached, std::vector<Number>& values) const {
  for (const SymbolUse& use : numbers_)
    values[static_cast<size_t>(use.number)] = attr_at<Scalar>(use, reached).number();
  for (const LiveUse& use : lives_) use.read(values);
}

bool Capture::read_numbers(const Reached& reached, std::vector<Number>& values) const {
  take_numbers(reached, values);
  graph().symbols.evaluate(values);
  return graph().symbols.failing_guard(values) < 0;
}

std::shared_ptr<const Capture::Entry> Capture::make_plan(const Key& sizes, std::vector<Number> values) const {
  std::unique_ptr<Plan> plan;
  if (!is_replayed_) plan = recorded_.plan(values, executor_for(graph()));
  return std::make_shared<const Entry>(Entry{sizes, std::move(values), std::move(plan)});
}

std::shared_ptr<const Capture::Entry> Capture::find(const Key& sizes) {
  auto it = std::ranges::find(plans_, sizes, [](const auto& entry) { return entry->sizes; });
  if (it == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, it);
  return plans_.front();
}

bool Capture::keep(std::shared_ptr<const Entry> entry) {
  plans_.push_front(std::move(entry));
  if (plans_.size() <= kPlans) return false;
  plans_.pop_back();
  return true;
}

}  // namespace retrograd
