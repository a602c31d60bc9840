// Logs of traced backwards and the folder of captured graphs: tracer/observe/log.h.
// Not tested here: what a page looks like (page_test.cc).
#include <catch2/catch.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "retrograd/retrograd.h"
#include "tracer/observe/log.h"
#include "tracer/observe/page.h"

namespace rg = retrograd;
namespace fs = std::filesystem;
using rg::Tensor;
using rg::logging::Topic;

namespace {

// Collects messages; on leaving, everything is as it is by default.
struct Listener {
  std::mutex mutex;
  std::vector<std::pair<Topic, std::string>> messages;

  explicit Listener(std::string_view topics) {
    rg::logging::set_sink([this](Topic topic, std::string_view message) {
      std::lock_guard lock(mutex);
      messages.emplace_back(topic, message);
    });
    rg::logging::set_topics(topics);
  }
  ~Listener() {
    rg::logging::set_topics("");
    rg::logging::set_sink({});
    rg::logging::set_dump_folder("");
  }
  std::vector<std::string> of(Topic topic) const {
    std::vector<std::string> texts;
    for (const auto& [t, text] : messages)
      if (t == topic) texts.push_back(text);
    return texts;
  }
};

struct Folder {
  fs::path path = fs::temp_directory_path() / ("retrograd_log_test_" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
  std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path / name).rdbuf();
    return text.str();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

Tensor leaf(int64_t size) { return rg::full({size}, 0.5).requires_grad_(); }

struct Output {
  std::string text;
  int status;
};

// This program again, with other variables of the environment: its stdout and stderr.
Output run_again(const std::string& variables, const std::string& test) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  Output output;
  FILE* pipe = ::popen((variables + " '" + self + "' '" + test + "' 2>&1").c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.text.append(buffer, n);
  output.status = ::pclose(pipe);
  return output;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("each topic has its messages") {
  Listener heard("trace,recompiles,exec,memory");
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf(4);
  for (int step = 0; step < 3; ++step) backward(rg::sum(rg::exp(x)));
  CHECK(heard.of(Topic::trace) == std::vector{backward.graph()->print()});
  const std::string nodes = std::to_string(backward.graph()->nodes().size());
  CHECK(heard.of(Topic::recompiles) == std::vector{"captured " + nodes + " nodes: first call"});
  const auto runs = heard.of(Topic::exec);
  REQUIRE(runs.size() == 3);
  CHECK(runs[0].starts_with("captured, " + nodes + " nodes, "));
  CHECK(runs[1].starts_with("structure hit, " + nodes + " nodes, "));
  CHECK(runs[2].ends_with(" us"));
  CHECK(heard.of(Topic::memory).size() == 3);
  CHECK(heard.messages.size() == 8);
}

TEST_CASE("recorded functions and steps log as backwards do") {
  Listener heard("trace,recompiles,exec,memory");
  const auto numbered = [](const rg::ir::Graph& graph, const std::string& why) {
    return "captured " + std::to_string(graph.nodes().size()) + " nodes: " + why;
  };
  SECTION("a function and its backward") {
    auto f = rg::compile([](const Tensor& x) { return rg::sum(rg::exp(x)); });
    const Tensor x = leaf(4);
    for (int call = 0; call < 3; ++call) f(x).backward();
    CHECK(heard.of(Topic::trace) == std::vector{f.graph()->print(), f.backward_graph()->print()});
    CHECK(heard.of(Topic::recompiles) ==
          std::vector{numbered(*f.graph(), "first call"),
                      numbered(*f.backward_graph(), "the backward of this function")});
    CHECK(heard.of(Topic::exec).size() == 3);
    CHECK(heard.of(Topic::exec)[0].starts_with("captured, "));
    CHECK(heard.of(Topic::exec)[1].starts_with("structure hit, "));
    CHECK(heard.of(Topic::memory).size() == 3);
    f(leaf(5));
    CHECK(heard.of(Topic::recompiles)[2] == numbered(*f.graph(), f.last_capture_reason()));
  }
  SECTION("a step") {
    const Tensor w = leaf(4);
    auto step = rg::compile_step([&](const Tensor& x) {
      w.set_grad({});
      rg::sum(w * x).backward();
    });
    for (int call = 0; call < 2; ++call) step(rg::ones({4}));
    CHECK(heard.of(Topic::trace) == std::vector{step.graph()->print()});
    CHECK(heard.of(Topic::recompiles) == std::vector{numbered(*step.graph(), "first call")});
    CHECK(heard.of(Topic::exec).size() == 2);
  }
  SECTION("the backward of some of the results is recorded when it is asked for") {
    auto f = rg::compile([](const Tensor& x) { return rg::Tensors{rg::sum(rg::exp(x)), rg::sum(x * x)}; });
    const Tensor x = leaf(4);
    rg::Tensors both = f(x);
    const size_t before = heard.of(Topic::recompiles).size();
    both[1].backward();
    REQUIRE(heard.of(Topic::recompiles).size() == before + 1);
    CHECK_THAT(heard.of(Topic::recompiles).back(),
               Catch::EndsWith("other results of this function have a gradient"));
  }
}

TEST_CASE("only the topics that are switched on are written") {
  Listener heard("");
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf(4);
  backward(rg::sum(rg::exp(x)));
  CHECK(heard.messages.empty());
  rg::logging::set_topics(" exec , ");
  backward(rg::sum(rg::exp(x)));
  rg::logging::set_topics("recompiles");
  backward(rg::sum(rg::exp(x)));
  REQUIRE(heard.messages.size() == 1);
  CHECK(heard.messages[0].first == Topic::exec);
  rg::logging::set_topics("all");
  backward(rg::sum(rg::log(x)));
  CHECK(heard.messages.size() == 5);
}

TEST_CASE("a name that is no topic is refused, and nothing is changed") {
  Listener heard("exec");
  CHECK_THROWS_WITH(rg::logging::set_topics("trace,exce"),
                    Catch::Contains("'exce'") && Catch::Contains("recompiles"));
  rg::CompiledBackward backward = rg::compile_backward();
  backward(rg::sum(leaf(2)));
  REQUIRE(heard.messages.size() == 1);
  CHECK(heard.messages[0].first == Topic::exec);
}

TEST_CASE("the reason of a capture has the old and the new value") {
  Listener heard("recompiles");
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf(4);
  backward(rg::sum(rg::exp(x)));
  backward(rg::sum(rg::log(x)));
  backward(rg::sum(rg::exp(x)));  // known
  auto reasons = heard.of(Topic::recompiles);
  REQUIRE(reasons.size() == 2);
  CHECK_THAT(reasons[1], Catch::Contains("was exp") && Catch::Contains("is log"));
  CHECK_THAT(reasons[1], Catch::Contains(backward.last_capture_reason()));
}

TEST_CASE("a size that was equal to another by chance is a reason with both values") {
  Listener heard("recompiles");
  rg::CompiledBackward backward = rg::compile_backward();
  for (int64_t columns : {3, 5}) {
    const Tensor a = rg::full({3, 3}, 0.5).requires_grad_(), b = rg::full({3, columns}, 0.5);
    backward(rg::sum(rg::mm(a, b)));
  }
  const auto reasons = heard.of(Topic::recompiles);
  REQUIRE(reasons.size() == 2);
  CHECK_THAT(reasons[1], Catch::Contains("was 3") && Catch::Contains("is now 5"));
}

TEST_CASE("the memory of a backward is its own, and the program's peak is left alone") {
  { const Tensor large = rg::full({1 << 20}, 1.0); }  // 4 MiB
  const int64_t peak = rg::memory::stats().peak_bytes;
  Listener heard("memory");
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf(1000);
  const Tensor loss = rg::sum(rg::exp(x) * 2.0);
  const int64_t live = rg::memory::stats().live_bytes;
  backward(loss);
  CHECK(rg::memory::stats().peak_bytes == peak);
  const auto lines = heard.of(Topic::memory);
  REQUIRE(lines.size() == 1);
  long long before, after, highest;
  REQUIRE(std::sscanf(lines[0].c_str(), "live %lld -> %lld bytes, peak %lld bytes", &before, &after,
                      &highest) == 3);
  CHECK(before == live + 4);  // the cotangent of the loss
  CHECK(after == rg::memory::stats().live_bytes + 4);
  CHECK(highest >= before);
  CHECK(highest >= after);
  CHECK(highest < peak);
}

TEST_CASE("a backward inside a hook has lines of its own") {
  Listener heard("exec,memory");
  rg::CompiledBackward outer = rg::compile_backward(), inner = rg::compile_backward();
  const Tensor x = leaf(3), y = leaf(5);
  const Tensor z = rg::exp(x);
  z.register_hook([&](const Tensor&) {
    rg::EnableGradGuard records;
    inner(rg::sum(y));
    return Tensor();
  });
  outer(rg::sum(z));
  const auto runs = heard.of(Topic::exec);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].starts_with("captured, " + std::to_string(inner.graph()->nodes().size()) + " nodes"));
  CHECK(runs[1].starts_with("captured, " + std::to_string(outer.graph()->nodes().size()) + " nodes"));
}

TEST_CASE("what a sink throws reaches the caller") {
  Listener heard("exec");
  rg::logging::set_sink([](Topic, std::string_view) { throw std::logic_error("full"); });
  rg::CompiledBackward backward = rg::compile_backward();
  CHECK_THROWS_AS(backward(rg::sum(leaf(2))), std::logic_error);
}

TEST_CASE("several threads write at the same time") {
  Listener heard("all");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      rg::CompiledBackward backward = rg::compile_backward();
      const Tensor x = leaf(4);
      for (int step = 0; step < 50; ++step) backward(rg::sum(rg::exp(x)));
    });
  for (std::thread& t : threads) t.join();
  CHECK(heard.of(Topic::trace).size() == 4);
  CHECK(heard.of(Topic::recompiles).size() == 4);
  CHECK(heard.of(Topic::exec).size() == 200);
  CHECK(heard.of(Topic::memory).size() == 200);
}

