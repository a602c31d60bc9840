// Damaged files: of tensors and of the plan cache. A file of tensors is refused with FileError, or read as its new
// content; an entry of a cache gives an answer only if it is intact.
//
//   RETROGRAD_MUTATIONS=10000000 RETROGRAD_FUZZ_SEED=7 ./bazelw run --config=asan //tests/io:file_fuzz_test
#include <catch2/catch.hpp>
#include <fstream>

#include "io/cache_entry.h"
#include "io/safetensors_header.h"
#include "retrograd/retrograd.h"
#include "tests/fuzz/asked.h"
#include "tests/fuzz/damage.h"
#include "tests/test_folder.h"

namespace {

namespace rg = retrograd;

constexpr int64_t kMutations = 20000;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), std::ssize(bytes));
}

// A file with a tensor of each dtype.
std::string sound_file() {
  const std::string path = rg::testing::in_test_folder("sound.safetensors");
  rg::StateDict state;
  for (const rg::ScalarType dtype : {rg::kFloat32, rg::kFloat64, rg::kInt64, rg::kInt32, rg::kUInt8,
                                     rg::kBool, rg::kBFloat16, rg::kFloat16})
    state.emplace(std::string(rg::name(dtype)), rg::ones({2, 3}, {dtype}));
  state.emplace("empty", rg::zeros({0, 7}));
  state.emplace("number", rg::scalar_tensor(1.5));
  rg::save(state, path);
  return bytes_of(path);
}

std::vector<std::string> odd_words() {
  std::vector<std::string> words = fuzz::odd_numbers();
  for (const char* word : {"F32", "F64", "I64", "BOOL", "BF16", "F8_E4M3", "U64", "dtype", "shape",
                           "data_offsets", "__metadata__", "null"})
    words.emplace_back(word);
  return words;
}

int64_t mutations() { return fuzz::asked_for("RETROGRAD_MUTATIONS", kMutations); }

// read() of each of `wanted` damaged texts returns, or throws FileError. Both happen, mostly the latter.
template <class Read>
void check_refused_or_read(const char* what, const std::string& sound, int64_t wanted, const Read& read) {
  fuzz::Random random(fuzz::asked_seed());
  fuzz::Damage damaged(random, odd_words());
  int64_t refused = 0;
  for (int64_t i = 0; i < wanted; ++i) {
    try {
      read(damaged(sound));
    } catch (const rg::FileError&) {
      ++refused;
    }
  }
  std::printf("%s: %ld refused, %ld read\n", what, refused, wanted - refused);
  CHECK(refused > wanted / 2);
  CHECK(wanted - refused > wanted / 1000);
}

}  // namespace

TEST_CASE("Damaged headers of files of tensors are refused, or describe all of the data") {
  const std::string file = sound_file();
  const auto length =
      static_cast<size_t>(static_cast<unsigned char>(file[0]) + 256 * static_cast<unsigned char>(file[1]));
  const std::string header = file.substr(8, length);
  const size_t data = file.size() - 8 - length;
  check_refused_or_read("headers", header, mutations(), [&](const std::string& damaged) {
    const rg::SafetensorsHeader found = rg::parse_safetensors_header("file", damaged, data);
    size_t bytes = 0;
    for (const rg::TensorEntry& entry : found.entries) bytes += entry.nbytes;
    if (bytes != data) FAIL_CHECK("read, though it describes " << bytes << " bytes");
  });
}

TEST_CASE("Damaged files of tensors are refused, or loaded") {
  const std::string file = sound_file(), path = rg::testing::in_test_folder("damaged.safetensors");
  const rg::NoGradGuard no_grad;
  check_refused_or_read("files", file, mutations() / 10, [&](const std::string& damaged) {
    write_bytes(path, damaged);
    for (const auto& [name, tensor] : rg::load(path)) rg::sum(tensor.to(rg::kFloat64)).item<double>();
  });
}

TEST_CASE("A damaged entry of a cache gives no answer") {
  const std::string magic = "retrograd test 1\n", question = "what is\n it?",
                    answer = "graph @t(%0: f32[2]) {\n  return %0\n}\n";
  const std::string entry = rg::io::cache_entry(magic, question, answer);
  REQUIRE(rg::io::cached_answer(entry, magic, question).text == answer);
  fuzz::Random random(fuzz::asked_seed());
  fuzz::Damage damaged(random, fuzz::odd_numbers());
  const int64_t wanted = mutations();
  int64_t without = 0;
  for (int64_t i = 0; i < wanted; ++i) {
    const std::string changed = damaged(entry);
    const rg::io::CachedAnswer found = rg::io::cached_answer(changed, magic, question);
    if (found.problem.empty() && (changed != entry || found.text != answer)) FAIL_CHECK(changed);
    without += !found.problem.empty();
  }
  CHECK(without > wanted / 2);
}
