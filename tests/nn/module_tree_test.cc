// The tree of modules, libtorch's way: registered modules, parameters and buffers, shared children, holders, the
// members that list and visit, names and texts, clone. Declared members are in module_test.cc.
#include <catch2/catch.hpp>

#include <sstream>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using Names = std::vector<std::string>;

namespace {

struct Inner : nn::Module {
  Tensor w, b, count;
  explicit Inner(double value = 1) {
    w = register_parameter("w", rg::full({2}, value));
    b = register_parameter("b", {}, false);
    count = register_buffer("count", rg::zeros({}, {rg::kInt64}));
  }
  Tensor forward(const Tensor& x) const { return x * w; }
  std::unique_ptr<nn::Module> clone() const override { return clone_as<Inner>(); }
};

struct Outer : nn::Module {
  nn::ModuleHolder<Inner> first{nullptr}, second{nullptr};
  nn::Linear declared{this, "declared", 2, 2, {.bias = false}};
  Outer() {
    first = register_module("first", nn::ModuleHolder<Inner>(2.0));
    second = register_module("second", std::make_shared<Inner>(3.0));
  }
  Tensor forward(const Tensor& x) const { return declared(second(first(x))); }
};

// Declared members, and a parameter with two names.
struct Tied : nn::Module {
  nn::Linear in, out;
  nn::Dropout drop{this, "drop"};
  nn::Parameter tied{this, "tied", in.weight};
  explicit Tied(nn::Module* parent = nullptr, std::string name = "", int64_t width = 2)
      : Module(parent, std::move(name)), in(this, "in", width, width), out(this, "out", width, 1) {}
  std::unique_ptr<nn::Module> clone() const override { return clone_as<Tied>(in.weight.size(0)); }
};

std::string text_of(const nn::Module& m) {
  std::ostringstream out;
  out << m;
  return out.str();
}

std::vector<double> values(const Tensor& x) { return x.to_vector(); }

}  // namespace

TEST_CASE("OrderedDict keeps the order of insertion, and has each key once") {
  rg::OrderedDict<std::string, int> dict({{"b", 1}, {"a", 2}});
  CHECK(dict.insert("c", 3) == 3);
  CHECK(dict.keys() == Names{"b", "a", "c"});
  CHECK(dict.values() == std::vector<int>{1, 2, 3});
  CHECK(dict["a"] == 2);
  CHECK(dict[2].key() == "c");
  CHECK(*dict.find("b") == 1);
  CHECK(dict.find("x") == nullptr);
  dict.erase("b");
  CHECK((dict["a"] == 2 && dict["c"] == 3 && dict[0].value() == 2 && !dict.contains("b")));
  CHECK(category_of([&] { dict.insert("a", 0); }) == Category::bad_argument);
  CHECK(category_of([&] { dict["x"]; }) == Category::bad_argument);
  CHECK(category_of([&] { dict.erase("x"); }) == Category::bad_argument);
  CHECK(category_of([&] { dict[2]; }) == Category::index_out_of_range);
  CHECK(category_of([&] { dict.update({{"d", 4}, {"c", 5}}); }) == Category::bad_argument);
  CHECK(dict.size() == 2);
  dict.update({{"d", 4}});
  CHECK(dict.pairs().back() == std::pair<std::string, int>{"d", 4});
  CHECK((dict.front().key() == "a" && dict.back().value() == 4 && !dict.is_empty()));
}

