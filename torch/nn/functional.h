// torch::nn::functional.
#pragma once

#include "torch/nn/functional/activation.h"
#include "torch/nn/functional/attention.h"
#include "torch/nn/functional/conv.h"
#include "torch/nn/functional/dropout.h"
#include "torch/nn/functional/linear.h"
#include "torch/nn/functional/loss.h"
#include "torch/nn/functional/norms.h"
#include "torch/nn/functional/pooling.h"
#include "torch/nn/functional/vision.h"
