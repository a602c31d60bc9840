// A kind is a pair of functions of floating tensors; common code logs and passes other dtypes through.
#include "tests/conformance/saved_tensor_kinds.h"

#include <memory>

#include "ops/arithmetic.h"
#include "ops/shape_ops.h"

namespace retrograd::conformance {
namespace {

/// What pack leaves for unpack: a tensor, or the place of one in the table.
struct Payload {
  std::string group;  // "h LABEL"
  std::string type;   // "float64[2,3]"
  ScalarType dtype;
  Tensor tensor;
  size_t place = 0;
};

struct PackPair {
  std::function<void(Payload&, const Tensor&)> pack;
  std::function<Tensor(const Payload&)> unpack;
};

std::string type_text(const Tensor& tensor) {
  return std::string(name(tensor.dtype())) + to_string(tensor.impl().shape());
}

PackPair identity() {
  return {[](Payload& p, const Tensor& x) { p.tensor = x; }, [](const Payload& p) { return p.tensor; }};
}

PackPair through_table() {
  const auto table = std::make_shared<Tensors>();
  return {[table](Payload& p, const Tensor& x) {
            p.place = table->size();
            table->push_back(x);
          },
          [table](const Payload& p) { return table->at(p.place); }};
}

PackPair pair_of(const Json& statement) {
  const std::string& kind = statement["kind"].get_ref<const std::string&>();
  if (kind == "log") return identity();
  if (kind == "table") return through_table();
  if (kind == "half")
    return {[](Payload& p, const Tensor& x) { p.tensor = to(x, kFloat16); },
            [](const Payload& p) { return to(p.tensor, p.dtype); }};
  if (kind == "offload")
    return {[](Payload& p, const Tensor& x) { p.tensor = clone(x); },
            [](const Payload& p) { return clone(p.tensor); }};
  if (kind == "scale") {
    const Scalar down = to_scalar(statement.at("pack")), up = to_scalar(statement.at("unpack"));
    return {[down](Payload& p, const Tensor& x) { p.tensor = mul(x, down); },
            [up](const Payload& p) { return mul(p.tensor, up); }};
  }
  if (kind == "fp8") {
    const Scalar qscale = to_scalar(statement.at("qscale"));
    return {[qscale](Payload& p, const Tensor& x) { p.tensor = to(div(x, qscale), kFloat8_e4m3fn); },
            [qscale](const Payload& p) { return mul(to(p.tensor, p.dtype), qscale); }};
  }
  throw BadManifest("no kind of saved-tensor hooks is \"" + kind + "\"");
}

}  // namespace

RefPtr<SavedTensorHooks> saved_tensor_kind(const Json& statement, EventLog& events) {
  const std::string id = statement["id"];
  const PackPair of_floats = pair_of(statement), of_others = identity();
  auto pack = [=, &events](const Tensor& x) {
    Payload payload{id + " " + CallLabel::current(), type_text(x), x.dtype(), {}};
    events.add_saved("pack " + payload.group, payload.type);
    (is_floating(x.dtype()) ? of_floats : of_others).pack(payload, x);
    return payload;
  };
  auto unpack = [=, &events](const Payload& payload) {
    events.add_saved("unpack " + payload.group, payload.type);
    return (is_floating(payload.dtype) ? of_floats : of_others).unpack(payload);
  };
  return saved_tensor_hooks(std::move(pack), std::move(unpack));
}

}  // namespace retrograd::conformance
