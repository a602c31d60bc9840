// TrainingState: all state of a training in one file, from which it goes on with the same bits.
//
//   int64_t step = 0;
//   rg::TrainingState state;
//   state.add("model", net).add("optimizer", optimizer).add("scheduler", scheduler)
//             .add("generator", rg::default_generator()).add("step", step);
//   if (std::filesystem::exists(path)) state.load(path);
//   while (step < steps) {
//     ... a step ...
//     if (++step % 100 == 0) state.save(path);
//   }
//
// Data: what was added, by name: parts (anything with state_dict() and load_state_dict(), tensors, generators), values
// (numbers and texts) and settings, which must be the same where the file is loaded. A TrainingState refers to them;
// they outlive it. One description serves both directions, so nothing is saved that is not loaded.
// The file is a safetensors file (io/safetensors_file.h). The tensor "optimizer.0.exp_avg" is "0.exp_avg" of the part
// "optimizer"; a tensor or generator is one tensor with the name of the part. Values and settings are metadata, as text
// that reads back as the same number. The metadata "retrograd.training" is the version of this layout.
// Saving is atomic (io/atomic_file.h): whenever the process is killed, the path has the old file or the new one.
// Loading is all or nothing. The file is read and its values are checked first. Then the parts are loaded in the order
// in which they were added; if one refuses its state, those before it get back the state that they had.
// Limits: one thread at a time. Loading needs memory for the file and a copy of the state. Where the step of a device
// is still running, saving waits for it.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/random.h"
#include "io/state_dict.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Modules, optimizers, schedulers, scalers, averages.
template <class T>
concept HasState = requires(T& part, const StateDict& state) {
  { part.state_dict() } -> std::convertible_to<StateDict>;
  part.load_state_dict(state);
};

class TrainingState {
 public:
  /// Adds a part. Error(bad_argument) for a name that is empty, taken, or has a dot.
  template <HasState T>
  TrainingState& add(const std::string& name, T& part) {
    return add_part(
        name, [&part] { return part.state_dict(); },
        [&part](const StateDict& state) { part.load_state_dict(state); });
  }
  /// A tensor is loaded into its memory, and must have the dtype and shape of the file's.
  TrainingState& add(const std::string& name, const Tensor& tensor);
  TrainingState& add(const std::string& name, Generator& generator);
  /// Adds a value.
  TrainingState& add(const std::string& name, int64_t& value);
  TrainingState& add(const std::string& name, double& value);
  TrainingState& add(const std::string& name, std::string& value);
  /// Adds a setting that is saved; a file in which it is another one, or absent, is refused.
  TrainingState& require(const std::string& name, const std::string& setting);

  /// Writes the file, all or nothing: after an error the old file is still there. Throws FileError.
  void save(const std::string& path, SourceLocation where = SourceLocation::current()) const;

  /// Loads everything, or throws and changes nothing. FileError for a file that cannot be read, is none of these, has
  /// another version, lacks a part or value, has a part that was not added, or another setting; the errors of
  /// load_state_dict(), with the part and the file.
  void load(const std::string& path);

  /// The state of one part of a file: load_part(path, "model") is what a model loads that is not trained further.
  /// Throws FileError; also if the file has no such part.
  static StateDict load_part(const std::string& path, std::string_view part);

 private:
  // What remains to be done when all has been checked; does not throw.
  using Assign = std::function<void()>;
  struct Part {
    std::string name;
    std::function<StateDict()> state;
    std::function<void(const StateDict&)> load;
  };
  struct Value {
    std::string name;
    std::function<std::string()> text;
    // `place` is for FileError: the path and the name.
    std::function<Assign(const std::string& place, const std::string& text)> parse;
  };
  struct Content;

  void check_name(const std::string& name) const;
  TrainingState& add_part(const std::string& name, std::function<StateDict()> state,
                          std::function<void(const StateDict&)> load);
  template <class T>
  TrainingState& add_number(const std::string& name, T& value);
  std::vector<Assign> parse_values(const std::string& path, const SafetensorsMetadata& metadata) const;
  void check_parts(const Content& content) const;
  void load_parts(const Content& content) const;

  std::vector<Part> parts_;
  std::vector<Value> values_;
};

}  // namespace retrograd
#pragma GCC visibility pop
