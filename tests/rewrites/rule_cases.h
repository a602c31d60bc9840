// The cases of the tests of rules: the body of a graph before and after. D stands for each of the case's
// dtypes. What a body may use:
//   %x, %y: D[2,3]   %m: bool[2,3]        inputs
//   %p, %q: D[2,3]   %n: bool[2,3]        copies of them: memory that nobody else sees
//   %l: D[2,1,3]  %z: D[2]                a view and a sum of %p
#pragma once

#include <vector>

#include "tests/ir/passes/passes_test.h"

namespace rule_cases {

namespace rg = retrograd;

struct Case {
  std::vector<const char*> dtypes;
  const char *before, *after;
};

/// The graph with this body, for a dtype.
inline std::string text(const std::string& body, const std::string& dtype) {
  std::string all = R"(graph @g(%x: D[2,3], %y: D[2,3], %m: bool[2,3]) {
  %p = clone %x : D[2,3]
  %q = clone %y : D[2,3]
  %n = clone %m : bool[2,3]
  %l = view %p {size=[2,1,3]} : D[2,1,3]
  %z = amax %p {dim=[1], keepdim=false, nan_ties=false} : D[2]
)" + body + "\n}\n";
  for (size_t at = 0; (at = all.find('D', at)) != all.npos; at += dtype.size()) all.replace(at, 1, dtype);
  return all;
}

inline const std::vector<const char*> kFloats = {"f32", "f64", "f16", "bf16"},
                                      kIntegers = {"i64", "i32", "u8"},
                                      kNumbers = {"f32", "f64", "f16", "bf16", "i64", "i32", "u8"},
                                      kHalf = {"f16", "bf16"};

