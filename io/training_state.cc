// See io/training_state.h.
#include "io/training_state.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "engine/autograd.h"
#include "io/rng_state.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {

// A file, its tensors by part. The tensor of a part that is one tensor has an empty key.
struct TrainingState::Content {
  explicit Content(const std::string& path);

  std::string path;
  SafetensorsMetadata metadata;
  std::map<std::string, StateDict, std::less<>> parts;
};

namespace {

constexpr std::string_view kVersionKey = "retrograd.training", kVersion = "1";
constexpr std::string_view kAddedLater = "Hint: it was not added when the file was saved";

void check_version(const std::string& path, const SafetensorsMetadata& metadata) {
  const auto it = metadata.find(kVersionKey);
  if (it == metadata.end())
    throw FileError(fmt::format(
        "{}: not the state of a training: its metadata have no \"{}\". Hint: load() reads any safetensors "
        "file",
        path, kVersionKey));
  if (it->second != kVersion)
    throw FileError(
        fmt::format("{}: the layout has version {}, this library reads version {}. Hint: another release of "
                    "retrograd has written it",
                    path, printable(it->second), kVersion));
}

// Copies: the state of a part may share memory with it.
StateDict copied(const StateDict& state) {
  NoGradGuard no_grad;
  StateDict copies;
  for (const auto& [key, tensor] : state) copies.emplace(key, clone(tensor));
  return copies;
}

// The tensor of a part that is one tensor.
Tensor only_tensor(const StateDict& state) {
  if (state.size() != 1 || !state.begin()->first.empty())
    fail(Category::bad_argument, "TrainingState::load", "it is one tensor here, and several in the file");
  return state.begin()->second;
}

}  // namespace

TrainingState::Content::Content(const std::string& file) : path(file) {
  for (auto& [name, tensor] : retrograd::load(path, &metadata)) {
    const size_t dot = name.find('.');
    const std::string key = dot == std::string::npos ? "" : name.substr(dot + 1);
    parts[name.substr(0, dot)].emplace(key, tensor);
  }
  check_version(path, metadata);
}

void TrainingState::check_name(const std::string& name) const {
  const auto refuse = [&](std::string_view text) {
    fail(Category::bad_argument, "TrainingState::add", fmt::format("the name {} {}", printable(name), text));
  };
  const auto has_it = [&](const auto& entry) { return entry.name == name; };
  if (name.empty() || name.find('.') != std::string::npos) refuse("is empty or has a dot");
  if (std::ranges::any_of(parts_, has_it) || std::ranges::any_of(values_, has_it)) refuse("is taken");
}

TrainingState& TrainingState::add_part(const std::string& name, std::function<StateDict()> state,
                                       std::function<void(const StateDict&)> load) {
  check_name(name);
  parts_.push_back({name, std::move(state), std::move(load)});
  return *this;
}

TrainingState& TrainingState::add(const std::string& name, const Tensor& tensor) {
  const auto load = [tensor](const StateDict& state) {
    const Tensor loaded = only_tensor(state);
    if (loaded.dtype() != tensor.dtype() || loaded.sizes() != tensor.sizes())
      fail(loaded.dtype() == tensor.dtype() ? Category::shape_mismatch : Category::dtype_mismatch,
           "TrainingState::load",
           fmt::format("{} for a tensor that is {}", describe(loaded), describe(tensor)));
    NoGradGuard no_grad;
    tensor.copy_(loaded);
  };
  return add_part(
      name,
      [tensor] {
        return StateDict{{"", tensor.detach()}};
      },
      load);
}

TrainingState& TrainingState::add(const std::string& name, Generator& generator) {
  return add_part(
      name,
      [&generator] {
        return StateDict{{"", get_rng_state(generator)}};
      },
      [&generator](const StateDict& state) { set_rng_state(only_tensor(state), generator); });
}

