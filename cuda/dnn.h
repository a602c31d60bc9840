// Dnn: convolutions by the vendor's library, as a class that either computes one or declines it.
//
// A convolution has three sides (ops/convolution.h): a large one x (batch, channels, positions), a small one g (batch,
// features, positions) and a weight w (features, channels of a group, positions in the kernel). Two are given, the
// third is wanted; so forward, transposed and weight convolutions are one struct. All sides are row-major and dense, at
// addresses that are multiples of kAlignment; the caller ensures that (cuda/kernels/convolution_library.cc).
//
// The library is cuDNN (cuda/dnn_cudnn.cc). It is opened when a program convolves for the first time and is not linked.
// If it is missing, retrograd's own kernels replace it. They also compute what it declines, so `false` is no error.
// Tests use a stand-in here.
//
// Results depend only on sizes and types: algorithms that add in no fixed order are excluded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct CUstream_st;

namespace retrograd::inline v0::cuda {

/// 16-bit factors are multiplied exactly and summed in float32; the result is rounded once.
enum class DnnType : uint8_t { f32, f64, f16, bf16 };
enum class DnnWanted : uint8_t { small, large, weight };

/// Spatial lists have three entries; with `dims` spatial dims the last ones count, those before them are 1 (a padding
/// 0).
struct DnnConvolution {
  DnnWanted wanted{};
  DnnType type{};
  bool tf32 = false;                                          // float32 factors may lose 13 bits
  bool adds = false;                                          // to the present content of the result's memory
  int dims = 2;                                               // 2 or 3
  int64_t batch = 1, groups = 1, channels = 1, features = 1;  // the last two per group
  int64_t large[3] = {1, 1, 1}, small[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};  // padding: at the front
  void *x = nullptr, *g = nullptr, *w = nullptr;
};

/// When a device's Dnn is used: RETROGRAD_CUDA_DNN=0, 1 (or not set), all; Gpu::use_dnn().
enum class DnnUse : uint8_t { never, where_it_wins, wherever_it_can };

/// Counts of the requested convolutions.
struct DnnStats {
  int64_t computed = 0, declined = 0;
};

class Dnn {
 public:
  static constexpr int64_t kAlignment = 16;
  /// The largest workspace in bytes.
  static constexpr int64_t kWorkspace = int64_t{256} << 20;

  virtual ~Dnn() = default;
  /// Includes its version.
  virtual std::string name() const = 0;
  /// The bytes of workspace that it needs; none when it declines. Does not depend on addresses and `adds`. No size is
  /// 0.
  virtual std::optional<int64_t> workspace(const DnnConvolution& c) = 0;
  /// Puts the convolution on the stream, or returns false. Calls from several threads are serialised.
  virtual bool convolve(const DnnConvolution& c, void* workspace, int64_t bytes, CUstream_st* stream) = 0;
};

/// cuDNN for this thread's device; null when it cannot be used: then `problem` says why. `library`: a handle of
/// dlopen(); null: the machine's.
std::unique_ptr<Dnn> open_cudnn(std::string& problem, void* library = nullptr);

}  // namespace retrograd::cuda
