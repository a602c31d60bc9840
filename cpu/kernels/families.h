// The families of kernels of the CPU: the single list of all families. An entry X(NAME) stands for the function
// add_NAME_kernels(KernelTable&), mostly in cpu/kernels/NAME.cc, which fills in the family's rows of the table
// (cpu/kernels/table.h). The executor calls them in this order.
#pragma once

#define RG_CPU_FAMILIES(X) \
  X(elementwise)           \
  X(copy)                  \
  X(reduce)                \
  X(scan)                  \
  X(softmax)               \
  X(norms)                 \
  X(class_losses)          \
  X(matmul)                \
  X(convolution)           \
  X(attention)             \
  X(recurrent)             \
  X(random)                \
  X(sampling)              \
  X(join)                  \
  X(rearrange)             \
  X(padding)               \
  X(index)                 \
  X(sort)                  \
  X(linalg)                \
  X(determinants)          \
  X(spectral)              \
  X(decompose)             \
  X(cross)                 \
  X(pooling)               \
  X(interpolate)           \
  X(optimizers)            \
  X(total_norm)            \
  X(cumulative)            \
  X(order_statistics)      \
  X(search)                \
  X(counts)                \
  X(distances)             \
  X(grid_sample)           \
  X(embedding_bag)         \
  X(margin_losses)         \
  X(ctc_loss)
