// Entries for the functions of ops/: see api_table.h. Overloads are selected by a cast.
#include "ops/copy.h"
#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::IntArray;
using rg::IntList;
using rg::Operand;
using rg::Scalar;

template <class F>
void unary(ApiTable& table, std::string_view name, F f) {
  table.push_back({name, [f](Arguments& a) {
                     const Operand x = a.get<Operand>();
                     a.ready();
                     a.keep(f(x));
                   }});
}
template <class F>
void binary(ApiTable& table, std::string_view name, F f) {
  table.push_back({name, [f](Arguments& a) {
                     const Operand x = a.get<Operand>(), y = a.get<Operand>();
                     a.ready();
                     a.keep(f(x, y));
                   }});
}

void add_unary_functions(ApiTable& t) {
  unary(t, "exp", rg::exp), unary(t, "exp2", rg::exp2), unary(t, "expm1", rg::expm1);
  unary(t, "log", rg::log), unary(t, "log2", rg::log2), unary(t, "log10", rg::log10);
  unary(t, "log1p", rg::log1p), unary(t, "sqrt", rg::sqrt), unary(t, "rsqrt", rg::rsqrt);
  unary(t, "reciprocal", rg::reciprocal), unary(t, "sin", rg::sin), unary(t, "cos", rg::cos);
  unary(t, "tan", rg::tan), unary(t, "asin", rg::asin), unary(t, "acos", rg::acos);
  unary(t, "atan", rg::atan), unary(t, "sinh", rg::sinh), unary(t, "cosh", rg::cosh);
  unary(t, "asinh", rg::asinh), unary(t, "acosh", rg::acosh), unary(t, "atanh", rg::atanh);
  unary(t, "erf", rg::erf), unary(t, "erfc", rg::erfc), unary(t, "erfinv", rg::erfinv);
  unary(t, "lgamma", rg::lgamma), unary(t, "digamma", rg::digamma), unary(t, "abs", rg::abs);
  unary(t, "square", rg::square), unary(t, "sign", rg::sign), unary(t, "floor", rg::floor);
  unary(t, "ceil", rg::ceil), unary(t, "trunc", rg::trunc), unary(t, "frac", rg::frac);
  unary(t, "isnan", rg::isnan), unary(t, "isinf", rg::isinf), unary(t, "isfinite", rg::isfinite);
  unary(t, "logical_not", rg::logical_not), unary(t, "neg", rg::neg), unary(t, "sigmoid", rg::sigmoid);
  unary(t, "tanh", rg::tanh), unary(t, "relu", rg::relu), unary(t, "hardsigmoid", rg::hardsigmoid);
  unary(t, "hardswish", rg::hardswish), unary(t, "softsign", rg::softsign);
  unary(t, "logsigmoid", rg::logsigmoid), unary(t, "silu", rg::silu), unary(t, "mish", rg::mish);
  add(
      t, "round", +[](Operand x, int64_t decimals) { return rg::round(x, decimals); });
  add(
      t, "leaky_relu", +[](Operand x, Scalar slope) { return rg::leaky_relu(x, slope); });
  add(
      t, "threshold", +[](Operand x, Scalar a, Scalar b) { return rg::threshold(x, a, b); });
  add(
      t, "hardtanh", +[](Operand x, Scalar a, Scalar b) { return rg::hardtanh(x, a, b); });
  add(
      t, "softplus", +[](Operand x, Scalar beta, Scalar limit) { return rg::softplus(x, beta, limit); });
  add(t, "nan_to_num", rg::nan_to_num), add(t, "relu6", rg::relu6), add(t, "gelu", rg::gelu);
  add(t, "elu", rg::elu), add(t, "celu", rg::celu), add(t, "selu", rg::selu);
}

void add_several_operands(ApiTable& t) {
  binary(t, "mul", rg::mul), binary(t, "atan2", rg::atan2), binary(t, "hypot", rg::hypot);
  binary(t, "logaddexp", rg::logaddexp), binary(t, "maximum", rg::maximum);
  binary(t, "minimum", rg::minimum), binary(t, "fmod", rg::fmod), binary(t, "remainder", rg::remainder);
  binary(t, "eq", rg::eq), binary(t, "ne", rg::ne), binary(t, "lt", rg::lt), binary(t, "le", rg::le);
  binary(t, "gt", rg::gt), binary(t, "ge", rg::ge), binary(t, "logical_and", rg::logical_and);
  binary(t, "logical_or", rg::logical_or), binary(t, "logical_xor", rg::logical_xor);
  add(t, "add", rg::add), add(t, "sub", rg::sub), add(t, "div", rg::div), add(t, "pow", rg::pow);
  add(t, "where", rg::where), add(t, "lerp", rg::lerp), add(t, "addcmul", rg::addcmul);
  add(t, "addcdiv", rg::addcdiv), add(t, "clamp", rg::clamp);
}

