#!/bin/sh
# embed_headers.sh HEADER...: writes C++ that defines headers() of cuda/fusion/compiler.h, with each header's
# text under its path. The standard library's are cuda/fusion/standard.h.
standard="array bit cmath cstddef cstdint cstring initializer_list optional string_view type_traits"
cat <<'EOF'
#include <span>

#include "cuda/fusion/compiler.h"

namespace retrograd::inline v0::cuda::fusion {
namespace {

EOF
for header in "$@"; do
  name=$(echo "$header" | tr -c 'a-z0-9\n' _)
  printf 'constexpr char %s[] = R"RG_TEXT(' "$name"
  cat "$header" || exit 1
  printf ')RG_TEXT";\n\n'
done
cat <<'EOF'
constexpr char kStandard[] = R"(#include "cuda/fusion/standard.h"
)";
constexpr Header kHeaders[] = {
EOF
for header in "$@"; do
  echo "    {\"$header\", $(echo "$header" | tr -c 'a-z0-9\n' _)},"
done
for name in $standard; do
  echo "    {\"$name\", kStandard},"
done
cat <<'EOF'
};

}  // namespace

std::span<const Header> headers() { return kHeaders; }

}  // namespace retrograd::cuda::fusion
EOF