TEST_CASE("registered parameters and buffers are the caller's tensors") {
  Inner m;
  CHECK(m.named_parameters().keys() == Names{"w"});
  CHECK(m.named_buffers().keys() == Names{"count"});
  CHECK(m.w.requires_grad());
  CHECK(m.parameters()[0].is_same(m.w));
  m.to(rg::kFloat64);
  CHECK(m.w.dtype() == rg::kFloat64);
  CHECK(m.count.dtype() == rg::kInt64);
  m.load_state_dict({{"w", rg::full({2}, 7.0)}, {"count", rg::ones({})}});
  CHECK(values(m.forward(rg::ones({2}))) == std::vector<double>{7, 7});
  rg::sum(m.forward(rg::ones({2}))).backward();
  CHECK(m.w.grad().defined());
  m.zero_grad();
  CHECK_FALSE(m.w.grad().defined());

  CHECK(category_of([&] { m.register_parameter("w", rg::ones({1})); }) == Category::bad_argument);
  CHECK(category_of([&] { m.register_parameter("b", rg::ones({1})); }) == Category::bad_argument);
  CHECK(category_of([&] { m.register_buffer("a.b", rg::ones({1})); }) == Category::bad_argument);
  CHECK(category_of([&] { m.register_parameter("n", m.w * 2.0); }) == Category::bad_argument);
  CHECK(category_of([&] { m.register_parameter("i", rg::ones({1}, {rg::kInt64})); }) ==
        Category::requires_grad_forbidden);
  const Tensor& frozen = m.register_parameter("frozen", rg::ones({1}), false);
  CHECK_FALSE(frozen.requires_grad());
  CHECK(m.named_parameters().keys() == Names{"w", "frozen"});
  m.requires_grad_(false);
  CHECK_FALSE(m.w.requires_grad());
}

TEST_CASE("functional_call refuses a tensor of which the module's code has a handle of its own") {
  Outer m;
  std::string text;
  const Tensor x = rg::ones({1, 2});
  CHECK(rg::category_of(
            [&] {
              nn::functional_call(m, {{"first.w", rg::ones({2})}}, x);
            },
            &text) == Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("first.w") && Catch::Contains("nn::Parameter"));
  CHECK(values(nn::functional_call(m, {{"declared.weight", rg::ones({2, 2})}}, x)) ==
        std::vector<double>{12, 12});
  CHECK(category_of([&] { nn::functional_call(m, m.parameters(), x); }) == Category::bad_argument);
}

TEST_CASE("registered children: shared, replaced, removed; names once; no cycles") {
  Outer m;
  CHECK(m.named_parameters().keys() == Names{"declared.weight", "first.w", "second.w"});
  CHECK(m.named_children().keys() == Names{"declared", "first", "second"});
  CHECK(m.parameters(false).empty());
  CHECK(category_of([&] { m.register_module("first", std::make_shared<Inner>()); }) ==
        Category::bad_argument);
  CHECK(category_of([&] { m.register_module("none", std::shared_ptr<Inner>()); }) == Category::bad_argument);
  CHECK(category_of([&] { m.register_module("none", nn::ModuleHolder<Inner>(nullptr)); }) ==
        Category::bad_argument);

  m.second = m.replace_module("second", std::make_shared<Inner>(5.0));
  CHECK(values(m.named_parameters()["second.w"]) == std::vector<double>{5, 5});
  m.unregister_module("first");
  m.unregister_module("declared");
  CHECK(m.named_children().keys() == Names{"second"});
  CHECK(category_of([&] { m.unregister_module("first"); }) == Category::bad_argument);
  CHECK(category_of([&] { m.replace_module("first", std::make_shared<Inner>()); }) == Category::bad_argument);

  const auto a = std::make_shared<nn::Module>(), b = std::make_shared<nn::Module>();
  a->register_module("b", b);
  CHECK(category_of([&] { b->register_module("a", a); }) == Category::bad_argument);
  CHECK(category_of([&] { a->register_module("a", a); }) == Category::bad_argument);
  CHECK(a->modules().size() == 2);
}

TEST_CASE("a module with two parents: one parameter, two names in the state; train and to reach it") {
  const auto shared = std::make_shared<Inner>(4.0);
  nn::Module root;
  const auto left = root.register_module("left", std::make_shared<nn::Module>());
  const auto right = root.register_module("right", std::make_shared<nn::Module>());
  left->register_module("x", shared);
  right->register_module("y", shared);
  CHECK(root.named_parameters().keys() == Names{"left.x.w"});
  CHECK(root.parameter_count() == 2);
  CHECK(root.modules().size() == 4);
  CHECK(root.named_modules("net").keys() == Names{"net", "net.left", "net.left.x", "net.right"});
  CHECK(root.named_modules("", false).keys() == Names{"left", "left.x", "right"});
  const rg::StateDict state = root.state_dict();
  CHECK((state.size() == 4 && state.contains("left.x.w") && state.contains("right.y.w")));
  root.load_state_dict(state);
  root.eval();
  CHECK_FALSE(shared->is_training());
  root.to(rg::kFloat64);
  CHECK(shared->w.dtype() == rg::kFloat64);

  Tied tied;
  CHECK(tied.named_parameters().keys() == Names{"tied", "in.bias", "out.weight", "out.bias"});
  const Tensor ones = rg::ones({2, 2});
  CHECK(category_of([&] {
          nn::functional_call(tied.in, {{"weight", ones}, {"bias", Tensor()}}, ones);
        }) == Category::bad_argument);
}

