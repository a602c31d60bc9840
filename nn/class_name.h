// The name of a class as texts and errors show it.
#pragma once

#include <string>
#include <typeinfo>

namespace retrograd::inline v0::nn::detail {

/// "retrograd::v0::nn::ModuleList<Block>" -> "ModuleList": neither namespaces nor template arguments.
std::string class_name(const std::type_info& type);

}  // namespace retrograd::nn::detail
