// See nn/convolution.h. Each forward opens the scope of its caller's line, where it calls more than one function.
#include "nn/convolution.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "nn/init.h"
#include "ops/creation.h"
#include "ops/rearrange.h"

namespace retrograd::inline v0::nn {
namespace {

constexpr std::string_view kPaddingModes[] = {"zeros", "reflect", "replicate", "circular"};

// [first, second / groups, kernel...] with a kernel of `dims` sizes.
Shape weight_shape(int dims, int64_t first, int64_t second, const IntList& kernel, int64_t groups,
                   SourceLocation where) {
  if (kernel.size() != 1 && kernel.size() != dims)
    fail(Category::bad_argument, "Conv", fmt::format("the kernel needs 1 or {} sizes", dims), where);
  if (groups < 1 || first % groups != 0 || second % groups != 0)
    fail(Category::bad_argument, "Conv",
         fmt::format("{} groups do not divide {} and {} channels", groups, first, second), where);
  Shape shape{first, second / groups};
  for (int d = 0; d < dims; ++d) shape.push_back(kernel[kernel.size() == 1 ? 0 : d]);
  return shape;
}

void check_lists(int dims, std::initializer_list<const IntList*> lists, std::string_view type,
                 SourceLocation where) {
  for (const IntList* list : lists)
    if (list->size() != 1 && list->size() != dims)
      fail(Category::bad_argument, type,
           fmt::format("a list has {} entries, not 1 or {}", list->size(), dims), where);
}

// Entry d of a list with an entry per dim, or one for all.
int64_t entry(const IntList& list, int d) { return list[list.size() == 1 ? 0 : d]; }

// ", name=[...]" unless all entries are `usual`.
std::string unless_usual(std::string_view name, const IntList& list, int dims, int64_t usual) {
  if (std::ranges::all_of(list, [&](int64_t v) { return v == usual; })) return {};
  return fmt::format(", {}={}", name, detail::list_text(list, dims));
}

std::string channels_text(const ConvLayer& layer, int dims, const IntList& stride) {
  return fmt::format("{}, {}, kernel_size={}, stride={}", layer.in_channels, layer.out_channels,
                     detail::list_text(layer.kernel_size, dims), detail::list_text(stride, dims));
}

std::string groups_text(int64_t groups, bool bias) {
  return (groups == 1 ? "" : fmt::format(", groups={}", groups)) + (bias ? "" : ", bias=false");
}

}  // namespace

ConvLayer::ConvLayer(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
                     const Shape& weight_shape, bool has_bias)
    : Module(parent, std::move(name)),
      in_channels(in),
      out_channels(out),
      kernel_size(kernel),
      weight(this, "weight", empty(weight_shape)),
      bias(this, "bias", has_bias ? empty({out}) : Tensor()) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t fan_in = init::fans(weight).in;
  if (!has_bias || fan_in == 0) return;  // without inputs there is no bound, as in Linear
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  init::uniform_(bias, -bound, bound);
}

template <int Dims>
Conv<Dims>::Conv(Module* parent, std::string name, int64_t in, int64_t out, const IntList& kernel,
                 ConvOptions options, SourceLocation where)
    : Layer<Conv, ConvLayer>(parent, std::move(name), in, out, kernel,
                             weight_shape(Dims, out, in, kernel, options.groups, where), options.bias),
      options(options) {
  if (std::ranges::count(kPaddingModes, options.padding_mode) == 0)
    fail(Category::bad_argument, type_name,
         fmt::format("there is no padding_mode \"{}\"", options.padding_mode), where);
  check_lists(Dims, {&options.stride, &options.padding.sizes, &options.dilation}, type_name, where);
  if (options.padding.same && std::ranges::any_of(options.stride, [](int64_t s) { return s != 1; }))
    fail(Category::bad_argument, type_name, "padding \"same\" needs stride 1", where);
}