void add_views(ApiTable& t) {
  add(t, "narrow", rg::narrow), add(t, "select", rg::select), add(t, "slice", rg::slice);
  add(t, "squeeze", static_cast<Tensor (*)(Operand)>(rg::squeeze));
  add(t, "squeeze", static_cast<Tensor (*)(Operand, const IntArray&)>(rg::squeeze));
  add(t, "unsqueeze", rg::unsqueeze), add(t, "flatten", rg::flatten);
  add(t, "broadcast_to", rg::broadcast_to), add(t, "movedim", rg::movedim);
  add(t, "diagonal", rg::diagonal), add(t, "unfold", rg::unfold), add(t, "as_strided", rg::as_strided);
  add(t, "split", static_cast<Tensors (*)(Operand, rg::Dim, int64_t)>(rg::split));
  add(t, "split", static_cast<Tensors (*)(Operand, const IntArray&, int64_t)>(rg::split));
  add(t, "chunk", rg::chunk), add(t, "unbind", rg::unbind), add(t, "alias", rg::alias);
  add(t, "detach", rg::detach), add(t, "clone", rg::clone), add(t, "contiguous", rg::contiguous);
  add(t, "copy", rg::copy), add(t, "fill", rg::fill), add(t, "zero", rg::zero);
  add(t, "expand_to", rg::expand_to), add(t, "reshape_to", rg::reshape_to);
  add(t, "to", static_cast<Tensor (*)(Operand, rg::ScalarType)>(rg::to));
  add(t, "expand", rg::expand), add(t, "view", rg::view);
  add(t, "reshape", rg::reshape), add(t, "permute", rg::permute), add(t, "transpose", rg::transpose);
  add(t, "t", rg::t);
}

void add_rearrangements(ApiTable& t) {
  add(t, "cat", rg::cat), add(t, "stack", rg::stack);
  add(t, "flip", static_cast<Tensor (*)(Operand, const rg::IntArray&)>(rg::flip));
  add(t, "roll", static_cast<Tensor (*)(Operand, const rg::IntArray&, const rg::IntArray&)>(rg::roll));
  add(t, "flip of a dim", rg::flip<int64_t>), add(t, "roll in a dim", rg::roll<int64_t>);
  add(t, "repeat", rg::repeat), add(t, "tile", rg::tile);
  add(t, "repeat_interleave",
      static_cast<Tensor (*)(Operand, rg::Dim, std::optional<int64_t>)>(rg::repeat_interleave));
  add(t, "repeat_interleave",
      static_cast<Tensor (*)(Operand, const Tensor&, std::optional<int64_t>)>(rg::repeat_interleave));
  add(t, "tril", rg::tril), add(t, "triu", rg::triu), add(t, "diag", rg::diag), add(t, "pad", rg::pad);
}

void add_indexing(ApiTable& t) {
  add(t, "gather", rg::gather, "n m; n m:n"), add(t, "scatter", rg::scatter, "n m; n m:n; n m"),
      add(t, "scatter_add", rg::scatter_add, "n m; n m:n; n m");
  add(t, "index_select", rg::index_select, "n m; k:n"), add(t, "index_add", rg::index_add, "n m; k:n; k m");
  add(t, "index_copy", rg::index_copy, "n m; k:n; k m"), add(t, "masked_fill", rg::masked_fill);
  add(t, "getitem", rg::getitem), add(t, "index_put", rg::index_put);
  add(t, "masked_select", rg::masked_select), add(t, "masked_scatter", rg::masked_scatter);
  add(t, "take", rg::take), add(t, "take_along_dim", rg::take_along_dim), add(t, "nonzero", rg::nonzero);
  add(t, "embedding", rg::embedding, "k:n; n m"), add(t, "one_hot", rg::one_hot), add(t, "sort", rg::sort);
  add(t, "argsort", rg::argsort), add(t, "topk", rg::topk);
}

