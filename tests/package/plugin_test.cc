// The library inside a plug-in: it is loaded late, unloaded and loaded again, leaves no thread and no memory, and
// coexists with another copy. This program itself does not contain the library.
#include <dlfcn.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

namespace fs = std::filesystem;

// The plug-in of this build, or another one: the package's, in consumers_test.sh.
const char* plugin_path() {
  const char* other = std::getenv("RG_PLUGIN");
  return other ? other : "tests/package/libplugin.so";
}

class Plugin {
 public:
  explicit Plugin(const std::string& path)
      : handle_(dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL)) {
    INFO((handle_ ? "" : dlerror()));
    REQUIRE(handle_);
  }
  ~Plugin() { dlclose(handle_); }
  Plugin(const Plugin&) = delete;
  double train(int steps) const { return symbol<double (*)(int)>("train")(steps); }
  bool fails_well() const { return symbol<bool (*)()>("fails_well")(); }

 private:
  template <class F>
  F symbol(const char* name) const {
    void* found = dlsym(handle_, name);
    REQUIRE(found);
    return reinterpret_cast<F>(found);
  }

  void* handle_;
};

int64_t threads() {
  return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
}

// Whether a file with this in its path is mapped.
bool is_mapped(const std::string& part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(part) != std::string::npos) return true;
  return false;
}

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double load_train_unload() {
  const Plugin plugin(plugin_path());
  CHECK(plugin.fails_well());
  return plugin.train(3);
}

// A copy of the plug-in, which the loader treats as a different one.
class Copy {
 public:
  explicit Copy(const std::string& name)
      : path_(fs::temp_directory_path() / (std::to_string(getpid()) + name)) {
    fs::copy_file(plugin_path(), path_);
  }
  ~Copy() { fs::remove(path_); }
  const std::string path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("a plug-in is loaded, computes, and is gone when it is unloaded") {
  std::thread([] {}).join();  // thread sanitizer starts one of its own with the first thread
  const int64_t before = threads();
  const double first = load_train_unload();
  CHECK(threads() == before);
  CHECK_FALSE(is_mapped("libplugin.so"));
  CHECK(load_train_unload() == first);
}

TEST_CASE("memory stays as it is when a plug-in is loaded and unloaded again and again") {
  for (int i = 0; i < 10; ++i) load_train_unload();
  [[maybe_unused]] const int64_t before = resident_bytes();
  for (int i = 0; i < 90; ++i) load_train_unload();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose memory grows with each load
  CHECK(resident_bytes() - before < 1 << 20);
#endif
}

TEST_CASE("two copies of a plug-in live side by side") {
  const Copy a("a.so"), b("b.so");
  const Plugin first(a.path());
  const double alone = first.train(3);
  {
    const Plugin second(b.path());
    CHECK(second.train(3) == alone);
    CHECK(first.train(3) == alone);
    CHECK(second.fails_well());
  }
  CHECK(first.train(3) == alone);
}

TEST_CASE("threads that have used a plug-in end before and after it is unloaded") {
  double here = 0, there = 0;
  std::thread late;
  {
    const Plugin plugin(plugin_path());
    std::thread([&] { there = plugin.train(3); }).join();
    here = plugin.train(3);
    std::atomic<bool> has_used{false};
    late = std::thread([&] {
      plugin.train(1);
      has_used = true;
      while (is_mapped("libplugin.so")) std::this_thread::yield();
    });
    while (!has_used) std::this_thread::yield();
  }
  late.join();
  CHECK(here == there);
  CHECK_FALSE(is_mapped("libplugin.so"));
}
