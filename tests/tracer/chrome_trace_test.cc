// The Chrome trace of a profile: Profile::chrome_trace() in tracer/observe/profile.h, read back as JSON.
// Not tested here: what a profile collects (profile_test.cc).
#include <catch2/catch.hpp>

#include <map>
#include <nlohmann/json.hpp>

#include "retrograd/retrograd.h"
#include "tests/tracer/profiled_model.h"
#include "tracer/observe/profile.h"

namespace rg = retrograd;
using nlohmann::json;
using rg::Profile;
using rg::ProfileScope;
using rg::Tensor;
using rg::Tensors;
using rg::testing::Model;

namespace {

struct SavesTooMuch : rg::Function<SavesTooMuch> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x, x * 2.0});
    return x * 3.0;
  }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) { return {grads[0] * 3.0}; }
};

std::vector<json> events(const json& trace, const std::string& phase, const std::string& category = "") {
  std::vector<json> found;
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == phase && (category.empty() || e["cat"] == category)) found.push_back(e);
  return found;
}

bool encloses(const json& slice, double time) {
  const double begin = slice["ts"];
  return begin <= time && time <= begin + slice["dur"].get<double>() + 1e-6;
}

// From the id of each arrow: the names of the slices at its two ends. Fails if an end has no slice.
std::map<int, std::pair<std::string, json>> arrows(const json& trace) {
  std::map<int, std::pair<std::string, json>> ends;
  const auto slice_at = [&](const json& end) {
    json best;
    for (const json& s : events(trace, "X"))
      if (s["tid"] == end["tid"] && s["ts"] == end["ts"] && encloses(s, end["ts"]) &&
          (best.is_null() || s["dur"] <= best["dur"]))
        best = s;
    REQUIRE(!best.is_null());
    return best;
  };
  for (const json& s : events(trace, "s"))
    REQUIRE(ends.emplace(s["id"], std::pair{slice_at(s)["name"].get<std::string>(), json()}).second);
  for (const json& f : events(trace, "f")) {
    REQUIRE(f["bp"] == "e");
    REQUIRE(ends.at(f["id"]).second.is_null());
    ends.at(f["id"]).second = slice_at(f);
  }
  return ends;
}

}  // namespace

TEST_CASE("a Chrome trace of forward and backward has slices and an arrow to each node") {
  Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  Profile profile;
  {
    ProfileScope scope(profile);
    for (int step = 0; step < 2; ++step) backward(model.loss());
  }
  const json trace = json::parse(profile.chrome_trace());
  const auto slices = events(trace, "X", "node");
  size_t count = 0, of_records = 0;
  for (const Profile::Run& run : profile.runs())
    for (const Profile::Step& s : run.steps) {
      if (s.frees) continue;
      const rg::ir::Node& node = run.graph->nodes()[s.node];
      CHECK(slices.at(count)["name"] == std::string(node.op->name));
      CHECK(slices.at(count++)["args"]["node"] == s.node);
      of_records += node.origin >= 0;
    }
  CHECK(slices.size() == count);
  CHECK(count > 10);
  CHECK(events(trace, "X", "backward").size() == 2);
  CHECK(events(trace, "X", "forward").empty());  // all calls were profiled
  for (const json& e : trace["traceEvents"])
    if (e.contains("ts")) CHECK(e["ts"].get<double>() >= 0);
  const auto all = arrows(trace);
  CHECK(all.size() == of_records);
  for (const auto& [id, ends] : all) {
    CHECK(ends.first == ends.second["args"]["of"]);
    CHECK(ends.second["cat"] == "node");
  }
}

TEST_CASE("records whose forward was not seen are marks in their order before the backward") {
  Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  Profile profile;
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = model.loss();
    ProfileScope scope(profile);
    backward(loss);
  }
  const json trace = json::parse(profile.chrome_trace());
  const auto marks = events(trace, "X", "forward");
  const auto runs = events(trace, "X", "backward");
  REQUIRE(runs.size() == 3);
  REQUIRE(marks.size() == 12);
  const std::vector<std::string> order = {"mm", "exp", "mul", "sum"};
  double before = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    CHECK(marks[i]["name"] == order[i % 4]);
    CHECK(marks[i]["tid"] != runs[0]["tid"]);
    CHECK(marks[i]["ts"].get<double>() >= before - 1e-6);
    before = marks[i]["ts"].get<double>() + marks[i]["dur"].get<double>();
    CHECK(before <= runs[i / 4]["ts"].get<double>() + 1e-6);
  }
  for (const auto& [id, ends] : arrows(trace)) CHECK(ends.first == ends.second["args"]["of"]);
}

TEST_CASE("any name of a file makes a valid trace") {
  const Tensor x = rg::full({3}, 0.5).requires_grad_();
  Profile profile;
  ProfileScope scope(profile);
  const std::pair<const char*, std::string> names[] = {
      {"a \"quoted\" \\ name\n\x01.cc", "a \"quoted\" \\ name\n\x01.cc:7"},
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82.cc", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82.cc:7"},
      {"\xff\xc0\x80\xed\xa0\x80\xf5 \xe2\x82", "\xef\xbf\xbd*"}};
  for (const auto& [name, text] : names) {
    profile.clear();
    {
      rg::CallScope at(rg::SourceLocation{name, 7});
      rg::CompiledBackward backward = rg::compile_backward();
      backward(rg::sum(rg::exp(x)));
    }
    const json trace = json::parse(profile.chrome_trace());
    const std::string where = events(trace, "X", "node").at(0)["args"]["where"];
    if (text.ends_with('*'))
      CHECK(where.starts_with(text.substr(0, 3)));
    else
      CHECK(where == text);
  }
}

TEST_CASE("slots that a rule does not ask for are emptied in a step of their own") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::full({3}, 0.5).requires_grad_();
  Profile profile;
  {
    ProfileScope scope(profile);
    backward(rg::sum(SavesTooMuch::apply(x)));
  }
  const Profile::Run& run = profile.runs().at(0);
  const auto frees = std::ranges::count_if(run.steps, &Profile::Step::frees);
  CHECK(frees >= 1);
  const json trace = json::parse(profile.chrome_trace());
  CHECK(static_cast<int64_t>(events(trace, "X", "node").size()) ==
        static_cast<int64_t>(run.steps.size()) - frees);
  CHECK(static_cast<int64_t>(events(trace, "X", "free").size()) == frees);
  arrows(trace);
}

TEST_CASE("an empty profile is an empty trace") {
  const json trace = json::parse(Profile().chrome_trace());
  CHECK(events(trace, "X").empty());
}