void add_layout_functions(ApiTable& t) {
  add(t, "ravel", rg::ravel), add(t, "atleast_1d", static_cast<Tensor (*)(Operand)>(rg::atleast_1d));
  add(t, "atleast_2d", static_cast<Tensor (*)(Operand)>(rg::atleast_2d));
  add(t, "atleast_3d", static_cast<Tensor (*)(Operand)>(rg::atleast_3d));
  add(t, "swapaxes", rg::swapaxes), add(t, "swapdims", rg::swapdims), add(t, "moveaxis", rg::moveaxis);
  add(t, "unflatten", rg::unflatten), add(t, "view_as", rg::view_as), add(t, "reshape_as", rg::reshape_as);
  add(t, "expand_as", rg::expand_as), add(t, "rot90", rg::rot90), add(t, "fliplr", rg::fliplr);
  add(t, "flipud", rg::flipud), add(t, "kron", rg::kron, "n m; m n"), add(t, "vander", rg::vander, "n");
  add(t, "hstack", rg::hstack), add(t, "vstack", rg::vstack), add(t, "dstack", rg::dstack);
  add(t, "column_stack", rg::column_stack), add(t, "block_diag", rg::block_diag);
  add(t, "cartesian_prod", rg::cartesian_prod), add(t, "meshgrid", rg::meshgrid);
  add(t, "tensor_split", static_cast<Tensors (*)(Operand, int64_t, int64_t)>(rg::tensor_split));
  add(t, "tensor_split", static_cast<Tensors (*)(Operand, const IntArray&, int64_t)>(rg::tensor_split));
  add(t, "tensor_split", static_cast<Tensors (*)(Operand, const Tensor&, int64_t)>(rg::tensor_split));
  add(t, "hsplit", static_cast<Tensors (*)(Operand, int64_t)>(rg::hsplit));
  add(t, "vsplit", static_cast<Tensors (*)(Operand, const IntArray&)>(rg::vsplit));
  add(t, "dsplit", static_cast<Tensors (*)(Operand, int64_t)>(rg::dsplit));
  add(t, "slice_scatter", rg::slice_scatter), add(t, "select_scatter", rg::select_scatter);
  add(t, "diagonal_scatter", rg::diagonal_scatter), add(t, "as_strided_scatter", rg::as_strided_scatter);
  add(t, "diag_embed", rg::diag_embed), add(t, "diagflat", rg::diagflat);
}

void add_functions_of_positions(ApiTable& t) {
  add(t, "scatter_reduce", rg::scatter_reduce, "n m; n m:n; n m");
  add(t, "index_reduce", rg::index_reduce, "n m; k:n; k m"), add(t, "index_fill", rg::index_fill, "n m; k:n");
  add(t, "put", rg::put, "n m; k:n; k"), add(t, "argwhere", rg::argwhere), add(t, "isin", rg::isin);
  add(t, "index", static_cast<Tensor (*)(Operand, const rg::Indices&)>(rg::index));
}

}  // namespace

void add_elementwise_api(ApiTable& table) {
  add_unary_functions(table);
  add_several_operands(table);
}

void add_shape_api(ApiTable& table) {
  add_views(table);
  add_rearrangements(table);
  add_indexing(table);
  add_layout_functions(table);
  add_functions_of_positions(table);
}

void add_reduction_api(ApiTable& t) {
  using Moment = Tensor (*)(Operand, const IntList&, Scalar, bool);
  add(t, "sum", rg::sum), add(t, "mean", rg::mean), add(t, "amax", rg::amax), add(t, "amin", rg::amin);
  add(t, "prod", static_cast<Tensor (*)(Operand, std::optional<rg::ScalarType>)>(rg::prod));
  add(t, "prod", static_cast<Tensor (*)(Operand, int64_t, bool, std::optional<rg::ScalarType>)>(rg::prod));
  add(t, "max", static_cast<Tensor (*)(Operand)>(rg::max));
  add(t, "min", static_cast<Tensor (*)(Operand)>(rg::min));
  add(t, "max", static_cast<rg::ValuesAndIndices (*)(Operand, int64_t, bool)>(rg::max));
  add(t, "min", static_cast<rg::ValuesAndIndices (*)(Operand, int64_t, bool)>(rg::min));
  add(t, "argmax", rg::argmax), add(t, "argmin", rg::argmin), add(t, "var", static_cast<Moment>(rg::var));
  add(t, "std", static_cast<Moment>(rg::std));
  add(t, "logsumexp", rg::logsumexp), add(t, "vector_norm", rg::vector_norm), add(t, "norm", rg::norm);
  add(t, "all", rg::all), add(t, "any", rg::any), add(t, "count_nonzero", rg::count_nonzero);
  add(t, "cumsum", rg::cumsum), add(t, "cumprod", rg::cumprod), add(t, "softmax", rg::softmax);
  add(t, "log_softmax", rg::log_softmax);
  add(t, "nansum", rg::nansum), add(t, "nanmean", rg::nanmean), add(t, "std_mean", rg::std_mean);
  add(t, "var_mean", rg::var_mean), add(t, "cov", rg::cov), add(t, "corrcoef", rg::corrcoef);
  add(t, "renorm", rg::renorm), add(t, "kthvalue", rg::kthvalue), add(t, "mode", rg::mode);
  add(t, "median", static_cast<Tensor (*)(Operand)>(rg::median));
  add(t, "median", static_cast<rg::ValuesAndIndices (*)(Operand, int64_t, bool)>(rg::median));
  add(t, "nanmedian", static_cast<Tensor (*)(Operand)>(rg::nanmedian));
  add(t, "nanmedian", static_cast<rg::ValuesAndIndices (*)(Operand, int64_t, bool)>(rg::nanmedian));
  add(t, "cummax", rg::cummax), add(t, "cummin", rg::cummin), add(t, "logcumsumexp", rg::logcumsumexp);
  add(t, "dist", rg::dist), add(t, "cdist", rg::cdist, "n m; k m"), add(t, "pdist", rg::pdist);
  add(t, "diff", rg::diff),
      add(t, "trapezoid", static_cast<Tensor (*)(Operand, Scalar, int64_t)>(rg::trapezoid));
  add(t, "cumulative_trapezoid", static_cast<Tensor (*)(Operand, Scalar, int64_t)>(rg::cumulative_trapezoid));
  add(t, "bincount", rg::bincount);
}