TEST_CASE("functional_call replaces a tensor under all its names, and refuses two values for one") {
  struct Twice : nn::Module {
    nn::Parameter a{this, "a", rg::ones({})}, b{this, "b", a};
    Tensor forward(const Tensor& x) const { return x * a * b; }
  } m;
  const Tensor x = rg::ones({}), three = rg::full({}, 3.0);
  CHECK(nn::functional_call(m, {{"a", three}}, x).item<double>() == 9);
  CHECK(nn::functional_call(m, Tensors{three}, x).item<double>() == 9);
  CHECK(nn::functional_call(m, {{"a", three}, {"b", three}}, x).item<double>() == 9);
  CHECK(category_of([&] { nn::functional_call(m, {{"a", three}, {"b", x}}, x); }) == Category::bad_argument);
  CHECK(m.forward(x).item<double>() == 1);
}

TEST_CASE("pointers to modules share what is shared") {
  auto m = std::make_shared<Outer>();
  std::vector<std::shared_ptr<nn::Module>> all = m->modules();
  REQUIRE(all.size() == 4);
  CHECK(all[0] == m);
  CHECK(all[1].get() == &m->declared);
  CHECK(all[2] == m->first.ptr());
  const std::shared_ptr<nn::Module> declared = all[1];
  all.clear();
  const std::weak_ptr<Outer> weak = m;
  m.reset();
  CHECK_FALSE(weak.expired());
  CHECK(declared->named_parameters().keys() == Names{"weight"});

  const Outer local;
  CHECK(local.modules()[0].get() == &local);
  CHECK(local.children()[0]->as<nn::Linear>() == &local.declared);
}

TEST_CASE("apply visits every module once, parents first") {
  Outer m;
  Names names;
  m.apply([&](const std::string& name, nn::Module&) { names.push_back(name); });
  CHECK(names == Names{"", "declared", "first", "second"});
  int inner = 0;
  m.apply([&](nn::Module& module) { inner += module.as<Inner>() != nullptr; });
  m.apply([&](const std::shared_ptr<nn::Module>& module) {
    inner += module->as<nn::ModuleHolder<Inner>>() != nullptr;
  });
  static_cast<const Outer&>(m).apply(
      [&](const nn::Module& module) { inner += module.as<Inner>() != nullptr; });
  CHECK(inner == 6);
}

TEST_CASE("holders make, share and call a module") {
  nn::ModuleHolder<nn::Linear> linear(2, 3);
  const nn::ModuleHolder<nn::Linear> same = linear;
  CHECK(same.get() == linear.get());
  CHECK(linear->weight.sizes() == rg::IntArray{3, 2});
  const Tensor x = rg::ones({1, 2});
  CHECK(values(linear(x)) == values(linear->forward(x)));
  int calls = 0;
  linear->register_forward_hook([&](nn::Module&, const Tensors&, const Tensor&) { ++calls; });
  linear(x);
  CHECK(calls == 1);
  std::string text;
  CHECK(rg::category_of([&] { linear(rg::ones({4, 4})); }, &text) == Category::shape_mismatch);
  CHECK_THAT(text, Catch::Contains("module_tree_test.cc:" + std::to_string(__LINE__ - 1)));

  nn::ModuleHolder<Inner> empty{nullptr};
  CHECK((empty.is_empty() && !empty));
  CHECK(category_of([&] { empty->parameters(); }) == Category::bad_argument);
  CHECK(category_of([&] { empty(x); }) == Category::bad_argument);
  empty = std::make_shared<Inner>(6.0);
  CHECK(values(empty(rg::ones({2}))) == std::vector<double>{6, 6});
  CHECK(values(nn::ModuleHolder<Inner>()->w) == std::vector<double>{1, 1});
}

