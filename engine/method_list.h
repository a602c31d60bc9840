// The op methods of Tensor, by family: x.f(arguments) is f(x, arguments), the function of that name in ops/, and
// x.f_(arguments) writes the result of f into x and returns x.
//
// A line is M(result, name, (parameters), arguments...) for a method; W(name, (parameters), arguments...) for a method
// and its in-place form; I(...) for an in-place form alone; G(...) for a method and a form that changes how x shows its
// memory (its sizes and strides) rather than values. engine/tensor.h makes declarations of them, the .cc file of each
// family in ops/ the definitions (ops/define_methods.h), ops/in_place.h functions. RG_DEFAULT(v) is a default argument,
// which only declarations have. The last parameter of each is the caller's line.
//
// Documentation, shapes, dtypes and errors of a method are those of its function. In-place forms keep the dtype of x and
// require its shape; their other errors are in engine/inplace.h.
#pragma once

#define RG_ARITHMETIC_METHODS(M, W)                                                                         \
  W(add, (const Operand& other, Scalar alpha RG_DEFAULT(1)), other, alpha)                                  \
  W(sub, (const Operand& other, Scalar alpha RG_DEFAULT(1)), other, alpha)                                  \
  W(mul, (const Operand& other), other)                                                                     \
  W(div, (const Operand& other), other)

#define RG_UNARY_METHODS(M, W, I)                                                                           \
  W(abs, ()) W(neg, ()) W(square, ()) W(reciprocal, ()) W(sign, ()) W(exp, ()) W(exp2, ())                  \
  W(expm1, ()) W(log, ()) W(log2, ()) W(log10, ()) W(log1p, ()) W(sqrt, ()) W(rsqrt, ())                    \
  W(floor, ()) W(ceil, ()) W(trunc, ()) W(frac, ()) W(sin, ()) W(cos, ()) W(tan, ()) W(asin, ())            \
  W(acos, ()) W(atan, ()) W(sinh, ()) W(cosh, ()) W(tanh, ()) W(asinh, ()) W(acosh, ()) W(atanh, ())        \
  W(erf, ()) W(erfc, ()) W(erfinv, ()) W(lgamma, ()) W(digamma, ()) W(logical_not, ())                      \
  M(Tensor, isnan, ()) M(Tensor, isinf, ()) M(Tensor, isfinite, ())                                         \
  W(round, (int64_t decimals RG_DEFAULT(0)), decimals)                                                      \
  W(nan_to_num,                                                                                             \
    (Scalar nan RG_DEFAULT(0.0), std::optional<Scalar> posinf RG_DEFAULT({}),                               \
     std::optional<Scalar> neginf RG_DEFAULT({})), nan, posinf, neginf)                                     \
  W(relu, ()) W(sigmoid, ()) I(silu, ()) I(mish, ()) I(selu, ()) I(relu6, ()) I(hardswish, ())              \
  I(hardsigmoid, ())                                                                                        \
  I(gelu, (std::string_view approximate RG_DEFAULT("none")), approximate)                                   \
  I(elu, (Scalar alpha RG_DEFAULT(1.0)), alpha)                                                             \
  I(celu, (Scalar alpha RG_DEFAULT(1.0)), alpha)                                                            \
  I(leaky_relu, (Scalar negative_slope RG_DEFAULT(0.01)), negative_slope)                                   \
  I(hardtanh, (Scalar min_val RG_DEFAULT(-1.0), Scalar max_val RG_DEFAULT(1.0)), min_val, max_val)

