// Writes kernels of fused groups as C++ for the host's compiler, with a table of them by name: the same texts that
// NVRTC gets on a machine with a device. Compiled, they replace its code in fusion_test.cc. They are those of
// tests/cuda/fused_case.h, and those that the plans of tests/cuda/fused_step.h request.
#include <iostream>
#include <mutex>
#include <set>

#include "cuda/fusion/compiler.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/fused_case.h"
#include "tests/cuda/fused_step.h"

using namespace retrograd;
using cuda::fusion::Source;

namespace {

using Sources = std::map<std::string, Source>;

// Notes what it is to compile.
class Recorder final : public cuda::fusion::Compiler {
 public:
  std::string version() const override { return "recorder"; }
  Result compile(const Source& source, const std::vector<std::string>&) override {
    std::lock_guard lock(mutex);
    sources.emplace(source.name, source);
    return {"noted", ""};
  }
  std::mutex mutex;
  Sources sources;
};

Sources of_step() {
  device_on_host();
  Recorder recorder;
  cuda::fusion::use_compiler(&recorder);
  run_fused_steps();
  cuda::finish_compiling();
  cuda::fusion::use_compiler(nullptr);
  return recorder.sources;
}

void add_cases(const std::vector<FusedCase>& cases, Sources& sources) {
  for (const FusedCase& c : cases)
    if (c.group())
      for (bool any_layout : {false, true})
        if (Source s = c.source(any_layout); !any_layout || c.serves_all_layouts())
          sources.emplace(s.name, s);
}

// The parameter is copied: a launch that is captured runs later.
void write_entry(const std::string& kernel, const std::string& parameter) {
  std::cout << "      {\"" << kernel
            << "\",\n       [](const LaunchShape& s, const void* p, StreamHandle stream) {\n"
            << "         on_host::launch({{s.blocks, s.blocks_y}, {s.threads}, 0, 0, stream},\n"
            << "                         [call = *static_cast<const " << parameter
            << "*>(p)] { host_code::" << kernel << "(call); });\n       }},\n";
}

}  // namespace

int main() {
  Sources sources = of_step();
  add_cases(every_op(), sources);
  add_cases(training_groups(), sources);
  std::cout << "#include \"cuda/on_host/device_on_host.h\"\n#include \"tests/cuda/host_kernels.h\"\n\n";
  for (const auto& [name, source] : sources) std::cout << source.text << "\n";
  std::cout << "namespace retrograd::cuda {\n\nHostKernels fused_kernels() {\n  return {\n";
  for (const auto& [name, source] : sources) {
    write_entry(name, "host_code::" + name + "_call");
    for (const std::string& merge : std::set(source.merges.begin(), source.merges.end()))
      write_entry(merge, "ReduceCall");
  }
  std::cout << "  };\n}\n\n}  // namespace retrograd::cuda\n";
}
