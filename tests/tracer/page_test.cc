// The web page of a captured graph: tracer/observe/page.h. The test checks the content of the page, by reading its
// tags. Not tested here: its script and its appearance.
#include <catch2/catch.hpp>

#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "retrograd/retrograd.h"
#include "tracer/observe/page.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string body_of(const std::string& page) {
  const size_t begin = page.find("<body>"), end = page.find("<script>");
  REQUIRE(begin < end);
  return page.substr(begin, end - begin);
}

struct Tag {
  std::string name;  // "/tr" where it closes
  std::map<std::string, std::string> attributes;
  bool closes_itself = false;
};

std::vector<Tag> tags_of(const std::string& html) {
  std::vector<Tag> tags;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at)) {
    const size_t end = html.find('>', at);
    REQUIRE(end != std::string::npos);
    std::string text = html.substr(at + 1, end - at - 1);
    at = end;
    Tag tag;
    tag.closes_itself = text.ends_with('/');
    tag.name = text.substr(0, text.find_first_of(" /", 1));
    for (size_t quote; (quote = text.find("=\"")) != std::string::npos;) {
      const size_t blank = text.rfind(' ', quote), close = text.find('"', quote + 2);
      REQUIRE(close != std::string::npos);
      tag.attributes[text.substr(blank + 1, quote - blank - 1)] = text.substr(quote + 2, close - quote - 2);
      text.erase(0, close + 1);
    }
    tags.push_back(std::move(tag));
  }
  return tags;
}

// Each element that is opened is closed, inner ones first.
bool is_balanced(const std::string& html) {
  std::vector<std::string> open;
  for (const Tag& tag : tags_of(html)) {
    if (tag.name == "!DOCTYPE" || tag.name == "meta" || tag.closes_itself) continue;
    if (tag.name[0] != '/') {
      open.push_back(tag.name);
      continue;
    }
    if (open.empty() || "/" + open.back() != tag.name) return false;
    open.pop_back();
  }
  return open.empty();
}

struct Row {
  std::vector<std::string> makes, uses;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::vector<Row> rows_of(const std::string& page) {
  std::vector<Row> rows;
  for (const Tag& tag : tags_of(page)) {
    if (tag.name != "tr") continue;
    REQUIRE(tag.attributes.at("data-n") == std::to_string(rows.size()));
    rows.push_back({words(tag.attributes.at("data-m")), words(tag.attributes.at("data-u"))});
  }
  return rows;
}

// All names in attributes.
std::set<std::string> names_in(const std::string& page, const std::string& attribute) {
  std::set<std::string> found;
  for (const Tag& tag : tags_of(page))
    if (const auto it = tag.attributes.find(attribute); it != tag.attributes.end())
      for (const std::string& word : words(it->second)) found.insert(word);
  return found;
}

// With unpacks of packed and plain slots, hooks on a tensor, a record and a leaf.
struct Example {
  Tensor w = rg::full({3, 2}, 0.1).requires_grad_();
  rg::CompiledBackward backward = rg::compile_backward();

  void step() {
    rg::SavedTensorHooksGuard half([](const Tensor& t) { return t.to(rg::kFloat16); },
                                   [](const Tensor& t) { return t.to(rg::kFloat32); });
    const Tensor y = rg::mm(rg::full({4, 3}, 0.5), w);
    y.register_hook([](const Tensor& g) { return g * 0.5; });
    y.grad_fn().register_hook([](const rg::Tensors& grads, const rg::Tensors&) { return grads; });
    backward(rg::sum(y * y));
  }
};

}  // namespace

TEST_CASE("a page needs nothing but itself") {
  Example example;
  example.step();
  const std::string page = rg::html_page(*example.backward.graph());
  for (const char* part : {"http:", "https:", "src=", "href=", "@import", "url("})
    CHECK(page.find(part) == std::string::npos);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(is_balanced(page.substr(0, page.find("<style>")) + "</head>" + body_of(page) + "</body></html>"));
}

TEST_CASE("a page says of each input what it is") {
  const rg::ir::Graph graph = rg::ir::parse(
      R"(graph @all(%0: f32[2], !1: slot f32[2], @2: leaf f32[2], $3: hook, &4: box f32[2], ^5: function, *6: pair, ~7: code) {
  return %0
})",
      rg::ops::find_op);
  const std::string page = body_of(rg::html_page(graph));
  const std::string words[] = {"tensor f32[2]", "slot f32[2]", "leaf f32[2]", "hook", "box f32[2]", "function", "pair", "code"};
  for (const std::string& word : words) CHECK(page.find("</b>: " + word + "</code>") != std::string::npos);
}

TEST_CASE("a page has a row for each node, with what it makes and uses") {
  Example example;
  example.step();
  const rg::ir::Graph& graph = *example.backward.graph();
  const std::string page = rg::html_page(graph);
  const std::vector<Row> rows = rows_of(body_of(page));
  REQUIRE(rows.size() == graph.nodes().size());
  for (size_t n = 0; n < rows.size(); ++n) {
    const rg::ir::Node& node = graph.nodes()[n];
    std::vector<std::string> makes, uses;
    for (int i = 0; i < node.results; ++i) makes.push_back("%" + std::to_string(node.first_result + i));
    for (rg::ir::ValueId v : graph.operands(node))
      if (v != rg::ir::kNoValue) uses.push_back("%" + std::to_string(v));
    CHECK(rows[n].makes == makes);
    if (node.handle >= 0) {
      REQUIRE(!rows[n].uses.empty());
      CHECK(rows[n].uses[0].substr(1) == graph.name_of(graph.inputs()[static_cast<size_t>(node.handle)]));
      uses.insert(uses.begin(), rows[n].uses[0]);
    }
    CHECK(rows[n].uses == uses);
  }
}

