// OutsideTensors: the tensors that a recorded function refers to and did not make: captured tensors, leaves whose
// .grad it reads or sets, results that are not its own.
//
// All are held while the function is recorded. Then loosen() lets go of those that somebody else holds, too: a model
// or an optimizer that is destroyed frees its memory although the recorded function still exists. What nobody else
// holds (a constant that the function made) stays. A call pins the others, or learns that one is gone; everywhere else
// recorded code has plain pointers to them. The address of a tensor that is gone is not used again while this object
// exists, so those pointers may be compared.
// Limits: a tensor is let go, not its memory, so a tensor of the recording alone on the memory of a parameter keeps it. A
// recorded tape refers to its tensors itself: a function that can be differentiated keeps all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/location.h"
#include "engine/tensor_impl.h"

namespace retrograd::inline v0 {

class OutsideTensors {
 public:
  /// Returns it. `where`: the line that uses the tensor.
  TensorImpl* hold(TensorImpl& tensor, SourceLocation where);
  /// No more will be held.
  void loosen();

  using Pins = std::vector<RefPtr<TensorImpl>>;
  /// Keeps all tensors alive; nothing if one is gone.
  std::optional<Pins> pin() const;
  /// The first that is gone, in words, and the line that uses it.
  std::string gone() const;

  /// All that are held.
  const Pins& held() const { return held_; }

 private:
  struct Loose {
    WeakRef<TensorImpl> tensor;
    TensorType type;
    SourceLocation where;
  };

  Pins held_;
  std::vector<SourceLocation> lines_;  // of held_, while the function is recorded
  std::unordered_set<const TensorImpl*> known_;
  std::vector<Loose> loose_;
};

}  // namespace retrograd
