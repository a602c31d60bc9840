// Recurrent cells over sequences: both directions, sequences of different lengths (none, some, all steps), one step, no
// sequences, and each state and bias. Second derivatives go through gated_recurrence and its transpose; rows of their
// own differentiate these by each operand.
#include "ops/recurrent.h"

#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

// Inputs of one case: `gates` blocks of 2 in the sums; lengths last.
Tensors cell_inputs(int64_t steps, int64_t batch, int64_t gates, const Tensors& more,
                    const std::vector<double>& lengths) {
  Tensors x{real({steps, batch, 2 * gates}), real({2 * gates, 2}), real({batch, 2})};
  x.insert(x.end(), more.begin(), more.end());
  x.push_back(lengths.empty() ? Tensor() : ints(lengths, {batch}));
  return x;
}

template <class F>
void add_both_directions(Rows& rows, const std::string& name, const F& f, const std::vector<Tensors>& cases) {
  for (bool reverse : {false, true}) {
    std::vector<Tensors> given;  // a table holds defined tensors only
    for (const Tensors& all : cases)
      given.push_back(all.back().defined() ? all : Tensors(all.begin(), all.end() - 1));
    const size_t most = cases[0].size();
    Row row;
    row.name = name + (reverse ? ", reverse" : "");
    row.f = [f, reverse, most](const Tensors& x) {
      return f(x, x.size() == most ? x.back() : Tensor(), reverse);
    };
    row.cases = given;
    rows.push_back(row);
  }
}

Tensors emit(const rg::OpInfo& op, const std::vector<Tensor>& operands, void* attrs, int outputs) {
  std::vector<rg::TensorImpl*> cells;
  for (const Tensor& x : operands) cells.push_back(x.get());
  Tensors results(static_cast<size_t>(outputs));
  rg::Emitter::current().emit({&op, cells, attrs, rg::SourceLocation::current(), outputs}, results.data());
  return results;
}

template <class Op>
Row gated_row(const std::string& name, int64_t gates, bool has_cell, int outputs,
              std::vector<Tensors> cases) {
  Row row;
  row.name = name;
  row.dtypes = {rg::kFloat32};
  row.f = [gates, has_cell, outputs](const Tensors& x) {
    typename Op::Attrs attrs;
    attrs.gates = gates;
    attrs.has_cell = has_cell;
    Tensors operands = x;
    if (!has_cell && gates == 1) operands.insert(operands.begin() + 2, Tensor());  // no keep
    operands.resize(static_cast<size_t>(Op::arity));
    return emit(rg::ops::info<Op>, operands, &attrs, outputs);
  };
  row.cases = std::move(cases);
  return row;
}

}  // namespace

Rows recurrent_rows() {
  Rows rows;
  add_both_directions(
      rows, "lstm",
      [](const Tensors& x, const Tensor& lengths, bool reverse) {
        const rg::ops::SequenceStates all = rg::ops::lstm(x[0], x[1], {x[2], x[3]}, lengths, reverse);
        return Tensors{all.h, all.c};
      },
      {cell_inputs(3, 2, 4, {real({2, 2})}, {}),
       cell_inputs(3, 4, 4, {real({4, 2})}, {2, 0, 3, 1}),
       cell_inputs(1, 2, 4, {real({2, 2})}, {}),
       cell_inputs(2, 0, 4, {real({0, 2})}, {}),
       {transposed({2, 2, 8}), transposed({8, 2}), expanded({2, 2}), strided({2, 2}), Tensor()}});
  add_both_directions(
      rows, "gru",
      [](const Tensors& x, const Tensor& lengths, bool reverse) {
        return Tensors{rg::ops::gru(x[0], x[1], x[3], x[2], lengths, reverse)};
      },
      {cell_inputs(3, 2, 3, {real({2})}, {}),
       cell_inputs(3, 4, 3, {real({2})}, {2, 0, 3, 1}),
       cell_inputs(1, 2, 3, {real({2})}, {}),
       cell_inputs(2, 0, 3, {real({2})}, {}),
       {transposed({2, 2, 6}), transposed({6, 2}), expanded({2, 2}), strided({2}), Tensor()}});
  add_both_directions(rows, "gru without bias",
                      [](const Tensors& x, const Tensor& lengths, bool reverse) {
                        return Tensors{rg::ops::gru(x[0], x[1], {}, x[2], lengths, reverse)};
                      },
                      {cell_inputs(3, 2, 3, {}, {}), cell_inputs(2, 2, 3, {}, {2, 1})});
  for (bool relu : {false, true})
    add_both_directions(rows, relu ? "rnn, relu" : "rnn",
                        [relu](const Tensors& x, const Tensor& lengths, bool reverse) {
                          return Tensors{rg::ops::rnn(x[0], x[1], x[2], lengths, relu, reverse)};
                        },
                        {cell_inputs(3, 2, 1, {}, {}),
                         cell_inputs(3, 4, 1, {}, {2, 0, 3, 1}),
                         cell_inputs(1, 2, 1, {}, {}),
                         cell_inputs(2, 0, 1, {}, {}),
                         {transposed({2, 2, 2}), transposed({2, 2}), strided({2, 2}), Tensor()}});
  using rg::ops::GatedRecurrence;
  using rg::ops::GatedRecurrenceBackward;
  rows.push_back(gated_row<GatedRecurrence>("gated_recurrence, cell", 4, true, 1,
                                            {{real({8, 2}), real({2, 3, 8}), real({2, 3, 4}), real({2, 3, 4}),
                                              real({3, 4}), ints({2, 1, 0}, {3})}}));
  rows.push_back(
      gated_row<GatedRecurrence>("gated_recurrence, no keep", 1, false, 1,
                                 {{real({2, 2}), real({3, 2, 2}), real({3, 2, 2}), real({2, 2})}}));
  rows.push_back(gated_row<GatedRecurrenceBackward>(
      "gated_recurrence_backward, cell", 4, true, 2,
      {{real({8, 2}), real({2, 3, 8}), real({2, 3, 4}), real({2, 3, 4}), ints({2, 1, 0}, {3})}}));
  rows.push_back(gated_row<GatedRecurrenceBackward>("gated_recurrence_backward, no keep", 1, false, 2,
                                                    {{real({2, 2}), real({3, 2, 2}), real({3, 2, 2})}}));
  return rows;
}

}  // namespace derivatives
