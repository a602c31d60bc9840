// Containers: Sequential, ModuleDict, ParameterList, ParameterDict; AnyModule; Identity, Flatten, Unflatten,
// Functional. ModuleList is in module_tree_test.cc.
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

// A class of a user, without a parent; a value like any other.
struct Twice : nn::Module {
  Tensor forward(Tensor x) { return x * 2.0; }
};

struct Scale : nn::Module {
  nn::Parameter w;
  Scale(nn::Module* parent, std::string name, double value)
      : Module(parent, std::move(name)), w(this, "w", rg::full({}, value)) {}
  Tensor forward(rg::Operand x) const { return x.tensor() * w; }
  std::unique_ptr<nn::Module> clone() const override { return clone_as<Scale>(w.item<double>()); }
};

struct Mix : nn::Module {
  Tensor forward(const Tensor& a, const Tensor& b, double share) { return a * share + b * (1.0 - share); }
};

struct Halves : nn::Module {
  struct Output {
    Tensor low, high;
  };
  Output forward(const Tensor& x) const {
    const Tensors parts = rg::chunk(x, 2);
    return {parts[0], parts[1]};
  }
};

struct SumOfHalves : nn::Module {
  Tensor forward(const Halves::Output& halves, std::optional<Tensor> more) const {
    const Tensor sum = halves.low + halves.high;
    return more ? sum + *more : sum;
  }
};

struct SumOfOutput : nn::Module {
  Tensor forward(const Halves::Output& halves) const { return halves.low + halves.high; }
};

std::string text_of(const nn::Module& m) {
  std::ostringstream out;
  out << m;
  return out.str();
}

std::vector<double> values(const Tensor& x) { return x.to_vector(); }
using Values = std::vector<double>;

}  // namespace

TEST_CASE("AnyModule calls modules of all classes, with hooks") {
  const Tensor x = rg::ones({2});
  nn::AnyModule any(std::make_shared<Twice>());
  CHECK(values(any.forward(x)) == Values{2, 2});
  int calls = 0;
  any.ptr()->register_forward_hook([&](nn::Module&, const Tensors&, const Tensor&) { ++calls; });
  any.forward(x);
  CHECK(calls == 1);
  CHECK(&any.get<Twice>() == any.ptr().get());
  CHECK(any.type_info() == typeid(Twice));
  CHECK(category_of([&] { any.get<Mix>(); }) == Category::bad_argument);

  CHECK(values(nn::AnyModule(Twice()).forward(x)) == Values{2, 2});
  CHECK(values(nn::AnyModule(nn::ModuleHolder<Scale>(3.0)).forward(x)) == Values{3, 3});
  CHECK(values(nn::AnyModule(std::make_unique<Mix>()).forward(x, x * 3.0, 0.5)) == Values{2, 2});
  CHECK(values(nn::AnyModule(Halves()).forward<Halves::Output>(rg::arange(4.0)).high) == Values{2, 3});
  CHECK(nn::AnyModule().is_empty());
  CHECK(category_of([] { nn::AnyModule().forward(1.0); }) == Category::bad_argument);
  CHECK(category_of([] { nn::AnyModule(nn::ModuleHolder<Scale>(nullptr)); }) == Category::bad_argument);
  CHECK(values(nn::AnyModule(nn::ModuleHolder<Scale>(3.0)).clone().forward(x)) == Values{3, 3});
}

TEST_CASE("arguments and results that do not fit are errors that name the module") {
  const Tensor x = rg::ones({2});
  std::string text;
  const nn::AnyModule mix(std::make_shared<Mix>()), halves(std::make_shared<Halves>());
  CHECK(rg::category_of([&] { mix.forward(x, x); }, &text) == Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("Mix") && Catch::Contains("2 arguments (Tensor, Tensor)"));
  CHECK(rg::category_of([&] { mix.forward(x, x, 1); }, &text) == Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("argument 2") && Catch::Contains("double"));
  CHECK(rg::category_of([&] { halves.forward(x); }, &text) == Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("Output"));
  CHECK(category_of([&] { halves.forward(1.0); }) == Category::bad_argument);
}

