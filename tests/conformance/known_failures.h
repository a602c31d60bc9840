// The cases that are known to fail: a list of exact names, which can only become shorter. A listed case that does not fail is reported as
// a failure, and so is one that did not run.
//
// A line of the file is a case's name and the modes in which it fails: "numerics.exp.00 eager traced". Lines that begin with # are comments.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/conformance/differentiator.h"

namespace retrograd::conformance {

class KnownFailures {
 public:
  KnownFailures() = default;
  /// Throws BadManifest when the file cannot be read, for a mode that there is not, and for a name that stands twice.
  explicit KnownFailures(const std::string& path);

  bool lists(const std::string& name, Mode mode) const { return listed_.contains({mode, name}); }
  /// The names that are listed for the mode and not among `run`.
  std::vector<std::string> not_run(Mode mode, const std::set<std::string>& run) const;

 private:
  std::set<std::pair<Mode, std::string>> listed_;
};

}  // namespace retrograd::conformance
