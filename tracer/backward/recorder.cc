// See tracer/backward/recorder.h.
#include "tracer/backward/recorder.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "engine/function.h"
#include "engine/region.h"
#include "ops/arithmetic.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

Source::List list_of(const Hook& hook) {
  switch (hook.kind) {
    case Hook::Kind::tensor: return Source::List::tensor;
    case Hook::Kind::pre: return Source::List::pre;
    case Hook::Kind::post: return Source::List::post;
    case Hook::Kind::post_accumulate: break;
  }
  return Source::List::post_accumulate;
}

bool calls_user(const Walk& walk) {
  const auto record_calls = [](const Walk::Item& item) {
    return item.record->hooks || item.record->was_packed;
  };
  const auto leaf_calls = [](const Walk::Leaf& leaf) {
    return leaf.leaf->meta && leaf.leaf->meta->has_hooks();
  };
  return std::ranges::any_of(walk.order(), record_calls) || std::ranges::any_of(walk.leaves(), leaf_calls);
}

}  // namespace

Recorder::Recorder(ir::Graph& graph, Walk& walk, const BackwardRequest* request,
                   std::span<Region* const> regions)
    : GraphEmitter(graph, true, request ? request->where : SourceLocation()),
      walk_(walk),
      keeps_log_(calls_user(walk)),
      pair_(request ? request->pair.get() : nullptr),
      is_differentiable_(request && request->create_graph) {
  const size_t records = walk.order().size(), others = walk.leaves().size() * 2 + 8;
  graph.reserve(records * 2 + others);
  sources.reserve(records + others);
  uses.reserve(records);
  rules.reserve(records);
  for (uint32_t i = 0; i < regions.size(); ++i) regions_[regions[i]] = i;
}

Tensor Recorder::root(uint32_t i, const TensorType& type) {
  const TensorType symbolic = symbolise(type, {.kind = SymbolUse::Kind::root_dim, .place = i});
  sources.push_back({Source::Kind::root, i});
  return make(symbolic, graph_.add_tensor_input(symbolic));
}

// `use`: of the first dim.
TensorType Recorder::symbolise(TensorType type, SymbolUse use) {
  for (int d = 0; d < type.shape.rank(); ++d) {
    use.dim = static_cast<uint32_t>(d);
    type.shape[d] = symbolise(type.shape[d], use);
  }
  return type;
}

Dim Recorder::symbolise(Dim size, SymbolUse use) {
  Dim symbol = size;
  if (size.raw() != 0 && size.raw() != 1 && !size.is_symbolic()) {
    auto [it, fresh] = by_size_.try_emplace(size.raw(), size);
    if (fresh) it->second = Dim::symbol(graph_.symbols.add_symbol(Number::of(size.raw())));
    symbol = it->second;
  }
  use.size = symbol;
  uses.push_back(use);
  return symbol;
}

// Numbers that are to be settled after a run are read now: what draws random numbers is refused where it is called.
void Recorder::live_numbers(std::span<Scalar> out, const LiveNumbers& numbers) {
  numbers.read(out);
  if (numbers.settle) return;
  lives.push_back({numbers, graph_.symbols.size(), static_cast<int>(out.size())});
  for (Scalar& s : out) s = Scalar::symbol(graph_.symbols.add_symbol(s.number()), s.number());
}

void Recorder::follow(const Record& record) {
  if (record_ == &record) return;
  record_ = &record;
  attrs_ready_ = false;
  types_.assign(static_cast<size_t>(record.operands + record.outputs), TensorType{});
}

const void* Recorder::attrs_of(const Record& record) {
  if (is_own(record)) return Emitter::attrs_of(record);
  follow(record);
  if (attrs_ready_ || !record.op->attrs_size) return attrs_.data();
  attrs_.resize(record.op->attrs_size);
  std::memcpy(attrs_.data(), record.attrs(), record.op->attrs_size);
  symbolise_attrs(*record.op, attrs_.data(), {.place = origin_.ordinal});
  attrs_ready_ = true;
  return attrs_.data();
}

