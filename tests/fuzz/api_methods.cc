// Entries for methods of Tensor that query, convert or make views, and for printing.
#include <sstream>

#include "tests/fuzz/api_table.h"

namespace fuzz {
namespace {

using rg::IntArray;

void add_questions(ApiTable& t) {
  add(
      t, "size", +[](Tensor x, int64_t dim) { (void)x.size(dim); });
  add(
      t, "stride", +[](Tensor x, int64_t dim) { (void)x.stride(dim); });
  add(
      t, "numbers of a tensor", +[](Tensor x) {
        (void)x.dim(), (void)x.numel(), (void)x.nbytes(), (void)x.storage_offset(), (void)x.version();
        (void)x.sizes(), (void)x.strides();
      });
  add(
      t, "kind of a tensor", +[](Tensor x) {
        (void)x.dtype(), (void)x.device(), (void)x.is_contiguous(), (void)x.is_floating_point();
        (void)x.requires_grad(), (void)x.is_leaf(), (void)x.retains_grad();
      });
  add(
      t, "is_same", +[](Tensor x, Tensor y) { (void)x.is_same(y), x.reset(), (void)y.is_same(x); });
  add(
      t, "item", +[](Tensor x) { (void)x.item(); });
  add(
      t, "item<int64_t>", +[](Tensor x) { (void)x.item<int64_t>(); });
  add(
      t, "item<float>", +[](Tensor x) { (void)x.item<float>(); });
  add(
      t, "raw_data", +[](Tensor x) { (void)x.raw_data(); });
  add(
      t, "data_ptr<float>", +[](Tensor x) { (void)x.data_ptr<float>(); });
  add(
      t, "data_ptr<int64_t>", +[](Tensor x) { (void)x.data_ptr<int64_t>(); });
  add(
      t, "to_vector", +[](Tensor x) { (void)x.to_vector(); });
  add(
      t, "grad_fn", +[](Tensor x) {
        const rg::Node node = x.grad_fn();
        (void)node.name(), (void)node.where(), (void)node.saved_count(), (void)node.defined();
      });
  add(
      t, "promote_types", +[](rg::ScalarType a, rg::ScalarType b) { (void)rg::promote_types(a, b); });
}

void add_texts(ApiTable& t) {
  add(
      t, "to_string", +[](Tensor x) { (void)rg::to_string(x); });
  add(
      t, "describe", +[](Tensor x) { (void)rg::describe(x); });
  add(
      t, "operator<<", +[](Tensor x) { std::ostringstream() << x; });
}

void add_conversions(ApiTable& t) {
  add(
      t, "Tensor::to", +[](Tensor x, rg::ScalarType dtype) { return x.to(dtype); });
  add(
      t, "Tensor::clone", +[](Tensor x) { return x.clone(); });
  add(
      t, "Tensor::contiguous", +[](Tensor x) { return x.contiguous(); });
  add(
      t, "Tensor::detach", +[](Tensor x) { return x.detach(); });
  add(
      t, "Tensor::sum", +[](Tensor x) { return x.sum(); });
  add(
      t, "Tensor::mean", +[](Tensor x) { return x.mean(); });
  add(
      t, "Tensor::t", +[](Tensor x) { return x.t(); });
  add(
      t, "Tensor::transpose", +[](Tensor x, int64_t a, int64_t b) { return x.transpose(a, b); });
  add(
      t, "Tensor::view", +[](Tensor x, IntArray size) { return x.view(size); });
  add(
      t, "Tensor::reshape", +[](Tensor x, IntArray shape) { return x.reshape(shape); });
  add(
      t, "Tensor::select", +[](Tensor x, int64_t dim, int64_t index) { return x.select(dim, index); });
  add(
      t, "Tensor::narrow",
      +[](Tensor x, int64_t dim, int64_t start, int64_t length) { return x.narrow(dim, start, length); });
}

void add_memory(ApiTable& t) {
  add(
      t, "memory", +[](int64_t bytes) {
        (void)rg::memory::stats(), (void)rg::memory::reset_peak(bytes), rg::memory::empty_cache();
      });
  add(
      t, "Generator", +[](int64_t seed, int64_t offset) {
        rg::Generator& generator = rg::default_generator();
        generator.set_state({static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)});
        (void)generator.state(), (void)generator.reserve(static_cast<uint64_t>(offset) % 1000);
      });
}

void add_operators(ApiTable& t) {
  add(
      t, "operator+", +[](rg::Operand a, rg::Operand b) { return a + b; });
  add(
      t, "operator-", +[](rg::Operand a, rg::Operand b) { return a - b; });
  add(
      t, "operator*", +[](rg::Operand a, rg::Operand b) { return a * b; });
  add(
      t, "operator/", +[](rg::Operand a, rg::Operand b) { return a / b; });
  add(
      t, "unary operator-", +[](rg::Operand a) { return -a; });
}

}  // namespace

void add_tensor_api(ApiTable& table) {
  add_questions(table);
  add_texts(table);
  add_conversions(table);
  add_operators(table);
  add_memory(table);
}

std::span<const ApiFunction> api_table() {
  static const ApiTable* table = [] {
    auto* all = new ApiTable;
    add_creation_api(*all);
    add_elementwise_api(*all);
    add_shape_api(*all);
    add_reduction_api(*all);
    add_nn_api(*all);
    add_module_api(*all);
    add_tensor_api(*all);
    add_write_api(*all);
    add_hook_api(*all);
    add_autograd_api(*all);
    return all;
  }();
  return *table;
}

}  // namespace fuzz
