// Functions of libtorch that do not exist here: declared and deleted, so that the compiler shows the line with the
// alternative. Dtypes and layouts that do not exist are in torch/types.h.
#pragma once

#include "torch/ivalue.h"

#pragma GCC visibility push(default)
namespace torch {

#define RG_ABSENT(RESULT, NAME) \
  template <class... Arguments> \
  RESULT NAME(Arguments&&...) = delete

RG_ABSENT(Tensor, complex);          // no complex dtypes: real and imaginary parts in a last dim of size 2
RG_ABSENT(Tensor, polar);            // no complex dtypes: real and imaginary parts in a last dim of size 2
RG_ABSENT(Tensor, view_as_complex);  // no complex dtypes: real and imaginary parts in a last dim of size 2
RG_ABSENT(Tensor, view_as_real);     // no complex dtypes: real and imaginary parts in a last dim of size 2
RG_ABSENT(void, linalg_eig);         // no complex dtypes: linalg_eigh() of a symmetric matrix
RG_ABSENT(Tensor, linalg_eigvals);   // no complex dtypes: linalg_eigvalsh() of a symmetric matrix
RG_ABSENT(Tensor, stft);             // no complex dtypes: unfold(), and matmul() with cosines and sines
RG_ABSENT(Tensor, istft);            // no complex dtypes: matmul() with cosines and sines
namespace fft {
RG_ABSENT(Tensor, fft);    // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, ifft);   // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, rfft);   // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, irfft);  // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, fft2);   // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, ifft2);  // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, fftn);   // no complex dtypes: matmul() with cosines and sines
RG_ABSENT(Tensor, ifftn);  // no complex dtypes: matmul() with cosines and sines
}  // namespace fft

RG_ABSENT(Tensor, poisson);   // no such draw: std::poisson_distribution for the elements of a tensor()
RG_ABSENT(Tensor, binomial);  // no such draw: bernoulli() of a dim more, and its sum

RG_ABSENT(Tensor, sparse_coo_tensor);  // no sparse tensors: index_put_() into zeros()
RG_ABSENT(IValue, pickle_load);        // no pickles: safetensors.torch.save_file in Python, torch::load here
RG_ABSENT(std::vector<char>, pickle_save);  // no pickles: torch::save writes safetensors
namespace jit {
RG_ABSENT(void, load);  // no TorchScript: a module in C++, and its weights by torch::load
}  // namespace jit

#undef RG_ABSENT

}  // namespace torch
#pragma GCC visibility pop
