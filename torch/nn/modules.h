// The modules of torch::nn.
#pragma once

#include "torch/nn/modules/activation.h"
#include "torch/nn/modules/attention.h"
#include "torch/nn/modules/container.h"
#include "torch/nn/modules/conv.h"
#include "torch/nn/modules/distance.h"
#include "torch/nn/modules/dropout.h"
#include "torch/nn/modules/embedding.h"
#include "torch/nn/modules/linear.h"
#include "torch/nn/modules/loss.h"
#include "torch/nn/modules/norms.h"
#include "torch/nn/modules/padding.h"
#include "torch/nn/modules/pooling.h"
#include "torch/nn/modules/rnn.h"
#include "torch/nn/modules/transformer.h"
#include "torch/nn/modules/vision.h"
