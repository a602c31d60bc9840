// Rows of copies, joins and rearrangements, random numbers and constants.
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

constexpr std::string_view kImages = "x:16,64,56,56";

rg::Tensor every_other_column(In t) {
  return rg::contiguous(rg::slice(t[0], 1, std::nullopt, std::nullopt, 2));
}

}  // namespace

Table layout_rows() {
  using rg::contiguous;
  return {
      {"clone", "x:n", [](In t) { return rg::clone(t[0]); }},
      {"clone_bool", "b:n", [](In t) { return rg::clone(t[0]); }},
      {"transpose_copy", "x:r,c", [](In t) { return contiguous(rg::t(t[0])); }},
      {"transpose_copy_bf16", "h:r,c", [](In t) { return contiguous(rg::t(t[0])); }},
      {"transpose_copy_f64", "d:r,c", [](In t) { return contiguous(rg::t(t[0])); }},
      {"heads_copy", "x:8,256,12,64",
       [](In t) {
         return contiguous(rg::permute(t[0], {0, 2, 1, 3}));
       }},
      {"channels_last_copy", kImages,
       [](In t) {
         return contiguous(rg::permute(t[0], {0, 2, 3, 1}));
       }},
      {"reverse_dims_copy", "x:64,32,48,16",
       [](In t) {
         return contiguous(rg::permute(t[0], {3, 2, 1, 0}));
       }},
      {"expand_copy", "x:r,1",
       [](In t) {
         return contiguous(rg::expand(t[0], {-1, t.n <= 1'000 ? 100 : 1'000}));
       }},
      {"expand_rows_copy", "x:c",
       [](In t) {
         return contiguous(rg::expand(t[0], {t.n <= 1'000 ? 10 : t.n / 1'000, -1}));
       }},
      {"narrow_copy", "x:r,c", [](In t) { return contiguous(rg::narrow(t[0], 1, 10, 50)); }},
      {"slice_step_copy", "x:r,c", every_other_column},
      {"cat_rows", "x:r,c x:r,c",
       [](In t) {
         return rg::cat({t[0], t[1]}, 0);
       }},
      {"cat_columns", "x:r,c x:r,c",
       [](In t) {
         return rg::cat({t[0], t[1]}, 1);
       }},
      {"cat_8", "x:r,c", [](In t) { return rg::cat(rg::Tensors(8, t[0]), 1); }},
      {"stack", "x:n x:n",
       [](In t) {
         return rg::stack({t[0], t[1]});
       }},
      {"stack_last", "x:n x:n",
       [](In t) {
         return rg::stack({t[0], t[1]}, 1);
       }},
      {"pad_constant", kImages,
       [](In t) {
         return rg::pad(t[0], {1, 1, 1, 1});
       }},
      {"pad_reflect", kImages,
       [](In t) {
         return rg::pad(t[0], {1, 1, 1, 1}, "reflect");
       }},
      {"pad_replicate", kImages,
       [](In t) {
         return rg::pad(t[0], {1, 1, 1, 1}, "replicate");
       }},
      {"pad_circular", kImages,
       [](In t) {
         return rg::pad(t[0], {1, 1, 1, 1}, "circular");
       }},
      {"flip_rows", "x:r,c", [](In t) { return rg::flip(t[0], {0}); }},
      {"flip_columns", "x:r,c", [](In t) { return rg::flip(t[0], {1}); }},
      {"roll_rows", "x:r,c", [](In t) { return rg::roll(t[0], {3}, {0}); }},
      {"roll_columns", "x:r,c", [](In t) { return rg::roll(t[0], {3}, {1}); }},
      {"repeat", "x:r,c",
       [](In t) {
         return rg::repeat(t[0], {2, 2});
       }},
      {"repeat_interleave", "x:r,c", [](In t) { return rg::repeat_interleave(t[0], 3, 1); }},
      {"tril", "x:1024,1024", [](In t) { return rg::tril(t[0]); }},
      {"triu_batch", "x:64,64,64", [](In t) { return rg::triu(t[0], 1); }},
      {"diag", "x:1024", [](In t) { return rg::diag(t[0]); }},
      {"diagonal_copy", "x:1024,1024", [](In t) { return contiguous(rg::diagonal(t[0])); }},
      {"unfold_copy", "x:r,c", [](In t) { return contiguous(rg::unfold(t[0], 1, 16, 8)); }},

      {"rand", "n", [](In t) { return rg::rand({t.n}, t.options()); }},
      {"randn", "n", [](In t) { return rg::randn({t.n}, t.options()); }},
      {"randn_f64", "n", [](In t) { return rg::randn({t.n}, t.options(rg::kFloat64)); }},
      {"randint", "n", [](In t) { return rg::randint(100, {t.n}, t.options(rg::kInt64)); }},
      {"bernoulli", "~u:n", [](In t) { return rg::bernoulli(t[0]); }},
      {"normal", "~x:n ~u:n", [](In t) { return rg::normal(t[0], t[1]); }},
      {"dropout", "x:n", [](In t) { return rg::dropout(t[0], 0.1); }},
      {"dropout2d", kImages, [](In t) { return rg::dropout2d(t[0], 0.1); }},
      {"randperm", "n", [](In t) { return rg::randperm(t.n, t.options(rg::kInt64)); }},
      {"multinomial", "~u:r,c", [](In t) { return rg::multinomial(t[0], 1); }},
      {"zeros", "n", [](In t) { return rg::zeros({t.n}, t.options()); }},
      {"full", "n", [](In t) { return rg::full({t.n}, 1.5, t.options()); }},
      {"arange", "n", [](In t) { return rg::arange(t.n, t.options(rg::kInt64)); }},
      {"arange_f32", "n", [](In t) { return rg::arange(t.n, t.options()); }},
      {"linspace", "n", [](In t) { return rg::linspace(0.0, 1.0, t.n, t.options()); }},
      {"eye", "~x:1", [](In t) { return rg::eye(1024, {}, t.options()); }},
      {"tril_indices", "~x:1", [](In t) { return rg::tril_indices(512, 512, 0, t.options(rg::kInt64)); }},
  };
}

}  // namespace bench