template <class T>
TrainingState& TrainingState::add_number(const std::string& name, T& value) {
  check_name(name);
  const auto parse = [&value](const std::string& place, const std::string& text) -> Assign {
    T number{};
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || next != end)
      throw FileError(fmt::format("{} is {}, which is not {}", place, printable(text),
                                  std::integral<T> ? "an int64" : "a number"));
    return [&value, number] { value = number; };
  };
  values_.push_back({name, [&value] { return fmt::format("{}", value); }, parse});
  return *this;
}
TrainingState& TrainingState::add(const std::string& name, int64_t& value) { return add_number(name, value); }
TrainingState& TrainingState::add(const std::string& name, double& value) { return add_number(name, value); }

TrainingState& TrainingState::add(const std::string& name, std::string& value) {
  check_name(name);
  const auto parse = [&value](const std::string&, const std::string& text) -> Assign {
    return [&value, loaded = text]() mutable { value.swap(loaded); };
  };
  values_.push_back({name, [&value] { return value; }, parse});
  return *this;
}

TrainingState& TrainingState::require(const std::string& name, const std::string& setting) {
  check_name(name);
  const auto parse = [setting](const std::string& place, const std::string& text) -> Assign {
    if (text != setting)
      throw FileError(
          fmt::format("{} is {}, here it is {}. Hint: a training goes on with the settings it began with",
                      place, printable(text), printable(setting)));
    return [] {};
  };
  values_.push_back({name, [setting] { return setting; }, parse});
  return *this;
}

void TrainingState::save(const std::string& path, SourceLocation where) const {
  StateDict all;
  for (const Part& part : parts_)
    for (const auto& [key, tensor] : part.state())
      all.emplace(key.empty() ? part.name : part.name + '.' + key, tensor);
  SafetensorsMetadata metadata{{std::string(kVersionKey), std::string(kVersion)}};
  for (const Value& value : values_) metadata.emplace(value.name, value.text());
  retrograd::save(all, path, metadata, where);
}

void TrainingState::load(const std::string& path) {
  const Content content(path);
  const std::vector<Assign> assignments = parse_values(path, content.metadata);
  check_parts(content);
  load_parts(content);
  for (const Assign& assign : assignments) assign();
}

std::vector<TrainingState::Assign> TrainingState::parse_values(const std::string& path,
                                                               const SafetensorsMetadata& metadata) const {
  std::vector<Assign> assignments;
  for (const Value& value : values_) {
    const auto it = metadata.find(value.name);
    if (it == metadata.end())
      throw FileError(
          fmt::format("{}: the file has no value \"{}\" in its metadata. {}", path, value.name, kAddedLater));
    assignments.push_back(value.parse(fmt::format("{}: \"{}\"", path, value.name), it->second));
  }
  return assignments;
}

void TrainingState::check_parts(const Content& content) const {
  for (const auto& [name, state] : content.parts)
    if (std::ranges::none_of(parts_, [&](const Part& part) { return part.name == name; }))
      throw FileError(
          fmt::format("{}: the file has the part {}, which was not added here. Hint: "
                      "load_part() reads single parts",
                      content.path, printable(name)));
  for (const Part& part : parts_)
    if (!content.parts.contains(part.name) && !part.state().empty())
      throw FileError(
          fmt::format("{}: the file has no part \"{}\". {}", content.path, part.name, kAddedLater));
}

void TrainingState::load_parts(const Content& content) const {
  std::vector<StateDict> before;
  for (const Part& part : parts_) before.push_back(copied(part.state()));
  size_t now = 0;
  // The one that failed too: a scheduler made of several may have loaded some.
  const auto roll_back = [&] {
    for (size_t i = 0; i <= now; ++i) parts_[i].load(before[i]);
  };
  try {
    for (; now < parts_.size(); ++now) {
      const auto it = content.parts.find(parts_[now].name);
      parts_[now].load(it == content.parts.end() ? StateDict() : it->second);
    }
  } catch (Exception& e) {
    roll_back();
    e.add_context(fmt::format("in part \"{}\" of {}", parts_[now].name, content.path));
    throw;
  } catch (...) {
    roll_back();
    throw;
  }
}

StateDict TrainingState::load_part(const std::string& path, std::string_view part) {
  const Content content(path);
  const auto it = content.parts.find(part);
  if (it == content.parts.end())
    throw FileError(fmt::format("{}: the file has no part {}", path, printable(part)));
  return it->second;
}

}  // namespace retrograd
