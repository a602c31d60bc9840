// Runs one case in one mode. Nothing that a case does ends the run: every exception becomes part of the outcome.
#pragma once

#include "tests/conformance/differentiator.h"
#include "tests/conformance/suite.h"

namespace retrograd::conformance {

struct CaseResult {
  enum class Verdict { pass, fail, unsupported };
  Verdict verdict = Verdict::pass;
  std::vector<CaseLog::Failure> failures;
  std::string lacking;  // of an unsupported case: "op=conv2d"
  CaseLog::Twin twin = CaseLog::Twin::none;  // of mode dynamic
};

/// True when the case has to hold in this mode.
bool applies(const Json& test_case, Mode mode);

CaseResult run_case(const Suite& suite, const Json& test_case, Mode mode);

}  // namespace retrograd::conformance
