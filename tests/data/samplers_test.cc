// Samplers: the indices of an epoch, parts of it for processes that share it, and states that go on with the same ones.
#include <catch2/catch.hpp>

#include <numeric>
#include <set>

#include "retrograd/data.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace samplers = retrograd::data::samplers;
using rg::Category;
using rg::category_of;
using samplers::DistributedRandomSampler;
using samplers::DistributedSequentialSampler;
using samplers::RandomSampler;
using samplers::SequentialSampler;
using samplers::StreamSampler;

namespace {

using Indices = std::vector<size_t>;

// The rest of an epoch.
template <class S>
Indices rest(S& sampler, size_t batch_size = 3) {
  Indices all;
  while (auto batch = sampler.next(batch_size)) all.insert(all.end(), batch->begin(), batch->end());
  return all;
}

Indices up_to(size_t size) {
  Indices all(size);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

// A sampler that was saved after a batch goes on as one that was not; `changed` has done something else.
template <class S>
void check_resumes(S sampler, S changed) {
  sampler.reset();
  sampler.next(2);
  const rg::StateDict state = sampler.state_dict();
  const Indices expected = rest(sampler);
  REQUIRE_FALSE(expected.empty());
  changed.load_state_dict(state);
  CHECK(rest(changed) == expected);
  for (const auto& [key, tensor] : state) {
    rg::StateDict lacking = state;
    lacking.erase(key);
    INFO(key);
    CHECK(category_of([&] { changed.load_state_dict(lacking); }) == Category::bad_argument);
  }
}

}  // namespace

TEST_CASE("a sequential sampler counts") {
  SequentialSampler sampler(5);
  CHECK(sampler.next(2) == Indices{0, 1});
  CHECK(sampler.index() == 2);
  CHECK(sampler.next(2) == Indices{2, 3});
  CHECK(sampler.next(2) == Indices{4});
  CHECK(sampler.next(2) == std::nullopt);
  sampler.reset();
  CHECK(rest(sampler) == up_to(5));
  sampler.reset(7);
  CHECK(rest(sampler) == up_to(7));
  CHECK(SequentialSampler(0).next(1) == std::nullopt);
}

TEST_CASE("a random sampler gives each index once, in an order of its own for each epoch") {
  rg::manual_seed(3);
  RandomSampler sampler(20);
  const Indices first = rest(sampler, 7);
  sampler.reset();
  const Indices second = rest(sampler, 20);
  CHECK(first != second);
  for (const Indices& order : {first, second}) {
    CHECK(order.size() == 20);
    CHECK(std::set<size_t>(order.begin(), order.end()).size() == 20);
  }
  rg::manual_seed(3);
  RandomSampler again(20);
  CHECK(rest(again, 4) == first);
  sampler.reset(4);
  const Indices four = rest(sampler);
  CHECK(std::set<size_t>(four.begin(), four.end()) == std::set<size_t>{0, 1, 2, 3});
}

TEST_CASE("an order depends on the place in the random stream alone, not on the dtype of the indices") {
  rg::manual_seed(9);
  RandomSampler wide(10);
  rg::manual_seed(9);
  RandomSampler narrow(10, rg::kInt32);
  CHECK(rest(wide) == rest(narrow));
  CHECK(category_of([] { RandomSampler(-1); }) == Category::bad_argument);
  CHECK(category_of([] { RandomSampler(300, rg::kUInt8); }) == Category::bad_argument);
}

TEST_CASE("a stream sampler asks for numbers of examples") {
  StreamSampler sampler(7);
  CHECK(sampler.next(3)->size() == 3);
  CHECK(*sampler.next(3) + 0 == 3);
  CHECK(sampler.next(3)->size() == 1);
  CHECK_FALSE(sampler.next(3));
  sampler.reset(2);
  CHECK(sampler.next(3)->size() == 2);
}

TEST_CASE("processes share an epoch, with duplicates or without the rest") {
  const auto parts = [](bool allow_duplicates) {
    std::vector<Indices> parts;
    for (size_t rank = 0; rank < 3; ++rank) {
      DistributedSequentialSampler sampler(7, 3, rank, allow_duplicates);
      parts.push_back(rest(sampler, 2));
    }
    return parts;
  };
  CHECK(parts(true) == std::vector<Indices>{{0, 1, 2}, {3, 4, 5}, {6, 0, 1}});
  CHECK(parts(false) == std::vector<Indices>{{0, 1}, {2, 3}, {4, 5}});
  DistributedSequentialSampler few(1, 4, 2);
  CHECK(rest(few) == Indices{0});
  CHECK(category_of([] { DistributedSequentialSampler(7, 3, 3); }) == Category::bad_argument);
  CHECK(category_of([] { DistributedRandomSampler(7, 0, 0); }) == Category::bad_argument);
}

TEST_CASE("processes draw one order from the number of the epoch") {
  const auto epoch = [](size_t number) {
    Indices all;
    for (size_t rank = 0; rank < 2; ++rank) {
      rg::manual_seed(rank);  // which does not matter
      DistributedRandomSampler sampler(10, 2, rank);
      sampler.set_epoch(number);
      sampler.reset();
      const Indices part = rest(sampler);
      CHECK(part.size() == 5);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const Indices first = epoch(1);
  CHECK(std::set<size_t>(first.begin(), first.end()).size() == 10);
  CHECK(first == epoch(1));
  CHECK(first != epoch(2));
}

TEST_CASE("a sampler goes on from its state") {
  check_resumes(SequentialSampler(9), SequentialSampler(9));
  check_resumes(RandomSampler(9), RandomSampler(9));
  check_resumes(DistributedSequentialSampler(9, 2, 1), DistributedSequentialSampler(9, 2, 1));
  DistributedRandomSampler third_epoch(9, 2, 1);
  third_epoch.set_epoch(3);
  check_resumes(third_epoch, DistributedRandomSampler(9, 2, 1));

  StreamSampler stream(5);
  stream.next(3);
  StreamSampler other(5);
  other.load_state_dict(stream.state_dict());
  CHECK(other.next(3)->size() == 2);
}

TEST_CASE("the state of another sampler is refused, and changes nothing") {
  RandomSampler sampler(9);
  sampler.next(4);
  const rg::StateDict state = sampler.state_dict();
  rg::StateDict changed = state;
  changed["index"] = rg::tensor(int64_t{10});
  CHECK(category_of([&] { sampler.load_state_dict(changed); }) == Category::bad_argument);
  changed = state;
  changed["index"] = rg::tensor(1.0);
  CHECK(category_of([&] { sampler.load_state_dict(changed); }) == Category::bad_argument);
  changed = state;
  changed["generator"] = rg::zeros({16});
  CHECK(category_of([&] { sampler.load_state_dict(changed); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { RandomSampler(8).load_state_dict(state); }) == Category::bad_argument);
  CHECK(sampler.index() == 4);
  RandomSampler other(9);
  other.load_state_dict(state);
  CHECK(rest(other) == rest(sampler));
}
