// All update rules of optimizers: see ops/optimizers/rule.h.
#pragma once

#include "ops/optimizers/adadelta.h"
#include "ops/optimizers/adagrad.h"
#include "ops/optimizers/adam.h"
#include "ops/optimizers/adamax.h"
#include "ops/optimizers/ademamix.h"
#include "ops/optimizers/asgd.h"
#include "ops/optimizers/average.h"
#include "ops/optimizers/lion.h"
#include "ops/optimizers/nadam.h"
#include "ops/optimizers/radam.h"
#include "ops/optimizers/rmsprop.h"
#include "ops/optimizers/rprop.h"
#include "ops/optimizers/schedule_free.h"
#include "ops/optimizers/sgd.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::ops {

template <class... Rule>
struct RuleList {
  /// The most operands of a rule. There are fewer results.
  static constexpr int inputs = [] {
    int most = 0;
    ((most = Rule::inputs > most ? Rule::inputs : most), ...);
    return most;
  }();
};

/// One of each Formula: kernels are made for these, and found by the type of their Factors.
using OptimizerFormulas = RuleList<SGD, AdamFormula, Adamax, NAdam, RAdam, Adagrad, Adadelta, RMSprop, Rprop,
                                   ASGD, Lion, AdEMAMix, AdamWScheduleFree, Average>;
/// Each is an op, StepOf<Rule>.
using OptimizerRules = RuleList<SGD, Adam, AdamW, Adamax, NAdam, RAdam, Adagrad, Adadelta, RMSprop, Rprop,
                                ASGD, Lion, AdEMAMix, AdamWScheduleFree, Average>;

}  // namespace retrograd::ops
#pragma GCC visibility pop
