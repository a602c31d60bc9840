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

// Read or copied back a few kernels before their use, if the peak has room for it.
constexpr rg::PrefetchOptions kAhead{.nodes = 2};

SavedChoice::SavedChoice(const Options& options, const rg::Tensors& parameters)
    : description_(options.saved) {
  if (options.saved == "offload") {
    hooks_ = rg::save_on_cpu(true, parameters, kAhead);
    description_ += options.place() == rg::kCPU ? ", to where the CPU's tensors are anyway: nothing is gained"
                                                : ", to pinned memory of the host";
  }
  if (options.saved == "half") hooks_ = rg::save_as_half(parameters);
  if (options.saved == "fp8") hooks_ = rg::save_as_fp8(parameters);
  if (options.saved != "offload-file") return;
  if (options.offload_dir.empty()) folder_ = std::make_unique<TemporaryFolder>();
  hooks_ = rg::save_to_file(folder_ ? folder_->path() : options.offload_dir, parameters, kAhead);
}

}  // namespace examples
