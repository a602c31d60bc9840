// The optimizers, with PyTorch's names, options and defaults. The rule of each says what it computes, where it comes from,
// and what its options mean: ops/optimizers/NAME.h, optim/NAME.h.
//
// PyTorch's `foreach` and `fused` are how all steps are computed here; `capturable` needs no option, since a recorded step
// reads learning rates and other numbers again before each run (docs/compile.md). LBFGS is no update rule: optim/lbfgs.h.
#pragma once

#include "ops/optimizers/rules.h"
#include "optim/adafactor.h"
#include "optim/adam8bit.h"
#include "optim/lbfgs.h"
#include "optim/muon.h"
#include "optim/optimizer.h"
#include "optim/schedule_free.h"
#include "optim/soap.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::optim {

using SGD = OptimizerOf<ops::SGD>;
using Adam = OptimizerOf<ops::Adam>;
using AdamW = OptimizerOf<ops::AdamW>;
using Adamax = OptimizerOf<ops::Adamax>;
using NAdam = OptimizerOf<ops::NAdam>;
using RAdam = OptimizerOf<ops::RAdam>;
using Adagrad = OptimizerOf<ops::Adagrad>;
using Adadelta = OptimizerOf<ops::Adadelta>;
using RMSprop = OptimizerOf<ops::RMSprop>;
using Rprop = OptimizerOf<ops::Rprop>;
using ASGD = OptimizerOf<ops::ASGD>;
using Lion = OptimizerOf<ops::Lion>;
using AdEMAMix = OptimizerOf<ops::AdEMAMix>;
using Adafactor = OptimizerOf<AdafactorRule>;
using Muon = OptimizerOf<MuonRule>;
using SOAP = OptimizerOf<SOAPRule>;
using Adam8bit = OptimizerOf<Adam8bitRule<false>>;
using AdamW8bit = OptimizerOf<Adam8bitRule<true>>;

using SGDOptions = SGD::Options;
using AdamOptions = Adam::Options;
using AdamWOptions = AdamW::Options;
using AdamaxOptions = Adamax::Options;
using NAdamOptions = NAdam::Options;
using RAdamOptions = RAdam::Options;
using AdagradOptions = Adagrad::Options;
using AdadeltaOptions = Adadelta::Options;
using RMSpropOptions = RMSprop::Options;
using RpropOptions = Rprop::Options;
using ASGDOptions = ASGD::Options;
using LionOptions = Lion::Options;
using AdEMAMixOptions = AdEMAMix::Options;
using AdamWScheduleFreeOptions = AdamWScheduleFree::Options;
using AdafactorOptions = Adafactor::Options;
using MuonOptions = Muon::Options;
using SOAPOptions = SOAP::Options;
using Adam8bitOptions = Adam8bit::Options;
using AdamW8bitOptions = AdamW8bit::Options;

}  // namespace retrograd::optim
#pragma GCC visibility pop
