// See torch/types.h.
#include "torch/types.h"

namespace torch::detail {

void check_failed(const char* condition, const std::string& text, retrograd::SourceLocation where) {
  retrograd::fail(retrograd::Category::bad_argument, "TORCH_CHECK",
                  text.empty() ? std::string("expected ") + condition : text, where);
}

}  // namespace torch::detail
