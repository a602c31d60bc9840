// The named values of options as libtorch spells them: torch::kMean, torch::kReflect. Each is an object of a type of
// its own, torch::enumtype::kMean, so that an option which takes some of them is a std::variant of these types, and
// another value does not compile. A value converts to the string that this library's functions take.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#pragma GCC visibility push(default)

#define RG_TORCH_ENUM(NAME, TEXT)                                    \
  namespace enumtype {                                               \
  struct k##NAME {                                                   \
    static constexpr std::string_view name = "k" #NAME, text = TEXT; \
    constexpr operator std::string_view() const { return text; }     \
  };                                                                 \
  }                                                                  \
  inline constexpr enumtype::k##NAME k##NAME

namespace torch {

RG_TORCH_ENUM(Linear, "linear");
RG_TORCH_ENUM(Conv1D, "conv1d");
RG_TORCH_ENUM(Conv2D, "conv2d");
RG_TORCH_ENUM(Conv3D, "conv3d");
RG_TORCH_ENUM(ConvTranspose1D, "conv_transpose1d");
RG_TORCH_ENUM(ConvTranspose2D, "conv_transpose2d");
RG_TORCH_ENUM(ConvTranspose3D, "conv_transpose3d");
RG_TORCH_ENUM(Sigmoid, "sigmoid");
RG_TORCH_ENUM(Tanh, "tanh");
RG_TORCH_ENUM(ReLU, "relu");
RG_TORCH_ENUM(GELU, "gelu");
RG_TORCH_ENUM(SiLU, "silu");
RG_TORCH_ENUM(Mish, "mish");
RG_TORCH_ENUM(LeakyReLU, "leaky_relu");
RG_TORCH_ENUM(FanIn, "fan_in");
RG_TORCH_ENUM(FanOut, "fan_out");
RG_TORCH_ENUM(Constant, "constant");
RG_TORCH_ENUM(Reflect, "reflect");
RG_TORCH_ENUM(Replicate, "replicate");
RG_TORCH_ENUM(Circular, "circular");
RG_TORCH_ENUM(Nearest, "nearest");
RG_TORCH_ENUM(Bilinear, "bilinear");
RG_TORCH_ENUM(Bicubic, "bicubic");
RG_TORCH_ENUM(Trilinear, "trilinear");
RG_TORCH_ENUM(Area, "area");
RG_TORCH_ENUM(NearestExact, "nearest-exact");
RG_TORCH_ENUM(Sum, "sum");
RG_TORCH_ENUM(Mean, "mean");
RG_TORCH_ENUM(Max, "max");
RG_TORCH_ENUM(None, "none");
RG_TORCH_ENUM(BatchMean, "batchmean");
RG_TORCH_ENUM(Zeros, "zeros");
RG_TORCH_ENUM(Border, "border");
RG_TORCH_ENUM(Reflection, "reflection");
RG_TORCH_ENUM(RNN_TANH, "tanh");
RG_TORCH_ENUM(RNN_RELU, "relu");
RG_TORCH_ENUM(LSTM, "lstm");
RG_TORCH_ENUM(GRU, "gru");
RG_TORCH_ENUM(Valid, "valid");
RG_TORCH_ENUM(Same, "same");

namespace enumtype {

/// The string of the value that a variant of these types holds: "mean".
template <class... Values>
std::string text_of(const std::variant<Values...>& value) {
  constexpr std::string_view texts[] = {Values::text...};
  return std::string(texts[value.index()]);
}

/// libtorch's name of it: "kMean".
template <class... Values>
std::string get_enum_name(const std::variant<Values...>& value) {
  constexpr std::string_view names[] = {Values::name...};
  return std::string(names[value.index()]);
}

}  // namespace enumtype
}  // namespace torch
#undef RG_TORCH_ENUM
#pragma GCC visibility pop
