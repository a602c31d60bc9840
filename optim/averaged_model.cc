// See optim/averaged_model.h.
#include "optim/averaged_model.h"

#include <fmt/format.h>

#include "engine/recording.h"
#include "engine/runner.h"
#include "ops/creation.h"
#include "ops/optimizer_steps.h"
#include "ops/shape_ops.h"
#include "optim/saved_values.h"

namespace retrograd::inline v0::optim {
namespace {

using AverageStep = ops::StepOf<ops::Average>;

struct AveragedTensor {
  std::string name;
  Tensor average, value;
  bool is_averaged;  // else copied
};

}  // namespace

struct AveragedModel::Data {
  AveragedModelOptions options;
  std::vector<AveragedTensor> entries = {};
  int64_t updates = 0, ahead = 0;  // ahead: those whose share recorded functions have read

  double next_share() const {
    const int64_t before = updates + ahead;
    if (before == 0) return 1;
    return options.decay ? 1 - *options.decay : 1 / static_cast<double>(before + 1);
  }
};

AveragedModel::AveragedModel(const nn::Module& model, AveragedModelOptions options, SourceLocation where)
    : data_(std::make_shared<Data>(options)) {
  if (options.decay && !(*options.decay >= 0 && *options.decay <= 1))
    fail(Category::bad_argument, "AveragedModel",
         fmt::format("decay must be in [0, 1], it is {}", *options.decay), where);
  const Emitter::Scope now(eager_runner());
  NoGradGuard no_grad;
  const auto add = [&](const auto& named, bool is_averaged) {
    const Tensor& value = named.value();
    data_->entries.push_back(
        {named.key(), clone(value).contiguous(), value, is_averaged && ops::may_be_updated(value.dtype())});
  };
  for (const auto& p : model.named_parameters()) add(p, true);
  for (const auto& b : model.named_buffers()) add(b, options.use_buffers);
}

void AveragedModel::update_parameters(SourceLocation where) {
  NoGradGuard no_grad;
  const bool is_recorded = Emitter::current().values() == Emitter::Values::of_function;
  Scalar numbers[AverageStep::Names::numbers] = {data_->next_share(), 0.0};  // the step plays no role
  const std::weak_ptr<Data> weak = data_;
  const auto read = [weak](std::span<Scalar> out) {
    const std::shared_ptr<Data> data = weak.lock();
    if (!data)
      fail(Category::bad_argument, "AveragedModel",
           "a recorded function updates averages that no longer exist. Hint: make them outside the function",
           {});
    out[0] = data->next_share();
    ++data->ahead;
  };
  const auto settle = [weak](std::span<const Number>, bool was_made) {
    const std::shared_ptr<Data> data = weak.lock();
    if (!data) return;
    --data->ahead;
    data->updates += was_made;
  };
  if (is_recorded) read_live_numbers({numbers, 1}, {.read = read, .settle = settle});
  ops::UpdateList updates(ops::info<AverageStep>, where);
  for (const AveragedTensor& e : data_->entries)
    if (e.is_averaged)
      updates.add({{e.average, contiguous(e.value)}}, numbers, {});
    else
      e.average.copy_(e.value);
  updates.run();
  if (!is_recorded) ++data_->updates;
}

int64_t AveragedModel::n_averaged() const { return data_->updates; }

StateDict AveragedModel::averages() const {
  StateDict out;
  for (const AveragedTensor& e : data_->entries) out.emplace(e.name, e.average);
  return out;
}

StateDict AveragedModel::state_dict() const {
  StateDict out;
  for (const AveragedTensor& e : data_->entries) out.emplace("module." + e.name, e.average);
  out.emplace("n_averaged", scalar_tensor(data_->updates, {kInt64}));
  return out;
}

void AveragedModel::load_state_dict(const StateDict& state, SourceLocation where) {
  detail::SavedValues saved(state, "this model", where);
  Tensors values;
  for (const AveragedTensor& e : data_->entries) {
    values.push_back(saved.take("module." + e.name));
    if (values.back().sizes() != e.average.sizes())
      fail(Category::shape_mismatch, "load_state_dict",
           fmt::format("{} for \"module.{}\", which is {} here", describe(values.back()), e.name,
                       describe(e.average)),
           where);
  }
  const int64_t updates = saved.count("n_averaged");
  saved.end();
  NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i) data_->entries[i].average.copy_(values[i]);
  data_->updates = updates;
}

AveragedModel::Applied::Applied(const AveragedModel& averaged) {
  NoGradGuard no_grad;
  for (const AveragedTensor& e : averaged.data_->entries) {
    targets_.push_back(e.value);
    own_.push_back(clone(e.value));
  }
  for (const AveragedTensor& e : averaged.data_->entries) e.value.copy_(e.average);
}

AveragedModel::Applied::~Applied() {
  NoGradGuard no_grad;
  for (size_t i = 0; i < targets_.size(); ++i) targets_[i].copy_(own_[i]);
}

}  // namespace retrograd::optim
