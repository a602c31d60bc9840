// What f.memory() tells besides figures: the values that are held across the widest point, the curve of plans as SVG
// and JSON, and a certificate, which is checked by a walk that shares nothing with the planner. Budgets themselves are
// in memory_budget_test.cc.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tests/tracer/budgeted.h"

namespace rg = retrograd;
using namespace budgeted;
using rg::MemoryCertificate;
using rg::MemoryReport;
using Action = MemoryReport::Value::Action;

namespace {

size_t at(int32_t number) { return static_cast<size_t>(number); }

bool has(const std::vector<int32_t>& values, int32_t value) { return std::ranges::count(values, value) > 0; }

// A value as one run makes it: needed up to run `until`; the number of runs if it is live to the end.
struct Instance {
  int32_t value;
  size_t maker, until;
};

std::vector<Instance> instances_of(const MemoryCertificate& c) {
  std::vector<Instance> all;
  const auto until = [&](int32_t value, size_t maker) {
    size_t last = maker;
    for (size_t r = maker + 1; r < c.runs.size(); ++r) {
      if (has(c.runs[r].reads, value)) last = r;
      if (has(c.runs[r].makes, value)) return last;
    }
    return c.values[at(value)].to_end ? c.runs.size() : last;
  };
  for (size_t r = 0; r < c.runs.size(); ++r)
    for (int32_t v : c.runs[r].makes) all.push_back({v, r, until(v, r)});
  return all;
}

// What is held during a run, by value; twice if it has memory twice.
std::multiset<int32_t> held_during(const MemoryCertificate& c, const std::vector<Instance>& instances,
                                   size_t run) {
  std::multiset<int32_t> held(c.runs[run].unused.begin(), c.runs[run].unused.end());
  std::set<int32_t> ending, laid;
  for (const Instance& i : instances) {
    if (i.maker <= run && run <= i.until) held.insert(i.value);
    if (i.maker < run && run == i.until) ending.insert(i.value);
  }
  for (const MemoryCertificate::Overlay& o : c.runs[run].overlays)
    if (ending.contains(o.operand) && !laid.contains(o.result)) {
      ending.erase(o.operand);
      laid.insert(o.result);
      held.erase(held.find(o.result));
    }
  return held;
}

// Where the order of runs is wrong: first runs are in order; copies are of what has run, and read the same.
std::string fault_of_order(const MemoryCertificate& c) {
  std::vector<const MemoryCertificate::Run*> first;
  std::set<int32_t> made;
  for (size_t r = 0; r < c.runs.size(); ++r) {
    const MemoryCertificate::Run& run = c.runs[r];
    for (int32_t v : run.reads)
      if (!made.contains(v)) return fmt::format("run {} reads {}, which is not there", r, v);
    made.insert(run.makes.begin(), run.makes.end());
    if (at(run.task) > first.size()) return fmt::format("a task is missing before run {}", r);
    if (at(run.task) == first.size()) {
      first.push_back(&run);
      continue;
    }
    const MemoryCertificate::Run& original = *first[at(run.task)];
    if (run.reads != original.reads || run.scratch_bytes != original.scratch_bytes || run.op != original.op)
      return fmt::format("run {} is no copy of its task", r);
    for (int32_t v : run.makes)
      if (!has(original.makes, v)) return fmt::format("run {} makes {}, unlike its task", r, v);
  }
  return made.size() == c.values.size() ? "" : "some values are not made";
}

// Empty, or what is wrong. Lower bounds are those of first runs, which make all results.
std::string fault(const MemoryCertificate& c) {
  if (std::string order = fault_of_order(c); !order.empty()) return order;
  const auto bytes_of = [&](const auto& values) {
    int64_t sum = 0;
    for (int32_t v : values) sum += c.values[at(v)].bytes;
    return sum;
  };
  const std::vector<Instance> instances = instances_of(c);
  int64_t peak = 0, bound = 0;
  int32_t peak_run = -1, next = 0;
  for (size_t r = 0; r < c.runs.size(); ++r) {
    const MemoryCertificate::Run& run = c.runs[r];
    const int64_t held = bytes_of(held_during(c, instances, r)) + run.scratch_bytes;
    if (held != run.held_bytes) return fmt::format("run {} holds {} bytes, not {}", r, held, run.held_bytes);
    if (held > peak) peak = held, peak_run = static_cast<int32_t>(r);
    if (run.task != next) continue;
    ++next;
    std::set<int32_t> alone(run.makes.begin(), run.makes.end());
    for (const MemoryCertificate::Overlay& o : run.overlays) alone.erase(o.result);
    const int64_t needs = bytes_of(run.reads) + bytes_of(alone) + run.scratch_bytes;
    if (at(c.widest_run) == r && needs != c.lower_bound_bytes) return "another operation sets the bound";
    bound = std::max(bound, needs);
  }
  if (peak != c.peak_bytes || peak_run != c.peak_run) return "another peak";
  if (std::multiset<int32_t>(c.held.begin(), c.held.end()) != held_during(c, instances, at(peak_run)))
    return "other values are held at the peak";
  return bound == c.lower_bound_bytes ? "" : "another lower bound";
}

struct Planned {
  MemoryReport report;
  std::map<std::string, int64_t> nodes;  // of the graphs that run: by op and line
};

MemoryReport without_copies(const Net& net, Form form) {
  Training training(net);
  auto step = training.compiled(form, rg::MemoryBudget::fraction(1));
  step(input_of(net));
  return step.memory();
}

// With a budget of this part of the way from order alone down to the least plan. `all`: without copies.
Planned planned(const Net& net, Form form, const MemoryReport& all, double part) {
  const auto room = static_cast<double>(all.ordered_bytes - all.pareto.back().bytes);
  const int64_t bytes = all.pareto.back().bytes + 4096 + static_cast<int64_t>((1 - part) * room);
  Training training(net);
  auto step = training.compiled(form, rg::MemoryBudget::bytes(bytes));
  step(input_of(net));
  Planned found{step.memory(), {}};
  for (const auto& graph : step.graphs())
    for (const rg::ir::Node& node : graph->nodes())
      ++found.nodes[fmt::format("{} at {}", node.op->name, rg::to_string(node.where))];
  return found;
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t i = text.find(part); i != std::string_view::npos; i = text.find(part, i + 1)) ++count;
  return count;
}

