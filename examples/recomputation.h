// --checkpoint: what a model recomputes in the backward instead of saving it.
//
//   none             nothing
//   block            each block is a checkpoint
//   policy=all       everything, under a RecomputeScope
//   policy=products  all but the results of matrix products and convolutions
//   policy=names     all but the results of blocks, which have the name "block"
#pragma once

#include <memory>
#include <string>

#include "retrograd/retrograd.h"

namespace examples {

class Recomputation {
 public:
  Recomputation() = default;
  explicit Recomputation(const std::string& choice) : checkpoints_(choice == "block") {
    if (choice == "policy=all") policy_ = retrograd::policies::recompute_all();
    if (choice == "policy=products") policy_ = retrograd::policies::save_matrix_products();
    if (choice == "policy=names") policy_ = retrograd::policies::save_names({"block"});
  }

  /// To be open during the forward; null if there is no policy.
  std::unique_ptr<retrograd::RecomputeScope> scope() const {
    return policy_ ? std::make_unique<retrograd::RecomputeScope>(policy_) : nullptr;
  }
  /// f(x) for a block f of the model.
  template <class F>
  retrograd::Tensor block(const F& f, const retrograd::Tensor& x) const {
    if (checkpoints_) return retrograd::checkpoint(f, x);
    return policy_ ? retrograd::checkpoint_name(f(x), "block") : f(x);
  }

 private:
  bool checkpoints_ = false;
  retrograd::RecomputePolicy policy_;
};

}  // namespace examples
