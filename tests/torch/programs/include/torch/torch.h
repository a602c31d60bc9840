// What programs written for libtorch include: here it is this library.
#pragma once

#include <retrograd/torch.h>
