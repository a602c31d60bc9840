// See tests/cuda/fake_cusolver.h.
#if defined(RG_WITH_TOOLKIT) && __has_include(<cusolverDn.h>)
#include "tests/cuda/fake_cusolver.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "tests/cuda/test_device.h"

struct cusolverDnContext {
  cudaStream_t stream = nullptr;
};
struct cusolverDnParams {};

using namespace retrograd;
using fake_cusolver::kBytes;
using fake_cusolver::world;

namespace {

template <class T>
struct Columns {
  T* data;
  int64_t lda;
  T& operator()(int64_t i, int64_t j) const { return data[i + j * lda]; }
};

// A zero pivot is reported, and the rest of the matrix is invalid.
template <class T>
int lu(const Columns<T>& a, int64_t n, int64_t* pivots) {
  for (int64_t k = 0; k < n; ++k) {
    int64_t row = k;
    for (int64_t i = k; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(row, k))) row = i;
    pivots[k] = row + 1;
    for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(row, j));
    if (a(k, k) == 0) {
      for (int64_t i = 0; i < n; ++i) {
        pivots[i] = i + 1;
        for (int64_t j = 0; j < n; ++j) a(i, j) = NAN;
      }
      return static_cast<int>(k + 1);
    }
    for (int64_t i = k + 1; i < n; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < n; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return 0;
}

// Reads the named triangle. If the matrix is not positive definite, the content left there is arbitrary.
template <class T>
int cholesky(const Columns<T>& a, int64_t n, bool upper) {
  const auto at = [&](int64_t i, int64_t j) -> T& { return upper ? a(j, i) : a(i, j); };
  for (int64_t k = 0; k < n; ++k) {
    T pivot = at(k, k);
    for (int64_t j = 0; j < k; ++j) pivot -= at(k, j) * at(k, j);
    if (!(pivot > 0)) {
      for (int64_t i = 0; i < n; ++i) at(i, i) = 1;
      return static_cast<int>(k + 1);
    }
    at(k, k) = std::sqrt(pivot);
    for (int64_t i = k + 1; i < n; ++i) {
      for (int64_t j = 0; j < k; ++j) at(i, k) -= at(i, j) * at(k, j);
      at(i, k) /= at(k, k);
    }
  }
  return 0;
}

size_t size_of(cudaDataType type) {
  REQUIRE((type == CUDA_R_32F || type == CUDA_R_64F));
  return type == CUDA_R_64F ? 8 : 4;
}

cusolverStatus_t ask(cusolverDnHandle_t handle, cusolverDnParams_t parameters, int64_t n, cudaDataType type,
                     int64_t lda, cudaDataType computed_in, size_t* there, size_t* here) {
  REQUIRE(handle);
  REQUIRE(parameters);
  REQUIRE(n > 0);
  REQUIRE(lda >= n);
  REQUIRE(computed_in == type);
  ++world.asked;
  if (world.declines) return CUSOLVER_STATUS_NOT_SUPPORTED;
  *there = kBytes;
  *here = world.host_bytes;
  return CUSOLVER_STATUS_SUCCESS;
}

// f(matrix of its type) gives the info.
template <class F>
cusolverStatus_t factor(cusolverDnHandle_t handle, int64_t n, cudaDataType type, void* a, int64_t lda,
                        void* workspace, size_t bytes, void* room, size_t room_bytes, int* info, const F& f) {
  cuda::HostDriver& driver = device_on_host();
  REQUIRE(!driver.captures(handle->stream));
  REQUIRE(bytes >= kBytes);
  REQUIRE(room == nullptr);
  REQUIRE(room_bytes == 0);
  REQUIRE(driver.owns(workspace, bytes));
  REQUIRE(driver.owns(info, sizeof(int)));
  REQUIRE(driver.owns(a, static_cast<size_t>(lda * n) * size_of(type)));
  std::memset(workspace, 0xff, kBytes);
  world.stream = handle->stream;
  world.type = type;
  if (world.fails_after == world.factored) {
    if (world.fails_once) world.fails_after = -1;
    std::memset(a, 0xff, static_cast<size_t>(lda * n) * size_of(type));
    return CUSOLVER_STATUS_INTERNAL_ERROR;
  }
  ++world.factored;
  *info = type == CUDA_R_64F ? f(Columns<double>{static_cast<double*>(a), lda})
                             : f(Columns<float>{static_cast<float*>(a), lda});
  return CUSOLVER_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cusolverStatus_t cusolverGetVersion(int* version) {
  *version = 12034;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  const cuda::HostDriver& driver = device_on_host();
  if (driver.used + world.handle_bytes > driver.capacity) return CUSOLVER_STATUS_ALLOC_FAILED;
  *handle = new cusolverDnContext;
  ++world.live;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete handle;
  --world.live;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t* parameters) {
  *parameters = new cusolverDnParams;
  ++world.live;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroyParams(cusolverDnParams_t parameters) {
  delete parameters;
  --world.live;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXgetrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t parameters,
                                             int64_t m, int64_t n, cudaDataType type, const void*,
                                             int64_t lda, cudaDataType computed_in, size_t* there,
                                             size_t* here) {
  REQUIRE(m == n);
  return ask(handle, parameters, n, type, lda, computed_in, there, here);
}
cusolverStatus_t cusolverDnXgetrf(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n,
                                  cudaDataType type, void* a, int64_t lda, int64_t* pivots,
                                  cudaDataType computed_in, void* workspace, size_t bytes, void* room,
                                  size_t room_bytes, int* info) {
  REQUIRE(m == n);
  REQUIRE(computed_in == type);
  REQUIRE(device_on_host().owns(pivots, static_cast<size_t>(n) * sizeof(int64_t)));
  return factor(handle, n, type, a, lda, workspace, bytes, room, room_bytes, info,
                [&](const auto& matrix) { return lu(matrix, n, pivots); });
}

cusolverStatus_t cusolverDnXpotrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t parameters,
                                             cublasFillMode_t, int64_t n, cudaDataType type, const void*,
                                             int64_t lda, cudaDataType computed_in, size_t* there,
                                             size_t* here) {
  return ask(handle, parameters, n, type, lda, computed_in, there, here);
}
cusolverStatus_t cusolverDnXpotrf(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t triangle,
                                  int64_t n, cudaDataType type, void* a, int64_t lda,
                                  cudaDataType computed_in, void* workspace, size_t bytes, void* room,
                                  size_t room_bytes, int* info) {
  REQUIRE(computed_in == type);
  REQUIRE((triangle == CUBLAS_FILL_MODE_UPPER || triangle == CUBLAS_FILL_MODE_LOWER));
  world.triangle = triangle;
  return factor(handle, n, type, a, lda, workspace, bytes, room, room_bytes, info,
                [&](const auto& matrix) { return cholesky(matrix, n, triangle == CUBLAS_FILL_MODE_UPPER); });
}

}  // extern "C"

#endif