// A report by hand, as of a function whose name is made of signs.
MemoryReport by_hand() {
  MemoryReport report{.budget_bytes = 700, .eager_bytes = 1000, .ordered_bytes = 900, .planned_bytes = 600};
  report.lower_bound_bytes = 100;
  report.recomputed_share = 0.25;
  report.pareto = {{900, 0}, {600, 0.25}, {300, 1}};
  report.certificate.runs.push_back({0, "a<b>&\"c\"", {"model.cc", 3}, {}, {}, {}, {}, 100, 100});
  report.certificate.peak_run = report.certificate.widest_run = 0;
  report.certificate.peak_bytes = report.certificate.lower_bound_bytes = 100;
  return report;
}

}  // namespace

TEST_CASE("a certificate of a real graph holds what it says, and its peak is that of the plan") {
  for (const Net& net : nets())
    for (Form form : kForms) {
      const MemoryReport all = without_copies(net, form);
      for (double part : {0.0, 0.5, 1.0}) {
        INFO(net.name << ", " << (form == Form::step ? "step" : "function") << ", " << part);
        const auto [report, nodes] = planned(net, form, all, part);
        const MemoryCertificate& c = report.certificate;
        CHECK(fault(c) == "");
        CHECK(c.peak_bytes + c.besides_bytes <= report.budget_bytes);
        CHECK(c.lower_bound_bytes + c.besides_bytes == report.lower_bound_bytes);
        if (net.name == "chain") CHECK(c.peak_bytes + c.besides_bytes == report.planned_bytes);
        std::map<std::string, int64_t> runs;
        for (const MemoryCertificate::Run& run : c.runs)
          ++runs[fmt::format("{} at {}", run.op, rg::to_string(run.where))];
        for (const auto& [name, times] : runs) {
          INFO(name);
          REQUIRE(nodes.contains(name));
          CHECK(nodes.at(name) >= times);
        }
        CHECK((part == 0) == (c.runs.size() == at(c.runs.back().task) + 1));
        CHECK(c.text().find(fmt::format("peak of {} bytes, run {}:", c.peak_bytes, c.peak_run)) !=
              std::string::npos);
      }
    }
}

