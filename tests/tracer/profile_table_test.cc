// The table and the chart of a profile: tracer/observe/profile_table.cc, tracer/observe/memory_chart.cc,
// tracer/observe/work.h. Not tested here: the content of a profile (profile_test.cc), the chart's appearance.
#include <catch2/catch.hpp>

#include <sstream>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Profile;
using rg::ProfileScope;
using rg::Tensor;

namespace {

// The row of a kind: its cells, or none.
std::vector<std::string> row(const std::string& table, const std::string& kind) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string word; words >> word;) cells.push_back(word);
    if (!cells.empty() && cells[0] == kind) return cells;
  }
  return {};
}

// Bytes and operations of the last call that f makes.
template <class F>
rg::Work work_of(const F& f) {
  Profile profile;
  {
    ProfileScope scope(profile);
    f();
  }
  REQUIRE(!profile.calls().empty());
  return profile.calls().back().work;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("work is bytes of operands and results, and what products compute") {
  const Tensor a = rg::ones({3, 4}), b = rg::ones({4, 5}), w = rg::ones({5, 4}), bias = rg::ones({5});
  const auto is = [](const rg::Work& work, double bytes, double flops) {
    CHECK(work.bytes == bytes);
    CHECK(work.flops == flops);
  };
  is(work_of([&] { rg::mm(a, b); }), 4 * (12 + 20 + 15), 2 * 3 * 4 * 5);
  is(work_of([&] { rg::linear(a, w, bias); }), 4 * (12 + 20 + 5 + 15), 2 * 3 * 4 * 5);
  is(work_of([&] { rg::linear(a, w); }), 4 * (12 + 20 + 15), 2 * 3 * 4 * 5);
  is(work_of([&] { rg::addmm(rg::ones({3, 5}), a, b); }), 4 * (15 + 12 + 20 + 15), 2 * 3 * 4 * 5);
  is(work_of([&] { rg::exp(a); }), 4 * 24, 0);
  is(work_of([&] { rg::to(a, rg::kFloat64); }), 12 * (4 + 8), 0);
  is(work_of([&] { rg::t(a); }), 0, 0);
  const Tensor x = rg::ones({2, 6, 7, 7}), k = rg::ones({8, 3, 3, 3});
  is(work_of([&] { rg::conv2d(x, k, {}, 1, 0, 1, 2); }), 4. * (2 * 6 * 49 + 8 * 27 + 2 * 8 * 25),
     2. * (2 * 8 * 25) * 27);
  const Tensor q = rg::ones({2, 3, 4}), keys = rg::ones({2, 5, 4}), values = rg::ones({2, 5, 6});
  CHECK(work_of([&] { rg::scaled_dot_product_attention(q, keys, values); }).flops ==
        2. * 2 * 3 * 5 * (4 + 6));
}

TEST_CASE("a table has a row for each kind, eager and traced alike") {
  const Tensor x = rg::ones({16, 8}), w = rg::ones({4, 8}).requires_grad_();
  const auto loss = [&] { return rg::sum(rg::exp(rg::linear(x, w))); };
  rg::CompiledBackward backward = rg::compile_backward();
  for (const bool traced : {false, true}) {
    Profile profile;
    {
      ProfileScope scope(profile);
      for (int i = 0; i < 3; ++i) traced ? backward(loss()) : loss().backward();
    }
    const std::string table = profile.table();
    CHECK(row(table, "linear").at(1) == "3");
    CHECK(row(table, "exp").at(1) == "3");
    CHECK(row(table, "mm").at(1) == "3");
    CHECK(row(table, "mm").back() != "-");  // operations a second
    CHECK(row(table, "exp").back() == "-");
    CHECK(row(table, "all").at(5) == "%");
    CHECK(row(table, "bmm").empty());
  }
}

TEST_CASE("sizes are those of a run, not of the capture") {
  const Tensor w = rg::ones({4, 8}).requires_grad_();
  rg::CompiledBackward backward = rg::compile_backward();
  for (const int64_t rows : {50, 5000}) {
    const Tensor loss = rg::sum(rg::linear(rg::ones({rows, 8}), w));
    Profile profile;
    {
      ProfileScope scope(profile);
      backward(loss);
    }
    REQUIRE(backward.stats().captures == 1);
    const Profile::Run& run = profile.runs().at(0);
    bool found = false;
    for (const rg::ir::Node& node : run.graph->nodes())
      for (int i = 0; i < node.results; ++i)
        for (const rg::Dim d : run.graph->type(node.first_result + i).shape)
          found |= d.is_symbolic() && run.numbers.at(static_cast<size_t>(d.id())).i == rows;
    CHECK(found);
  }
}

TEST_CASE("a region is a call whose own time is what its calls leave") {
  Profile profile;
  const Tensor x = rg::ones({1000});
  {
    ProfileScope scope(profile);
    rg::ProfileRegion region("region");
    rg::exp(x);
    rg::exp(x);
  }
  rg::ProfileRegion unseen("unseen");
  REQUIRE(profile.calls().size() == 3);
  const Profile::Call& call = profile.calls().back();
  CHECK(call.op == "region");
  CHECK(call.record == Profile::kNoRecord);
  CHECK(call.where.line > 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(call.begin <= profile.calls()[static_cast<size_t>(i)].begin);
    CHECK(call.end >= profile.calls()[static_cast<size_t>(i)].end);
  }
  CHECK(row(profile.table(), "region").at(1) == "1");
  CHECK(row(profile.table(), "exp").at(1) == "2");
  const double sum = std::stod(row(profile.table(), "all").at(2));
  CHECK(sum == Approx(static_cast<double>(call.end - call.begin) * 1e-6).margin(2e-3));
}

TEST_CASE("the chart of live memory is one SVG with the peak and each backward") {
  const Tensor w = rg::ones({100, 100}).requires_grad_();
  rg::CompiledBackward backward = rg::compile_backward();
  Profile profile;
  CHECK(profile.memory_svg().find("</svg>") != std::string::npos);  // of nothing
  {
    ProfileScope scope(profile);
    for (int i = 0; i < 2; ++i) backward(rg::sum(rg::exp(rg::mm(w, w))));
  }
  const std::string svg = profile.memory_svg();
  CHECK(svg.starts_with("<svg xmlns"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<title>backward, ") == 2);
  CHECK(count(svg, "peak ") == 1);
  CHECK(count(svg, "<polyline") == 1);
  CHECK(svg.find("nan") == svg.npos);
  CHECK(svg.find("inf") == svg.npos);
}
