// Matrices of Eigen for the sources of one instruction-set level: maps of the caller's rows, and copies. Eigen is renamed
// per level by the build (tools/isa.bzl), and what is here is local to a source, so levels share no templates.
#pragma once

#include <cstdint>

#include <Eigen/Core>

namespace retrograd::inline v0::cpu::RG_ISA {
namespace {

template <class T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Map = Eigen::Map<Rows<T>>;
template <class T>
using ConstMap = Eigen::Map<const Rows<T>>;

/// Decompositions that apply blocks of Householder reflections to columns work on such copies.
template <class T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// For operands that are not finite. `out` may be null.
template <class T>
[[maybe_unused]] void fill_nan(T* out, int64_t rows, int64_t columns) {
  if (out) Map<T>(out, rows, columns).setConstant(Eigen::NumTraits<T>::quiet_NaN());
}

}  // namespace
}  // namespace retrograd::cpu::RG_ISA
