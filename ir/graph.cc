// Building graphs; see ir/graph.h.
#include "ir/graph.h"

#include <algorithm>
#include <cstring>

namespace retrograd::inline v0::ir {

bool same_type(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || !(a.device == b.device) || a.shape.rank() != b.shape.rank()) return false;
  for (int i = 0; i < a.shape.rank(); ++i)
    if (a.shape[i].raw() != b.shape[i].raw()) return false;
  return true;
}

namespace {
uint64_t type_hash(const TensorType& t) {
  uint64_t h = static_cast<uint64_t>(t.dtype) * 31 + static_cast<uint64_t>(t.shape.rank());
  for (Dim d : t.shape) h = (h ^ static_cast<uint64_t>(d.raw())) * 0x9E3779B97F4A7C15u;
  return h;
}
}  // namespace

int32_t Graph::intern(const TensorType& type) {
  if (last_type_ >= 0 && same_type(types_[static_cast<size_t>(last_type_)], type)) return last_type_;
  std::vector<int32_t>& bucket = type_index_[type_hash(type)];
  auto it = std::find_if(bucket.begin(), bucket.end(),
                         [&](int32_t i) { return same_type(types_[static_cast<size_t>(i)], type); });
  if (it == bucket.end()) {
    types_.push_back(type);
    bucket.push_back(static_cast<int32_t>(types_.size()) - 1);
    it = bucket.end() - 1;
  }
  return last_type_ = *it;
}

ValueId Graph::new_value(const TensorType& type) {
  value_types_.push_back(intern(type));
  return value_count() - 1;
}

void* Graph::copy_attrs(const OpInfo& op, const void* attrs) {
  if (!op.attrs_size || !attrs) return nullptr;
  constexpr size_t kBlock = 1 << 16;
  const size_t size = (op.attrs_size + 15u) / 16 * 16;
  if (size > arena_left_) {
    arena_left_ = std::max(kBlock, size);
    arena_.push_back(std::make_unique<std::byte[]>(arena_left_));
    arena_next_ = arena_.back().get();
  }
  void* copy = arena_next_;
  arena_next_ += size;
  arena_left_ -= size;
  std::memcpy(copy, attrs, op.attrs_size);
  return copy;
}

void Graph::reserve(size_t nodes) {
  nodes_.reserve(nodes);
  pool_.reserve(nodes * 2);
  value_types_.reserve(nodes);
  inputs_.reserve(nodes / 2);
  origins_.reserve(nodes / 2);
}

ValueId Graph::add_tensor_input(const TensorType& type, std::string_view name) {
  const ValueId value = new_value(type);
  inputs_.push_back({Input::Kind::tensor, value, last_type_, name.empty() ? name : keep(name)});
  input_values_.push_back(value);
  return value;
}

int32_t Graph::add_handle(Input::Kind kind, const TensorType& type, std::string_view name) {
  const int32_t at = type.dtype == ScalarType::Undefined ? -1 : intern(type);
  inputs_.push_back({kind, kNoValue, at, name.empty() ? name : keep(name)});
  return static_cast<int32_t>(inputs_.size()) - 1;
}

const TensorType& Graph::type(const Input& input) const {
  static const TensorType none;
  return input.type < 0 ? none : types_[static_cast<size_t>(input.type)];
}

int32_t Graph::number_of(ValueId value) const {
  const auto at = std::ranges::lower_bound(input_values_, value);
  if (at != input_values_.end() && *at == value) return static_cast<int32_t>(at - input_values_.begin());
  return value + static_cast<int32_t>(input_values_.end() - at);
}

std::string Graph::name_of(const Input& input) const {
  if (!input.name.empty()) return std::string(input.name);
  return std::to_string(input.value == kNoValue ? &input - inputs_.data() : number_of(input.value));
}

Node& Graph::append(const OpInfo& op, std::span<const ValueId> operands, const void* attrs,
                    std::span<const TensorType> results) {
  check_counts(op.name, operands.size(), results.size());
  Node node;
  node.op = &op;
  node.first_operand = static_cast<uint32_t>(pool_.size());
  node.operands = static_cast<uint16_t>(operands.size());
  node.results = static_cast<uint16_t>(results.size());
  pool_.insert(pool_.end(), operands.begin(), operands.end());
  node.first_result = value_count();
  for (const TensorType& type : results) new_value(type);
  node.attrs = copy_attrs(op, attrs);
  nodes_.push_back(node);
  return nodes_.back();
}

int32_t Graph::add_origin(Origin origin) {
  origins_.push_back(origin);
  return static_cast<int32_t>(origins_.size()) - 1;
}

Graph::Texts::Texts(Graph& to, const Graph& from) {
  for (const auto& text : from.texts_) kept_.emplace(text->data(), to.keep(*text));
}

std::string_view Graph::Texts::operator()(std::string_view text) const {
  const auto it = kept_.find(text.data());
  return it == kept_.end() ? text : it->second.substr(0, text.size());
}

// Names, origins and files of locations may be texts that the graph owns: the copy must own copies of these.
Graph Graph::copy() const {
  Graph to;
  const Texts own(to, *this);
  to.name = name;
  to.symbols = symbols;
  to.nodes_ = nodes_;
  to.pool_ = pool_;
  to.outputs_ = outputs_;
  to.value_types_ = value_types_;
  to.types_ = types_;
  to.type_index_ = type_index_;
  to.inputs_ = inputs_;
  to.input_values_ = input_values_;
  for (Input& input : to.inputs_) input.name = own(input.name);
  for (const Origin& o : origins_) to.origins_.push_back({own(o.op), o.ordinal, own(o.part)});
  for (Node& node : to.nodes_) {
    if (node.attrs) node.attrs = to.copy_attrs(*node.op, node.attrs);
    if (node.where.file) node.where.file = own(node.where.file).data();
  }
  return to;
}

std::string_view Graph::keep(std::string_view text) {
  texts_.push_back(std::make_unique<std::string>(text));
  return *texts_.back();
}

}  // namespace retrograd::ir
