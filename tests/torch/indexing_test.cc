// torch::indexing: what slices and the items of an index say of themselves. Expected values are libtorch's.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include "tests/errors.h"

namespace libtorch {
namespace {

using torch::indexing::Ellipsis;
using torch::indexing::None;
using torch::indexing::Slice;
using torch::indexing::TensorIndex;

TEST_CASE("a slice has a start, a stop and a step") {
  const Slice all, part(1, -1, 3), from(2, None);
  CHECK(all.start() == 0);
  CHECK(all.stop() == INT64_MAX);
  CHECK(all.step() == 1);
  CHECK_FALSE(all.has_stop());
  CHECK(part.start() == 1);
  CHECK(part.stop() == -1);
  CHECK(part.step() == 3);
  CHECK(from.start() == 2);
  CHECK(from.stop() == INT64_MAX);
  const auto x = torch::arange(6);
  CHECK(x.index({part}).to_vector() == std::vector<double>{1, 4});
  CHECK(x.index({from}).to_vector() == std::vector<double>{2, 3, 4, 5});
  CHECK(x.index({Slice(from.start(), from.stop(), from.step())}).numel() == 4);
  CHECK(x.index({Slice(None, None, 4)}).to_vector() == std::vector<double>{0, 4});
}

/// Which of the kinds an item says it is.
std::string kinds_of(const TensorIndex& item) {
  std::string kinds;
  if (item.is_none()) kinds += " none";
  if (item.is_ellipsis()) kinds += " ellipsis";
  if (item.is_integer()) kinds += " integer";
  if (item.is_boolean()) kinds += " boolean";
  if (item.is_slice()) kinds += " slice";
  if (item.is_tensor()) kinds += " tensor";
  return kinds;
}

TEST_CASE("an item of an index is of one kind") {
  const auto positions = torch::tensor({2, 0});
  CHECK(kinds_of(None) == " none");
  CHECK(kinds_of(Ellipsis) == " ellipsis");
  CHECK(kinds_of("...") == " ellipsis");
  CHECK(kinds_of(-3) == " integer");
  CHECK(kinds_of(true) == " boolean");
  CHECK(kinds_of(Slice(1, 2)) == " slice");
  CHECK(kinds_of(positions) == " tensor");
  CHECK(kinds_of(positions == 2) == " tensor");
  CHECK(TensorIndex(-3).integer() == -3);
  CHECK(TensorIndex(true).boolean());
  CHECK_FALSE(TensorIndex(false).boolean());
  CHECK(TensorIndex(Slice(1, 2)).slice().stop() == 2);
  CHECK(TensorIndex(positions).tensor().data_ptr() == positions.data_ptr());
  CHECK(retrograd::category_of([] { TensorIndex(1).slice(); }) == retrograd::Category::bad_argument);
  CHECK(retrograd::category_of([] { TensorIndex(None).integer(); }) == retrograd::Category::bad_argument);
}

}  // namespace
}  // namespace libtorch