inline const std::vector<Case> kSimplified = {
    // numbers
    {kNumbers, "%1 = mul %p, 1 : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = mul 1.0, %p : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = div %p, 1.0 : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = sub %p, 0 : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = sub %p, 0.0 : D[2,3]\n return %1", "return %p"},
    {kIntegers, "%1 = add %p, 0 : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = div %x, 8.0 : D[2,3]\n return %1", "%1 = mul %x, 0.125 : D[2,3]\n return %1"},
    {kFloats, "%1 = mul %x, 2.0 : D[2,3]\n %2 = mul 4, %1 : D[2,3]\n return %2",
     "%1 = mul %x, 8.0 : D[2,3]\n return %1"},
    // signs
    {{"f32", "f64", "f16", "bf16", "i64", "i32"},
     "%1 = neg %p : D[2,3]\n %2 = neg %1 : D[2,3]\n return %2",
     "return %p"},
    {kFloats, "%1 = neg %y : D[2,3]\n %2 = add %x, %1 : D[2,3]\n return %2",
     "%1 = sub %x, %y : D[2,3]\n return %1"},
    {kFloats, "%1 = neg %y : D[2,3]\n %2 = add %1, %x : D[2,3]\n return %2",
     "%1 = sub %x, %y : D[2,3]\n return %1"},
    {kFloats, "%1 = neg %y : D[2,3]\n %2 = sub %x, %1 : D[2,3]\n return %2",
     "%1 = add %x, %y : D[2,3]\n return %1"},
    {kFloats, "%1 = neg %x : D[2,3]\n %2 = neg %y : D[2,3]\n %3 = mul %1, %2 : D[2,3]\n return %3",
     "%1 = mul %x, %y : D[2,3]\n return %1"},
    {kFloats, "%1 = neg %x : D[2,3]\n %2 = neg %y : D[2,3]\n %3 = div %1, %2 : D[2,3]\n return %3",
     "%1 = div %x, %y : D[2,3]\n return %1"},
    {kFloats, "%1 = neg %x : D[2,3]\n %2 = abs %1 : D[2,3]\n return %2", "%1 = abs %x : D[2,3]\n return %1"},
    {kFloats, "%1 = neg %x : D[2,3]\n %2 = square %1 : D[2,3]\n return %2",
     "%1 = square %x : D[2,3]\n return %1"},
    {kFloats, "%1 = abs %x : D[2,3]\n %2 = abs %1 : D[2,3]\n return %2", "%1 = abs %x : D[2,3]\n return %1"},
    {kFloats, "%1 = relu %x : D[2,3]\n %2 = relu %1 : D[2,3]\n return %2",
     "%1 = relu %x : D[2,3]\n return %1"},
    {kFloats, "%1 = sign %x : D[2,3]\n %2 = sign %1 : D[2,3]\n return %2",
     "%1 = sign %x : D[2,3]\n return %1"},
    {kFloats, "%1 = floor %x : D[2,3]\n %2 = floor %1 : D[2,3]\n return %2",
     "%1 = floor %x : D[2,3]\n return %1"},
    {kFloats, "%1 = ceil %x : D[2,3]\n %2 = ceil %1 : D[2,3]\n return %2",
     "%1 = ceil %x : D[2,3]\n return %1"},
    {kFloats, "%1 = trunc %x : D[2,3]\n %2 = trunc %1 : D[2,3]\n return %2",
     "%1 = trunc %x : D[2,3]\n return %1"},
    // conversions
    {kNumbers, "%1 = to %p {dtype=D} : D[2,3]\n return %1", "return %p"},
    {{"f32", "f16", "bf16", "i32", "u8", "bool"},
     "%1 = to %p {dtype=f64} : f64[2,3]\n %2 = to %1 {dtype=D} : D[2,3]\n return %2",
     "return %p"},
    {{"i32", "u8", "bool"},
     "%1 = to %p {dtype=i64} : i64[2,3]\n %2 = to %1 {dtype=D} : D[2,3]\n return %2",
     "return %p"},
    {kHalf, "%1 = to %x {dtype=f32} : f32[2,3]\n %2 = to %1 {dtype=f64} : f64[2,3]\n return %2",
     "%1 = to %x {dtype=f64} : f64[2,3]\n return %1"},
    {{"bf16"},
     "%1 = to %x {dtype=f32} : f32[2,3]\n %2 = to %1 {dtype=f16} : f16[2,3]\n return %2",
     "%1 = to %x {dtype=f16} : f16[2,3]\n return %1"},
    {{"f32"},
     "%1 = to %x {dtype=f64} : f64[2,3]\n %2 = to %1 {dtype=bf16} : bf16[2,3]\n return %2",
     "%1 = to %x {dtype=bf16} : bf16[2,3]\n return %1"},
    {{"i32"},
     "%1 = to %x {dtype=f64} : f64[2,3]\n %2 = to %1 {dtype=f32} : f32[2,3]\n return %2",
     "%1 = to %x {dtype=f32} : f32[2,3]\n return %1"},
    {{"i32"},
     "%1 = to %x {dtype=i64} : i64[2,3]\n %2 = to %1 {dtype=u8} : u8[2,3]\n return %2",
     "%1 = to %x {dtype=u8} : u8[2,3]\n return %1"},
    // choices and copies
    {kFloats, "%1 = maximum %p, %p : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = minimum %p, %p : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = where %m, %p, %p : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = logical_not %m : bool[2,3]\n %2 = where %1, %x, %y : D[2,3]\n return %2",
     "%1 = where %m, %y, %x : D[2,3]\n return %1"},
    {kNumbers, "%1 = logical_not %m : bool[2,3]\n %2 = where %1, %x, 2 : D[2,3]\n return %2",
     "%1 = where %m, 2, %x : D[2,3]\n return %1"},
    {{"f32"}, "%1 = logical_not %n : bool[2,3]\n %2 = logical_not %1 : bool[2,3]\n return %2", "return %n"},
    {kNumbers, "%1 = copy %x, %q : D[2,3]\n return %1", "return %q"},
    {kNumbers, "%1 = clone %p : D[2,3]\n %2 = clone %1 : D[2,3]\n return %2", "return %p"},
    // rows of tables: entries that are named twice, once and never, -0 among them
    {kFloats,
     "%i = to %n {dtype=i64} : i64[2,3]\n %g = view %p {size=[2,3,1]} : D[2,3,1]\n "
     "%t = amin %q {dim=[1], keepdim=true, nan_ties=false} : D[2,1]\n "
     "%e = embedding_backward %i, %g {padding_idx=-1, scale_grad_by_freq=false, without_padding=false, "
     "rows=2} : D[2,1]\n "
     "%s = accumulate %t, %e : D[2,1]\n return %s",
     "%i = to %n {dtype=i64} : i64[2,3]\n %g = view %p {size=[2,3,1]} : D[2,3,1]\n "
     "%t = amin %q {dim=[1], keepdim=true, nan_ties=false} : D[2,1]\n "
     "%s = embedding_add %t, %i, %g {padding_idx=-1, scale_grad_by_freq=false, without_padding=false} : "
     "D[2,1]\n return %s"},
    {kFloats,
     "%i = to %n {dtype=i64} : i64[2,3]\n %g = view %p {size=[2,3,1]} : D[2,3,1]\n "
     "%t = amin %q {dim=[1], keepdim=true, nan_ties=false} : D[2,1]\n "
     "%e = embedding_backward %i, %g {padding_idx=0, scale_grad_by_freq=true, without_padding=false, rows=2} "
     ": D[2,1]\n "
     "%s = add %e, %t : D[2,1]\n return %s",
     "%i = to %n {dtype=i64} : i64[2,3]\n %g = view %p {size=[2,3,1]} : D[2,3,1]\n "
     "%t = amin %q {dim=[1], keepdim=true, nan_ties=false} : D[2,1]\n "
     "%s = embedding_add %t, %i, %g {padding_idx=0, scale_grad_by_freq=true, without_padding=false} : "
     "D[2,1]\n return %s"},
    {kFloats,
     "%i = to %n {dtype=i64} : i64[2,3]\n %g = view %p {size=[2,3,1]} : D[2,3,1]\n "
     "%t = amin %q {dim=[1], keepdim=true, nan_ties=false} : D[2,1]\n "
     "%e = embedding_backward %i, %g {padding_idx=1, scale_grad_by_freq=false, without_padding=false, "
     "rows=2} : D[2,1]\n "
     "%s = accumulate %e, %t : D[2,1]\n return %s",
     "%i = to %n {dtype=i64} : i64[2,3]\n %g = view %p {size=[2,3,1]} : D[2,3,1]\n "
     "%t = amin %q {dim=[1], keepdim=true, nan_ties=false} : D[2,1]\n "
     "%s = embedding_add %t, %i, %g {padding_idx=1, scale_grad_by_freq=false, without_padding=false} : "
     "D[2,1]\n return %s"},
    // views
    {kNumbers, "%1 = alias %x : D[2,3]\n return %1", "return %x"},
    {kNumbers, "%1 = expand %x {size=[2,3]} : D[2,3]\n return %1", "return %x"},
    {kNumbers,
     "%1 = expand %l {size=[2,4,3]} : D[2,4,3]\n %2 = expand %1 {size=[5,2,4,3]} : D[5,2,4,3]\n return %2",
     "%1 = expand %l {size=[5,2,4,3]} : D[5,2,4,3]\n return %1"},
    {kNumbers, "%1 = view %x {size=[2,3]} : D[2,3]\n return %1", "return %x"},
    {kNumbers, "%1 = view %x {size=[6]} : D[6]\n %2 = view %1 {size=[3,2]} : D[3,2]\n return %2",
     "%1 = view %x {size=[3,2]} : D[3,2]\n return %1"},
    {kNumbers, "%1 = view %x {size=[6]} : D[6]\n %2 = view %1 {size=[2,3]} : D[2,3]\n return %2",
     "return %x"},
    {kNumbers, "%1 = permute %x {dims=[0,1]} : D[2,3]\n return %1", "return %x"},
    {kNumbers, "%1 = permute %x {dims=[1,0]} : D[3,2]\n %2 = permute %1 {dims=[1,0]} : D[2,3]\n return %2",
     "return %x"},
    {kNumbers,
     "%1 = permute %l {dims=[1,2,0]} : D[1,3,2]\n %2 = permute %1 {dims=[0,2,1]} : D[1,2,3]\n return %2",
     "%1 = permute %l {dims=[1,0,2]} : D[1,2,3]\n return %1"},
    {kNumbers, "%1 = slice %x {dim=1, start=0, length=3, step=1} : D[2,3]\n return %1", "return %x"},
    {kNumbers, "%1 = contiguous %p : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = contiguous %l : D[2,1,3]\n %2 = view %1 {size=[6]} : D[6]\n return %2",
     "%1 = view %p {size=[6]} : D[6]\n return %1"},
    {kNumbers, "%1 = contiguous %x : D[2,3]\n %2 = contiguous %1 : D[2,3]\n return %2",
     "%1 = contiguous %x : D[2,3]\n return %1"},
    // elements in their places
    {kIntegers,
     "%1 = slice_backward %p {dim=0, start=0, length=2, step=1, input_size=[2,3]} : D[2,3]\n return %1",
     "return %p"},
    {{"i64"}, "%1 = sum %l {dim=[1], keepdim=true} : D[2,1,3]\n return %1", "return %l"},
    {{"i64"}, "%1 = sum %l {dim=[1], keepdim=false} : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = amax %l {dim=[1], keepdim=false, nan_ties=false} : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = amin %l {dim=[1], keepdim=false, nan_ties=false} : D[2,3]\n return %1", "return %p"},
    {kFloats, "%1 = prod %l {dim=[1], keepdim=false} : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = cat %p {dim=1} : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = flip %p {dims=[0]} : D[2,3]\n %2 = flip %1 {dims=[0]} : D[2,3]\n return %2",
     "return %p"},
    {kNumbers, "%1 = flip %p {dims=[]} : D[2,3]\n return %1", "return %p"},
    {kNumbers, "%1 = tril %x {diagonal=1} : D[2,3]\n %2 = tril %1 {diagonal=1} : D[2,3]\n return %2",
     "%1 = tril %x {diagonal=1} : D[2,3]\n return %1"},
    {kNumbers, "%1 = triu %x {diagonal=0} : D[2,3]\n %2 = triu %1 {diagonal=0} : D[2,3]\n return %2",
     "%1 = triu %x {diagonal=0} : D[2,3]\n return %1"},
    {kFloats,
     "%1 = slice_backward %z {dim=0, start=2, length=2, step=1, input_size=[4]} : D[4]\n"
     " %2 = slice_backward %z {dim=0, start=0, length=2, step=1, input_size=[4]} : D[4]\n"
     " %3 = accumulate %1, %2 : D[4]\n return %3",
     "%1 = cat %z, %z {dim=0} : D[4]\n %2 = add %1, 0.0 : D[4]\n return %2"},
    {kFloats,
     "%a = slice_backward %x {dim=1, start=3, length=3, step=1, input_size=[2,9]} : D[2,9]\n"
     " %b = slice_backward %y {dim=1, start=6, length=3, step=1, input_size=[2,9]} : D[2,9]\n"
     " %c = slice_backward %p {dim=1, start=0, length=3, step=1, input_size=[2,9]} : D[2,9]\n"
     " %1 = accumulate %a, %b : D[2,9]\n %2 = accumulate %1, %c : D[2,9]\n return %2",
     "%1 = cat %p, %x, %y {dim=1} : D[2,9]\n %2 = add %1, 0.0 : D[2,9]\n return %2"},
    // copies that merge two dims are made where they are joined
    {kNumbers,
     "%1 = view %p {size=[1,2,3]} : D[1,2,3]\n %2 = permute %1 {dims=[0,2,1]} : D[1,3,2]\n"
     " %3 = contiguous %2 : D[1,3,2]\n %4 = view %3 {size=[1,6]} : D[1,6]\n %5 = cat %4, %4 {dim=1} : "
     "D[1,12]\n return %5",
     "%1 = view %p {size=[1,2,3]} : D[1,2,3]\n %2 = permute %1 {dims=[0,2,1]} : D[1,3,2]\n"
     " %3 = cat %2, %2 {dim=1} : D[1,6,2]\n %4 = view %3 {size=[1,12]} : D[1,12]\n return %4"},
    {kNumbers,
     "%1 = view %p {size=[1,2,3]} : D[1,2,3]\n %2 = permute %1 {dims=[0,2,1]} : D[1,3,2]\n"
     " %3 = clone %2 : D[1,3,2]\n %4 = view %3 {size=[1,6]} : D[1,6]\n %5 = cat %4, %4 {dim=1} : "
     "D[1,12]\n return %5",
     "%1 = view %p {size=[1,2,3]} : D[1,2,3]\n %2 = permute %1 {dims=[0,2,1]} : D[1,3,2]\n"
     " %3 = cat %2, %2 {dim=1} : D[1,6,2]\n %4 = view %3 {size=[1,12]} : D[1,12]\n return %4"},
    {kFloats,
     "%1 = permute %p {dims=[1,0]} : D[3,2]\n %2 = contiguous %1 : D[3,2]\n %3 = view %2 {size=[6]} : D[6]\n"
     " %4 = slice_backward %3 {dim=0, start=6, length=6, step=1, input_size=[12]} : D[12]\n"
     " %5 = slice_backward %3 {dim=0, start=0, length=6, step=1, input_size=[12]} : D[12]\n"
     " %6 = accumulate %4, %5 : D[12]\n return %6",
     "%1 = permute %p {dims=[1,0]} : D[3,2]\n %2 = cat %1, %1 {dim=0} : D[6,2]\n %3 = view %2 {size=[12]} : "
     "D[12]\n"
     " %4 = add %3, 0.0 : D[12]\n return %4"},
    // several rules, one after the other
    {kFloats,
     "%1 = neg %p : D[2,3]\n %2 = mul %1, 1.0 : D[2,3]\n %3 = contiguous %2 : D[2,3]\n"
     " %4 = view %3 {size=[6]} : D[6]\n %5 = neg %4 : D[6]\n %6 = sub %5, 0 : D[6]\n return %6",
     "%1 = neg %p : D[2,3]\n %2 = view %1 {size=[6]} : D[6]\n %3 = neg %2 : D[6]\n return %3"},
};

