// Texts of the errors in engine/error.h.
#include "engine/error.h"

#include <array>
#include <cstring>

#include "engine/named_call.h"

namespace retrograd::inline v0 {

std::string to_string(SourceLocation where) {
  if (!where) return "?";
  const char* slash = std::strrchr(where.file, '/');
  return std::string(slash ? slash + 1 : where.file) + ":" + std::to_string(where.line);
}

std::string_view to_string(Category category) {
  static constexpr std::array<std::string_view, 21> names = {"shape_mismatch",
                                                             "dtype_mismatch",
                                                             "bad_dim",
                                                             "index_out_of_range",
                                                             "bad_argument",
                                                             "view_incompatible",
                                                             "overlapping_write",
                                                             "singular_matrix",
                                                             "not_positive_definite",
                                                             "backward_twice_freed",
                                                             "version_mismatch",
                                                             "non_scalar_backward_without_cotangent",
                                                             "cotangent_mismatch",
                                                             "no_grad_fn",
                                                             "unused_input",
                                                             "leaf_inplace",
                                                             "view_inplace_forbidden",
                                                             "requires_grad_forbidden",
                                                             "hook_forbidden",
                                                             "hook_bad_result",
                                                             "unsupported"};
  static_assert(names.size() == static_cast<size_t>(Category::unsupported) + 1);
  return names[static_cast<size_t>(category)];
}

OutOfMemory::OutOfMemory(int64_t requested, int64_t live, int64_t limit)
    : RuntimeError("out of memory: an allocation of " + std::to_string(requested) + " bytes was refused; " +
                   std::to_string(live) + " bytes are live" +
                   (limit > 0 ? ", the limit is " + std::to_string(limit) : std::string())),
      requested(requested),
      live(live),
      limit(limit) {}

void fail(Category category, std::string_view op, std::string_view text, SourceLocation where) {
  where = effective_location(where);
  std::string message = std::string(NamedCall::name_for(op, where)) + ": " + std::string(text);
  if (where) message += " (called at " + to_string(where) + ")";
  throw Error(category, std::move(message));
}

void fail_somewhere(Category category, std::string_view text) {
  const SourceLocation where = effective_location({});
  const std::string_view name = NamedCall::name_for({}, where);
  if (!name.empty()) fail(category, name, text, where);
  throw Error(category, std::string(text) + (where ? " (called at " + to_string(where) + ")" : ""));
}

void internal_failure(const char* file, int line, const char* condition) {
  throw InternalError(
      "retrograd: internal error at " + to_string(SourceLocation{file, line}) + ": " + condition +
      " does not hold. This is a bug of the library: please report it with the program that shows it.");
}

}  // namespace retrograd
