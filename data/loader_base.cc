// See data/loader_base.h.
#include "data/loader_base.h"

namespace retrograd::inline v0::data::detail {

DataLoaderOptions completed(DataLoaderOptions options, SourceLocation where) {
  if (options.batch_size == 0)
    fail(Category::bad_argument, "data loader", "a batch of no examples. Hint: batch_size", where);
  if (!options.max_jobs) options.max_jobs = 2 * options.workers;
  if (options.workers > 0 && *options.max_jobs == 0)
    fail(Category::bad_argument, "data loader", "max_jobs is 0, so its workers have nothing to do", where);
  return options;
}

}  // namespace retrograd::inline v0::data::detail