TEST_CASE("a certificate that was changed is refused") {
  const Net net = chain(6, 64, 32);
  const MemoryCertificate c =
      planned(net, Form::function, without_copies(net, Form::function), 0.7).report.certificate;
  REQUIRE(fault(c) == "");
  const auto changed = [&](const auto& change) {
    MemoryCertificate other = c;
    change(other);
    return fault(other);
  };
  for (size_t r = 0; r < c.runs.size(); ++r) {
    INFO("run " << r);
    CHECK(changed([&](auto& o) { o.runs.erase(o.runs.begin() + static_cast<std::ptrdiff_t>(r)); }) != "");
    CHECK(changed([&](auto& o) { ++o.runs[r].scratch_bytes; }) != "");
    CHECK(changed([&](auto& o) { --o.runs[r].held_bytes; }) != "");
  }
  for (size_t v = 0; v < c.values.size(); ++v) {
    INFO("value " << v);
    CHECK(changed([&](auto& o) { ++o.values[v].bytes; }) != "");
  }
  CHECK(changed([](auto& o) { --o.peak_bytes; }) == "another peak");
  CHECK(changed([](auto& o) { o.held.pop_back(); }) == "other values are held at the peak");
  CHECK(changed([](auto& o) { ++o.lower_bound_bytes; }) != "");
}

TEST_CASE("values are those that pass the boundary of a function, or are live at the peak of a step") {
  constexpr int kLayers = 12;
  constexpr int64_t kBytes = 64 * 32 * 4;
  const Net net = chain(kLayers, 64, 32);
  for (Form form : kForms) {
    const MemoryReport loose = without_copies(net, form);
    const auto held = [&](std::string_view op) {
      return std::ranges::count_if(loose.values, [&](const MemoryReport::Value& v) {
        return v.op == op && v.action == Action::saved && v.times == 0;
      });
    };
    // The peak of a step is where the last but one layer's gradients are made: its tanh is gone.
    CHECK(held("tanh") == (form == Form::function ? kLayers : kLayers - 1));
    CHECK(held("mm") == (form == Form::function ? 0 : 2));
    CHECK(held("mean") == 1);
    for (const MemoryReport::Value& v : loose.values) {
      if (v.op == "tanh") {
        CHECK(v.bytes == kBytes);
        CHECK((v.reason == "kept: there is room for all" ||
               v.reason == "kept: it is made together with a result"));
      }
      if (v.op == "mean") CHECK(v.reason == "a result");
    }
    CHECK(std::ranges::count(loose.values, Action::input, &MemoryReport::Value::action) >= kLayers - 1);
    CHECK(std::ranges::is_sorted(loose.values, std::greater(), &MemoryReport::Value::bytes));
  }
}

TEST_CASE("values that are computed again have their times and their share") {
  const Net net = chain(12, 64, 32);
  for (Form form : kForms) {
    const MemoryReport report = planned(net, form, without_copies(net, form), 0.6).report;
    double again = 0;
    for (const MemoryReport::Value& v : report.values) {
      CHECK((v.action == Action::computed_again) == (v.times > 0));
      CHECK(!v.reason.empty());
      again += v.times * v.share;
    }
    CHECK(again ==
          Approx(report.recomputed_share));  // each task of the chain makes one value that costs something
    CHECK(report.recomputed_share > 0);
    const MemoryCertificate& c = report.certificate;
    std::vector<int32_t> times(c.values.size(), -1);
    for (const MemoryCertificate::Run& run : c.runs)
      for (int32_t v : run.makes) ++times[at(v)];
    using Copies = std::multiset<std::tuple<std::string_view, int, int64_t, int32_t>>;
    Copies said, made;
    for (const MemoryReport::Value& v : report.values)
      if (v.times > 0) said.emplace(v.op, v.where.line, v.bytes, v.times);
    for (size_t v = 0; v < times.size(); ++v)
      if (times[v] > 0) made.emplace(c.values[v].op, c.values[v].where.line, c.values[v].bytes, times[v]);
    CHECK(said == made);
  }
}

