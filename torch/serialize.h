// torch::save, torch::load and archives, in safetensors files.
//
//   torch::save(model, "model.pt");          torch::load(model, "model.pt");
//   torch::save(optimizer, stream);          torch::load(optimizer, stream);
//   torch::save(tensors, "tensors.pt");      torch::load(tensor, "tensor.pt");
//
// An archive is a StateDict and values by name; names of what is nested have dots. A module is saved as its
// state_dict(), an optimizer likewise; a tensor is "0", a list "0", "1", ... Python reads such files with
// safetensors.torch.load_file. Values are metadata of the file, as text with the kind in front. Files that Python's
// torch.save has written are a FileError with a hint. A value is loaded all or nothing where its load_state_dict() is.
// Limits: a stream is read to its end, so it holds one archive.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>

#include "io/state_dict.h"
#include "torch/ivalue.h"
#include "torch/optim.h"

#pragma GCC visibility push(default)
namespace torch {
namespace serialize {

class OutputArchive {
 public:
  OutputArchive() = default;
  OutputArchive(OutputArchive&&) = default;
  OutputArchive& operator=(OutputArchive&&) = default;

  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, const OutputArchive& nested);
  void write(const retrograd::StateDict& state);
  template <class... Arguments>
  void operator()(Arguments&&... arguments) {
    write(std::forward<Arguments>(arguments)...);
  }

  // Error(bad_argument) for an undefined tensor, FileError.
  void save_to(const std::string& path) const;
  void save_to(std::ostream& out) const;
  /// `write` returns how many bytes it has taken: FileError unless all.
  void save_to(const std::function<size_t(const void*, size_t)>& write) const;

 private:
  retrograd::StateDict tensors_;
  retrograd::SafetensorsMetadata values_;
};

class InputArchive {
 public:
  InputArchive();
  InputArchive(InputArchive&&) = default;
  InputArchive& operator=(InputArchive&&) = default;

  /// A defined tensor of the same type gets the values in its memory; another one becomes the tensor of the file, which
  /// is an Error(shape_mismatch) for one that requires a gradient. Unless load_from was given a device, a defined tensor
  /// stays on its own. Error(bad_argument) for a key that is not there.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, IValue& value);
  void read(const std::string& key, InputArchive& nested);
  /// False for a key that is not there.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  bool try_read(const std::string& key, IValue& value);
  bool try_read(const std::string& key, InputArchive& nested);
  template <class... Arguments>
  void operator()(Arguments&&... arguments) {
    read(std::forward<Arguments>(arguments)...);
  }
  /// Given to load_from.
  std::optional<Device> device() const { return device_; }
  /// The first parts of all names.
  std::vector<std::string> keys() const;
  retrograd::StateDict state_dict() const;

  // To the CPU, or to a device. FileError.
  void load_from(const std::string& path, std::optional<Device> device = {});
  void load_from(std::istream& in, std::optional<Device> device = {});
  void load_from(const char* data, size_t size, std::optional<Device> device = {});
  /// size() bytes, which read(position, to, count) writes to memory; it returns how many: FileError unless all.
  void load_from(const std::function<size_t(uint64_t position, void* to, size_t count)>& read,
                 const std::function<size_t()>& size, std::optional<Device> device = {});

 private:
  struct Content {
    retrograd::StateDict tensors;
    retrograd::SafetensorsMetadata values;
  };
  void take(Content content, std::optional<Device> device);

  std::shared_ptr<const Content> content_;
  std::string prefix_;  // of a nested archive: "key."
  std::optional<Device> device_;
};

/// What points to something with save() and load(): a module's holder, a shared_ptr of a module. Those of the class that
/// the pointer has are called, which a user's module may have instead of Module's.
template <class T>
concept PointsToSaved = requires(T& t, OutputArchive& output, InputArchive& input) {
  t->save(output);
  t->load(input);
};

OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor);
InputArchive& operator>>(InputArchive& archive, Tensor& tensor);
OutputArchive& operator<<(OutputArchive& archive, const std::vector<Tensor>& tensors);
InputArchive& operator>>(InputArchive& archive, std::vector<Tensor>& tensors);
OutputArchive& operator<<(OutputArchive& archive, const optim::Optimizer& optimizer);
InputArchive& operator>>(InputArchive& archive, optim::Optimizer& optimizer);
template <PointsToSaved T>
OutputArchive& operator<<(OutputArchive& archive, const T& value) {
  value->save(archive);
  return archive;
}
template <PointsToSaved T>
InputArchive& operator>>(InputArchive& archive, T& value) {
  // load() copies into the memory that is there, so a module goes to the device first.
  if constexpr (requires { value->to(*archive.device()); })
    if (archive.device()) value->to(*archive.device());
  value->load(archive);
  return archive;
}

}  // namespace serialize

/// Saves to a path, an ostream or a function: what OutputArchive::save_to takes.
template <class Value, class... To>
void save(const Value& value, To&&... to) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}

/// A list in braces: save({a, b}, "tensors.pt").
template <class... To>
void save(const std::vector<Tensor>& tensors, To&&... to) {
  serialize::OutputArchive archive;
  archive << tensors;
  archive.save_to(std::forward<To>(to)...);
}

/// Loads from a path, an istream, memory or a function: what InputArchive::load_from takes. With a device, a module is moved to it.
/// A list is appended to.
template <class Value, class... From>
void load(Value& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}

}  // namespace torch
#pragma GCC visibility pop