TEST_CASE("Sequential calls its modules in order; keys are numbers") {
  nn::Sequential body;
  nn::Linear& fc = body.emplace_back<nn::Linear>(2, 3);
  body.emplace_back<nn::ReLU>();
  body.push_back(std::make_shared<Twice>());
  body.push_back(nn::ModuleHolder<Scale>(0.5));
  body.push_back(Twice());
  const Tensor x = rg::ones({4, 2});
  CHECK(values(body(x)) == values(rg::relu(fc(x)) * 2.0));
  CHECK(values(body.forward(x)) == values(body(x)));
  const rg::StateDict state = body.state_dict();
  CHECK(
      (state.size() == 3 && state.contains("0.weight") && state.contains("0.bias") && state.contains("3.w")));
  CHECK(body.size() == 5);
  CHECK(body.ptr<nn::Linear>(0).get() == &fc);
  CHECK(body[1]->as<nn::ReLU>() != nullptr);
  CHECK(&body.at<nn::Linear>(0) == &fc);
  CHECK(category_of([&] { body.at<nn::ReLU>(0); }) == Category::bad_argument);
  CHECK(category_of([&] { body.ptr(5); }) == Category::index_out_of_range);
  size_t twice = 0;
  for (const nn::AnyModule& m : body) twice += m.ptr()->as<Twice>() != nullptr;
  CHECK(twice == 2);
  std::string error;
  CHECK(rg::category_of([&] { body(rg::ones({5, 5})); }, &error) == Category::shape_mismatch);
  CHECK_THAT(error, Catch::Contains("containers_test.cc:" + std::to_string(__LINE__ - 1)));
  CHECK(category_of([&] { nn::Sequential()(x); }) == Category::bad_argument);

  body.eval();
  CHECK_FALSE(body[2]->is_training());
  nn::Sequential more;
  more.extend(body);
  more.extend(std::vector{std::make_shared<Twice>()});
  CHECK(values(more(x)) == values(body(x) * 2.0));
}

TEST_CASE("Sequential: names, a parent, nesting, texts, hooks on inner modules") {
  struct Net : nn::Module {
    nn::Sequential body{this, "body", {{"first", nn::ModuleHolder<Scale>(2.0)}, Twice()}};
    Tensor forward(const Tensor& x) const { return body(x); }
  } net;
  CHECK(net.named_parameters().keys() == Names{"body.first.w"});
  CHECK(net.body.named_children().keys() == Names{"first", "1"});
  CHECK(category_of([&] { net.body.push_back("first", Twice()); }) == Category::bad_argument);
  net.body.push_back("inner", std::make_shared<nn::Sequential>());
  net.body.ptr<nn::Sequential>(2)->push_back(Twice());
  CHECK(values(net.forward(rg::ones({1}))) == Values{8});
  CHECK(text_of(net) ==
        "Net(\n  (body): Sequential(\n    (first): Scale()\n    (1): Twice()\n    (inner): Sequential(\n     "
        " (0): "
        "Twice()\n    )\n  )\n)");
  net.body[1]->register_forward_hook(
      [](nn::Module&, const Tensors&, const Tensor& out) { return out + 1.0; });
  CHECK(values(net.forward(rg::ones({1}))) == Values{10});
}

