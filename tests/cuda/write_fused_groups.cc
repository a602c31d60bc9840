// Writes the kernels of the groups of tests/cuda/fused_case.h as C++ for the host's compiler, and a table of them by name: the same texts that
// NVRTC gets on a machine with a device. Compiled, they stand in for its code in fusion_test.cc.
#include <iostream>
#include <map>
#include <set>

#include "tests/cuda/fused_case.h"

using namespace retrograd;

namespace {

void write_entry(const std::string& kernel, const std::string& parameter) {
  std::cout << "    {\"" << kernel << "\", [](const LaunchShape& s, const void* p) {\n"
            << "       on_host::launch({{s.blocks, s.blocks_y}, {s.threads}}, [&] {\n"
            << "         host_code::" << kernel << "(*static_cast<const " << parameter << "*>(p)); }); }},\n";
}

}  // namespace

int main() {
  std::map<std::string, cuda::fusion::Source> sources;
  for (auto* list : {every_op, training_groups})
    for (const FusedCase& c : list())
      if (c.group())
        if (cuda::fusion::Source s = c.source(); !sources.contains(s.name)) sources.emplace(s.name, s);
  std::cout << "#include \"cuda/on_host/device_on_host.h\"\n#include \"tests/cuda/host_kernels.h\"\n";
  for (const auto& [name, source] : sources) std::cout << source.text;
  std::cout << "namespace retrograd::cuda {\n\nvoid add_fused_kernels(HostKernels& kernels) {\n"
            << "  const HostKernels all{\n";
  for (const auto& [name, source] : sources) {
    write_entry(name, "host_code::" + name + "_call");
    for (const std::string& merge : std::set(source.merges.begin(), source.merges.end()))
      write_entry(merge, "ReduceCall");
  }
  std::cout << "  };\n  kernels.insert(all.begin(), all.end());\n}\n\n}  // namespace retrograd::cuda\n";
}