const void* Recorder::attrs_of(const Region& region, size_t call) {
  const Region::Call& c = region.calls()[call];
  ++calls_recomputed;
  if (!region.attrs(c)) return nullptr;
  region_attrs_.resize(c.op->attrs_size);  // the rule that asks for a value uses attrs_
  std::memcpy(region_attrs_.data(), region.attrs(c), c.op->attrs_size);
  symbolise_attrs(*c.op, region_attrs_.data(),
                  {.of_region = true, .place = regions_.at(&region), .index = c.attrs});
  return region_attrs_.data();
}

// `use`: of the attributes' first byte.
void Recorder::symbolise_attrs(const OpInfo& op, std::byte* attrs, SymbolUse use) {
  const auto at = [&](SymbolUse::Kind kind, const void* field) {
    SymbolUse of_field = use;
    of_field.kind = kind;
    of_field.index += static_cast<uint32_t>(static_cast<const std::byte*>(field) - attrs);
    return of_field;
  };
  const auto symbol = [&](Dim& v) { v = symbolise(v, at(SymbolUse::Kind::attr_dim, &v)); };
  ir::for_each_field(op, attrs,
                     ir::Fields{[&](auto, Dim& v) { symbol(v); },
                                [&](auto, Shape& v) {
                                  for (int i = 0; i < v.rank(); ++i) symbol(v[i]);
                                },
                                [&](auto, Scalar& v) {
                                  SymbolUse number = at(SymbolUse::Kind::attr_number, &v);
                                  number.number = graph_.symbols.add_symbol(v.number());
                                  uses.push_back(number);
                                  v = Scalar::symbol(number.number, v.number());
                                }});
}

TensorType Recorder::type_of(const Record& record, int i) {
  if (is_own(record)) return Emitter::type_of(record, i);
  follow(record);
  TensorType& type = types_[static_cast<size_t>(i)];
  if (type.dtype != ScalarType::Undefined) return type;
  type = symbolise(
      Emitter::type_of(record, i),
      {.kind = SymbolUse::Kind::type_dim, .place = origin_.ordinal, .index = static_cast<uint32_t>(i)});
  return type;
}

void Recorder::at(const Origin& origin) {
  if (is_nested()) return;  // its nodes belong to the code that started it
  origin_ = origin;
  position_.origin =
      origin.record ? graph_.add_origin({origin.record->op->name, origin.ordinal, origin.part}) : -1;
  if (origin.record) follow(*origin.record);
  if (origin.part == "rule") rules.push_back({origin.ordinal, 0, 0, false});
}

void Recorder::note(DriveLog::Kind kind, uint32_t index, int32_t value, size_t count) {
  if (keeps_log_)
    log.events.push_back(
        {kind, static_cast<uint32_t>(count), static_cast<uint32_t>(graph_.nodes().size()), index, value});
}

void Recorder::record_begins(uint32_t place) {
  user_ran_ = false;
  const Walk::Item& item = walk_.order()[place];
  note(DriveLog::Kind::record, place, static_cast<int32_t>(item.first_grad), item.record->outputs);
}
void Recorder::rule_gave(uint32_t place, std::span<const Tensor> grads, std::span<const Tensor> given) {
  RuleRun& rule = rules.back();
  rule.end_node = static_cast<uint32_t>(graph_.nodes().size());
  const Record& record = *walk_.order()[place].record;
  rule.leaves_slots = rule.unpacks < record.slots || record.op->host_backward;
  note(DriveLog::Kind::gave, place, static_cast<int32_t>(log.lists.size()),
       user_ran_ ? grads.size() + given.size() : 0);
  if (!user_ran_) return;
  for (const Tensor& t : grads) log.lists.push_back(value_of(t));
  for (const Tensor& t : given) log.lists.push_back(value_of(t));
}
void Recorder::leaf_begins(uint32_t index) {
  user_ran_ = false;
  note(DriveLog::Kind::leaf, index, static_cast<int32_t>(walk_.leaves()[index].grad));
}
void Recorder::arrived(uint32_t grad, const Tensor& sum) {
  if (keeps_log_) note(DriveLog::Kind::arrived, grad, value_of(sum));
}
void Recorder::captured(uint32_t input, const Tensor& grad) {
  note(DriveLog::Kind::captured, input, value_of(grad));
}

