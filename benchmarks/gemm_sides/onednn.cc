// oneDNN 2: its matmul primitive, made once for a problem. The header is searched for at compile time, the library at
// run time, so that nothing need be installed. Its threads are OpenMP's.
#include "benchmarks/gemm_sides/side.h"

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <memory>
#include <stdexcept>

namespace bench {
namespace {

void check(dnnl_status_t status) {
  if (status != dnnl_success) throw std::runtime_error("oneDNN: status " + std::to_string(status));
}

struct Library {
  // Global: OpenMP's functions are needed, too.
  void* const handle = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_GLOBAL);
  template <class F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
#define RG_FUNCTION(name) decltype(::name)* const name = handle ? find<decltype(::name)>(#name) : nullptr
  RG_FUNCTION(dnnl_engine_create);
  RG_FUNCTION(dnnl_stream_create);
  RG_FUNCTION(dnnl_stream_wait);
  RG_FUNCTION(dnnl_memory_desc_init_by_strides);
  RG_FUNCTION(dnnl_memory_create);
  RG_FUNCTION(dnnl_memory_destroy);
  RG_FUNCTION(dnnl_matmul_desc_init);
  RG_FUNCTION(dnnl_primitive_desc_create);
  RG_FUNCTION(dnnl_primitive_desc_destroy);
  RG_FUNCTION(dnnl_primitive_create);
  RG_FUNCTION(dnnl_primitive_destroy);
  RG_FUNCTION(dnnl_primitive_execute);
#undef RG_FUNCTION
  void (*const set_threads)(int) = handle ? find<void(int)>("omp_set_num_threads") : nullptr;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
};

class Matmul {
 public:
  /// Null if it has no kernel: for bfloat16 on a processor without AVX-512.
  static std::shared_ptr<const Matmul> make(const std::shared_ptr<const Library>& library, const Problem& p) {
    const std::shared_ptr<Matmul> made(new Matmul(library));
    return made->init(p) ? made : nullptr;
  }
  Matmul(const Matmul&) = delete;
  ~Matmul() {
    if (primitive_) l_->dnnl_primitive_destroy(primitive_);
    for (dnnl_memory_t memory : {a_, b_, c_})
      if (memory) l_->dnnl_memory_destroy(memory);
  }

  void run() const {
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}};
    check(l_->dnnl_primitive_execute(primitive_, l_->stream, 3, arguments));
    check(l_->dnnl_stream_wait(l_->stream));
  }

 private:
  explicit Matmul(std::shared_ptr<const Library> library) : l_(std::move(library)) {}

  bool init(const Problem& p) {
    const auto [m, n, k, a_transposed, b_transposed, batch] = p.product;
    const dnnl_data_type_t type = p.dtype() == rg::kFloat32 ? dnnl_f32 : dnnl_bf16;
    const auto desc = [&](int64_t rows, int64_t columns, int64_t row, bool transposed) {
      const dnnl_dims_t sizes{rows, columns}, strides{transposed ? 1 : row, transposed ? row : 1};
      dnnl_memory_desc_t out;
      check(l_->dnnl_memory_desc_init_by_strides(&out, 2, sizes, type, strides));
      return out;
    };
    const dnnl_memory_desc_t a = desc(m, k, p.a_row(), a_transposed), b = desc(k, n, p.b_row(), b_transposed),
                             c = desc(m, n, n, false);
    dnnl_matmul_desc_t matmul;
    check(l_->dnnl_matmul_desc_init(&matmul, &a, &b, nullptr, &c));
    dnnl_primitive_desc_t primitive;
    const dnnl_status_t status =
        l_->dnnl_primitive_desc_create(&primitive, &matmul, nullptr, l_->engine, nullptr);
    if (status == dnnl_unimplemented) return false;
    check(status);
    check(l_->dnnl_primitive_create(&primitive_, primitive));
    l_->dnnl_primitive_desc_destroy(primitive);
    check(l_->dnnl_memory_create(&a_, &a, l_->engine, p.a.raw_data()));
    check(l_->dnnl_memory_create(&b_, &b, l_->engine, p.b.raw_data()));
    check(l_->dnnl_memory_create(&c_, &c, l_->engine, p.c.raw_data()));
    return true;
  }

  std::shared_ptr<const Library> l_;
  dnnl_primitive_t primitive_ = nullptr;
  dnnl_memory_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

}  // namespace

std::vector<Side> onednn_side() {
  static_assert(DNNL_VERSION_MAJOR == 2, "the C interface of oneDNN 3 differs");
  const auto library = std::make_shared<Library>();
  if (!library->handle || !library->set_threads) return {};
  check(library->dnnl_engine_create(&library->engine, dnnl_cpu, 0));
  check(library->dnnl_stream_create(&library->stream, library->engine, dnnl_stream_default_flags));
  // A primitive is made for the number of threads that is set at that time.
  const auto prepare = [library](const Problem& p) -> std::function<rg::Tensor()> {
    const auto matmul = Matmul::make(library, p);
    if (!matmul) return {};
    return [matmul, c = p.c] {
      matmul->run();
      return c;
    };
  };
  return {{"onednn", library->set_threads, prepare}};
}

}  // namespace bench

#else

namespace bench {
std::vector<Side> onednn_side() { return {}; }
}  // namespace bench

#endif
