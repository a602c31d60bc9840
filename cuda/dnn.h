// Dnn: convolutions by the vendor's library, as a class that either computes one or declines it.
//
// A convolution has three sides (ops/convolution.h): a large one x (batch, channels, places), a small one g (batch, features, places) and a
// weight w (features, channels of a group, places of the kernel). Two are given, the third is wanted; so forward, transposed and by the
// weight are one struct. All sides are row-major and dense, at addresses that kAlignment divides; who asks sees to that
// (cuda/kernels/convolution_library.cc).
//
// The library is cuDNN (cuda/dnn_cudnn.cc), which is opened when a program convolves for the first time and is not linked. Where it is absent
// the library's own kernels take its place. What it declines goes to them as well, so a false is no error. Tests put a stand-in here.
//
// Results depend on nothing but sizes and types: what adds in no fixed order is ruled out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

struct CUstream_st;

namespace retrograd::cuda {

/// 16-bit factors are multiplied exactly and summed in float32; the result is rounded once.
enum class DnnType : uint8_t { f32, f64, f16, bf16 };
enum class DnnWanted : uint8_t { small, large, weight };

/// Spatial lists have three entries; of `dims` spatial dims the last ones count, those in front are 1 (a padding 0).
struct DnnConvolution {
  DnnWanted wanted{};
  DnnType type{};
  bool tf32 = false;                                          // float32 factors may lose 13 bits
  bool adds = false;                                          // to what the result's memory holds
  int dims = 2;                                               // 2 or 3
  int64_t batch = 1, groups = 1, channels = 1, features = 1;  // the last two of a group
  int64_t large[3] = {1, 1, 1}, small[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};  // padding: in front
  void *x = nullptr, *g = nullptr, *w = nullptr;
};

/// When a device's Dnn is asked: RETROGRAD_CUDA_DNN=0, 1 (or not set), all; Gpu::use_dnn().
enum class DnnUse : uint8_t { never, where_it_wins, wherever_it_can };

/// Of the convolutions that it was asked for.
struct DnnStats {
  int64_t computed = 0, declined = 0;
};

class Dnn {
 public:
  static constexpr int64_t kAlignment = 16;
  /// The most bytes of workspace.
  static constexpr int64_t kWorkspace = int64_t{256} << 20;

  virtual ~Dnn() = default;
  /// With its version.
  virtual std::string name() const = 0;
  /// The bytes of workspace that it needs; nothing where it declines. Addresses and `adds` are not looked at. No size is 0.
  virtual std::optional<int64_t> workspace(const DnnConvolution& c) = 0;
  /// Puts the convolution on the stream, or returns false. Calls of several threads are put on the stream one after the other.
  virtual bool convolve(const DnnConvolution& c, void* workspace, int64_t bytes, CUstream_st* stream) = 0;
};

/// cuDNN for the device that is this thread's; null where it cannot be used: `problem` then says why. `library`: as dlopen() gives it; null:
/// the machine's.
std::unique_ptr<Dnn> open_cudnn(std::string& problem, void* library = nullptr);

}  // namespace retrograd::cuda