ir::ValueId Recorder::value_of(const Tensor& tensor) {
  if (!tensor.defined()) return ir::kNoValue;
  const TensorImpl& cell = tensor.impl();
  if (cell.graph == id_) return cell.value_id;
  if (cell.graph)
    refuse(
        Category::bad_argument,
        "a value of another recording was used, which has no data here. Hint: return it from that function");
  auto [it, fresh] = constants_.try_emplace(&cell, 0);
  if (fresh) {
    kept_.push_back(tensor);
    it->second = graph_.add_tensor_input(cell.type());
    sources.push_back({.kind = Source::Kind::constant, .constant = tensor});
  }
  return it->second;
}

void Recorder::emit(const Call& call, Tensor* results) {
  if (call.op->is(Trait::bookkeeping))
    return is_nested() ? emit_nested(call, results) : emit_bookkeeping(call, results);
  if (call.op->run_on_host && call.op->is(Trait::effect))
    return call.op->run_on_host(call, results);  // a function in traceable code, whose ops were recorded
  infer(call, results);
  const ir::Node& node = append_node(call, results);
  if (is_differentiable_ && !GradMode::is_enabled()) return detach_results(call, results);
  if (pair_ && call.op->saves) emit_pack(call, ir::Node(node));
}

// For an op under a NoGradGuard in recorded code: gradient mode is on when the graph is replayed.
void Recorder::detach_results(const Call& call, Tensor* results) {
  for (int i = 0; i < call.outputs; ++i) {
    TensorImpl* const operand = results[i].get();
    append_node({&ops::info<ops::Detach>, {&operand, 1}, nullptr, call.where, 1}, &results[i]);
  }
}

// The record and its slots depend on the operands that require a gradient in a run; the possibility of saving does
// not.
void Recorder::emit_pack(const Call& call, const ir::Node& made) {
  const SaveSet most = call.op->saves(call, ~uint64_t{0});
  if (!most.operands && !most.results) return;
  std::vector<ir::ValueId> results;
  for (int i = 0; i < made.results; ++i) results.push_back(made.first_result + i);
  ir::Node& node = graph_.append(ops::pack, results, nullptr, {});
  node.where = call.where;
  node.origin = position_.origin;
  node.handle = handle(ir::Input::Kind::pair, {}, {Source::Kind::pair}, pair_);
}

int32_t Recorder::handle(ir::Input::Kind kind, const TensorType& type, Source source, const void* key) {
  auto [it, fresh] = handles_.try_emplace(key, 0);
  if (fresh) {
    it->second = graph_.add_handle(kind, type);
    sources.push_back(std::move(source));
  }
  return it->second;
}

// The index of the hook among the live ones. Usually the previous request was for the hook before it.
uint32_t Recorder::live_index(const HookList& hooks, const Hook* hook) {
  HookPlace& last = last_hook_;
  if (last.list != &hooks || last.changes != annotation_changes) last = {&hooks, 0, 0, annotation_changes};
  for (int pass = 0; pass < 2; ++pass) {
    for (; last.at < hooks.all().size(); ++last.at) {
      const Hook& h = *hooks.all()[last.at];
      if (&h == hook) return last.index;
      last.index += h.is_live();
    }
    last.at = last.index = 0;
  }
  RG_ASSERT(false);
  return 0;
}

Source Recorder::hook_source(const HookAttrs& attrs) {
  const Source::List list = list_of(*attrs.hook);
  const bool of_record = origin_.record;
  const HookList& hooks = of_record ? hook_list(*origin_.record->hooks, list)
                                    : hook_list(*walk_.leaves()[origin_.ordinal].leaf->meta, list);
  return {of_record ? Source::Kind::record_hook : Source::Kind::leaf_hook, origin_.ordinal,
          live_index(hooks, attrs.hook), list};
}

