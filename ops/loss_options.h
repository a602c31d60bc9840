// LossReduction: how a loss is reduced, as the parameter `reduction` of the losses takes it.
//
//   mse_loss(x, y, "sum")                 PyTorch's names: "none", "mean", "sum"
//   mse_loss(x, y, LossReduction::Sum)    libtorch's enumerators (at::Reduction)
//
// A name is checked by the loss. A number is refused by the compiler: a std::string_view would take a literal 0 for a
// null pointer, and libtorch's 1 stands for "mean".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class LossReduction {
 public:
  enum Value : int { None, Mean, Sum };

  constexpr LossReduction(Value value)
      : name_(value == None   ? "none"
              : value == Mean ? "mean"
              : value == Sum  ? "sum"
                              : "of no name") {}
  constexpr LossReduction(const char* name) : name_(name) {}
  constexpr LossReduction(std::string_view name) : name_(name) {}
  LossReduction(const std::string& name) : name_(name) {}
  LossReduction(int) = delete;
  LossReduction(std::nullptr_t) = delete;
  /// Must not outlive the string that it was made of.
  constexpr std::string_view name() const { return name_; }

 private:
  std::string_view name_;
};

}  // namespace retrograd
#pragma GCC visibility pop
