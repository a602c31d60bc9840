// The derivatives that stand at the ends of elementwise headers, next to the formulas (ops/elementwise.h). They use
// functions of all families, so they are compiled here and nowhere else.
#define RG_DERIVATIVES
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/float_ops.h"
#include "ops/losses.h"
#include "ops/shrinkage.h"
#include "ops/special.h"
#include "ops/ternary.h"
#include "ops/unary.h"