TEST_CASE("Sequential: several inputs to the first, other results between and at the end") {
  const Tensor x = rg::ones({2});
  nn::Sequential mixes;
  mixes.emplace_back<Mix>();
  mixes.emplace_back<Twice>();
  CHECK(values(mixes.forward(x, x * 3.0, 0.5)) == Values{4, 4});
  CHECK(values(mixes(x, x * 3.0, 0.5)) == Values{4, 4});
  nn::Sequential halves;
  halves.emplace_back<Halves>();
  CHECK(values(halves.forward<Halves::Output>(rg::arange(4.0)).low) == Values{0, 1});
  halves.emplace_back<SumOfOutput>();
  CHECK(values(halves(rg::arange(4.0))) == Values{2, 4});
  nn::Sequential from;
  from.emplace_back<SumOfHalves>();
  CHECK(values(from.forward(Halves::Output{x, x}, x)) == Values{3, 3});
  CHECK(values(from.forward(Halves::Output{x, x}, std::optional<Tensor>())) == Values{2, 2});
  CHECK(category_of([&] { from(x); }) == Category::bad_argument);
}

TEST_CASE("Sequential trains in compiled steps as eagerly") {
  nn::Sequential eager, recorded;
  for (nn::Sequential* net : {&eager, &recorded}) {
    rg::manual_seed(1);
    net->emplace_back<nn::Linear>(3, 4);
    net->emplace_back<nn::ReLU>();
    net->emplace_back<nn::Linear>(4, 1);
  }
  const auto step = [](nn::Sequential& net, const Tensor& x) {
    const Tensor loss = rg::mean(rg::square(net(x)));
    loss.backward();
    return loss;
  };
  auto compiled = rg::compile_step([&](const Tensor& x) { return step(recorded, x); });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = rg::randn({2, 3});
    CHECK(values(step(eager, x)) == values(compiled(x)));
    for (size_t p = 0; p < 4; ++p)
      CHECK(values(eager.parameters()[p].grad()) == values(recorded.parameters()[p].grad()));
  }
}

TEST_CASE("clone of a Sequential has the same module twice where the original has") {
  nn::Sequential body;
  const auto twice = std::make_shared<Scale>(nullptr, "", 3.0);
  body.push_back("a", twice), body.push_back("b", twice), body.emplace_back<Scale>(2.0);
  const std::unique_ptr<nn::Module> clone = body.clone();
  nn::Sequential& copy = *clone->as<nn::Sequential>();
  CHECK(copy.named_children().keys() == Names{"a", "b", "2"});
  CHECK((copy[0] == copy[1] && copy[0] != body[0]));
  twice->w.detach().fill_(0.0);
  CHECK(values(copy(rg::ones({1}))) == Values{18});
}

TEST_CASE("ModuleDict") {
  nn::ModuleDict dict;
  Scale& a = dict.emplace<Scale>("a", 2.0);
  dict.insert("b", nn::ModuleHolder<Scale>(3.0));
  CHECK(dict.keys() == Names{"a", "b"});
  CHECK(dict["a"].get() == &a);
  CHECK(values(dict.at<Scale>("b").forward(rg::ones({1}))) == Values{3});
  CHECK(dict.named_parameters().keys() == Names{"a.w", "b.w"});
  CHECK(category_of([&] { dict.emplace<Scale>("a", 1.0); }) == Category::bad_argument);
  CHECK(category_of([&] { dict["c"]; }) == Category::bad_argument);
  CHECK(category_of([&] { dict.at<Twice>("a"); }) == Category::bad_argument);
  const auto copy = dict.clone();
  CHECK(values(copy->as<nn::ModuleDict>()->at<Scale>("b").w) == Values{3});
  nn::ModuleDict other;
  other.emplace<Scale>("b", 5.0), other.emplace<Scale>("c", 6.0);
  dict.update(other);
  CHECK(dict.keys() == Names{"a", "b", "c"});
  CHECK(values(dict.at<Scale>("b").w) == Values{5});
  CHECK(dict.pop("a").get() == &a);
  CHECK((dict.size() == 2 && !dict.contains("a")));
  CHECK(category_of([&] { dict.pop("a"); }) == Category::bad_argument);
  dict.clear();
  CHECK((dict.is_empty() && dict.parameters().empty()));
}

