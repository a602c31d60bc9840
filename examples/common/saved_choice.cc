// See examples/common/saved_choice.h.
#include "examples/common/saved_choice.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace examples {

namespace fs = std::filesystem;
namespace rg = retrograd;

TemporaryFolder::TemporaryFolder() : path_((fs::temp_directory_path() / "retrograd-XXXXXX").string()) {
  if (!::mkdtemp(path_.data()))
    throw rg::FileError(path_ + ": cannot create a temporary folder: " + std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

SavedChoice::SavedChoice(const Options& options, const rg::Tensors& parameters) {
  if (options.saved == "half") hooks_ = rg::save_as_half(parameters);
  if (options.saved == "fp8") hooks_ = rg::save_as_fp8(parameters);
  if (options.saved != "offload-file") return;
  if (options.offload_dir.empty()) folder_ = std::make_unique<TemporaryFolder>();
  hooks_ = rg::save_to_file(folder_ ? folder_->path() : options.offload_dir, parameters);
}

}  // namespace examples