void add_creation_api(ApiTable& t) {
  using Options = rg::TensorOptions;
  using Where = rg::SourceLocation;
  add(t, "full", static_cast<Tensor (*)(const rg::Shape&, Scalar, Options, Where)>(rg::full));
  add(t, "zeros", rg::zeros), add(t, "ones", rg::ones), add(t, "empty", rg::empty);
  add(t, "tensor",
      static_cast<Tensor (*)(const std::vector<double>&, const rg::Shape&, Options, Where)>(rg::tensor));
  add(t, "scalar_tensor", rg::scalar_tensor), add(t, "linspace", rg::linspace);
  add(t, "arange",
      static_cast<Tensor (*)(Scalar, Scalar, Scalar, std::optional<Options>, Where)>(rg::arange));
  add(t, "arange", static_cast<Tensor (*)(Scalar, Scalar, Options, Where)>(rg::arange));
  add(t, "arange", static_cast<Tensor (*)(Scalar, std::optional<Options>, Where)>(rg::arange));
  add(t, "logspace", rg::logspace), add(t, "tril_indices", rg::tril_indices);
  add(t, "triu_indices", rg::triu_indices), add(t, "eye", rg::eye), add(t, "full_like", rg::full_like);
  add(t, "zeros_like", rg::zeros_like), add(t, "ones_like", rg::ones_like);
  add(t, "empty_like", rg::empty_like), add(t, "rand", rg::rand), add(t, "randn", rg::randn);
  add(t, "randint", static_cast<Tensor (*)(int64_t, int64_t, const rg::Shape&, Options, Where)>(rg::randint));
  add(t, "randint", static_cast<Tensor (*)(int64_t, const rg::Shape&, Options, Where)>(rg::randint));
  add(t, "rand_like", rg::rand_like), add(t, "randn_like", rg::randn_like);
  add(t, "randint_like", static_cast<Tensor (*)(Operand, int64_t, int64_t, Options)>(rg::randint_like));
  add(t, "randint_like", static_cast<Tensor (*)(Operand, int64_t, Options)>(rg::randint_like));
  add(t, "bernoulli", static_cast<Tensor (*)(Operand)>(rg::bernoulli));
  add(t, "bernoulli", static_cast<Tensor (*)(Operand, double)>(rg::bernoulli));
  add(t, "normal", static_cast<Tensor (*)(Operand, Operand)>(rg::normal));
  add(t, "normal", static_cast<Tensor (*)(double, double, const rg::Shape&, Options, Where)>(rg::normal));
  add(t, "randperm", rg::randperm), add(t, "multinomial", rg::multinomial);
  add(
      t, "from_blob", +[](const rg::Shape& size, Options options) {
        // With a size that fits the memory, and one dtype: anything else would be an error of the caller.
        static double memory[64][1024];
        for (const rg::Dim s : size)
          if (s.hint() > 4) return Tensor();
        return rg::from_blob(memory[static_cast<size_t>(options.dtype()) % 64],
                             size.rank() > 5 ? rg::Shape() : size, options);
      });
}

}  // namespace fuzz