// A traceable hook is called on the recorded values; an opaque one becomes a node that calls it when the graph runs.
// So does a traceable one after other user code in the same record: that code may remove it, and a run can leave the
// graph only between records.
void Recorder::emit_hook(const Call& call, Tensor* results) {
  const HookAttrs& attrs = call.attrs_as<HookAttrs>();
  if (attrs.hook->traceable && attrs.hook->kind != Hook::Kind::post_accumulate && !user_ran_) {
    inlined.push_back(RefPtr<Hook>(attrs.hook));
    return run_hook(attrs, call.operands, {results, static_cast<size_t>(call.outputs)});
  }
  std::vector<TensorType> types;
  for (int i = 0; i < call.outputs; ++i)
    types.push_back(call.operands[i] ? call.operands[i]->type() : TensorType{});
  user_ran_ = log.may_leave = true;
  const int32_t input = handle(ir::Input::Kind::hook, {}, hook_source(attrs), attrs.hook);
  Call plain = call;
  plain.attrs = nullptr;
  ir::Node& node = append(plain, types);
  node.handle = input;
  for (int i = 0; i < call.outputs; ++i)
    if (call.operands[i]) results[i] = make(types[static_cast<size_t>(i)], node.first_result + i);
}

// One opaque node, whose results have the types of the arguments whose gradients are requested.
void Recorder::emit_function(const Call& call, Tensor* results) {
  const Record& record = *call.attrs_as<FunctionBackwardAttrs>().record;
  std::vector<TensorType> types;
  const int arguments = FunctionCall::arguments(record);
  const auto is_wanted = [&](int i) {
    return i < arguments && record.edge(i) && walk_.target(record.edge(i)) != SeqMap::kNone;
  };
  for (int i = 0; i < call.outputs; ++i) types.push_back(is_wanted(i) ? type_of(record, i) : TensorType{});
  user_ran_ = log.may_leave = true;
  const int32_t input =
      handle(ir::Input::Kind::function, {}, {Source::Kind::function, origin_.ordinal}, &record);
  Call plain = call;
  plain.attrs = nullptr;
  ir::Node& node = append(plain, types);
  node.handle = input;
  for (int i = 0; i < call.outputs; ++i)
    if (is_wanted(i)) results[i] = make(types[static_cast<size_t>(i)], node.first_result + i);
}

void Recorder::emit_unpack(const Call& call, Tensor* results) {
  const UnpackAttrs& attrs = call.attrs_as<UnpackAttrs>();
  if (attrs.region) return emit_region_input(call, results);
  RG_ASSERT(attrs.record == origin_.record);
  const Slot& slot = attrs.record->slot(attrs.slot);
  // A graph that is replayed into a Taper leaves the recomputation to the unpack: the value gets its place in the tape
  // there.
  const bool is_recomputed = slot.packed() && slot.packed()->hooks->region();
  if (is_recomputed && !is_differentiable_) {
    results[0] = slot.packed()->hooks->unpack(slot.packed()->payload);
    return;
  }
  if (inlines_pairs && slot.packed() && slot.packed()->structure) {
    results[0] = unpack_traceable(call, slot);
    return;
  }
  if (!slot.value() && !slot.packed() && !slot.released)
    return;  // never returned: undefined in every run of this structure
  user_ran_ |= slot.packed() && !is_recomputed;
  log.may_leave |= slot.packed() && !is_recomputed;
  const TensorType type =
      type_of(*attrs.record, slot.is_result ? attrs.record->operands + slot.index : slot.index);
  const auto offset = reinterpret_cast<const char*>(&slot) - reinterpret_cast<const char*>(attrs.record);
  append_unpack(call, type,
                {Source::Kind::slot,
                 origin_.ordinal,
                 static_cast<uint32_t>(attrs.slot),
                 {},
                 static_cast<uint32_t>(offset)},
                results);
  ++rules.back().unpacks;
}