TEST_CASE("every captured graph is written to the folder, in three forms") {
  Listener quiet("");
  Folder folder;
  rg::logging::set_dump_folder((folder.path / "deeper").string());
  folder.path /= "deeper";
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf(4);
  for (int step = 0; step < 2; ++step) backward(rg::sum(rg::exp(x)));
  const auto first = backward.graph();
  backward(rg::sum(rg::log(x)));
  CHECK(folder.names() == std::vector<std::string>{"graph_001.dot", "graph_001.html", "graph_001.txt",
                                                   "graph_002.dot", "graph_002.html", "graph_002.txt"});
  CHECK(folder.read("graph_001.txt") == first->print());
  CHECK(folder.read("graph_001.dot") == first->dot());
  CHECK(folder.read("graph_001.html") == rg::html_page(*first));
  CHECK(folder.read("graph_002.txt") == backward.graph()->print());
  rg::logging::set_dump_folder("");
  backward(rg::sum(rg::sin(x)));
  CHECK(folder.names().size() == 6);
  folder.path = folder.path.parent_path();
}

TEST_CASE("a folder that cannot be written is an error, once, and the backward can be repeated") {
  Listener quiet("");
  Folder folder;
  std::ofstream(folder.path) << "in the way";
  const std::string below = (folder.path / "graphs").string();
  rg::logging::set_dump_folder(below);
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = leaf(4);
  const Tensor loss = rg::sum(rg::exp(x));
  try {
    backward(loss);
    FAIL("no error");
  } catch (const rg::RuntimeError& e) {
    CHECK_THAT(e.what(), Catch::Contains(below));
  }
  CHECK(!x.grad().defined());
  backward(loss);
  CHECK(x.grad().defined());
  CHECK(backward.stats().captures == 1);
  CHECK(backward.stats().hits == 1);
  backward(rg::sum(rg::log(x)));  // another capture: no error any more
}

TEST_CASE("topics and folder come from the environment") {
  Folder folder;
  const Output output =
      run_again("RETROGRAD_LOGS=recompiles,nonsense,trace RETROGRAD_DUMP='" + folder.path.string() + "'",
                "in a child process");
  INFO(output.text);
  CHECK(output.status == 0);
  CHECK(count_of(output.text, "nonsense") == 1);
  CHECK(count_of(output.text, "[retrograd:recompiles] captured 4 nodes: first call\n") == 1);
  CHECK(count_of(output.text, "[retrograd:trace] graph @backward") == 1);
  CHECK(count_of(output.text, "[retrograd:trace]   accumulate_grad") == 1);
  CHECK(count_of(output.text, "[retrograd:trace] }\n") == 1);
  CHECK(output.text.find("[retrograd:exec]") == std::string::npos);
  CHECK(folder.names() == std::vector<std::string>{"graph_001.dot", "graph_001.html", "graph_001.txt"});
}

TEST_CASE("in a child process", "[.]") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (int step = 0; step < 2; ++step) backward(rg::sum(leaf(3)));
}