TEST_CASE("text lists thirty values by falling bytes, and sums up the others") {
  MemoryReport report = by_hand();
  for (int i = 0; i < 40; ++i)
    report.values.push_back({i % 2 ? Action::saved : Action::computed_again,
                             i % 2 ? 0 : 1 + i % 4,
                             "tanh",
                             {"model.cc", i},
                             1000 - i,
                             0.01,
                             "why"});
  report.values.push_back({Action::input, 0, "input", {}, 50, 0, "an input"});
  const std::string text = report.text();
  CHECK(count_of(text, "tanh at model.cc:") == 30);
  CHECK(text.find("1000 bytes  tanh at model.cc:0: computed again, 1.00 % of the time; why\n") !=
        std::string::npos);
  CHECK(text.find("999 bytes  tanh at model.cc:1: saved, 1.00 % of the time; why\n") != std::string::npos);
  CHECK(text.find("998 bytes  tanh at model.cc:2: computed again 3 times, ") != std::string::npos);
  CHECK(text.find("  and 10 more: 9655 bytes\n  inputs, which do not count: 1, 50 bytes\n") !=
        std::string::npos);
}

TEST_CASE("the curve of plans as SVG: a staircase, levels, and the plan that was chosen") {
  const MemoryReport report = by_hand();
  const std::string svg = report.svg();
  CHECK(svg == MemoryReport(report).svg());
  CHECK(svg.starts_with("<svg xmlns"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count_of(svg, "<circle class=\"plan\"") == 3);
  CHECK(count_of(svg, "<circle class=\"eager\"") == 1);
  CHECK(count_of(svg, "<circle class=\"chosen\"") == 1);
  CHECK(count_of(svg, "<path class=\"level\"") == 5);
  // 0 to 100 % is 78 to 810 across, 0 to 1000 bytes 312 to 20 down.
  CHECK(svg.find("<circle class=\"chosen\" cx=\"261.0\" cy=\"136.8\"") != std::string::npos);
  CHECK(svg.find("points=\"78.0,49.2 261.0,49.2 261.0,136.8 810.0,136.8 810.0,224.4 810.0,224.4\"") !=
        std::string::npos);
  CHECK(svg.find("needed by a&lt;b&gt;&amp;&quot;c&quot; at model.cc:3") != std::string::npos);
  MemoryReport wide = report;
  wide.budget_bytes = 1'000'000;
  CHECK(count_of(wide.svg(), "<path class=\"level\"") == 4);
  for (const std::string& text : {svg, MemoryReport().svg()}) {
    CHECK(text.find("nan") == std::string::npos);
    CHECK(text.find("inf") == std::string::npos);
  }
}

TEST_CASE("the curve of plans as JSON") {
  const nlohmann::json json = nlohmann::json::parse(by_hand().json());
  CHECK(json.at("eager_bytes") == 1000);
  CHECK(json.at("lower_bound_bytes") == 100);
  CHECK(json.at("recomputed_share") == 0.25);
  REQUIRE(json.at("pareto").size() == 3);
  CHECK(json.at("pareto")[1] == nlohmann::json{{"bytes", 600}, {"recomputed_share", 0.25}});
  CHECK(nlohmann::json::parse(MemoryReport().json()).at("pareto").empty());
}

TEST_CASE("a page shows the plans of what has a budget") {
  const Net net = chain(6, 64, 32);
  Training training(net);
  auto step = training.compiled(Form::step, rg::MemoryBudget::fraction(0.8));
  step(input_of(net));
  const MemoryReport report = step.memory();
  const auto graph = step.graphs()[0];
  const std::string page = rg::html_page(*graph, nullptr, &report);
  CHECK(page.find("<div class=\"plans\">" + report.svg() + "</div>") != std::string::npos);
  CHECK(rg::html_page(*graph).find("<svg") == std::string::npos);
}

TEST_CASE("a function without operations has a report, and a budget that its cotangent exceeds is an error") {
  const Tensor x = rg::ones({}).requires_grad_();
  const auto same = [](const Tensor& in) { return rg::view(in, {}); };
  auto f = rg::compile(same, {.budget = rg::MemoryBudget::fraction(1)});
  f(x);
  CHECK(f.memory().certificate.runs.empty());
  CHECK(f.memory().certificate.text() == "no runs\n");
  auto none = rg::compile(same, {.budget = rg::MemoryBudget::bytes(0)});
  CHECK_THROWS_AS(none(x), rg::Error);
}