TEST_CASE("ParameterList") {
  nn::ParameterList list;
  list.append(rg::full({2}, 1.0));
  list.append(rg::full({2}, 2.0), /*requires_grad=*/false);
  list.extend(Tensors{rg::full({2}, 3.0).requires_grad_()});
  CHECK(list.named_parameters().keys() == Names{"0", "1", "2"});
  CHECK((list[0].requires_grad() && !list[1].requires_grad() && list[2].requires_grad()));
  double all = 0;
  for (const Tensor& p : list) all = 10 * all + values(p)[0];
  CHECK(all == 123);
  CHECK(category_of([&] { list[3]; }) == Category::index_out_of_range);
  CHECK(category_of([&] { list.append(Tensor()); }) == Category::bad_argument);
  CHECK(category_of([&] { list.append(list[0] * 2.0); }) == Category::bad_argument);
  CHECK(list.size() == 3);
  const auto copy = list.clone();
  CHECK(values((*copy->as<nn::ParameterList>())[2]) == Values{3, 3});
  CHECK_FALSE((*copy->as<nn::ParameterList>())[1].requires_grad());
}

TEST_CASE("ParameterDict, and functional_call with it") {
  struct Net : nn::Module {
    nn::ParameterDict p{this, "p"};
    Net() { p.insert("a", rg::full({}, 2.0)), p.insert("b", rg::full({}, 3.0)); }
    Tensor forward(const Tensor& x) const { return x * p["a"] + p["b"]; }
  } net;
  const Tensor x = rg::ones({});
  CHECK(net.forward(x).item<double>() == 5);
  CHECK(nn::functional_call(net, {{"p.a", rg::full({}, 10.0)}}, x).item<double>() == 13);
  CHECK(net.p.keys() == Names{"a", "b"});
  CHECK(category_of([&] { net.p.insert("a", x); }) == Category::bad_argument);
  CHECK(category_of([&] { net.p["c"]; }) == Category::bad_argument);
  net.p.update({{"b", rg::full({}, 7.0)}, {"c", x}});
  CHECK(net.p.keys() == Names{"a", "b", "c"});
  CHECK(net.forward(x).item<double>() == 9);
  CHECK_FALSE(net.p["c"].requires_grad());
  CHECK(net.p.clone()->named_parameters()["b"].item<double>() == 7);
  CHECK(net.p.pop("a").item<double>() == 2);
  CHECK(net.named_parameters().keys() == Names{"p.b", "p.c"});
  CHECK(category_of([&] { net.p.pop("a"); }) == Category::bad_argument);
  net.p.clear();
  CHECK((net.p.is_empty() && net.parameters().empty()));
}

TEST_CASE("Identity, Flatten, Unflatten, Functional") {
  const Tensor x = rg::arange(24.0).reshape({2, 3, 4});
  nn::Identity identity;
  CHECK(identity(x).is_same(x));
  nn::Flatten flatten(nullptr, "");
  CHECK(flatten(x).sizes() == rg::IntArray{2, 12});
  CHECK(nn::Flatten(nullptr, "", {.start_dim = 0, .end_dim = 1})(x).sizes() == rg::IntArray{6, 4});
  nn::Unflatten unflatten(nullptr, "", 1, {3, -1});
  CHECK(values(unflatten(flatten(x))) == values(x));
  CHECK(text_of(flatten) == "Flatten(start_dim=1, end_dim=-1)");
  CHECK(text_of(unflatten) == "Unflatten(dim=1, unflattened_size={3, -1})");
  nn::Sequential body;
  body.emplace_back<nn::Functional>([](const Tensor& t) { return t * 3.0; });
  body.emplace_back<nn::Functional>(rg::neg);
  body.emplace_back<nn::Identity>();
  CHECK(values(body(rg::ones({1}))) == Values{-3});
  CHECK(values(body.clone()->as<nn::Sequential>()->forward(rg::ones({1}))) == Values{-3});
  CHECK(category_of([] { nn::Functional(nullptr, "", nullptr); }) == Category::bad_argument);
}
