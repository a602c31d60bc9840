// See torch/serialize.h.
#include "torch/serialize.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace torch {

using retrograd::Category;
using retrograd::StateDict;

// ---- IValue -----------------------------------------------------------------------------------------------

IValue::IValue(const Scalar& number) {
  switch (number.kind()) {
    case retrograd::Number::Kind::Bool: value_ = number.to_int() != 0; break;
    case retrograd::Number::Kind::Int: value_ = number.to_int(); break;
    case retrograd::Number::Kind::Float: value_ = number.to_double(); break;
  }
}

void IValue::refuse(const char* wanted) {
  retrograd::fail(Category::bad_argument, "IValue", fmt::format("it is not {}", wanted));
}

namespace serialize {
namespace {

// A value as text: its kind, a colon, and what reads back as the same value. Tensors are not among them.
struct ToText {
  std::string operator()(std::monostate) const { return "none:"; }
  std::string operator()(bool v) const { return v ? "bool:1" : "bool:0"; }
  std::string operator()(int64_t v) const { return fmt::format("int:{}", v); }
  std::string operator()(double v) const { return fmt::format("double:{}", v); }
  std::string operator()(const std::string& v) const { return "text:" + v; }
  std::string operator()(const std::vector<int64_t>& v) const {
    return fmt::format("ints:{}", fmt::join(v, ","));
  }
  std::string operator()(const Tensor&) const { return {}; }
};

template <class T>
T number_in(std::string_view text, std::string_view key) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw retrograd::FileError(
        fmt::format("the value {} of the archive is damaged", retrograd::printable(key)));
  return number;
}

IValue parse(std::string_view text, std::string_view key) {
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  std::string_view rest = colon == text.npos ? std::string_view() : text.substr(colon + 1);
  if (kind == "none") return {};
  if (kind == "bool") return number_in<int64_t>(rest, key) != 0;
  if (kind == "int") return number_in<int64_t>(rest, key);
  if (kind == "double") return number_in<double>(rest, key);
  if (kind == "ints") {
    std::vector<int64_t> list;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      list.push_back(number_in<int64_t>(rest.substr(0, comma), key));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return list;
  }
  return std::string(kind == "text" ? rest : text);  // metadata of other programs are texts
}

// An entry "PREFIX..." of a map, without the prefix, for each.
template <class Map, class F>
void each_below(const Map& map, const std::string& prefix, const F& f) {
  for (auto entry = map.lower_bound(prefix); entry != map.end() && entry->first.starts_with(prefix); ++entry)
    f(entry->first.substr(prefix.size()), entry->second);
}

void check_read(bool is_found, const std::string& key) {
  if (!is_found)
    retrograd::fail(Category::bad_argument, "read",
                    fmt::format("the archive has no {}", retrograd::printable(key)));
}

}  // namespace

// ---- OutputArchive ----------------------------------------------------------------------------------------

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  tensors_.insert_or_assign(key, tensor);
}

void OutputArchive::write(const std::string& key, const IValue& value) {
  if (value.isTensor()) return write(key, value.toTensor());
  values_.insert_or_assign(key, std::visit(ToText(), value.kinds()));
}

void OutputArchive::write(const std::string& key, const OutputArchive& nested) {
  for (const auto& [name, tensor] : nested.tensors_) tensors_.insert_or_assign(key + "." + name, tensor);
  for (const auto& [name, value] : nested.values_) values_.insert_or_assign(key + "." + name, value);
}

void OutputArchive::write(const StateDict& state) {
  for (const auto& [name, tensor] : state) write(name, tensor);
}

void OutputArchive::save_to(const std::string& path) const { retrograd::save(tensors_, path, values_); }
void OutputArchive::save_to(std::ostream& out) const { retrograd::save(tensors_, out, values_); }
void OutputArchive::save_to(const std::function<size_t(const void*, size_t)>& write) const {
  const retrograd::ByteSink sink = [&](const void* data, size_t size) {
    if (write(data, size) != size)
      throw retrograd::FileError("the archive: the function has not taken all bytes");
  };
  retrograd::save(tensors_, sink, values_);
}

// ---- InputArchive -----------------------------------------------------------------------------------------

