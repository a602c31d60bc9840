// Ops that select their elements by indices or masks.
#include "ops/embedding.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"

#include "tests/conformance/bindings/families.h"

namespace retrograd::conformance {
namespace {

Indices read_index(const Tensors& tensors, const Json& items) {
  const auto bound = [](const Json& value) {
    return value.is_null() ? std::nullopt : std::optional(value.get<int64_t>());
  };
  Indices index;
  for (const Json& item : items) {
    const std::string& kind = item.at(0).get_ref<const std::string&>();
    if (kind == "int")
      index.emplace_back(item.at(1).get<int64_t>());
    else if (kind == "slice")
      index.emplace_back(
          indexing::Slice{bound(item.at(1)), bound(item.at(2)), bound(item.at(3)).value_or(1)});
    else if (kind == "ellipsis")
      index.emplace_back(indexing::Ellipsis);
    else if (kind == "newaxis")
      index.emplace_back(indexing::None);
    else if (kind == "tensor")
      index.emplace_back(tensors.at(item.at(1).get<size_t>()));
    else
      throw BadManifest("no index item is a \"" + kind + "\"");
  }
  return index;
}

Tensor getitem_of(Operand x, const Tensors& tensors, const Json& index) {
  return getitem(x, read_index(tensors, index));
}

Tensor setitem_of(const Tensor& x, Operand value, const Tensors& tensors, const Json& index) {
  return setitem_(x, read_index(tensors, index), value);
}

Tensor index_put_of(Operand x, const Tensor& values, const Tensors& indices, bool accumulate) {
  return index_put(x, indices, values, accumulate);
}

Tensor scatter_of(Operand x, int64_t dim, const Tensor& index, const Tensor& source,
                  std::optional<Scalar> value) {
  if (value) return scatter(x, dim, index, *value);
  return scatter(x, dim, index, source);
}

Tensor embedding_of(Operand index, const Tensor& weight, std::optional<int64_t> padding_idx,
                    bool scale_grad_by_freq) {
  return embedding(Operand(weight), index.tensor(), padding_idx, scale_grad_by_freq);
}

constexpr Binding kBindings[] = {
    {"gather", call<gather>},
    {"scatter", call<scatter_of>},
    {"scatter_add", call<scatter_add>},
    {"index_select", call<index_select>},
    {"index_add", call<index_add>},
    {"index_copy", call<index_copy>},
    {"masked_fill", call<masked_fill>},
    {"masked_select", call<masked_select>},
    {"masked_scatter", call<masked_scatter>},
    {"take", call<take>},
    {"take_along_dim", call<take_along_dim>},
    {"nonzero", call<nonzero>},
    {"embedding", call<embedding_of>},
    {"one_hot", call<one_hot>},
    {"getitem", call<getitem_of>},
    {"setitem_", call<setitem_of>},
    {"index_put", call<index_put_of>},
};

}  // namespace

BindingList index_bindings() { return kBindings; }

}  // namespace retrograd::conformance
