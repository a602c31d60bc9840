// Recurrent cells and the gated recurrence on a device against the CPU: directions, lengths, layouts, sizes around a
// block's, nothing to compute; a length that is out of range; a compiled step whose launches are recorded.
#include "ops/recurrent.h"

#include "nn/recurrent.h"
#include "tests/cuda/against_cpu.h"
#include "tests/errors.h"

using namespace retrograd;

namespace {

Tensor lengths_of(int64_t batch, int64_t steps) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch; ++i) lengths.push_back((2 * i + 1) % (steps + 1));
  return tensor(lengths, {batch}, {kInt64});
}

struct CaseSizes {
  int64_t steps, batch, hidden;
};

// The last dims of operands may be turned, so that they are not row-major.
Tensor numbers(const IntArray& size, ScalarType dtype, bool turned) {
  if (!turned) return unit_numbers(size, dtype);
  return unit_numbers(IntArray(size.rbegin(), size.rend()), dtype).transpose(0, std::ssize(size) - 1);
}

void try_cells(const CaseSizes& s, ScalarType dtype, bool reverse, const Tensor& lengths, bool turned) {
  INFO(s.steps << " steps, batch " << s.batch << ", hidden " << s.hidden << ", reverse " << reverse);
  const auto [steps, batch, n] = s;
  const auto any = [&](const IntArray& size) { return numbers(size, dtype, turned); };
  const Tensor h = any({batch, n}), c = any({batch, n});
  against_cpu<ops::Lstm>({any({steps, batch, 4 * n}), any({4 * n, n}), h, c, lengths}, {reverse}, 3, 50);
  const Tensor projected = any({steps, batch, 3 * n}), weight = any({3 * n, n});
  for (const Tensor& bias : {unit_numbers({n}, dtype), Tensor()})
    against_cpu<ops::Gru>({projected, weight, h, bias, lengths}, {reverse}, 2, 50);
  for (bool relu : {false, true}) {
    ops::Rnn::Attrs attrs;
    attrs.reverse = reverse;
    attrs.relu = relu;
    against_cpu<ops::Rnn>({any({steps, batch, n}), any({n, n}) * 0.1, h, lengths}, attrs, 1, 50);
  }
}

void try_recurrence(const CaseSizes& s, ScalarType dtype, bool reverse, const Tensor& lengths, bool turned) {
  const auto [steps, batch, n] = s;
  for (int64_t gates : {1, 3, 4}) {
    ops::GatedRecurrenceAttrs attrs;
    attrs.reverse = reverse;
    attrs.gates = gates;
    attrs.has_cell = gates == 4;
    const int64_t width = attrs.has_cell ? 2 * n : n;
    const auto any = [&](const IntArray& size) { return numbers(size, dtype, turned); };
    const Tensor weight = any({gates * n, n}) * 0.1, factors = any({steps, batch, gates * n}),
                 keep = gates == 1 ? Tensor() : any({steps, batch, width}) * 0.5,
                 x = any({steps, batch, width});
    against_cpu<ops::GatedRecurrence>({weight, factors, keep, x, any({batch, width}), lengths}, attrs, 1,
                                      100);
    against_cpu<ops::GatedRecurrenceBackward>({weight, factors, keep, x, lengths}, attrs, 2, 100);
  }
}

}  // namespace

TEST_CASE("recurrent: sizes, directions, lengths and layouts") {
  device_on_host();
  for (const CaseSizes& s : {CaseSizes{3, 2, 4}, {1, 1, 1}, {2, 0, 3}, {5, 7, 37}, {4, 3, 130}})
    for (ScalarType dtype : {kFloat32, kFloat64})
      for (bool reverse : {false, true})
        for (bool with_lengths : {false, true}) {
          const Tensor lengths = with_lengths ? lengths_of(s.batch, s.steps) : Tensor();
          const bool turned = reverse != with_lengths && s.batch > 0;
          try_cells(s, dtype, reverse, lengths, turned);
          try_recurrence(s, dtype, reverse, lengths, turned);
        }
}

TEST_CASE("recurrent: a length that is out of range") {
  device_on_host();
  for (int64_t length : {-1, 4}) {
    const Tensor x = ones({3, 1, 8}).to(kCUDA), w = ones({8, 2}).to(kCUDA), h = ones({1, 2}).to(kCUDA);
    const Tensor lengths = tensor(std::vector<int64_t>{length}, {1}, {kInt64}).to(kCUDA);
    CHECK(category_of([&] {
            ops::lstm(x, w, {h, h}, lengths, false).h.to_vector();
          }) == Category::index_out_of_range);
  }
}

TEST_CASE("recurrent: steps of a layer with batches of several lengths, whose launches are recorded") {
  device_on_host();
  nn::LSTM here(nullptr, "", 3, 5, {.bidirectional = true});
  nn::LSTM there(nullptr, "", 3, 5, {.bidirectional = true});
  {
    NoGradGuard no_grad;
    const Tensors from = here.parameters();
    for (size_t i = 0; i < from.size(); ++i) there.parameters()[i].copy_(from[i]);
  }
  there.to(kCUDA);
  const auto loss_of = [](nn::LSTM& lstm, const Tensor& x, const Tensor& lengths) {
    const auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths);
    const nn::LSTM::PackedOutput out = lstm.forward_with_packed_input(packed);
    return sum(square(out.output.padded())) + sum(out.state.c * out.state.h);
  };
  FunctionCache cache{FunctionKind::step};
  for (int i = 0; i < 9; ++i) {
    INFO("step " << i << ": " << cache.last_capture_reason());
    const int64_t steps = 4 + i % 3;
    const Tensor x = unit_numbers({steps, 3, 3}, kFloat32);
    const Tensor lengths = tensor(std::vector<int64_t>{i % 4, steps, 2}, {3}, {kInt64});
    for (nn::Module* m : {static_cast<nn::Module*>(&here), static_cast<nn::Module*>(&there)}) m->zero_grad();
    const Tensor expected = loss_of(here, x, lengths);
    expected.backward();
    const Tensor found = cache.run(
        [&](const Tensors& a) {
          const Tensor loss = loss_of(there, a[0], a[1]);
          loss.backward();
          return Tensors{loss.detach()};
        },
        {x.to(kCUDA), lengths.to(kCUDA)})[0];
    expect_same(expected.detach(), found, 50);
    const Tensors a = here.parameters(), b = there.parameters();
    for (size_t k = 0; k < a.size(); ++k) expect_same(a[k].grad(), b[k].grad(), 50);
  }
  INFO(cache.last_capture_reason());
  CHECK(cache.stats().captures == 2);
  CHECK(cache.stats().plans == 4);  // of the first recording's sizes, then of each
  CHECK(cache.stats().launches.graph_launches > 0);
  CHECK(cache.stats().launches.given_up == 0);
}
