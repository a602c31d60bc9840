// NVRTC as a Compiler, in a build with the toolkit; cuda/fusion/compiler_absent.cc is its counterpart. Its header is
// used; its functions are looked up when it is opened. Another version than the toolkit's would have other mathematical
// functions, and fused kernels would give other bits than the library's own: only the same version is opened.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <fmt/format.h>

#include "cuda/fusion/compiler.h"
#include "cuda/open_library.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

constexpr int kMajor = CUDART_VERSION / 1000, kMinor = CUDART_VERSION % 1000 / 10;

struct Functions {
  decltype(&nvrtcVersion) version;
  decltype(&nvrtcCreateProgram) create;
  decltype(&nvrtcDestroyProgram) destroy;
  decltype(&nvrtcCompileProgram) compile;
  decltype(&nvrtcGetCUBINSize) code_size;
  decltype(&nvrtcGetCUBIN) code;
  decltype(&nvrtcGetProgramLogSize) log_size;
  decltype(&nvrtcGetProgramLog) log;
};

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

class Nvrtc final : public Compiler {
 public:
  explicit Nvrtc(const Functions& f) : f_(f) {}

  std::string version() const override { return fmt::format("nvrtc {}.{}", kMajor, kMinor); }

  // At its first compilation NVRTC registers an exit handler that frees its resources; a compilation that runs
  // meanwhile crashes. This early compilation registers it before the handler that waits for compilations (fusion.cc):
  // exit handlers run in reverse order, so that one runs first.
  void compile_nothing() const {
    Program program{f_};
    if (f_.create(&program.handle, "extern \"C\" __global__ void nothing() {}", "nothing.cu", 0, nullptr,
                  nullptr) == NVRTC_SUCCESS)
      f_.compile(program.handle, 0, nullptr);
  }

  Result compile(const Source& source, const std::vector<std::string>& options) override {
    std::vector<const char*> names, texts, flags;
    for (const Header& h : headers()) {
      names.push_back(h.name);
      texts.push_back(h.text);
    }
    for (const std::string& option : options) flags.push_back(option.c_str());
    Program program{f_};
    const std::string file = source.name + ".cu";
    if (f_.create(&program.handle, source.text.c_str(), file.c_str(), static_cast<int>(names.size()),
                  texts.data(), names.data()) != NVRTC_SUCCESS)
      return {{}, "nvrtc cannot create a program from the text"};
    const bool done =
        f_.compile(program.handle, static_cast<int>(flags.size()), flags.data()) == NVRTC_SUCCESS;
    Result result;
    result.log = text(program.handle, f_.log_size, f_.log).c_str();  // which ends in a zero
    if (done) result.code = text(program.handle, f_.code_size, f_.code);
    return result;
  }

 private:
  struct Program {
    const Functions& f;
    nvrtcProgram handle = nullptr;
    ~Program() {
      if (handle) f.destroy(&handle);
    }
  };

  static std::string text(nvrtcProgram program, decltype(&nvrtcGetCUBINSize) size_of,
                          decltype(&nvrtcGetCUBIN) copy) {
    size_t size = 0;
    if (size_of(program, &size) != NVRTC_SUCCESS) return {};
    std::string text(size, '\0');
    if (copy(program, text.data()) != NVRTC_SUCCESS) return {};
    return text;
  }

  const Functions f_;
};

struct Opened {
  Compiler* compiler = nullptr;
  std::string problem;
};

// The driver loads compiled code with a library of its own, which it opens when first needed. It is opened here for the
// same reason: its exit handlers then run after the one that waits for the loads. A machine without a driver lacks it.
void open_driver_linker() { dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_NOW | RTLD_LOCAL); }

Opened open() {
  const std::string name = fmt::format("libnvrtc.so.{}", kMajor);
  std::string problem;
  void* library = open_library(name, problem);
  if (!library) return {nullptr, problem};
  Functions f;
  const bool all =
      find(library, "nvrtcVersion", f.version) && find(library, "nvrtcCreateProgram", f.create) &&
      find(library, "nvrtcDestroyProgram", f.destroy) && find(library, "nvrtcCompileProgram", f.compile) &&
      find(library, "nvrtcGetCUBINSize", f.code_size) && find(library, "nvrtcGetCUBIN", f.code) &&
      find(library, "nvrtcGetProgramLogSize", f.log_size) && find(library, "nvrtcGetProgramLog", f.log);
  if (!all) return {nullptr, fmt::format("{} lacks functions", name)};
  int major = 0, minor = 0;
  f.version(&major, &minor);
  if (major != kMajor || minor != kMinor)
    return {nullptr, fmt::format("{} is of version {}.{}, and this build's toolkit {}.{}", name, major, minor,
                                 kMajor, kMinor)};
  open_driver_linker();
  auto* const compiler = new Nvrtc(f);  // never destroyed, and the library stays open
  compiler->compile_nothing();
  return {compiler, {}};
}

const Opened& opened() {
  static const Opened& result = *new Opened(open());
  return result;
}

}  // namespace

Compiler* nvrtc() { return opened().compiler; }
std::string nvrtc_problem() { return opened().problem; }

}  // namespace retrograd::cuda::fusion
