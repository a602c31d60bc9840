// See torch/types.h and torch/dispatch.h.
#include "torch/dispatch.h"

namespace torch {

const char* toString(ScalarType dtype) {
  switch (dtype) {
    case kBool: return "Bool";
    case kByte: return "Byte";
    case kInt: return "Int";
    case kLong: return "Long";
    case kHalf: return "Half";
    case kBFloat16: return "BFloat16";
    case kFloat: return "Float";
    case kDouble: return "Double";
    case kFloat8_e4m3fn: return "Float8_e4m3fn";
    case kFloat8_e5m2: return "Float8_e5m2";
    default: return "Undefined";
  }
}

void detail::no_kernel(const char* name, ScalarType dtype) {
  retrograd::fail(retrograd::Category::dtype_mismatch, name,
                  std::string("not implemented for '") + toString(dtype) + "'");
}

void detail::check_failed(const char* condition, const std::string& text, retrograd::SourceLocation where) {
  retrograd::fail(retrograd::Category::bad_argument, "TORCH_CHECK",
                  text.empty() ? std::string("expected ") + condition : text, where);
}

}  // namespace torch
