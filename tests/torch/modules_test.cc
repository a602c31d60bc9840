// User-defined modules and containers in libtorch's way.
#include <sstream>

#include "tests/torch/digest.h"

namespace nn = torch::nn;
using digest::expect, digest::wave;

namespace {

struct NetImpl : nn::Module {
  NetImpl(int64_t in, int64_t out)
      : fc1(register_module("fc1", nn::Linear(in, 5))), fc2(nn::LinearOptions(5, out).bias(false)) {
    register_module("fc2", fc2);
    scale = register_parameter("scale", torch::ones({out}));
    shift = register_buffer("shift", torch::zeros({out}));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x));
    return fc2(x) * scale + shift;
  }
  nn::Linear fc1, fc2;
  torch::Tensor scale, shift;
};
TORCH_MODULE(Net);

// A forward with other arguments and results.
struct PairImpl : nn::Module {
  PairImpl() { register_module("net", net); }
  std::tuple<torch::Tensor, int64_t> forward(const torch::Tensor& x, int64_t times) {
    torch::Tensor y = net->forward(x);
    for (int64_t i = 1; i < times; ++i) y = y + net(x);
    return {y, times};
  }
  Net net = Net(3, 2);
};
TORCH_MODULE(Pair);

struct TwinImpl : nn::Cloneable<TwinImpl> {
  explicit TwinImpl(int64_t width) : width(width) { reset(); }
  void reset() override {
    fc = register_module("fc", nn::Linear(width, width));
    weight = register_parameter("weight", torch::randn({width}));
    mean = register_buffer("mean", torch::zeros({width}));
  }
  torch::Tensor forward(torch::Tensor x) { return fc(x) * weight + mean; }
  int64_t width;
  nn::Linear fc{nullptr};
  torch::Tensor weight, mean;
};
TORCH_MODULE(Twin);

}  // namespace

TEST_CASE("A module registers modules, parameters and buffers") {
  Net net(3, 2);
  std::vector<std::string> names;
  for (const auto& item : net->named_parameters()) names.push_back(item.key());
  CHECK(names == std::vector<std::string>{"scale", "fc1.weight", "fc1.bias", "fc2.weight"});
  CHECK(net->parameters().size() == 4);
  CHECK(net->parameters(/*recurse=*/false).size() == 1);
  CHECK(net->named_buffers().contains("shift"));
  CHECK(net->children().size() == 2);
  CHECK(net->named_children()["fc1"]->as<nn::Linear>()->options.in_features() == 3);
  CHECK(net->named_children()["fc1"]->as<nn::Conv2d>() == nullptr);
  CHECK(net->modules(/*include_self=*/false).size() == 2);
  CHECK(net->named_parameters()["fc1.weight"].data_ptr<float>() == net->fc1->weight.data_ptr<float>());
  for (auto& p : net->named_parameters()) CHECK(p.value().requires_grad());
}

TEST_CASE("Results and gradients of a module") {
  Net net(3, 2);
  digest::fill(*net);
  const torch::Tensor y = net->forward(wave({4, 3}));
  expect(digest::of(y), -1.323389);
  CHECK(torch::equal(net(wave({4, 3})), y));
  (y * y).sum().backward();
  expect(digest::of_gradients(*net), 4.830199);
  net->zero_grad();
  for (const auto& p : net->parameters())
    CHECK((!p.grad().defined() || p.grad().abs().sum().item<float>() == 0));
}

TEST_CASE("A module is shared, and its handles see new values") {
  auto net = std::make_shared<NetImpl>(3, 2);
  Net holder = net;
  Net same = holder;
  {
    torch::NoGradGuard no_grad;
    net->scale.fill_(3);
    net->named_parameters()["fc2.weight"].zero_();
  }
  CHECK(same->parameters()[0].sum().item<float>() == 6);
  CHECK(torch::equal(same(wave({1, 3})), torch::zeros({1, 2})));
  net->to(torch::kDouble);
  CHECK(holder->scale.dtype() == torch::kDouble);
  CHECK(holder->fc1->weight.dtype() == torch::kDouble);
  CHECK(holder->shift.dtype() == torch::kDouble);
  net->to(torch::kCPU);
  net->to(torch::kFloat);
  CHECK(holder(wave({1, 3})).dtype() == torch::kFloat);
  Net empty{nullptr};
  CHECK(empty.is_empty());
  CHECK_FALSE(empty);
  empty = Net(1, 1);
  CHECK_FALSE(empty.is_empty());
}

