// See tracer/host_node.h.
#include "tracer/host_node.h"

namespace retrograd {
namespace {

void infer_host(const Call& call, TensorImpl* const* outputs) {
  const std::vector<TensorType>& types = call.attrs_as<HostAttrs>().code->types;
  for (int i = 0; i < call.outputs; ++i) {
    const TensorType& type = types[static_cast<size_t>(i)];
    outputs[i]->set_type(type.dtype, type.device, type.shape);
  }
}

void run_code(const Call& call, Tensor* results) {
  const RefPtr<HostCode> code(call.attrs_as<HostAttrs>().code);
  code->run(call.operands, results);
}

constexpr OpInfo host_info(std::string_view name, std::string_view doc) {
  OpInfo info;
  info.name = name;
  info.traits = Trait::effect | Trait::host;
  info.arity = info.outputs = -1;
  info.attrs_size = sizeof(HostAttrs);
  info.infer = infer_host;
  info.run_on_host = run_code;
  info.doc = doc;
  return info;
}

void drop_content(void* content) { delete static_cast<std::shared_ptr<void>*>(content); }

}  // namespace

namespace host {
constinit const OpInfo pack = host_info("pack", "calls a pack hook");
constinit const OpInfo unpack = host_info("unpack", "calls an unpack hook");
constinit const OpInfo function = host_info("function", "calls forward of a user's function");
constinit const OpInfo function_backward =
    host_info("function_backward", "calls backward of a user's function");
constinit const OpInfo post_accumulate = host_info("post_accumulate", "calls a hook on a leaf");
constinit const OpInfo give_grad = host_info("give_grad", "puts a gradient where code of the user's sees it");
constinit const OpInfo write_out = host_info("write_out", "writes a value where code of the user's sees it");
constinit const OpInfo begin_backward = host_info("begin_backward", "what hooks ask of a backward is there");
constinit const OpInfo end_backward =
    host_info("end_backward", "calls what was queued for the end of a backward");
constinit const OpInfo note_versions = host_info("note_versions", "notes versions of saved inputs");
constinit const OpInfo check_version =
    host_info("check_version", "refuses a saved input that was written to");
}  // namespace host

ir::Node& append_host_node(ir::Graph& graph, const OpInfo& op, std::span<const ir::ValueId> operands,
                           HostCode& code) {
  const HostAttrs attrs{&code};
  return graph.append(op, operands, &attrs, code.types);
}

HostCode* code_of(const Call& call) {
  return call.op->run_on_host == run_code ? call.attrs_as<HostAttrs>().code : nullptr;
}

Tensor shown(TensorImpl& x) { return x.requires_grad ? Tensor(RefPtr<TensorImpl>(&x)) : seen(x); }

Tensor seen(const TensorImpl& x) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(x);
  return Tensor(std::move(cell));
}

Tensor row_of(const TensorImpl& x) {
  RefPtr<TensorImpl> row = TensorImpl::make();
  row->set_type(x.dtype(), x.device(),
                {x.storage()->nbytes() / static_cast<int64_t>(element_size(x.dtype()))});
  contiguous_strides(row->shape(), row->mutable_strides());
  row->set_storage(x.storage());
  return Tensor(std::move(row));
}

TensorType parcel_type() { return {kUInt8, {}, Shape{0}}; }

Tensor make_parcel(std::shared_ptr<void> content) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  const TensorType type = parcel_type();
  cell->set_type(type.dtype, type.device, type.shape);
  contiguous_strides(cell->shape(), cell->mutable_strides());
  auto* owned = new std::shared_ptr<void>(std::move(content));
  cell->set_storage(Storage::wrap(owned, 0, drop_content, owned));
  return Tensor(std::move(cell));
}

const std::shared_ptr<void>& open_parcel(const TensorImpl& parcel) {
  return *static_cast<const std::shared_ptr<void>*>(parcel.storage()->data());
}

}  // namespace retrograd
