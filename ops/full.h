// The op of the factories: a tensor filled with one value.
#pragma once

#include "ops/attributes.h"

namespace retrograd::inline v0::ops {

/// A constant tensor.
struct Full {
  struct Attrs {
    Shape size;
    Scalar value;
    ScalarType dtype = kFloat32;
    Device device = kCPU;
    void visit(AttrVisitor& v) {
      v.field("size", size);
      v.field("value", value);
      v.field("dtype", dtype);
      v.field("device", device);
    }
  };
  static constexpr std::string_view name = "full", doc = "a tensor of one value",
                                    no_derivative = "it has no operands";
  static constexpr std::string_view example = "{size=[2,3], value=1.0, dtype=f32} : f32[2,3]";
  static constexpr int8_t arity = 0;
  static constexpr uint32_t traits = static_cast<uint32_t>(Trait::pure);
  static void infer(const Call& call, TensorImpl* const* outputs) {
    const Attrs& a = call.attrs_as<Attrs>();
    check_sizes(call, a.size);
    if (a.dtype == ScalarType::Undefined) fail_call(call, Category::bad_argument, "the dtype is undefined");
    outputs[0]->set_type(a.dtype, a.device, a.size);
  }
};

using CreationOps = OpList<Full>;

}  // namespace retrograd::ops
