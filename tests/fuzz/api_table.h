// The table of the public functions that the API fuzzer calls. An entry is made of a function pointer alone:
// its parameters say what to draw. Function objects and methods are wrapped in lambdas.
#pragma once

#include <functional>
#include <span>

#include "tests/fuzz/api_arguments.h"

namespace fuzz {

struct ApiFunction {
  std::string_view name;
  std::function<void(Arguments&)> call;
};
using ApiTable = std::vector<ApiFunction>;

template <class Result, class... Parameters>
void add(ApiTable& table, std::string_view name, Result (*function)(Parameters...)) {
  table.push_back({name, [function](Arguments& a) {
                     // Braces: in the order of the parameters.
                     std::tuple<std::remove_cvref_t<Parameters>...> arguments{
                         a.get<std::remove_cvref_t<Parameters>>()...};
                     a.ready();
                     if constexpr (requires(Result r) { a.keep(r); })
                       a.keep(std::apply(function, arguments));
                     else
                       std::apply(function, arguments);
                   }});
}

void add_creation_api(ApiTable& table);
void add_elementwise_api(ApiTable& table);
void add_shape_api(ApiTable& table);
void add_reduction_api(ApiTable& table);
void add_nn_api(ApiTable& table);
void add_tensor_api(ApiTable& table);
void add_autograd_api(ApiTable& table);

/// All entries, in a fixed order.
std::span<const ApiFunction> api_table();

}  // namespace fuzz