TEST_CASE("every name that a page shows is made somewhere on it") {
  Example example;
  example.step();
  const std::string page = body_of(rg::html_page(*example.backward.graph()));
  const auto made = names_in(page, "data-m"), used = names_in(page, "data-u"),
             shown = names_in(page, "data-v");
  for (const std::string& name : used) CHECK(made.contains(name));
  CHECK(shown == made);
}

TEST_CASE("unpacks, hooks and leaves are marked") {
  Example example;
  example.step();
  const std::string page = rg::html_page(*example.backward.graph());
  CHECK(count_of(page, "<span class=\"kind unpack\">unpack</span>") == 3);
  CHECK(count_of(page, "<span class=\"kind hook\">hook</span>") == 2);
  CHECK(count_of(page, "<span class=\"kind leaf\">leaf</span>") == 1);
  CHECK(page.find("s0 = 4, s1 = 2, s2 = 3; 1 != s0") != std::string::npos);
  CHECK(page.find("mul#1 rule") != std::string::npos);
  CHECK(page.find("page_test.cc:") != std::string::npos);
}

TEST_CASE("code of a recorded function is marked as what it is") {
  auto f = rg::compile([](const Tensor& x) { return rg::sum(rg::exp(x)); });
  const Tensor x = rg::ones({2}).requires_grad_();
  {
    const auto identity = [](const Tensor& t) { return t; };
    rg::SavedTensorHooksGuard pair(rg::saved_tensor_hooks(identity, identity));
    f(x).backward();
  }
  CHECK(count_of(rg::html_page(*f.graph()), "<span class=\"kind hook\">hook</span>") == 1);
  CHECK(count_of(rg::html_page(*f.backward_graph()), "<span class=\"kind unpack\">unpack</span>") == 1);
}

TEST_CASE("without a profile of the graph a page has no times") {
  Example example, other;
  example.step();
  rg::Profile profile;
  {
    rg::ProfileScope scope(profile);
    other.step();
  }
  const std::string page = rg::html_page(*example.backward.graph());
  CHECK(page.find("<svg") == std::string::npos);
  CHECK(page.find("class=\"time\"") == std::string::npos);
  CHECK(rg::html_page(*example.backward.graph(), &profile) == page);
}

TEST_CASE("with a profile each node has its time, and live bytes are drawn") {
  Example example;
  rg::Profile profile;
  {
    rg::ProfileScope scope(profile);
    for (int step = 0; step < 3; ++step) example.step();
  }
  const rg::ir::Graph& graph = *example.backward.graph();
  const std::string page = rg::html_page(graph, &profile);
  const size_t nodes = graph.nodes().size(), steps = profile.runs().back().steps.size();
  CHECK(count_of(page, "<td class=\"time\"") == nodes);
  CHECK(count_of(page, "<td class=\"bar\"") == nodes);
  CHECK(page.find("3 runs, ") != std::string::npos);
  CHECK(is_balanced(body_of(page) + "</body>"));
  const auto tags = tags_of(body_of(page));
  const auto curve = std::ranges::find(tags, "polyline", &Tag::name);
  REQUIRE(curve != tags.end());
  const auto points = words(curve->attributes.at("points"));
  CHECK(points.size() == 2 * steps + 1);
  double before = -1;
  for (const std::string& point : points) {
    const double x = std::stod(point), y = std::stod(point.substr(point.find(',') + 1));
    CHECK(x >= before);
    CHECK(x <= 1000);
    CHECK(y >= 0);
    CHECK(y <= 90);
    before = x;
  }
  CHECK(count_of(page, "<rect data-n=") == steps);
}

TEST_CASE("an unpack that is folded into the next node says so") {
  const Tensor x = rg::full({8}, 0.5).requires_grad_();
  rg::CompiledBackward backward = rg::compile_backward();
  rg::Profile profile;
  {
    rg::ProfileScope scope(profile);
    backward(rg::sum(rg::exp(x * x) * x));
  }
  std::set<uint32_t> seen;
  for (const rg::Profile::Step& s : profile.runs().at(0).steps)
    if (!s.frees) seen.insert(s.node);
  const std::string page = rg::html_page(*backward.graph(), &profile);
  CHECK(count_of(page, "<td class=\"time\">in next</td>") == backward.graph()->nodes().size() - seen.size());
}

TEST_CASE("signs in texts are no tags, and those of expressions no names") {
  rg::ir::Graph graph = rg::ir::parse(R"(graph @backward[s0 = 6](%0: f32[s0], !1: slot f32[(s0%4)]) {
  %1 = neg %0 : f32[s0]
  %2 = unpack !1 : f32[(s0%4)]
  return %1, %2
}
)",
                                      rg::ops::find_op);
  graph.name = "a<b>&\"c\"";
  const std::string page = body_of(rg::html_page(graph));
  CHECK(page.find("a&lt;b&gt;&amp;&quot;c&quot;") != std::string::npos);
  CHECK(page.find("(s0%4)") != std::string::npos);
  CHECK(names_in(page, "data-v") == std::set<std::string>{"%0", "!1", "%1", "%2"});
}
