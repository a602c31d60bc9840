// namespace torch: the spellings of libtorch's C++ interface, over the library's own names. Programs that are written
// for libtorch compile with this header in place of <torch/torch.h>; docs/libtorch.md says what differs. Both this
// header and retrograd/retrograd.h may be included, and their names used together: a torch::Tensor is a
// retrograd::Tensor.
#pragma once

// Programs use these without including them, since <torch/torch.h> does.
#include <cassert>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <queue>
#include <random>
#include <set>
#include <unordered_set>

#include "retrograd/retrograd.h"
#include "torch/absent.h"
#include "torch/autograd.h"
#include "torch/data.h"
#include "torch/dispatch.h"
#include "torch/factories.h"
#include "torch/functions.h"
#include "torch/irange.h"
#include "torch/linalg.h"
#include "torch/lr_scheduler.h"
#include "torch/more_functions.h"
#include "torch/nn.h"
#include "torch/optim.h"
#include "torch/serialize.h"
#include "torch/types.h"
