// Shared by the fault tests: small parameters, bits of a tensor, three ways to run a backward, and conditions after a
// fault.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/driver.h"
#include "retrograd/retrograd.h"

namespace faults {

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

using Bits = std::vector<std::string>;

inline std::string bits_of(const Tensor& t) {
  if (!t.defined()) return "undefined";
  const Tensor dense = t.detach().contiguous();
  return {static_cast<const char*>(dense.raw_data()), static_cast<size_t>(dense.nbytes())};
}

inline Tensor parameter(const rg::IntArray& size, double scale) {
  const Tensor t = rg::empty(size);
  float* data = t.data_ptr<float>();
  for (int64_t i = 0; i < t.numel(); ++i)
    data[i] = static_cast<float>(scale * ((i * 37 + 11) % 23 - 11.0) / 11);
  return t.requires_grad_();
}

using Backward = std::function<void(const Tensor&, bool retain_graph)>;
inline const Backward eagerly = [](const Tensor& loss, bool retain) { loss.backward({}, retain); };
inline Backward through(rg::CompiledBackward& compiled) {
  return [&compiled](const Tensor& loss, bool retain) { compiled.backward({loss}, {}, retain); };
}

struct Memory {
  int64_t bytes, tensors;
  static Memory now() {
    const rg::memory::Stats stats = rg::memory::stats();
    return {stats.live_bytes, stats.live_tensors};
  }
};

/// `frame_may_go`: a run that could not begin may have dropped the prepared cells of its plan.
inline void check_clean(const Memory& baseline, bool frame_may_go = false) {
  const Memory found = Memory::now();
  REQUIRE(found.bytes == baseline.bytes);
  if (frame_may_go)
    REQUIRE(found.tensors <= baseline.tensors);
  else
    REQUIRE(found.tensors == baseline.tensors);
  REQUIRE(rg::GradMode::is_enabled());
  REQUIRE_FALSE(rg::default_saved_tensor_hooks());
  REQUIRE(rg::CurrentBackward::innermost() == nullptr);
  REQUIRE(rg::BackwardRunner::current() == nullptr);
  REQUIRE(&rg::Emitter::current() == &rg::eager_emitter());
  REQUIRE(rg::effective_location({"here", 1}).line == 1);
}

/// Calls f(backward, name) for the three ways to run; a first traced call has a new object each time.
inline void in_all_ways(const std::function<void(const std::function<Backward()>&, const std::string&)>& f) {
  f([] { return eagerly; }, "eager");
  std::shared_ptr<rg::CompiledBackward> fresh;
  f(
      [&] {
        fresh = std::make_shared<rg::CompiledBackward>();
        return through(*fresh);
      },
      "first traced call");
  rg::CompiledBackward compiled;
  f([&] { return through(compiled); }, "replay");
}

}  // namespace faults
