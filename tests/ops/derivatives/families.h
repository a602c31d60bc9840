// The files of the table, a line for each family.
#pragma once

#include <array>

#include "tests/ops/derivatives/table.h"

namespace derivatives {

Rows unary_rows();
Rows activation_rows();
Rows binary_rows();
Rows ternary_rows();
Rows reduce_rows();
Rows scan_rows();
Rows view_rows();
Rows rearrange_rows();
Rows index_rows();
Rows layout_rows();
Rows scatter_rows();
Rows matmul_rows();
Rows norm_rows();
Rows loss_rows();
Rows attention_rows();
Rows recurrent_rows();
Rows convolution_rows();
Rows pooling_rows();
Rows linalg_rows();
Rows decomposition_rows();
Rows random_rows();
Rows special_rows();
Rows window_rows();
Rows margin_loss_rows();
Rows engine_rows();
Rows statistics_rows();

struct Family {
  std::string_view name;
  Rows (*rows)();
};
inline constexpr std::array kFamilies{
    Family{"unary", unary_rows},
    Family{"activation", activation_rows},
    Family{"binary", binary_rows},
    Family{"ternary", ternary_rows},
    Family{"reduce", reduce_rows},
    Family{"scan", scan_rows},
    Family{"view", view_rows},
    Family{"rearrange", rearrange_rows},
    Family{"index", index_rows},
    Family{"layout", layout_rows},
    Family{"scatter", scatter_rows},
    Family{"matmul", matmul_rows},
    Family{"norm", norm_rows},
    Family{"loss", loss_rows},
    Family{"attention", attention_rows},
    Family{"recurrent", recurrent_rows},
    Family{"convolution", convolution_rows},
    Family{"pooling", pooling_rows},
    Family{"linalg", linalg_rows},
    Family{"decomposition", decomposition_rows},
    Family{"random", random_rows},
    Family{"special", special_rows},
    Family{"window", window_rows},
    Family{"margin loss", margin_loss_rows},
    Family{"engine", engine_rows},
    Family{"statistics", statistics_rows},
};

}  // namespace derivatives
