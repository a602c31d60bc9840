// See tracer/function/pairs_log.h.
#include "tracer/function/pairs_log.h"

#include "tracer/observe/log.h"

namespace retrograd::inline v0 {
namespace {

std::vector<std::string> graphs_with_called_pairs(const SizedFunction& recorded, const FunctionBody& body,
                                                  const Tensors& arguments) {
  const FunctionCapture& before = recorded.capture();
  const auto capture = std::make_shared<FunctionCapture>(
      body, arguments, before.guards().call(), before.kind(), before.known(),
      SizeRequest{SizeSymbols::as_before, recorded.shared_capture()}, PairForm::called, before.where());
  const std::optional<OutsideTensors::Pins> pins = capture->pin();
  if (!pins) return {"a tensor from outside is gone: " + capture->gone()};
  std::vector<Number> values;
  if (capture->sizes().count()) values = RecordedFunction::hints(capture->recorded().graph);
  const SizedFunction sized(capture, arguments, std::move(values));
  std::vector<std::string> graphs{sized.graph().print()};
  if (const ir::Graph* backward = sized.backward_graph()) graphs.push_back(backward->print());
  return graphs;
}

}  // namespace

void log_before_inlining(const SizedFunction& recorded, const FunctionBody& body, const Tensors& arguments) {
  std::vector<std::string> texts;
  try {
    texts = graphs_with_called_pairs(recorded, body, arguments);
  } catch (const Error& e) {
    texts = {std::string("not shown, since it cannot be recorded with pairs that are called: ") + e.what()};
  }
  for (const std::string& text : texts)
    logging::write(logging::Topic::trace,
                   "before the packs and unpacks of traceable pairs are inlined:\n" + text);
}

}  // namespace retrograd