#define RG_BINARY_METHODS(M, W, I)                                                                          \
  W(div, (const Operand& other, std::string_view rounding_mode), other, rounding_mode)                      \
  I(threshold, (Scalar threshold, Scalar value), threshold, value)                                          \
  W(pow, (const Operand& exponent), exponent)                                                               \
  W(atan2, (const Operand& other), other)                                                                   \
  W(hypot, (const Operand& other), other)                                                                   \
  W(fmod, (const Operand& other), other)                                                                    \
  W(remainder, (const Operand& other), other)                                                               \
  W(eq, (const Operand& other), other)                                                                      \
  W(ne, (const Operand& other), other)                                                                      \
  W(lt, (const Operand& other), other)                                                                      \
  W(le, (const Operand& other), other)                                                                      \
  W(gt, (const Operand& other), other)                                                                      \
  W(ge, (const Operand& other), other)                                                                      \
  W(logical_and, (const Operand& other), other)                                                             \
  W(logical_or, (const Operand& other), other)                                                              \
  W(logical_xor, (const Operand& other), other)                                                             \
  W(clamp, (std::optional<Scalar> min, std::optional<Scalar> max RG_DEFAULT({})), min, max)                 \
  W(lerp, (const Operand& end, const Operand& weight), end, weight)                                         \
  W(addcmul, (const Operand& tensor1, const Operand& tensor2, Scalar value RG_DEFAULT(1)), tensor1,         \
    tensor2, value)                                                                                         \
  W(addcdiv, (const Operand& tensor1, const Operand& tensor2, Scalar value RG_DEFAULT(1)), tensor1,         \
    tensor2, value)                                                                                         \
  M(Tensor, maximum, (const Operand& other), other)                                                         \
  M(Tensor, minimum, (const Operand& other), other)                                                         \
  M(Tensor, logaddexp, (const Operand& other), other)                                                       \
  W(clamp, (const Tensor& min, const Tensor& max RG_DEFAULT({})), given(min), given(max))

