// The table of the public functions that the API fuzzer calls. An entry consists of a function pointer: its parameters
// tell what to draw. Function objects and methods are wrapped in lambdas. A lambda that needs the round itself takes
// Arguments& first.
#pragma once

#include <functional>
#include <span>

#include "engine/inplace.h"
#include "tests/fuzz/api_arguments.h"

namespace fuzz {

struct ApiFunction {
  std::string_view name;
  std::function<void(Arguments&)> call;
  std::string_view pattern = {};  // Arguments::begin
};
using ApiTable = std::vector<ApiFunction>;

/// Values for parameters, drawn in their order.
template <class... Parameters>
std::tuple<std::remove_cvref_t<Parameters>...> draw(Arguments& a) {
  return {a.get<std::remove_cvref_t<Parameters>>()...};  // braces: from left to right
}

template <class F, class Tuple>
void keep_result(Arguments& a, F&& function, Tuple&& arguments) {
  if constexpr (requires { a.keep(std::apply(function, arguments)); })
    a.keep(std::apply(function, arguments));
  else
    std::apply(function, arguments);
}

template <class Result, class... Parameters>
void add(ApiTable& table, std::string_view name, Result (*function)(Parameters...),
         std::string_view pattern = {}) {
  const auto call = [function](Arguments& a) {
    auto arguments = draw<Parameters...>(a);
    a.ready();
    keep_result(a, function, arguments);
  };
  table.push_back({name, call, pattern});
}

template <class Result, class... Parameters>
void add(ApiTable& table, std::string_view name, Result (*function)(Arguments&, Parameters...),
         std::string_view pattern = {}) {
  const auto call = [function](Arguments& a) {
    auto arguments = std::tuple_cat(std::tie(a), draw<Parameters...>(a));
    a.ready();
    keep_result(a, function, arguments);
  };
  table.push_back({name, call, pattern});
}

/// The function written into its first argument; `name` ends with an underscore.
template <class... Parameters>
void add_write(ApiTable& table, std::string_view name, Tensor (*function)(rg::Operand, Parameters...),
               std::string_view pattern = {}) {
  const auto call = [name, function](Arguments& a) {
    const Tensor self = a.get<Tensor>();
    auto arguments = draw<Parameters...>(a);
    a.ready();
    const auto op = [&](const Tensor& old) {
      return std::apply(function, std::tuple_cat(std::tuple(rg::Operand(old)), arguments));
    };
    a.keep(rg::apply_inplace(self, op, name));
  };
  table.push_back({name, call, pattern});
}

void add_creation_api(ApiTable& table);
void add_elementwise_api(ApiTable& table);
void add_shape_api(ApiTable& table);
void add_reduction_api(ApiTable& table);
void add_nn_api(ApiTable& table);
void add_module_api(ApiTable& table);
void add_tensor_api(ApiTable& table);
void add_write_api(ApiTable& table);
void add_hook_api(ApiTable& table);
void add_autograd_api(ApiTable& table);

/// All entries, in a fixed order.
std::span<const ApiFunction> api_table();

/// Calls `function`, now and then in a scope of the library that changes what calls do.
void call_in_some_scope(const ApiFunction& function, Arguments& a);

}  // namespace fuzz