TEST_CASE("Modes of a module") {
  Pair pair;
  CHECK(pair->is_training());
  pair->eval();
  CHECK_FALSE(pair->net->fc1->is_training());
  pair->train();
  CHECK(pair->net->fc1->is_training());
  int64_t count = 0;
  pair->apply([&](nn::Module&) { ++count; });
  CHECK(count == 4);
  std::vector<std::string> names;
  pair->apply([&](const std::string& name, nn::Module&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"", "net", "net.fc1", "net.fc2"});
  for (auto& module : pair->modules(false))
    if (auto* linear = dynamic_cast<nn::LinearImpl*>(module.get())) linear->weight.requires_grad_(false);
  CHECK_FALSE(pair->net->fc1->weight.requires_grad());
}

TEST_CASE("A forward with any arguments and results") {
  Pair pair;
  digest::fill(*pair);
  auto [y, times] = pair->forward(wave({2, 3}), 3);
  CHECK(times == 3);
  expect(digest::of(y), -3.062848);
  const std::tuple<torch::Tensor, int64_t> again = pair(wave({2, 3}), int64_t{3});
  CHECK(torch::equal(std::get<0>(again), y));
}

TEST_CASE("A Cloneable is cloned") {
  Twin twin(3);
  digest::fill(*twin);
  auto copy = std::dynamic_pointer_cast<TwinImpl>(twin->clone());
  REQUIRE(copy);
  const torch::Tensor x = wave({2, 3});
  CHECK(torch::equal(copy->forward(x), twin(x)));
  CHECK(copy->parameters().size() == 3);
  torch::NoGradGuard no_grad;
  copy->fc->weight.zero_();
  CHECK(twin->fc->weight.abs().sum().item<float>() > 0);
  copy->mean.fill_(1);
  CHECK(twin->mean.sum().item<float>() == 0);
  nn::Linear fc(3, 2);
  auto other = std::dynamic_pointer_cast<nn::LinearImpl>(fc->clone());
  CHECK(torch::equal(other->weight, fc->weight));
  CHECK(other->weight.data_ptr<float>() != fc->weight.data_ptr<float>());
}

TEST_CASE("Sequential") {
  nn::Sequential net(nn::Linear(3, 4), nn::Functional(torch::relu), nn::Linear(4, 2), nn::Softmax(1));
  digest::fill(*net);
  CHECK(net->size() == 4);
  expect(digest::of(net->forward(wave({2, 3}))), 0.4483854);
  CHECK(net->named_parameters().contains("2.weight"));
  CHECK(net[0]->as<nn::Linear>()->options.out_features() == 4);
  CHECK(net->ptr<nn::LinearImpl>(2)->options.out_features() == 2);
  CHECK(net->at<nn::LinearImpl>(2).weight.size(0) == 2);
  net->push_back(nn::Identity());
  net->push_back("last", nn::Linear(2, 1));
  CHECK(net->named_parameters().contains("last.bias"));
  CHECK(net->forward(wave({2, 3})).size(1) == 1);
  size_t count = 0;
  for (const auto& module : *net) count += static_cast<bool>(module.ptr());
  CHECK(count == 6);

  nn::Sequential named({{"conv", nn::Conv2d(1, 2, 3)}, {"flatten", nn::Flatten()}, {"fc", nn::Linear(8, 2)}});
  CHECK(named->named_parameters().keys() ==
        std::vector<std::string>{"conv.weight", "conv.bias", "fc.weight", "fc.bias"});
  CHECK(named->forward(wave({1, 1, 4, 4})).size(1) == 2);

  nn::Sequential more;
  CHECK(more->is_empty());
  more->extend(*net);
  CHECK(more->size() == 6);
  CHECK(torch::equal(more->forward(wave({2, 3})), net->forward(wave({2, 3}))));
  nn::Sequential mixed(Net(3, 2), std::make_shared<nn::TanhImpl>());
  CHECK(mixed->forward(wave({2, 3})).sizes() == std::vector<int64_t>({2, 2}));
  nn::Sequential pairs(Pair{});
  const auto result = pairs->forward<std::tuple<torch::Tensor, int64_t>>(wave({2, 3}), int64_t{2});
  CHECK(std::get<1>(result) == 2);
}

