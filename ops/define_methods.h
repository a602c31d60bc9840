// Makes the definitions of the methods that a list of engine/method_list.h declares; for the .cc file of that family,
// which includes the functions and then expands
//
//   RG_INDEX_METHODS(RG_METHOD, RG_BOTH)
//
// A method calls the function of its name. An in-place form gives the function to apply_inplace (engine/inplace.h),
// a form that changes the geometry to change_geometry. All report the caller's line.
#pragma once

#include "engine/inplace.h"

#define RG_DEFAULT(...)  // the declarations have them
#define RG_LIST(...) __VA_ARGS__ __VA_OPT__(, )

#define RG_METHOD(RESULT, NAME, PARAMETERS, ...)                              \
  RESULT Tensor::NAME(RG_LIST PARAMETERS SourceLocation where) const {        \
    const CallScope call(where);                                              \
    return retrograd::NAME(Operand(*this, where) __VA_OPT__(, ) __VA_ARGS__); \
  }
#define RG_WRITTEN_BY(WRITE, NAME, PARAMETERS, ...)                                                     \
  const Tensor& Tensor::NAME##_(RG_LIST PARAMETERS SourceLocation where) const {                        \
    return WRITE(                                                                                       \
        *this,                                                                                          \
        [&](const Tensor& x) { return retrograd::NAME(Operand(x, where) __VA_OPT__(, ) __VA_ARGS__); }, \
        #NAME "_", where);                                                                              \
  }
#define RG_IN_PLACE(NAME, PARAMETERS, ...) \
  RG_WRITTEN_BY(apply_inplace, NAME, PARAMETERS __VA_OPT__(, ) __VA_ARGS__)
#define RG_BOTH(NAME, PARAMETERS, ...)                           \
  RG_METHOD(Tensor, NAME, PARAMETERS __VA_OPT__(, ) __VA_ARGS__) \
  RG_IN_PLACE(NAME, PARAMETERS __VA_OPT__(, ) __VA_ARGS__)
#define RG_GEOMETRY(NAME, PARAMETERS, ...)                       \
  RG_METHOD(Tensor, NAME, PARAMETERS __VA_OPT__(, ) __VA_ARGS__) \
  RG_WRITTEN_BY(change_geometry, NAME, PARAMETERS __VA_OPT__(, ) __VA_ARGS__)
