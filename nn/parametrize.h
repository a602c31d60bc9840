// Parametrizations: a parameter that is computed from others in each call of its module, as PyTorch's
// torch.nn.utils.parametrize.
//
//   nn::utils::parametrizations::weight_norm(net.fc);      // net.fc.weight = g * v / |v|; trained are g and v
//   nn::utils::parametrizations::spectral_norm(net.fc);    // net.fc.weight = w / its largest singular value
//
// Data: the module gets a child "parametrizations" with a child for each parametrized name, a ParametrizationList: the
// originals, which take the parameter's place among parameters() and in the state ("parametrizations.weight.original0",
// PyTorch's keys), and the Parametrization that computes the value. While the module is called, its parameter is that
// value, with its history; so it works eagerly and in recorded code alike. Between calls it is undefined: whoever uses
// it fails, rather than using an old value; value() gives it.
//
// Limits: one parametrization for each name; of parameters that were declared (nn/module.h). A parametrized module is
// not called on two threads at once, and its clone() is an Error. Register before an optimizer is made.
#pragma once

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn::utils {
namespace parametrize {

/// How a parameter is computed.
class Parametrization : public Module {
 public:
  using Module::Module;
  /// The parameter's value.
  virtual Tensor forward(const Tensors& originals) = 0;
  /// Originals that give this value. Those of one are called "original", of several "original0", ...
  virtual Tensors right_inverse(const Tensor& value) const { return {value}; }
};

/// Makes parameter `name` of the module what `parametrization` computes, beginning with the value that it has. Errors:
/// bad_argument when there is no such parameter, it is parametrized already, or it was registered as a handle, of which
/// the module's code has its own; shape_mismatch when the first value has another shape or dtype.
void register_parametrization(Module& module, const std::string& name,
                              std::shared_ptr<Parametrization> parametrization,
                              SourceLocation where = SourceLocation::current());
/// Whether the parameter `name` (empty: any) is parametrized.
bool is_parametrized(const Module& module, const std::string& name = "");
/// The value of a parametrized parameter, computed now, with its history. Error(bad_argument) for another name.
Tensor value(Module& module, const std::string& name, SourceLocation where = SourceLocation::current());
/// Makes it a parameter again: with the value that it has now, or with the original, if there is one.
/// Error(bad_argument) when it is not parametrized, or has several originals and leave_parametrized is false.
void remove_parametrizations(Module& module, const std::string& name, bool leave_parametrized = true,
                             SourceLocation where = SourceLocation::current());

}  // namespace parametrize

namespace parametrizations {

/// original0 * original1 / |original1|, with the norm over all dims but `dim` (-1: over all). Salimans and Kingma 2016.
void weight_norm(Module& module, const std::string& name = "weight", int64_t dim = 0,
                 SourceLocation where = SourceLocation::current());
/// original / sigma, with the largest singular value of the parameter as a matrix with dim `dim` as rows (of transposed
/// convolutions 1, else 0, unless given). sigma is found by power iteration, n_power_iterations of it in each call in
/// training; its vectors are the buffers "0._u" and "0._v". Miyato et al. 2018. Error(bad_argument) for a number of
/// iterations that is not positive.
void spectral_norm(Module& module, const std::string& name = "weight", int64_t n_power_iterations = 1,
                   double eps = 1e-12, std::optional<int64_t> dim = {},
                   SourceLocation where = SourceLocation::current());

}  // namespace parametrizations
}  // namespace retrograd::nn::utils
#pragma GCC visibility pop