#define RG_REDUCTION_METHODS(M, W)                                                                          \
  M(Tensor, sum,                                                                                            \
    (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false),                                     \
     std::optional<ScalarType> dtype RG_DEFAULT({})), dim, keepdim, dtype)                                  \
  M(Tensor, mean,                                                                                           \
    (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false),                                     \
     std::optional<ScalarType> dtype RG_DEFAULT({})), dim, keepdim, dtype)                                  \
  M(Tensor, prod, (std::optional<ScalarType> dtype RG_DEFAULT({})), dtype)                                  \
  M(Tensor, prod,                                                                                           \
    (int64_t dim, bool keepdim RG_DEFAULT(false), std::optional<ScalarType> dtype RG_DEFAULT({})), dim,     \
    keepdim, dtype)                                                                                         \
  M(Tensor, amax, (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim, keepdim)        \
  M(Tensor, amin, (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim, keepdim)        \
  M(Tensor, max, ()) M(Tensor, min, ())                                                                     \
  M(ValuesAndIndices, max, (int64_t dim, bool keepdim RG_DEFAULT(false)), dim, keepdim)                     \
  M(ValuesAndIndices, min, (int64_t dim, bool keepdim RG_DEFAULT(false)), dim, keepdim)                     \
  M(Tensor, argmax, (std::optional<int64_t> dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim,       \
    keepdim)                                                                                                \
  M(Tensor, argmin, (std::optional<int64_t> dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim,       \
    keepdim)                                                                                                \
  M(Tensor, var,                                                                                            \
    (const IntList& dim RG_DEFAULT({}), Scalar correction RG_DEFAULT(1), bool keepdim RG_DEFAULT(false)),   \
    dim, correction, keepdim)                                                                               \
  M(Tensor, std,                                                                                            \
    (const IntList& dim RG_DEFAULT({}), Scalar correction RG_DEFAULT(1), bool keepdim RG_DEFAULT(false)),   \
    dim, correction, keepdim)                                                                               \
  M(Tensor, var, (Flag unbiased), unbiased)                                                                 \
  M(Tensor, std, (Flag unbiased), unbiased)                                                                 \
  M(Tensor, logsumexp, (const IntList& dim, bool keepdim RG_DEFAULT(false)), dim, keepdim)                  \
  M(Tensor, norm,                                                                                           \
    (Scalar p RG_DEFAULT(2), const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), p, dim,    \
    keepdim)                                                                                                \
  M(Tensor, all, (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim, keepdim)         \
  M(Tensor, any, (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim, keepdim)         \
  M(Tensor, count_nonzero, (const IntList& dim RG_DEFAULT({})), dim)                                        \
  W(cumsum, (int64_t dim, std::optional<ScalarType> dtype RG_DEFAULT({})), dim, dtype)                      \
  W(cumprod, (int64_t dim, std::optional<ScalarType> dtype RG_DEFAULT({})), dim, dtype)                     \
  M(Tensor, softmax, (int64_t dim, std::optional<ScalarType> dtype RG_DEFAULT({})), dim, dtype)             \
  M(Tensor, log_softmax, (int64_t dim, std::optional<ScalarType> dtype RG_DEFAULT({})), dim, dtype)         \
  M(ValuesAndIndices, sort,                                                                                 \
    (int64_t dim RG_DEFAULT(-1), bool descending RG_DEFAULT(false), bool stable RG_DEFAULT(false)), dim,    \
    descending, stable)                                                                                     \
  M(Tensor, argsort,                                                                                        \
    (int64_t dim RG_DEFAULT(-1), bool descending RG_DEFAULT(false), bool stable RG_DEFAULT(false)), dim,    \
    descending, stable)                                                                                     \
  M(ValuesAndIndices, topk,                                                                                 \
    (Dim k, int64_t dim RG_DEFAULT(-1), bool largest RG_DEFAULT(true), bool sorted RG_DEFAULT(true)), k,    \
    dim, largest, sorted)                                                                                   \
  M(Tensor, bernoulli, ())                                                                                  \
  M(Tensor, bernoulli, (double p), p)                                                                       \
  M(Tensor, multinomial, (int64_t num_samples, bool replacement RG_DEFAULT(false)), num_samples,            \
    replacement)

#define RG_SHAPE_METHODS(M, W, G)                                                                           \
  M(Tensor, to, (ScalarType dtype), dtype)                                                                  \
  M(Tensor, to, (Device device), device)                                                                    \
  M(Tensor, clone, ()) M(Tensor, contiguous, ()) M(Tensor, detach, ())                                      \
  M(Tensor, view, (const Shape& size), size)                                                                \
  M(Tensor, reshape, (const Shape& shape), shape)                                                           \
  M(Tensor, expand, (const Shape& size), size)                                                              \
  M(Tensor, broadcast_to, (const Shape& size), size)                                                        \
  M(Tensor, flatten, (int64_t start_dim RG_DEFAULT(0), int64_t end_dim RG_DEFAULT(-1)), start_dim,          \
    end_dim)                                                                                                \
  M(Tensor, permute, (const IntArray& dims), dims)                                                          \
  M(Tensor, movedim, (const IntArray& source, const IntArray& destination), source, destination)            \
  G(t, ())                                                                                                  \
  G(transpose, (int64_t dim0, int64_t dim1), dim0, dim1)                                                    \
  G(squeeze, ())                                                                                            \
  G(squeeze, (int64_t dim), dim)                                                                            \
  G(squeeze, (const IntArray& dim), dim)                                                                    \
  G(unsqueeze, (int64_t dim), dim)                                                                          \
  G(as_strided,                                                                                             \
    (const IntArray& size, const IntArray& stride, std::optional<int64_t> storage_offset RG_DEFAULT({})),   \
    size, stride, storage_offset)                                                                           \
  M(Tensor, select, (int64_t dim, Dim index), dim, index)                                                   \
  M(Tensor, narrow, (int64_t dim, Dim start, Dim length), dim, start, length)                               \
  M(Tensor, slice,                                                                                          \
    (int64_t dim RG_DEFAULT(0), std::optional<int64_t> start RG_DEFAULT({}),                                \
     std::optional<int64_t> end RG_DEFAULT({}), int64_t step RG_DEFAULT(1)), dim, start, end, step)         \
  M(Tensors, split, (Dim split_size, int64_t dim RG_DEFAULT(0)), split_size, dim)                           \
  M(Tensors, split, (const IntArray& sections, int64_t dim RG_DEFAULT(0)), sections, dim)                   \
  M(Tensors, chunk, (int64_t chunks, int64_t dim RG_DEFAULT(0)), chunks, dim)                               \
  M(Tensors, unbind, (int64_t dim RG_DEFAULT(0)), dim)                                                      \
  M(Tensor, diagonal,                                                                                       \
    (int64_t offset RG_DEFAULT(0), int64_t dim1 RG_DEFAULT(0), int64_t dim2 RG_DEFAULT(1)), offset, dim1,   \
    dim2)                                                                                                   \
  M(Tensor, unfold, (int64_t dimension, int64_t size, int64_t step), dimension, size, step)                 \
  M(Tensor, flip, (const IntArray& dims), dims)                                                             \
  M(Tensor, roll, (const IntArray& shifts, const IntArray& dims RG_DEFAULT({})), shifts, dims)              \
  M(Tensor, repeat, (const IntArray& repeats), repeats)                                                     \
  M(Tensor, tile, (const IntArray& dims), dims)                                                             \
  M(Tensor, repeat_interleave, (Dim repeats, std::optional<int64_t> dim RG_DEFAULT({})), repeats, dim)      \
  M(Tensor, repeat_interleave, (const Tensor& repeats, std::optional<int64_t> dim RG_DEFAULT({})),          \
    repeats, dim)                                                                                           \
  M(Tensor, diag, (int64_t diagonal RG_DEFAULT(0)), diagonal)                                               \
  W(tril, (int64_t diagonal RG_DEFAULT(0)), diagonal)                                                       \
  W(triu, (int64_t diagonal RG_DEFAULT(0)), diagonal)

#define RG_INDEX_METHODS(M, W)                                                                              \
  M(Tensor, gather, (int64_t dim, const Tensor& index), dim, index)                                         \
  W(scatter, (int64_t dim, const Tensor& index, const Operand& src), dim, index, src)                       \
  W(scatter_add, (int64_t dim, const Tensor& index, const Tensor& src), dim, index, src)                    \
  M(Tensor, index_select, (int64_t dim, const Tensor& index), dim, index)                                   \
  W(index_add, (int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha RG_DEFAULT(1)), dim,   \
    index, source, alpha)                                                                                   \
  W(index_copy, (int64_t dim, const Tensor& index, const Tensor& source), dim, index, source)               \
  W(masked_fill, (const Tensor& mask, const Operand& value), mask, value)                                   \
  W(masked_scatter, (const Tensor& mask, const Tensor& source), mask, source)                               \
  M(Tensor, masked_select, (const Tensor& mask), mask)                                                      \
  M(Tensor, take, (const Tensor& index), index)                                                             \
  M(Tensor, take_along_dim, (const Tensor& indices, std::optional<int64_t> dim RG_DEFAULT({})), indices,    \
    dim)                                                                                                    \
  M(Tensor, nonzero, ())

#define RG_MATRIX_METHODS(M, W)                                                                             \
  M(Tensor, mm, (const Operand& mat2), mat2)                                                                \
  M(Tensor, bmm, (const Operand& mat2), mat2)                                                               \
  M(Tensor, mv, (const Operand& vec), vec)                                                                  \
  M(Tensor, dot, (const Operand& tensor), tensor)                                                           \
  M(Tensor, matmul, (const Operand& other), other)                                                          \
  M(Tensor, outer, (const Operand& vec2), vec2)                                                             \
  W(addmm,                                                                                                  \
    (const Tensor& mat1, const Tensor& mat2, Scalar beta RG_DEFAULT(1), Scalar alpha RG_DEFAULT(1)), mat1,  \
    mat2, beta, alpha)                                                                                      \
  W(baddbmm,                                                                                                \
    (const Tensor& batch1, const Tensor& batch2, Scalar beta RG_DEFAULT(1), Scalar alpha RG_DEFAULT(1)),    \
    batch1, batch2, beta, alpha)                                                                            \
  M(Tensor, inverse, ()) M(Tensor, det, ()) M(Tensor, logdet, ()) M(Tensor, trace, ())                      \
  M(SlogdetResult, slogdet, ())                                                                             \
  M(Tensor, cholesky, (bool upper RG_DEFAULT(false)), upper)                                                \
  M(Tensor, matrix_power, (int64_t n), n)

// Special functions, bits and bounds.
#define RG_SPECIAL_METHODS(M, W)                                                                            \
  W(sgn, ()) W(sinc, ()) W(deg2rad, ()) W(rad2deg, ()) W(bitwise_not, ()) M(Tensor, positive, ())           \
  M(Tensor, signbit, ()) M(Tensor, isposinf, ()) M(Tensor, isneginf, ())                                    \
  W(logit, (std::optional<double> eps RG_DEFAULT({})), eps)                                                 \
  M(Tensor, hardshrink, (Scalar lambd RG_DEFAULT(0.5)), lambd)                                              \
  W(floor_divide, (const Operand& other), other)                                                            \
  W(xlogy, (const Operand& other), other)                                                                   \
  W(copysign, (const Operand& other), other)                                                                \
  W(nextafter, (const Operand& other), other)                                                               \
  W(ldexp, (const Operand& other), other)                                                                   \
  W(gcd, (const Operand& other), other)                                                                     \
  W(lcm, (const Operand& other), other)                                                                     \
  W(heaviside, (const Operand& values), values)                                                             \
  W(bitwise_and, (const Operand& other), other)                                                             \
  W(bitwise_or, (const Operand& other), other)                                                              \
  W(bitwise_xor, (const Operand& other), other)                                                             \
  W(bitwise_left_shift, (const Operand& other), other)                                                      \
  W(bitwise_right_shift, (const Operand& other), other)                                                     \
  W(clamp_min, (const Operand& min), min)                                                                   \
  W(clamp_max, (const Operand& max), max)                                                                   \
  M(Tensor, fmax, (const Operand& other), other)                                                            \
  M(Tensor, fmin, (const Operand& other), other)                                                            \
  M(Tensor, logaddexp2, (const Operand& other), other)                                                      \
  M(Tensor, prelu, (const Tensor& weight), weight)                                                          \
  M(Tensor, isclose,                                                                                        \
    (const Tensor& other, double rtol RG_DEFAULT(1e-5), double atol RG_DEFAULT(1e-8),                       \
     bool equal_nan RG_DEFAULT(false)), other, rtol, atol, equal_nan)                                       \
  M(Condition, allclose,                                                                                    \
    (const Tensor& other, double rtol RG_DEFAULT(1e-5), double atol RG_DEFAULT(1e-8),                       \
     bool equal_nan RG_DEFAULT(false)), other, rtol, atol, equal_nan)                                       \
  M(Condition, equal, (const Tensor& other), other)

// Order statistics, and what ignores nan.
#define RG_STATISTICS_METHODS(M, W)                                                                         \
  M(Tensor, nansum,                                                                                         \
    (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false),                                     \
     std::optional<ScalarType> dtype RG_DEFAULT({})), dim, keepdim, dtype)                                  \
  M(Tensor, nanmean,                                                                                        \
    (const IntList& dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false),                                     \
     std::optional<ScalarType> dtype RG_DEFAULT({})), dim, keepdim, dtype)                                  \
  M(Tensor, median, ()) M(Tensor, nanmedian, ())                                                            \
  M(Tensor, dist, (const Tensor& other, Scalar p RG_DEFAULT(2)), other, p)                                  \
  M(Tensor, logcumsumexp, (int64_t dim), dim)                                                               \
  W(renorm, (Scalar p, int64_t dim, Scalar maxnorm), p, dim, maxnorm)                                       \
  M(MinAndMax, aminmax, (std::optional<int64_t> dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false)), dim,   \
    keepdim)                                                                                                \
  M(ValuesAndIndices, median, (int64_t dim, bool keepdim RG_DEFAULT(false)), dim, keepdim)                  \
  M(ValuesAndIndices, nanmedian, (int64_t dim, bool keepdim RG_DEFAULT(false)), dim, keepdim)               \
  M(ValuesAndIndices, mode, (int64_t dim RG_DEFAULT(-1), bool keepdim RG_DEFAULT(false)), dim, keepdim)     \
  M(ValuesAndIndices, kthvalue, (int64_t k, int64_t dim RG_DEFAULT(-1), bool keepdim RG_DEFAULT(false)), k, \
    dim, keepdim)                                                                                           \
  M(ValuesAndIndices, cummax, (int64_t dim), dim)                                                           \
  M(ValuesAndIndices, cummin, (int64_t dim), dim)                                                           \
  M(Tensor, quantile,                                                                                       \
    (const Operand& q, std::optional<int64_t> dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false),           \
     std::string_view interpolation RG_DEFAULT("linear")), q, dim, keepdim, interpolation)                  \
  M(Tensor, nanquantile,                                                                                    \
    (const Operand& q, std::optional<int64_t> dim RG_DEFAULT({}), bool keepdim RG_DEFAULT(false),           \
     std::string_view interpolation RG_DEFAULT("linear")), q, dim, keepdim, interpolation)                  \
  M(Tensor, diff,                                                                                           \
    (int64_t n RG_DEFAULT(1), int64_t dim RG_DEFAULT(-1), const Tensor& prepend RG_DEFAULT({}),             \
     const Tensor& append RG_DEFAULT({})), n, dim, prepend, append)                                         \
  M(Tensor, histc, (int64_t bins RG_DEFAULT(100), Scalar min RG_DEFAULT(0), Scalar max RG_DEFAULT(0)),      \
    bins, min, max)                                                                                         \
  M(Tensor, bincount, (const Tensor& weights RG_DEFAULT({}), int64_t minlength RG_DEFAULT(0)), weights,     \
    minlength)                                                                                              \
  M(Tensor, cov,                                                                                            \
    (int64_t correction RG_DEFAULT(1), const Tensor& fweights RG_DEFAULT({}),                               \
     const Tensor& aweights RG_DEFAULT({})), correction, fweights, aweights)                                \
  M(Tensor, corrcoef, ())

// More rearrangements, and copies with a part replaced.
#define RG_REARRANGEMENT_METHODS(M, W, G)                                                                   \
  M(Tensor, view_as, (const Tensor& other), other)                                                          \
  M(Tensor, reshape_as, (const Tensor& other), other)                                                       \
  M(Tensor, expand_as, (const Tensor& other), other)                                                        \
  M(Tensor, unflatten, (int64_t dim, const IntArray& sizes), dim, sizes)                                    \
  M(Tensor, ravel, ())                                                                                      \
  G(swapaxes, (int64_t axis0, int64_t axis1), axis0, axis1)                                                 \
  M(Tensor, fliplr, ()) M(Tensor, flipud, ())                                                               \
  M(Tensor, rot90, (int64_t k RG_DEFAULT(1), const IntArray& dims RG_DEFAULT({0, 1})), k, dims)             \
  W(index_fill, (int64_t dim, const Tensor& index, const Operand& value), dim, index, value)                \
  W(put, (const Tensor& index, const Tensor& source, bool accumulate RG_DEFAULT(false)), index, source,     \
    accumulate)                                                                                             \
  M(Tensors, tensor_split, (int64_t sections, int64_t dim RG_DEFAULT(0)), sections, dim)                    \
  M(Tensors, tensor_split, (const IntArray& indices, int64_t dim RG_DEFAULT(0)), indices, dim)              \
  M(Tensors, hsplit, (int64_t sections), sections)                                                          \
  M(Tensors, hsplit, (const IntArray& indices), indices)                                                    \
  M(Tensors, vsplit, (int64_t sections), sections)                                                          \
  M(Tensors, vsplit, (const IntArray& indices), indices)                                                    \
  M(Tensor, diag_embed,                                                                                     \
    (int64_t offset RG_DEFAULT(0), int64_t dim1 RG_DEFAULT(-2), int64_t dim2 RG_DEFAULT(-1)), offset,       \
    dim1, dim2)                                                                                             \
  M(Tensor, diagflat, (int64_t offset RG_DEFAULT(0)), offset)                                               \
  M(Tensor, diagonal_scatter,                                                                               \
    (const Tensor& src, int64_t offset RG_DEFAULT(0), int64_t dim1 RG_DEFAULT(0),                           \
     int64_t dim2 RG_DEFAULT(1)), src, offset, dim1, dim2)                                                  \
  M(Tensor, select_scatter, (const Tensor& src, int64_t dim, int64_t index), src, dim, index)               \
  M(Tensor, slice_scatter,                                                                                  \
    (const Tensor& src, int64_t dim RG_DEFAULT(0), std::optional<int64_t> start RG_DEFAULT({}),             \
     std::optional<int64_t> end RG_DEFAULT({}), int64_t step RG_DEFAULT(1)), src, dim, start, end, step)    \
  M(Tensor, as_strided_scatter,                                                                             \
    (const Tensor& src, const IntArray& size, const IntArray& stride,                                       \
     std::optional<int64_t> storage_offset RG_DEFAULT({})), src, size, stride, storage_offset)              \
  M(Tensor, kron, (const Tensor& other), other)                                                             \
  W(index_reduce,                                                                                           \
    (int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,                       \
     bool include_self RG_DEFAULT(true)), dim, index, source, reduce, include_self)                         \
  W(scatter_reduce,                                                                                         \
    (int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,                          \
     bool include_self RG_DEFAULT(true)), dim, index, src, reduce, include_self)                            \
  M(Tensor, argwhere, ())

// Products of matrices that are added to something, and functions of matrices.
#define RG_PRODUCT_METHODS(M, W)                                                                            \
  W(addbmm,                                                                                                 \
    (const Tensor& batch1, const Tensor& batch2, Scalar beta RG_DEFAULT(1), Scalar alpha RG_DEFAULT(1)),    \
    batch1, batch2, beta, alpha)                                                                            \
  W(addmv, (const Tensor& mat, const Tensor& vec, Scalar beta RG_DEFAULT(1), Scalar alpha RG_DEFAULT(1)),   \
    mat, vec, beta, alpha)                                                                                  \
  W(addr, (const Tensor& vec1, const Tensor& vec2, Scalar beta RG_DEFAULT(1), Scalar alpha RG_DEFAULT(1)),  \
    vec1, vec2, beta, alpha)                                                                                \
  M(Tensor, cross, (const Tensor& other, int64_t dim), other, dim)                                          \
  M(Tensor, inner, (const Tensor& other), other)                                                            \
  M(Tensor, matrix_exp, ())                                                                                 \
  M(Tensor, cholesky_solve, (const Tensor& L, bool upper RG_DEFAULT(false)), L, upper)                      \
  M(Tensor, cholesky_inverse, (bool upper RG_DEFAULT(false)), upper)

// Other names of functions, which libtorch has too, and forms that it adds (ops/synonyms.h).
#define RG_SYNONYM_METHODS(M, W, G)                                                                         \
  W(absolute, ()) W(negative, ()) W(fix, ()) W(arccos, ()) W(arcsin, ()) W(arctan, ()) W(arccosh, ())       \
  W(arcsinh, ()) W(arctanh, ())                                                                             \
  W(arctan2, (const Operand& other), other)                                                                 \
  W(subtract, (const Operand& other, Scalar alpha RG_DEFAULT(1)), other, alpha)                             \
  W(multiply, (const Operand& other), other)                                                                \
  W(divide, (const Operand& other), other)                                                                  \
  W(divide, (const Operand& other, std::string_view rounding_mode), other, rounding_mode)                   \
  W(true_divide, (const Operand& other), other)                                                             \
  W(less, (const Operand& other), other)                                                                    \
  W(less_equal, (const Operand& other), other)                                                              \
  W(greater, (const Operand& other), other)                                                                 \
  W(greater_equal, (const Operand& other), other)                                                           \
  W(not_equal, (const Operand& other), other)                                                               \
  W(clip, (std::optional<Scalar> min, std::optional<Scalar> max RG_DEFAULT({})), min, max)                  \
  M(Tensor, max, (const Tensor& other), other)                                                              \
  M(Tensor, min, (const Tensor& other), other)                                                              \
  M(Tensor, ger, (const Operand& vec2), vec2)                                                               \
  M(Tensor, vdot, (const Operand& other), other)                                                            \
  M(Tensor, msort, ()) M(Tensor, mT, ())                                                                    \
  M(Tensor, moveaxis, (const IntArray& source, const IntArray& destination), source, destination)           \
  G(swapdims, (int64_t dim0, int64_t dim1), dim0, dim1)                                                     \
  M(Tensors, split_with_sizes, (const IntArray& split_sizes, int64_t dim RG_DEFAULT(0)), split_sizes, dim)  \
  M(Tensor, sum_to_size, (const Shape& size), size)