template <int Dims>
Tensor Conv<Dims>::forward(Operand x) const {
  constexpr auto function = Dims == 1 ? conv1d : Dims == 2 ? conv2d : conv3d;
  const auto& [stride, padding, dilation, groups, has_bias, mode] = options;
  if (mode == "zeros") return function(x, this->weight, this->bias, stride, padding, dilation, groups);
  const CallScope scope(x.where());
  return function(pad(x, border(), mode), this->weight, this->bias, stride, 0, dilation, groups);
}

// The amounts for pad(): of the last dim first, an odd element of "same" at the end.
template <int Dims>
IntArray Conv<Dims>::border() const {
  IntArray amounts;
  for (int d = Dims - 1; d >= 0; --d) {
    const int64_t reach = Dim::checked_mul(entry(options.dilation, d), entry(this->kernel_size, d) - 1);
    const int64_t before = options.padding.same ? reach / 2 : entry(options.padding.sizes, d);
    const int64_t after = options.padding.same ? reach - before : before;
    amounts.insert(amounts.end(), {before, after});
  }
  return amounts;
}

template <int Dims>
std::string Conv<Dims>::extra_repr() const {
  std::string text = channels_text(*this, Dims, options.stride);
  text += options.padding.same ? ", padding=same" : unless_usual("padding", options.padding.sizes, Dims, 0);
  text += unless_usual("dilation", options.dilation, Dims, 1) + groups_text(options.groups, options.bias);
  return options.padding_mode == "zeros" ? text
                                         : fmt::format("{}, padding_mode={}", text, options.padding_mode);
}

template <int Dims>
ConvTranspose<Dims>::ConvTranspose(Module* parent, std::string name, int64_t in, int64_t out,
                                   const IntList& kernel, ConvTransposeOptions options, SourceLocation where)
    : Layer<ConvTranspose, ConvLayer>(parent, std::move(name), in, out, kernel,
                                      weight_shape(Dims, in, out, kernel, options.groups, where),
                                      options.bias),
      options(options) {
  check_lists(Dims, {&options.stride, &options.padding, &options.output_padding, &options.dilation},
              type_name, where);
}

template <int Dims>
Tensor ConvTranspose<Dims>::forward(Operand x, const IntList& output_size) const {
  constexpr auto function = Dims == 1 ? conv_transpose1d : Dims == 2 ? conv_transpose2d : conv_transpose3d;
  return function(x, this->weight, this->bias, options.stride, options.padding,
                  output_size.empty() ? options.output_padding : output_padding_for(x, output_size),
                  options.groups, options.dilation);
}

template <int Dims>
IntList ConvTranspose<Dims>::output_padding_for(Operand x, const IntList& output_size) const {
  const Tensor& input = x.defined_tensor(type_name);
  const int rank = static_cast<int>(input.dim()), given = output_size.size();
  if (rank < Dims || (given != Dims && given != rank))
    fail(Category::bad_argument, type_name,
         fmt::format("output_size has {} entries for {} spatial dims", given, Dims), x.where());
  IntList padding;
  for (int d = 0; d < Dims; ++d) {
    const int64_t wanted = output_size[given - Dims + d], stride = entry(options.stride, d);
    const int64_t reach = Dim::checked_mul(entry(options.dilation, d), entry(this->kernel_size, d) - 1);
    const int64_t least = (Dim(input.size(rank - Dims + d) - 1) * Dim(stride) -
                           Dim(2) * Dim(entry(options.padding, d)) + Dim(reach) + 1)
                              .value();
    const int64_t end = Dim::checked_add(least, stride);
    if (wanted < least || wanted >= end)
      fail(Category::bad_argument, type_name,
           fmt::format("a size of {} is not from {} to {}", wanted, least, end - 1), x.where());
    padding.push_back(wanted - least);
  }
  return padding;
}

template <int Dims>
std::string ConvTranspose<Dims>::extra_repr() const {
  return channels_text(*this, Dims, options.stride) + unless_usual("padding", options.padding, Dims, 0) +
         unless_usual("output_padding", options.output_padding, Dims, 0) +
         unless_usual("dilation", options.dilation, Dims, 1) + groups_text(options.groups, options.bias);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace retrograd::nn
