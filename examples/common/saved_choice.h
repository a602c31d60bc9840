// --saved: the pair of hooks for the forward, and the folder that it may need.
//
//   keep          none: tensors are kept as they are
//   half, fp8     save_as_half, save_as_fp8 (hooks/stock.h)
//   offload       save_on_cpu, pinned: for a model on a device
//   offload-file  save_to_file: --offload-dir, or a private folder that is removed with the program
// The last two begin to fetch values two computing nodes before their use.
#pragma once

#include <memory>

#include "examples/common/options.h"
#include "retrograd/retrograd.h"

namespace examples {

/// A private folder in the system's temporary one, removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class SavedChoice {
 public:
  /// `parameters` are never packed.
  SavedChoice(const Options& options, const retrograd::Tensors& parameters);
  /// The pair to run the forward under; null to keep tensors as they are.
  const retrograd::RefPtr<retrograd::SavedTensorHooks>& hooks() const { return hooks_; }
  /// What it does, in a few words.
  const std::string& description() const { return description_; }

 private:
  std::string description_;
  std::unique_ptr<TemporaryFolder> folder_;
  retrograd::RefPtr<retrograd::SavedTensorHooks> hooks_;
};

}  // namespace examples
