// The outcome of a case: exceptions that end it, and the log of its comparisons.
//
//   BadManifest  the manifest breaks the format: a failure
//   Unsupported  the engine lacks something: neither a failure nor a pass
// Comparisons are added to the CaseLog and never end a case, so that one run names all differences. A case passes when
// its log has comparisons and no failure.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace retrograd::conformance {

struct BadManifest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The text names what is missing: "op=conv2d", "op=checkpoint".
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CaseLog {
 public:
  struct Failure {
    std::string what;  // a path: "grads.x", "ops[7].check.grads.w"
    std::string text;
  };

  /// In mode dynamic: whether the program also runs with larger inputs, and whether what was recorded with them served
  /// the case.
  enum class Twin { none, runs, serves };
  void note_twin(Twin twin) { twin_ = twin; }
  Twin twin() const { return twin_; }

  /// Notes that something was compared, or would be in another mode.
  void compared() { ++comparisons_; }
  void fail(std::string what, std::string text) { failures_.push_back({std::move(what), std::move(text)}); }
  /// Notes the position in the case, for the message of an exception.
  void enter(std::string what) { at_ = std::move(what); }
  const std::string& at() const { return at_; }
  int comparisons() const { return comparisons_; }
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  int comparisons_ = 0;
  Twin twin_ = Twin::none;
  std::string at_ = "case";
  std::vector<Failure> failures_;
};

}  // namespace retrograd::conformance
