// Comparison of tensors by the rules of the format: shape and dtype equal; integers and bool equal; floating
// elements both nan, equal, or both finite and |got - want| <= atol + rtol * |want|.
#pragma once

#include <optional>

#include "tests/conformance/suite.h"

namespace retrograd::conformance {

/// What differs, in one line ("max|d|=3.1e-02 at [1,0], want 0.52 got 0.49"); nothing when they agree. Both
/// are defined.
std::optional<std::string> difference(const Tensor& got, const Tensor& want, Tolerance tolerance);

/// The same with zeros as the wanted value, of the type of `of`.
std::optional<std::string> difference_from_zero(const Tensor& got, const Tensor& of, Tolerance tolerance);

/// Compares the tensors of one case with the suite's and notes the outcome in its log.
class Comparison {
 public:
  Comparison(const Suite& suite, const Json& test_case, CaseLog& log)
      : suite_(suite), case_(test_case), log_(log) {}

  /// `key` names the wanted value, or is null: then `got` must be undefined.
  void exactly(const std::string& what, const Tensor& got, const Json& key);
  /// The same for a gradient of `of`, or a tangent; undefined and all zeros are equal.
  void gradient(const std::string& what, const Tensor& got, const Tensor& of, const Json& key);

  /// `got` is a tensor of one element for the wanted number; undefined if `want` is null. Within the case's tolerance,
  /// or that of got's dtype.
  void number(const std::string& what, const Tensor& got, const Json& want);

  const Suite& suite() const { return suite_; }
  CaseLog& log() { return log_; }

 private:
  Tolerance tolerance(const Tensor& tensor) const { return suite_.tolerance(case_, tensor.dtype()); }
  void note(const std::string& what, const std::optional<std::string>& text);

  const Suite& suite_;
  const Json& case_;
  CaseLog& log_;
};

}  // namespace retrograd::conformance
