// Data sets, transforms, samplers, and loaders with worker threads: namespace retrograd::data. A header of its own, since
// threads and clocks would be a seventh of what retrograd/retrograd.h takes to compile. Start reading: data/loader.h.
#pragma once

#include "data/distributed_samplers.h"
#include "data/idx_file.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "data/tensor_dataset.h"
#include "data/transforms.h"
#include "retrograd/retrograd.h"
