// The plan cache (tracer/plan/plan_cache.h): a plan from the folder is the same as one made by the passes, and the
// content of the folder is not trusted. Not tested here: the time it saves (docs/compile.md, "The plan cache"), passes
// (tests/ir/passes), a crash of the machine.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "retrograd/retrograd.h"
#include "tests/own_folder.h"

namespace rg = retrograd;
namespace fs = std::filesystem;
namespace cache = rg::plan_cache;
using rg::Tensor;

namespace {

// A folder of its own for each test, in which the cache keeps its entries.
struct TestFolder {
  rg::testing::OwnFolder own;
  const std::string& top = own.path;
  std::string path = top + "/entries";
  TestFolder() { cache::set_folder(path); }
  ~TestFolder() { cache::set_folder(""); }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& item : fs::directory_iterator(path)) all.push_back(item.path().string());
    return all;
  }
  std::string only_file() const {
    const std::vector<std::string> all = files();
    REQUIRE(all.size() == 1);
    return all[0];
  }
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

struct Outcome {
  std::vector<double> values;
  std::string graph;
  int64_t hits, misses, rejected, stored, failed;
};

// Records a step again, runs it twice, and returns what the cache did. The step has work for the passes, numbers that
// are read at each run, and a parameter that is written in place.
Outcome run_step(double lr = 0.5, int64_t size = 6) {
  const cache::Stats before = cache::stats();
  const Tensor w = rg::ones({size}).requires_grad_();
  rg::optim::SGD optimizer({w}, {.lr = lr, .momentum = 0.5});
  auto step = rg::compile_step([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor y = rg::exp(w * x) * 2.0 + rg::exp(w * x);
    const Tensor loss = rg::sum(rg::tanh(y));
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor x = rg::arange(0, static_cast<double>(size)) * 0.01;
  step(x);
  optimizer.set_lr(lr / 2);
  step(x);
  const cache::Stats now = cache::stats();
  return {w.to_vector(),
          step.graph()->print(),
          now.hits - before.hits,
          now.misses - before.misses,
          now.rejected - before.rejected,
          now.stored - before.stored,
          now.failed - before.failed};
}

// The entry is passed over, and replaced by a good one.
void check_rejected(const TestFolder& folder, const Outcome& expected, const char* why) {
  INFO(why);
  const Outcome got = run_step();
  CHECK(got.rejected == 1);
  CHECK(got.hits + got.misses + got.failed == 0);
  CHECK(got.stored == 1);
  CHECK(got.values == expected.values);
  CHECK(got.graph == expected.graph);
  CHECK(cache::last_warning().find(folder.path) != std::string::npos);
  CHECK(cache::last_warning().find(why) != std::string::npos);
  CHECK(run_step().hits == 1);
}

}  // namespace

TEST_CASE("without a folder nothing is kept and nothing counted") {
  cache::set_folder("");
  const Outcome got = run_step();
  CHECK(got.hits + got.misses + got.rejected + got.stored + got.failed == 0);
}

TEST_CASE("the second recording finds what the first one kept: the same graph and results") {
  const TestFolder folder;
  const Outcome first = run_step(), second = run_step();
  CHECK(first.misses == 1);
  CHECK(first.stored == 1);
  CHECK(second.hits == 1);
  CHECK(second.misses + second.rejected + second.stored + second.failed == 0);
  CHECK(second.values == first.values);
  CHECK(second.graph == first.graph);
  cache::set_folder("");
  CHECK(run_step().values == first.values);
}

TEST_CASE("numbers that are read at each run are not part of the question; sizes are") {
  const TestFolder folder;
  run_step(0.5);
  const Outcome other = run_step(0.125);
  CHECK(other.hits == 1);
  cache::set_folder("");
  CHECK(run_step(0.125).values == other.values);
  cache::set_folder(folder.path);
  CHECK(run_step(0.5, 7).misses == 1);
  CHECK(folder.files().size() == 2);
}

TEST_CASE(
    "a compiled function has entries for forward, backward, one that recomputes saved values, and, after a "
    "backward, both together") {
  const TestFolder folder;
  std::vector<double> gradients[2];
  for (std::vector<double>& g : gradients) {
    const Tensor x = rg::full({5}, 0.5).requires_grad_();
    auto f = rg::compile([](const Tensor& t) { return rg::sum(rg::sin(t) * rg::sin(t)); });
    f(x).backward();
    g = x.grad().to_vector();
  }
  CHECK(gradients[0] == gradients[1]);
  CHECK(folder.files().size() == 4);
  const TestFolder other;
  auto never_differentiated = rg::compile([](const Tensor& t) { return rg::sum(rg::sin(t) * rg::sin(t)); });
  never_differentiated(rg::full({5}, 0.5).requires_grad_());
  CHECK(other.files().size() == 3);
}

TEST_CASE("files are private, and the folder is") {
  const TestFolder folder;
  run_step();
  struct stat s;
  REQUIRE(::stat(folder.path.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  REQUIRE(::stat(folder.only_file().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
}

TEST_CASE("damaged entries are passed over: cut off, other bits, emptied, of another version") {
  const TestFolder folder;
  const Outcome expected = run_step();
  const std::string path = folder.only_file(), good = bytes_of(path);
  const auto damage = [&](const std::string& bytes, const char* why) {
    write_bytes(path, bytes);
    check_rejected(folder, expected, why);
    CHECK(bytes_of(path) == good);
  };
  damage("", "not an entry of this version");
  damage(good.substr(0, 30), "cut off");
  for (const size_t length : {good.size() / 4, good.size() / 2, good.size() - 1})
    damage(good.substr(0, length), "checksum");
  damage(good + "x", "checksum");
  for (size_t at = 60; at < good.size(); at += good.size() / 7) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    damage(flipped, "checksum");
  }
  std::string other = good;
  other.replace(other.find("cache 1"), 7, "cache 0");
  damage(other, "not an entry of this version");
}

TEST_CASE("an entry in another one's place answers another question") {
  const TestFolder folder;
  const Outcome expected = run_step();
  const std::string path = folder.only_file();
  run_step(0.5, 9);
  for (const std::string& file : folder.files())
    if (file != path) fs::copy_file(file, path, fs::copy_options::overwrite_existing);
  check_rejected(folder, expected, "another question");
}

TEST_CASE("a checksum that holds is not enough: the text must be a graph with these inputs and outputs") {
  const TestFolder folder;
  const Outcome expected = run_step();
  const std::string path = folder.only_file(), good = bytes_of(path);
  const auto forge = [&](const std::string& from, const std::string& to, const char* why) {
    const size_t body = good.find('\n', good.find('\n') + 1) + 1;
    std::string forged = good;
    forged.replace(forged.rfind(from), from.size(), to);
    const XXH128_hash_t h = XXH3_128bits(forged.data() + body, forged.size() - body);
    char digest[33];
    std::snprintf(digest, sizeof digest, "%016llx%016llx", static_cast<unsigned long long>(h.high64),
                  static_cast<unsigned long long>(h.low64));
    write_bytes(path, forged.replace(body - 33, 32, digest));
    check_rejected(folder, expected, why);
  };
  forge("return %", "retire %", "graph text");
  forge("return %", "return none, %", "inputs or outputs");
  forge("graph @", "graph @x", "inputs or outputs");
  forge(": f32[6]", ": f32[7]", "graph text");
}

TEST_CASE("files that others may use, that belong to others, or are no files, are passed over") {
  const TestFolder folder;
  const Outcome expected = run_step();
  const std::string path = folder.only_file(), good = bytes_of(path);
  for (const mode_t mode : {0644, 0620, 0604}) {
    ::chmod(path.c_str(), mode);
    check_rejected(folder, expected, "other users");
  }
  if (::chown(path.c_str(), 65534, 65534) == 0) {  // an ordinary user may not, nor may root in a sandbox
    check_rejected(folder, expected, "another user");
  }
  const std::string elsewhere = folder.top + "/elsewhere";
  write_bytes(elsewhere, good);
  ::chmod(elsewhere.c_str(), 0600);
  fs::remove(path);
  fs::create_symlink(elsewhere, path);
  check_rejected(folder, expected, std::strerror(ELOOP));
  CHECK(bytes_of(elsewhere) == good);
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  check_rejected(folder, expected, "another file type");
}

TEST_CASE("a folder that others may use, that is a link, no folder, or not there, is not used") {
  const TestFolder folder;
  const auto unusable = [&](const std::string& path, const char* why) {
    INFO(why);
    cache::set_folder(path);
    const Outcome got = run_step();
    CHECK(got.failed == 1);
    CHECK(got.hits + got.misses + got.rejected + got.stored == 0);
    CHECK(cache::last_warning().find(why) != std::string::npos);
  };
  fs::create_directory(folder.path);
  ::chmod(folder.path.c_str(), 0755);
  unusable(folder.path, "other users");
  ::chmod(folder.path.c_str(), 0700);
  if (::chown(folder.path.c_str(), 65534, 65534) == 0) {  // as above
    unusable(folder.path, "another user");
    REQUIRE(::chown(folder.path.c_str(), 0, 0) == 0);
  }
  fs::create_symlink(folder.path, folder.top + "/link");
  unusable(folder.top + "/link", std::strerror(ENOTDIR));
  write_bytes(folder.top + "/file", "x");
  unusable(folder.top + "/file", std::strerror(ENOTDIR));
  unusable(folder.top + "/none/entries", std::strerror(ENOENT));
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("what cannot be written costs a warning and leaves nothing behind") {
  const TestFolder folder;
  const auto trapped = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit unlimited;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &unlimited) == 0);
  struct rlimit small = unlimited;
  small.rlim_cur = 100;  // as on a full disk, a write fails in the middle
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Outcome got = run_step();
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, trapped);
  CHECK(got.misses == 1);
  CHECK(got.failed == 1);
  CHECK(got.stored == 0);
  CHECK(cache::last_warning().find("cannot be written") != std::string::npos);
  CHECK(folder.files().empty());
  CHECK(run_step().values == got.values);
}

TEST_CASE("a folder that may not be written to serves what it has") {
  const TestFolder folder;
  run_step();
  ::chmod(folder.path.c_str(), 0500);
  CHECK(run_step().hits == 1);
  if (::geteuid() != 0) {
    const Outcome got = run_step(0.5, 8);
    CHECK(got.misses == 1);
    CHECK(got.failed == 1);
  }
  ::chmod(folder.path.c_str(), 0700);
}

TEST_CASE("threads and processes that keep the same at the same time") {
  const TestFolder folder;
  cache::set_folder("");
  const std::vector<double> expected = run_step().values;
  cache::set_folder(folder.path);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(run_step().values == expected ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  std::vector<std::thread> threads;
  std::vector<std::vector<double>> values(4);
  for (auto& v : values)
    threads.emplace_back([&v, &folder] {
      for (int i = 0; i < 20; ++i) {
        std::error_code ignored;
        if (i % 3 == 0)
          for (const std::string& file : folder.files()) fs::remove(file, ignored);
        v = run_step().values;
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& v : values) CHECK(v == expected);
  run_step();
  CHECK(folder.only_file().ends_with(".plan"));
}

TEST_CASE("entries that were used least recently go first, and files that nobody finished") {
  const TestFolder folder;
  run_step();
  const std::string good = folder.only_file();
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  for (size_t i = 0; i < cache::kEntries; ++i) {
    const std::string path = folder.path + "/" + std::to_string(i) + ".plan";
    write_bytes(path, "x");
    ::utimensat(AT_FDCWD, path.c_str(), old, 0);
  }
  write_bytes(folder.path + "/a.part", "x");
  ::utimensat(AT_FDCWD, (folder.path + "/a.part").c_str(), old, 0);
  write_bytes(folder.path + "/b.part", "x");
  CHECK(run_step(0.5, 10).stored == 1);
  CHECK(folder.files().size() == cache::kEntries + 1);
  CHECK(fs::exists(good));
  CHECK_FALSE(fs::exists(folder.path + "/a.part"));
  CHECK(fs::exists(folder.path + "/b.part"));
}
