// torch::data: data sets, transforms, samplers and loaders under libtorch's names.
//
// The classes are those of retrograd::data (data/loader.h says what they do). Here are: options with chained setters,
// bases whose requests are an ArrayRef<size_t>, and samplers with save() and load() for archives.
#pragma once

#include "torch/data/datasets.h"
#include "torch/data/loader.h"
#include "torch/data/samplers.h"
#include "torch/data/transforms.h"