TEST_CASE("A Sequential that is a base class") {
  struct BlockImpl : nn::SequentialImpl {
    using SequentialImpl::SequentialImpl;
    torch::Tensor forward(torch::Tensor x) { return SequentialImpl::forward(x) + x; }
  };
  BlockImpl block(nn::Linear(3, 3), nn::ReLU());
  CHECK(block.forward(wave({2, 3})).sizes() == std::vector<int64_t>({2, 3}));
}

TEST_CASE("ModuleList and ModuleDict") {
  nn::ModuleList list(nn::Linear(3, 4), nn::Dropout(0.5));
  list->push_back(nn::Linear(4, 2));
  CHECK(list->size() == 3);
  CHECK(list->named_parameters().contains("2.weight"));
  CHECK(list[2]->as<nn::Linear>()->options.out_features() == 2);
  CHECK(list->ptr<nn::LinearImpl>(0)->forward(wave({1, 3})).size(1) == 4);
  CHECK(list->at<nn::LinearImpl>(2).options.in_features() == 4);
  size_t linear = 0;
  for (const auto& module : *list) linear += module->as<nn::Linear>() != nullptr;
  CHECK(linear == 2);
  list->insert(1, nn::ReLU());
  CHECK(list[1]->as<nn::ReLU>() != nullptr);
  nn::ModuleList copy;
  copy->extend(*list);
  CHECK(copy->size() == 4);

  torch::OrderedDict<std::string, std::shared_ptr<nn::Module>> items = {{"linear", nn::Linear(3, 4).ptr()}};
  nn::ModuleDict dict(items);
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{{"act", nn::ReLU().ptr()}});
  CHECK(dict->contains("act"));
  CHECK(dict->size() == 2);
  CHECK(dict["linear"]->as<nn::Linear>()->forward(wave({1, 3})).size(1) == 4);
  CHECK(dict->keys() == std::vector<std::string>{"linear", "act"});
  CHECK(dict->named_parameters().contains("linear.weight"));
  dict->pop("act");
  CHECK_FALSE(dict->contains("act"));
}

TEST_CASE("ParameterList and ParameterDict") {
  nn::ParameterList list(torch::ones({2}), torch::zeros({3}));
  list->append(torch::ones({1}));
  CHECK(list->size() == 3);
  CHECK(list[1].size(0) == 3);
  CHECK(list->parameters().size() == 3);
  CHECK(list->named_parameters().contains("2"));

  nn::ParameterDict dict;
  dict->insert("a", torch::ones({2}));
  dict->insert("b", torch::zeros({3}));
  CHECK(dict["a"].sum().item<float>() == 2);
  CHECK(dict->contains("b"));
  CHECK(dict->keys() == std::vector<std::string>{"a", "b"});
  dict->pop("a");
  CHECK(dict->size() == 1);
}

TEST_CASE("Containers with the same thing twice") {
  const torch::Tensor shared = torch::ones({2});
  nn::ParameterList tensors(shared, shared);
  size_t items = 0;
  for (const auto& item : *tensors) items += item.value().defined();
  CHECK(items == 2);

  nn::Linear one(3, 3);
  const auto sequential = nn::Sequential(one, one)->clone();
  CHECK(sequential->parameters().size() == 2);
  CHECK(std::dynamic_pointer_cast<nn::SequentialImpl>(sequential)->size() == 2);
  const auto list = std::dynamic_pointer_cast<nn::ModuleListImpl>(nn::ModuleList(one, one)->clone());
  CHECK(list->ptr(0).get() == list->ptr(1).get());
}

