// See tracer/capture.h.
#include "tracer/capture.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/runner.h"

namespace retrograd {
namespace {

// The n-th size or number of an attribute struct, in the order in which the Recorder met them.
class AttrAt final : public AttrVisitor {
 public:
  explicit AttrAt(uint32_t wanted) : wanted_(wanted) {}
  int64_t size = 0;
  Number number;
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, Dim& v) override { take(v); }
  void field(std::string_view, Scalar& v) override {
    if (next_++ == wanted_) number = v.number();
  }
  void field(std::string_view, Shape& v) override {
    for (Dim d : v) take(d);
  }
  void field(std::string_view, IntList&) override {}
  void field(std::string_view, ScalarType&) override {}

 private:
  void take(Dim d) {
    if (next_++ == wanted_) size = d.raw();
  }
  uint32_t wanted_, next_ = 0;
};

AttrAt attr_at(const Record& record, uint32_t index) {
  AttrAt at(index);
  record.op->visit_attrs(record.attrs, at);
  return at;
}

Hook* live_hook(const HookList& hooks, uint32_t index) {
  for (const RefPtr<Hook>& h : hooks.all())
    if (h->is_live() && index-- == 0) return h.get();
  RG_ASSERT(false);
  return nullptr;
}

Hook* hook_of(const Source& s, const Walk& walk) {
  using List = Source::List;
  if (s.kind == Source::Kind::record_hook) {
    const RecordHooks& h = *walk.order()[s.place].record->hooks;
    return live_hook(s.list == List::tensor ? h.tensor : s.list == List::pre ? h.pre : h.post, s.index);
  }
  const AutogradMeta& m = *walk.leaves()[s.place].leaf->meta;
  return live_hook(s.list == List::tensor ? m.tensor_hooks
                   : s.list == List::pre  ? m.pre_hooks
                   : s.list == List::post ? m.post_hooks
                                          : m.post_accumulate_hooks,
                   s.index);
}

}  // namespace

std::unique_ptr<Capture> Capture::record(const BackwardRequest& request, Walk& walk) {
  auto capture = std::make_unique<Capture>();
  Recorder recorder(capture->graph_, walk);
  BackwardRequest symbolic = request;
  symbolic.retain_graph = true;  // the run releases the slots, not the recording
  for (size_t i = 0; i < request.cotangents.size(); ++i)
    symbolic.cotangents[i] = recorder.root(static_cast<uint32_t>(i), request.cotangents[i].impl().type());
  const Tensors gradients = run_backward(symbolic, walk, recorder);
  std::vector<ir::ValueId> outputs;
  for (const Tensor& g : gradients) outputs.push_back(recorder.value_of(g));
  capture->graph_.set_outputs(std::move(outputs));
  capture->sources_ = std::move(recorder.sources);
  capture->uses_ = std::move(recorder.uses);
  for (const SymbolUse& use : capture->uses_) capture->has_numbers_ |= use.kind == SymbolUse::Kind::attr_number;
  for (const Source& s : capture->sources_) capture->unpacks_ += s.kind == Source::Kind::slot;
  return capture;
}

int64_t Capture::size_at(const SymbolUse& use, const BackwardRequest& request, const Walk& walk) const {
  if (use.kind == SymbolUse::Kind::root_dim) return request.cotangents[use.place].impl().shape()[static_cast<int>(use.dim)].raw();
  const Record& record = *walk.order()[use.place].record;
  if (use.kind == SymbolUse::Kind::type_dim) return record.dims[record.types[use.index].first_dim + use.dim].raw();
  return attr_at(record, use.index).size;
}

std::vector<Number> Capture::values(const BackwardRequest& request, const Walk& walk, std::string& misfit) const {
  std::vector<Number> values(static_cast<size_t>(graph_.symbols.size()));
  std::vector<bool> known(values.size());
  for (const SymbolUse& use : uses_) {
    if (use.kind == SymbolUse::Kind::attr_number) {
      values[static_cast<size_t>(use.number)] = attr_at(*walk.order()[use.place].record, use.index).number;
      continue;
    }
    const int64_t size = size_at(use, request, walk);
    const auto id = use.size.is_symbolic() ? static_cast<size_t>(use.size.id()) : values.size();
    if (id < values.size() && !known[id]) {
      known[id] = true;
      values[id] = Number::of(size);
      continue;
    }
    const int64_t expected = id < values.size() ? values[id].i : use.size.raw();
    if (size != expected) {
      const std::string_view op = use.kind == SymbolUse::Kind::root_dim ? "a root" : walk.order()[use.place].record->op->name;
      misfit = fmt::format("a size of {}#{} was {}, as another size was, and is now {}", op, use.place, expected, size);
      return {};
    }
  }
  graph_.symbols.evaluate(values);
  if (const int guard = graph_.symbols.failing_guard(values); guard >= 0) {
    const SymbolTable::Guard& g = graph_.symbols.guards()[static_cast<size_t>(guard)];
    misfit = fmt::format("a comparison of {} and {} comes out otherwise than at capture", graph_.symbols.text(g.lhs), graph_.symbols.text(g.rhs));
    return {};
  }
  if (values.empty()) values.resize(1);  // an empty list means "does not fit"
  return values;
}

bool Capture::update_numbers(const Walk& walk, std::vector<Number>& values) const {
  if (!has_numbers_) return true;
  for (const SymbolUse& use : uses_)
    if (use.kind == SymbolUse::Kind::attr_number)
      values[static_cast<size_t>(use.number)] = attr_at(*walk.order()[use.place].record, use.index).number;
  graph_.symbols.evaluate(values);
  return graph_.symbols.failing_guard(values) < 0;
}

std::vector<ir::Binding> Capture::bind(const BackwardRequest& request, const Walk& walk) const {
  std::vector<ir::Binding> bindings(sources_.size());
  for (size_t i = 0; i < sources_.size(); ++i) {
    const Source& s = sources_[i];
    ir::Binding& b = bindings[i];
    switch (s.kind) {
      case Source::Kind::root: b.tensor = request.cotangents[s.place]; break;
      case Source::Kind::slot:
        b.record = walk.order()[s.place].record;
        b.slot = static_cast<int>(s.index);
        break;
      case Source::Kind::leaf: b.leaf = walk.leaves()[s.place].leaf; break;
      case Source::Kind::record_hook: b.hook = hook_of(s, walk); break;
      case Source::Kind::leaf_hook:
        b.hook = hook_of(s, walk);
        b.leaf = walk.leaves()[s.place].leaf;
        break;
      case Source::Kind::box: b.box = walk.order()[s.place].record->hooks->retained[s.index].second.get(); break;
      case Source::Kind::constant: b.tensor = s.constant; break;
    }
  }
  return bindings;
}

Capture::Entry* Capture::find(const std::array<uint64_t, 2>& sizes) {
  auto it = std::find_if(plans_.begin(), plans_.end(), [&](const Entry& e) { return e.sizes == sizes; });
  if (it == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, it);
  return &plans_.front();
}

Capture::Entry& Capture::add(const std::array<uint64_t, 2>& sizes, std::vector<Number> values) {
  auto plan = std::make_unique<Plan>(graph_, values, cpu_executor());
  plans_.push_front({sizes, std::move(values), std::move(plan)});
  if (plans_.size() > kPlans) plans_.pop_back();
  return plans_.front();
}

}  // namespace retrograd