// The unpack hook is called on recorded tensors, which a run takes from the payload.
Tensor Recorder::unpack_traceable(const Call& call, const Slot& slot) {
  class Recorded final : public PayloadVisitor {
   public:
    Recorded(Recorder& recorder, const UnpackAttrs& attrs, const Call& call)
        : recorder_(recorder), attrs_(attrs), call_(call) {}
    void tensor(Tensor& tensor) override {
      const int32_t part = parts_++;
      if (!tensor.defined()) return;
      has_tensors = true;
      const auto slot = static_cast<uint32_t>(attrs_.slot);
      const SymbolUse use{.kind = SymbolUse::Kind::payload_dim,
                          .place = recorder_.origin_.ordinal,
                          .index = slot,
                          .part = static_cast<uint32_t>(part)};
      const TensorType type = recorder_.symbolise(tensor.impl().type(), use);
      recorder_.append_unpack(call_, type,
                              {.kind = Source::Kind::slot, .place = use.place, .index = slot, .part = part},
                              &tensor);
    }
    void constant(uint64_t) override {}
    bool has_tensors = false;

   private:
    Recorder& recorder_;
    const UnpackAttrs& attrs_;
    const Call& call_;
    int32_t parts_ = 0;
  } recorded(*this, call.attrs_as<UnpackAttrs>(), call);
  const Record& record = *origin_.record;
  const Packed& packed = *slot.packed();
  std::any payload = packed.payload;
  packed.hooks->visit(payload, recorded);
  if (recorded.has_tensors) ++rules.back().unpacks;
  if (packed.hooks->is_unique()) inlined_pairs.push_back(packed.hooks);
  return unpack_payload(record, slot, payload,
                        type_of(record, slot.is_result ? record.operands + slot.index : slot.index));
}

void Recorder::append_unpack(const Call& call, const TensorType& type, Source source, Tensor* results) {
  const int32_t input = graph_.add_handle(ir::Input::Kind::slot, type);
  sources.push_back(std::move(source));
  Call plain = call;
  plain.attrs = nullptr;
  ir::Node& node = append(plain, {&type, 1});
  node.handle = input;
  results[0] = make(type, node.first_result);
}

void Recorder::emit_region_input(const Call& call, Tensor* results) {
  const UnpackAttrs& attrs = call.attrs_as<UnpackAttrs>();
  const Region& region = *attrs.region;
  const auto i = static_cast<size_t>(attrs.slot);
  const uint32_t place = regions_.at(&region), index = static_cast<uint32_t>(i);
  if (std::ranges::count(recomputed, place) == 0) recomputed.push_back(place);
  if (const Packed* packed = region.kept_slot(i).packed()) {
    if (packed->hooks->region()) {
      results[0] = packed->hooks->unpack(packed->payload);
      return;
    }
    user_ran_ = log.may_leave = true;
  }
  const TensorType type =
      symbolise(region.kept_type(i),
                {.kind = SymbolUse::Kind::type_dim, .of_region = true, .place = place, .index = index});
  append_unpack(call, type, {Source::Kind::region, place, index}, results);
}

// Hooks, functions and slots of the nested tape belong to the traceable code: they run and are recorded with it.
void Recorder::emit_nested(const Call& call, Tensor* results) {
  if (call.op != &ops::accumulate_grad) return call.op->run_on_host(call, results);
  Tensor& sum = call.attrs_as<AccumulateGradAttrs>().leaf->need_meta().grad;
  Tensor grad(RefPtr<TensorImpl>(call.operands[0]));
  if (!GradMode::is_enabled()) grad = grad.detach();
  sum = sum.defined() ? add(sum, grad) : grad;
}

void Recorder::emit_bookkeeping(const Call& call, Tensor* results) {
  if (call.op == &ops::hook) return emit_hook(call, results);
  if (call.op == &ops::function_backward) return emit_function(call, results);
  if (call.op == &ops::unpack) return emit_unpack(call, results);
  Call plain = call;
  plain.attrs = nullptr;
  if (call.op == &ops::accumulate_grad) {
    TensorImpl* leaf = call.attrs_as<AccumulateGradAttrs>().leaf;
    append(plain, {}).handle =
        handle(ir::Input::Kind::leaf, call.operands[0]->type(), {Source::Kind::leaf, origin_.ordinal}, leaf);
    return;
  }
  RG_ASSERT(call.op == &ops::retain_grad);
  GradBox* box = call.attrs_as<RetainGradAttrs>().box;
  const auto& retained = origin_.record->hooks->retained;
  uint32_t index = 0;
  while (retained[index].second.get() != box) ++index;
  append(plain, {}).handle = handle(ir::Input::Kind::box, call.operands[0]->type(),
                                    {Source::Kind::box, origin_.ordinal, index}, box);
}

}  // namespace retrograd