TEST_CASE("AnyModule") {
  nn::AnyModule any(nn::Linear(3, 2));
  digest::fill(*any.ptr());
  const torch::Tensor y = any.forward(wave({2, 3}));
  expect(digest::of(y), -1.415299);
  CHECK(any.get<nn::Linear>()->options.out_features() == 2);
  CHECK(any.get<nn::LinearImpl>().weight.size(1) == 3);
  CHECK_FALSE(any.is_empty());
  CHECK(nn::AnyModule().is_empty());
  any = nn::AnyModule(Pair());
  const auto pair = any.forward<std::tuple<torch::Tensor, int64_t>>(wave({2, 3}), int64_t{1});
  CHECK(std::get<1>(pair) == 1);
}

TEST_CASE("Functional") {
  nn::Functional twice([](torch::Tensor x) { return x * 2; });
  CHECK(torch::equal(twice(torch::ones({2})), torch::full({2}, 2.0)));
  nn::Functional leaky(torch::leaky_relu, 0.5);
  CHECK(leaky(torch::full({1}, -1.0)).item<float>() == -0.5f);
  nn::Functional elu(torch::elu, /*alpha=*/1, /*scale=*/0, /*input_scale=*/1);
  CHECK(torch::equal(elu(torch::ones({2})), torch::zeros({2})));
}

TEST_CASE("Modules print as in PyTorch") {
  nn::Sequential net(nn::Linear(nn::LinearOptions(3, 4).bias(false)), nn::ReLU());
  std::ostringstream text;
  text << net;
  CHECK(text.str().find("Linear(in_features=3, out_features=4, bias=false)") != std::string::npos);
  CHECK(text.str().find("(1): ") != std::string::npos);
  const auto printed = [](const auto& module) {
    std::ostringstream out;
    out << module;
    return out.str();
  };
  CHECK(text.str().starts_with("Sequential(\n  (0): "));
  CHECK(printed(nn::Sequential()) == "Sequential()");
  CHECK(printed(nn::ModuleList()) == "ModuleList()");
  CHECK(printed(nn::Functional(torch::relu)) == "Functional()");
  CHECK(printed(nn::ModuleList(nn::Functional(torch::relu))) == "ModuleList(\n  (0): Functional()\n)");
}

TEST_CASE("A layer computes with a tensor that is assigned to its weight") {
  nn::Embedding table(5, 3);
  nn::Linear out(nn::LinearOptions(3, 5).bias(false));
  const torch::Tensor before = out->weight;
  out->weight = table->weight;  // tied
  CHECK(out->weight.is_same(table->weight));
  out(table(torch::tensor({1}))).sum().backward();
  CHECK(table->weight.grad().defined());
  // As in libtorch, what is registered stays.
  CHECK(out->parameters().size() == 1);
  CHECK(out->parameters()[0].is_same(before));
  CHECK_FALSE(before.grad().defined());
  CHECK(out->state_dict().at("weight").data_ptr<float>() == before.data_ptr<float>());
  out->weight = table->weight * 2;  // computed
  CHECK(torch::allclose(out(torch::ones({1, 3})), (table->weight * 2).sum(1).unsqueeze(0)));
  CHECK(out->parameters().size() == 1);
}

TEST_CASE("A Sequential is called with the class of its result") {
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU());
  const auto x = torch::ones({2, 3});
  CHECK(torch::equal(net->forward<torch::Tensor>(x), net->forward(x)));
}

TEST_CASE("A module that is replaced or unregistered") {
  Net net(3, 2);
  net->fc1 = net->replace_module("fc1", nn::Linear(3, 5));
  CHECK(net->parameters().size() == 4);
  CHECK(net->named_parameters()["fc1.weight"].data_ptr<float>() == net->fc1->weight.data_ptr<float>());
  net->unregister_module("fc2");
  CHECK(net->parameters().size() == 3);
}