InputArchive::InputArchive() : content_(std::make_shared<Content>()) {}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  const auto found = content_->tensors.find(prefix_ + key);
  if (found == content_->tensors.end()) return false;
  NoGradGuard no_grad;
  // Without a device, values are on the CPU, wherever the tensor is.
  const Tensor value = !device_ && tensor.defined() ? found->second.to(tensor.device()) : found->second;
  if (tensor.defined() && tensor.impl().type() == value.impl().type()) {
    tensor.copy_(value);
  } else if (tensor.defined() && tensor.requires_grad()) {
    retrograd::fail(Category::shape_mismatch, "read",
                    fmt::format("{} is {} in the archive, and the tensor is {}", retrograd::printable(key),
                                describe(value), describe(tensor)));
  } else {
    tensor = value;
  }
  return true;
}

bool InputArchive::try_read(const std::string& key, IValue& value) {
  if (const auto found = content_->values.find(prefix_ + key); found != content_->values.end()) {
    value = parse(found->second, key);
    return true;
  }
  Tensor tensor;
  if (!try_read(key, tensor)) return false;
  value = tensor;
  return true;
}

bool InputArchive::try_read(const std::string& key, InputArchive& nested) {
  const std::string prefix = prefix_ + key + ".";
  bool is_found = false;
  each_below(content_->tensors, prefix, [&](const auto&, const auto&) { is_found = true; });
  each_below(content_->values, prefix, [&](const auto&, const auto&) { is_found = true; });
  if (!is_found) return false;
  nested.content_ = content_;
  nested.prefix_ = prefix;
  nested.device_ = device_;
  return true;
}

void InputArchive::read(const std::string& key, Tensor& tensor, bool) {
  check_read(try_read(key, tensor), key);
}
void InputArchive::read(const std::string& key, IValue& value) { check_read(try_read(key, value), key); }
void InputArchive::read(const std::string& key, InputArchive& nested) {
  check_read(try_read(key, nested), key);
}

std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& name, const auto&) {
    keys.push_back(name.substr(0, name.find('.')));
  };
  each_below(content_->tensors, prefix_, add);
  each_below(content_->values, prefix_, add);
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

StateDict InputArchive::state_dict() const {
  StateDict state;
  each_below(content_->tensors, prefix_,
             [&](const std::string& name, const Tensor& tensor) { state.emplace(name, tensor); });
  return state;
}

void InputArchive::take(Content content, std::optional<Device> device) {
  if (device)
    for (auto& [name, tensor] : content.tensors) tensor = tensor.to(*device);
  content_ = std::make_shared<Content>(std::move(content));
  prefix_.clear();
  device_ = device;
}

void InputArchive::load_from(const std::string& path, std::optional<Device> device) {
  Content content;
  content.tensors = retrograd::load(path, &content.values);
  take(std::move(content), device);
}
void InputArchive::load_from(std::istream& in, std::optional<Device> device) {
  Content content;
  content.tensors = retrograd::load(in, &content.values);
  take(std::move(content), device);
}
void InputArchive::load_from(const char* data, size_t size, std::optional<Device> device) {
  Content content;
  content.tensors = retrograd::load(std::as_bytes(std::span(data, size)), &content.values);
  take(std::move(content), device);
}

void InputArchive::load_from(const std::function<size_t(uint64_t, void*, size_t)>& read,
                             const std::function<size_t()>& size, std::optional<Device> device) {
  std::vector<char> bytes(size());
  if (read(0, bytes.data(), bytes.size()) != bytes.size())
    throw retrograd::FileError("cannot read the archive: the function has not given all bytes");
  load_from(bytes.data(), bytes.size(), device);
}

// ---- what is saved ----------------------------------------------------------------------------------------

OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}

OutputArchive& operator<<(OutputArchive& archive, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, std::vector<Tensor>& tensors) {
  Tensor next;
  for (size_t i = 0; archive.try_read(std::to_string(i), next); ++i)
    tensors.push_back(std::exchange(next, {}));
  return archive;
}

OutputArchive& operator<<(OutputArchive& archive, const optim::Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, optim::Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

}  // namespace serialize

void optim::Optimizer::save(serialize::OutputArchive& archive) const { archive.write(state_dict()); }
void optim::Optimizer::load(serialize::InputArchive& archive) { load_state_dict(archive.state_dict()); }

}  // namespace torch