/// Cases that resemble the above but are not exact, or not allowed with memory that others can see.
inline const std::vector<Case> kLeftAlone = {
    {kFloats, "%1 = add %p, 0.0 : D[2,3]\n return %1", ""},
    {kFloats, "%1 = sub %p, -0.0 : D[2,3]\n return %1", ""},
    {kFloats, "%1 = sub 0.0, %p : D[2,3]\n return %1", ""},
    {kFloats, "%1 = div 1.0, %p : D[2,3]\n return %1", ""},
    {kFloats, "%1 = div %p, 3.0 : D[2,3]\n return %1", ""},
    {kFloats, "%1 = mul %p, 0.5 : D[2,3]\n %2 = mul %1, 0.5 : D[2,3]\n return %2", ""},
    {kFloats, "%1 = mul %p, 2.0 : D[2,3]\n %2 = mul %1, 3.0 : D[2,3]\n return %2", ""},
    {kFloats, "%1 = sub %p, %q : D[2,3]\n %2 = neg %1 : D[2,3]\n return %2", ""},
    {kFloats, "%1 = mul %x, 1.0 : D[2,3]\n return %1", ""},
    {kFloats, "%1 = mul %p, 1.0 : D[2,3]\n return %1, %p", ""},
    {kFloats, "%1 = permute %p {dims=[1,0]} : D[3,2]\n %2 = mul %1, 1.0 : D[3,2]\n return %2", ""},
    {kFloats, "%1 = permute %p {dims=[1,0]} : D[3,2]\n %2 = contiguous %1 : D[3,2]\n return %2", ""},
    {kNumbers, "%1 = contiguous %x : D[2,3]\n return %1", ""},
    {kNumbers, "%1 = clone %x : D[2,3]\n return %1", ""},
    {kNumbers, "%1 = detach %p : D[2,3]\n return %1", ""},
    {kNumbers, "%1 = slice %p {dim=0, start=1, length=1, step=1} : D[1,3]\n return %1", ""},
    {{"f64"}, "%1 = to %p {dtype=f32} : f32[2,3]\n %2 = to %1 {dtype=f64} : f64[2,3]\n return %2", ""},
    {{"i32"}, "%1 = to %p {dtype=f32} : f32[2,3]\n %2 = to %1 {dtype=i32} : i32[2,3]\n return %2", ""},
    {{"i32"}, "%1 = to %p {dtype=f64} : f64[2,3]\n %2 = to %1 {dtype=u8} : u8[2,3]\n return %2", ""},
    {kFloats, "%1 = sum %l {dim=[0], keepdim=true} : D[1,1,3]\n return %1", ""},
    {kFloats, "%1 = sum %l {dim=[1], keepdim=false} : D[2,3]\n return %1", ""},
    {kFloats, "%1 = mean %l {dim=[1], keepdim=false} : D[2,3]\n return %1", ""},
    {kFloats,
     "%1 = slice_backward %p {dim=0, start=0, length=2, step=1, input_size=[2,3]} : D[2,3]\n return %1", ""},
    {kFloats,
     "%1 = slice_backward %z {dim=0, start=1, length=2, step=1, input_size=[4]} : D[4]\n"
     " %2 = slice_backward %z {dim=0, start=2, length=2, step=1, input_size=[4]} : D[4]\n"
     " %3 = accumulate %1, %2 : D[4]\n return %3",
     ""},
    {kFloats,
     "%1 = slice_backward %z {dim=0, start=0, length=2, step=1, input_size=[5]} : D[5]\n"
     " %2 = slice_backward %z {dim=0, start=2, length=2, step=1, input_size=[5]} : D[5]\n"
     " %3 = accumulate %1, %2 : D[5]\n return %3",
     ""},
    // other inner sizes; another dim; one that is no copy
    {kNumbers,
     "%1 = permute %p {dims=[1,0]} : D[3,2]\n %2 = contiguous %1 : D[3,2]\n %3 = view %2 {size=[6]} : D[6]\n"
     " %4 = view %x {size=[1,6]} : D[1,6]\n %5 = permute %4 {dims=[1,0]} : D[6,1]\n %6 = contiguous %5 : "
     "D[6,1]\n"
     " %7 = view %6 {size=[6]} : D[6]\n %8 = cat %3, %7 {dim=0} : D[12]\n return %8",
     ""},
    {kNumbers,
     "%1 = view %p {size=[2,1,3]} : D[2,1,3]\n %2 = permute %1 {dims=[2,0,1]} : D[3,2,1]\n"
     " %3 = contiguous %2 : D[3,2,1]\n %4 = view %3 {size=[3,2]} : D[3,2]\n %5 = cat %4, %4 {dim=0} : "
     "D[6,2]\n return %5",
     ""},
    {kNumbers,
     "%1 = permute %p {dims=[1,0]} : D[3,2]\n %2 = contiguous %1 : D[3,2]\n %3 = view %2 {size=[6]} : D[6]\n"
     " %4 = view %x {size=[6]} : D[6]\n %5 = cat %3, %4 {dim=0} : D[12]\n return %5",
     ""},
    {kNumbers, "%1 = flip %p {dims=[0]} : D[2,3]\n %2 = flip %1 {dims=[1]} : D[2,3]\n return %2", ""},
    {kNumbers, "%1 = tril %p {diagonal=1} : D[2,3]\n %2 = tril %1 {diagonal=0} : D[2,3]\n return %2", ""},
};

/// The graph after some passes.
inline rg::ir::Graph after(std::initializer_list<const char*> passes, const std::string& text) {
  rg::ir::PassSet on;
  for (const char* name : passes) on |= rg::ir::passes_named(name);
  rg::ir::Graph graph = ir_test::parse(text);
  rg::ir::run_passes(graph, {.input = rg::rewrites::all(), .off = ~on, .verify = true});
  return graph;
}

}  // namespace rule_cases