TEST_CASE("names and texts") {
  CHECK(Outer().name() == "Outer");
  CHECK(nn::Module("net").name() == "net");
  nn::ModuleList<Inner> list;
  list.emplace_back(1.0);
  CHECK(text_of(list) == "ModuleList(\n  (0): Inner()\n)");
  nn::Module root("Root");
  const auto body = root.register_module("body", std::make_shared<nn::Module>("Body"));
  body->register_module("a", std::make_shared<Inner>());
  root.register_module("b", std::make_shared<Inner>());
  CHECK(text_of(root) == "Root(\n  (body): Body(\n    (a): Inner()\n  )\n  (b): Inner()\n)");
}

TEST_CASE("clone copies values, modes and ties, and draws nothing") {
  Tied m(nullptr, "", 3);
  m.eval();
  m.drop.train();
  m.out.requires_grad_(false);
  m.to(rg::kFloat64);
  const rg::GeneratorState before = rg::default_generator().state();
  const std::unique_ptr<nn::Module> clone = m.clone();
  CHECK(rg::default_generator().state() == before);
  Tied& copy = *clone->as<Tied>();
  CHECK(values(copy.in.weight) == values(m.in.weight));
  CHECK(copy.in.weight.raw_data() != m.in.weight.raw_data());
  CHECK(copy.tied.is_same(copy.in.weight));
  CHECK(copy.in.weight.dtype() == rg::kFloat64);
  CHECK((copy.in.weight.requires_grad() && !copy.out.weight.requires_grad()));
  CHECK((!copy.is_training() && copy.drop.is_training()));

  const std::unique_ptr<nn::Module> inner = Inner(8.0).clone();
  CHECK(values(inner->as<Inner>()->forward(rg::ones({2}))) == std::vector<double>{8, 8});
  std::string text;
  CHECK(rg::category_of([] { Outer().clone(); }, &text) == Category::unsupported);
  CHECK_THAT(text, Catch::Contains("Outer") && Catch::Contains("clone_as"));
  m.register_module("added", std::make_shared<Inner>());
  CHECK(category_of([&] { m.clone(); }) == Category::unsupported);
}

TEST_CASE(
    "a module of registered members is copied like libtorch's, sharing them; one of declared members is "
    "not") {
  Inner a(2.0);
  const Inner b = a;
  CHECK(b.parameters()[0].is_same(a.w));
  CHECK(b.named_buffers().keys() == Names{"count"});
  const Outer declared;
  CHECK(category_of([&] { nn::Module copy(declared); }) == Category::unsupported);
}

TEST_CASE("a list of modules: any modules, inserted, extended, copied") {
  nn::ModuleList<> list;
  list.emplace_back<Inner>(1.0);
  list.push_back(std::make_shared<Inner>(3.0));
  list.insert(1, nn::ModuleHolder<Inner>(2.0));
  CHECK(list.named_parameters().keys() == Names{"0.w", "1.w", "2.w"});
  double all = 0;
  for (const auto& module : list) all = 10 * all + module->as<Inner>()->w.to_vector()[0];
  CHECK(all == 123);
  CHECK(values(list.named_parameters()["1.w"]) == std::vector<double>{2, 2});
  nn::ModuleList<> more;
  more.extend(list);
  more.extend(list);
  CHECK((more.size() == 6 && more.parameters().size() == 3));
  CHECK(more.ptr<Inner>(5) == list.ptr(2));
  CHECK(category_of([&] { more.at<nn::Linear>(0); }) == Category::bad_argument);
  CHECK(category_of([&] { list.insert(5, std::make_shared<Inner>()); }) == Category::index_out_of_range);

  const auto copy = more.clone();
  CHECK(copy->as<nn::ModuleList<>>()->size() == 6);
  CHECK(copy->state_dict().size() == more.state_dict().size());
}
