// In-place forms as functions, where libtorch has functions of them: relu_(x) is x.relu_(), and returns x. Made from the
// lists of engine/method_list.h. Errors: engine/inplace.h.
#pragma once

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

#define RG_DEFAULT(...) = __VA_ARGS__
#define RG_LIST(...) __VA_ARGS__ __VA_OPT__(, )
#define RG_METHOD(...)
#define RG_FUNCTION(NAME, PARAMETERS, ...)                                                            \
  inline const Tensor& NAME##_(const Tensor& self,                                                    \
                               RG_LIST PARAMETERS SourceLocation where = SourceLocation::current()) { \
    return self.NAME##_(__VA_ARGS__ __VA_OPT__(, ) where);                                            \
  }
RG_UNARY_METHODS(RG_METHOD, RG_FUNCTION, RG_FUNCTION)
RG_BINARY_METHODS(RG_METHOD, RG_METHOD, RG_FUNCTION)
RG_SPECIAL_METHODS(RG_METHOD, RG_FUNCTION)
RG_FUNCTION(clamp, (std::optional<Scalar> min RG_DEFAULT({}), std::optional<Scalar> max RG_DEFAULT({})), min,
            max)
RG_FUNCTION(fill, (const Operand& value), value)
RG_FUNCTION(zero, ())
RG_FUNCTION(index_put, (const Indices& indices, const Operand& values, bool accumulate RG_DEFAULT(false)),
            indices, values, accumulate)
RG_FUNCTION(addmv,
            (const Tensor& mat, const Tensor& vec, Scalar beta RG_DEFAULT(1), Scalar alpha RG_DEFAULT(1)),
            mat, vec, beta, alpha)
RG_FUNCTION(as_strided,
            (const IntArray& size, const IntArray& stride,
             std::optional<int64_t> storage_offset RG_DEFAULT({})),
            size, stride, storage_offset)
#undef RG_DEFAULT
#undef RG_LIST
#undef RG_METHOD
#undef RG_FUNCTION

}  // namespace retrograd
#pragma GCC visibility pop
