// Trail::difference: describes why a backward is not the captured one: the first difference, with the old and the new
// value. The order of the checks is that of Trail::matches. Not fast: called once per capture.
#include <algorithm>

#include <fmt/format.h>

#include "ir/text.h"
#include "tracer/backward/trail.h"

namespace retrograd::inline v0 {
namespace {

// "mul {dim=1} (f32[3,1], none) -> f32[3,4]"
std::string portrait_text(const OpInfo& op, const TypeMeta* types, const Dim* dims, int operands, int outputs,
                          const void* attrs) {
  std::string text(op.name);
  if (const std::string list = ir::attrs_text(op, attrs); !list.empty()) text += " {" + list + "}";
  for (int i = 0; i < operands + outputs; ++i) {
    const TypeMeta& t = types[i];
    const TensorType type{t.dtype, t.device, Shape(std::span<const Dim>(dims + t.first_dim, t.rank))};
    text += i == 0 && operands ? " (" : i == operands ? (operands ? ") -> " : " -> ") : ", ";
    text += t.dtype == ScalarType::Undefined ? "none" : to_string(type);
  }
  return text;
}

std::string record_text(const Record& r) {
  std::vector<TypeMeta> types;
  for (int i = 0; i < r.type_count(); ++i) types.push_back(r.type_meta(i));
  return portrait_text(*r.op, types.data(), r.dims(), r.operands, r.outputs, r.attrs());
}

// Adds "2 pre-hooks" to a list.
void count_hooks(std::string& list, const HookList& hooks, std::string_view kind) {
  const auto live = std::ranges::count_if(hooks.all(), [](const RefPtr<Hook>& h) { return h->is_live(); });
  if (live) list += fmt::format("{}{} {}{}", list.empty() ? "" : ", ", live, kind, live == 1 ? "" : "s");
}

std::string or_nothing(const std::string& list) { return list.empty() ? "no hooks or packed values" : list; }

// If both texts are equal: a traceable hook is identified by its body.
std::string had_and_has(const std::string& who, const std::string& had, const std::string& has) {
  return had == has ? fmt::format("{} has another traceable hook or pair, or hooks at other results", who)
                    : fmt::format("{} had {}, has {}", who, or_nothing(had), or_nothing(has));
}

std::string backward_text(bool accumulates) { return accumulates ? "accumulated" : "returned"; }

std::string count_text(bool any, size_t count) { return any ? fmt::format("{}", count) : "no"; }

}  // namespace

std::string Trail::annotation_text(const Record& r) {
  std::string list;
  if (r.hooks) {
    count_hooks(list, r.hooks->tensor, "tensor hook");
    count_hooks(list, r.hooks->pre, "pre-hook");
    count_hooks(list, r.hooks->post, "post-hook");
    if (const size_t n = r.hooks->retained.size())
      list += fmt::format("{}{} retained gradient{}", list.empty() ? "" : ", ", n, n == 1 ? "" : "s");
  }
  std::string packed;
  for (int i = 0; i < r.slots; ++i)
    if (r.slot(i).packed()) packed += fmt::format("{}{}", packed.empty() ? "" : " ", i);
  if (!packed.empty()) list += fmt::format("{}packed slots {}", list.empty() ? "" : ", ", packed);
  return list;
}

std::string Trail::annotation_text(const TensorImpl& leaf) {
  std::string list;
  if (!leaf.meta) return list;
  count_hooks(list, leaf.meta->tensor_hooks, "tensor hook");
  count_hooks(list, leaf.meta->pre_hooks, "pre-hook");
  count_hooks(list, leaf.meta->post_hooks, "post-hook");
  count_hooks(list, leaf.meta->post_accumulate_hooks, "post-accumulate hook");
  return list;
}

std::string Trail::step_text(size_t place) const {
  const Portrait& p = portraits_[place];
  const size_t end = place + 1 < portraits_.size() ? portraits_[place + 1].first_type : types_.size();
  const int outputs = static_cast<int>(end) - static_cast<int>(p.first_type) - p.operands;
  return portrait_text(*p.op, types_.data() + p.first_type, dims_.data() + p.first_dim, p.operands, outputs,
                       attrs_.data() + p.first_attr);
}

// Differences of the request: empty if there are none.
std::string Trail::question_difference(const BackwardRequest& request) const {
  if (request.accumulate != accumulate_)
    return fmt::format("gradients were {}, are {}", backward_text(accumulate_),
                       backward_text(request.accumulate));
  if (request.create_graph != create_graph_)
    return fmt::format("create_graph was {}, is {}", create_graph_, request.create_graph);
  if (const bool packs = static_cast<bool>(request.pair); packs != packs_)
    return fmt::format("there {} a default pair of saved-tensor hooks", packs_ ? "was" : "is");
  if (request.root_edges.size() != roots_.size())
    return fmt::format("there were {} roots, are {}", roots_.size(), request.root_edges.size());
  if (request.to_inputs != to_inputs_ || request.input_edges.size() != inputs_.size())
    return fmt::format("there were {} inputs, are {}", count_text(to_inputs_, inputs_.size()),
                       count_text(request.to_inputs, request.input_edges.size()));
  if (cotangent_types(request) == cotangents_) return {};
  for (size_t i = 0; i < cotangent_types_.size(); ++i)
    if (const TensorType is = request.cotangents[i].impl().type(); !(is == cotangent_types_[i]))
      return fmt::format("cotangent {} was {}, is {}", i, to_string(cotangent_types_[i]), to_string(is));
  return "the types of the cotangents are others";
}

// `targets`: of the step's edges, last operand first.
std::string Trail::record_difference(size_t place, const Record& r, const Target* targets, Walk& walk) const {
  if (r.structure_hash != steps_[place].structure) {
    const std::string was = step_text(place), is = record_text(r);
    if (was != is) return fmt::format("record {} was {}, is {}", place, was, is);
    for (int i = 0; i < r.operands; ++i)
      if (const bool wanted = targets[r.operands - 1 - i].place != kNowhere;
          wanted != static_cast<bool>(r.edge(i)))
        return fmt::format("operand {} of record {} ({}) {} a gradient", i, place, is,
                           wanted ? "wanted" : "now wants");
    return fmt::format("record {} ({}) has other attributes", place, is);
  }
  if (annotations_of(r) != steps_[place].annotations) {
    const auto had = annotation_texts_.find(place);
    return had_and_has(fmt::format("record {} ({})", place, r.op->name),
                       had == annotation_texts_.end() ? "" : had->second, annotation_text(r));
  }
  const auto source = [](const Target& t) {
    return t.place == kNowhere          ? std::string("nowhere")
           : t.output_nr == Edge::kLeaf ? fmt::format("leaf {}", t.place)
                                        : fmt::format("result {} of record {}", t.output_nr, t.place);
  };
  for (int i = r.operands; i-- > 0; ++targets)
    if (const Target is = target_of(r.edge(i), walk); is != *targets)
      return fmt::format("operand {} of record {} ({}) came from {}, comes from {}", i, place, r.op->name,
                         source(*targets), source(is));
  return {};
}

std::string Trail::leaf_difference(const Walk& walk) const {
  if (walk.leaves().size() != leaf_annotations_.size())
    return fmt::format("{} leaves were reached, now {}", leaf_annotations_.size(), walk.leaves().size());
  for (size_t i = 0; i < leaf_annotations_.size(); ++i)
    if (const TensorImpl& leaf = *walk.leaves()[i].leaf; annotations_of(leaf) != leaf_annotations_[i]) {
      const auto had = leaf_annotation_texts_.find(i);
      return had_and_has(fmt::format("leaf {}", i), had == leaf_annotation_texts_.end() ? "" : had->second,
                         annotation_text(leaf));
    }
  return {};
}

std::string Trail::difference(const BackwardRequest& request, Walk& walk) const {
  if (std::string text = question_difference(request); !text.empty()) return text;
  const auto& order = walk.order();
  const Target* targets = targets_.data();
  for (size_t k = 0; k < std::min(steps_.size(), order.size()); ++k) {
    if (std::string text = record_difference(k, *order[k].record, targets, walk); !text.empty()) return text;
    targets += order[k].record->operands;
  }
  if (order.size() != steps_.size())
    return fmt::format("{} records were reached, now {}", steps_.size(), order.size());
  if (std::string text = leaf_difference(walk); !text.empty()) return text;
  return "other roots or inputs are asked for";
}

}  // namespace retrograd
