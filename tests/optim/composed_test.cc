// Adafactor, Muon and SOAP, whose steps are made of tensor functions: PyTorch 2.15's numbers (Muon's with its products
// in float64; SOAP's are those of its authors' code, computed in float64 by numpy), eager and recorded with the same
// bits; saved state; what goes to AdamW.
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Tensor;

namespace {

using Vector = std::vector<double>;

Tensor filled(const rg::IntArray& size, double (*at)(int t, size_t i), int t = 0) {
  int64_t n = 1;
  for (const int64_t s : size) n *= s;
  Vector values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = at(t, i);
  return rg::tensor(values, size, {rg::kFloat64});
}
Tensor parameter(const rg::IntArray& size) {
  return filled(size, [](int, size_t i) { return std::cos(0.9 * static_cast<double>(i)); }).requires_grad_();
}
Tensor gradient(int t, const rg::IntArray& size) {
  return filled(
      size,
      [](int step, size_t i) {
        if ((static_cast<size_t>(step) + i) % 7 == 0) return 0.0;
        return std::sin(1.3 * step + 0.7 * static_cast<double>(i)) + 0.2;
      },
      t);
}

// Its first, second and last element and its norm, after nine steps.
struct Result {
  rg::IntArray size;
  Vector numbers;
};

void check(const Tensor& p, const Result& wanted) {
  const Vector got = p.to_vector();
  double square = 0;
  for (const double v : got) square += v * v;
  const Vector numbers = {got[0], got[got.size() > 1], got.back(), std::sqrt(square)};
  for (size_t i = 0; i < 4; ++i) CHECK(numbers[i] == Approx(wanted.numbers[i]).epsilon(1e-11));
}

void step_with(optim::Optimizer& optimizer, const rg::Tensors& params, int t) {
  for (const Tensor& p : params) p.set_grad(gradient(t, p.sizes()));
  optimizer.step();
}

template <class Optimizer>
void follow(const typename Optimizer::Options& options, const std::vector<Result>& results,
            int captures = 1) {
  rg::Tensors params, same, others;
  for (const Result& r : results) {
    params.push_back(parameter(r.size));
    same.push_back(parameter(r.size));
    others.push_back(parameter(r.size));
  }
  Optimizer eager(params, options), recorded(same, options), saved(others, options);
  auto step = rg::compile_step([&](const rg::Tensors& gradients) {
    for (size_t i = 0; i < same.size(); ++i) same[i].set_grad(gradients[i]);
    recorded.step();
  });
  for (int t = 1; t <= 9; ++t) {
    step_with(eager, params, t);
    rg::Tensors gradients;
    for (const Tensor& p : same) gradients.push_back(gradient(t, p.sizes()));
    step(gradients);
    step_with(saved, others, t);
    Optimizer resumed(others, options);
    resumed.load_state_dict(saved.state_dict());
    saved = resumed;
  }
  CHECK(step.stats().captures == captures);
  for (size_t i = 0; i < results.size(); ++i) {
    INFO("parameter " << i);
    check(params[i], results[i]);
    CHECK(params[i].to_vector() == same[i].to_vector());
    CHECK(params[i].to_vector() == others[i].to_vector());
  }
}

}  // namespace

TEST_CASE("Adafactor gives PyTorch's numbers") {
  follow<optim::Adafactor>(
      {}, {{{5, 3}, {0.9942208314677045, 0.6233401162454142, 0.9826159215819892, 2.8224626888421445}},
           {{7}, {0.9954409963855676, 0.6244306422061786, 0.6158736320818124, 1.8664558450359154}},
           {{2, 3, 4}, {0.993311320262949, 0.6230576535530545, -0.2996837202566475, 3.4501576593905217}}});
  follow<optim::Adafactor>(
      {.lr = 0.1, .beta2_decay = -0.5, .eps = {1e-4, 1e-2}, .d = 2, .weight_decay = 0.1},
      {{{5, 3}, {0.8705069362746076, 0.5927725572033942, 0.7974589196600878, 2.528004391621912}},
       {{7}, {0.8729089649476314, 0.5891894347636719, 0.4462893203509299, 1.6447639037576296}},
       {{2, 3, 4}, {0.8621779814955933, 0.5877021733347962, -0.46602307382165653, 3.1967863781169386}}});
  follow<optim::Adafactor>(
      {.maximize = true},
      {{{5, 3}, {1.0055233390657579, 0.6197913856436539, 1.0167218615076459, 2.839257622391782}},
       {{7}, {1.0041998696497643, 0.6183398158479302, 0.6540205769490622, 1.8786256399122994}}});
}

TEST_CASE("Muon gives PyTorch's numbers") {
  follow<optim::Muon>(
      {}, {{{5, 3}, {0.9950939703383239, 0.6213837996743345, 0.9979568381016103, 2.825361343085444}},
           {{3, 5}, {0.9958665473348064, 0.6197091773086807, 0.996555419054678, 2.824912378780977}},
           {{4, 4}, {0.9953694444918152, 0.6221410722557258, 0.591299704795334, 2.8886830794727447}},
           // A batch of two.
           {{3, 5}, {0.9958665473348064, 0.6197091773086807, 0.996555419054678, 2.824912378780977}}});
  follow<optim::Muon>(
      {.lr = 0.1, .weight_decay = 0.3, .momentum = 0.8, .nesterov = false, .ns_steps = 3},
      {{{5, 3}, {0.3965057049425803, 0.5494271898574055, 0.6789126438539881, 2.097221071315417}},
       {{3, 5}, {0.4451746083404342, 0.41391407749084724, 0.5710712073427092, 2.0242161576879756}},
       {{4, 4}, {0.406434300454793, 0.5809097718125114, 0.11800230888793713, 2.20542939969061}}});
  follow<optim::Muon>(
      {.lr = 0.05, .adjust_lr_fn = optim::MuonAdjustLR::match_rms_adamw},
      {{{5, 3}, {0.8879369643408846, 0.6001872172680994, 0.9451469519267983, 2.662603811278151}},
       {{4, 4}, {0.8828836530586534, 0.6155044466326541, 0.507731472779671, 2.746200691645396}}});
  follow<optim::Muon>(
      {.lr = 0.05, .ns_coefficients = {2, -1.5, 0.5}},
      {{{5, 3}, {0.7143713950304527, 0.638484308887306, 0.9061459720291086, 2.603993079541747}},
       {{3, 5}, {0.7708654861253215, 0.5216321011226913, 0.8489625129598137, 2.572009975197989}}});
}

// The sizes are such that no basis is arbitrary but for signs: products of the first gradient lack one rank at most.
TEST_CASE("SOAP gives its authors' numbers") {
  follow<optim::SOAP>(
      {},
      {{{4, 4}, {1.001049403968413, 0.6287701900196656, 0.5724990349734906, 2.8814079844021365}},
       {{4, 3}, {0.9945642434286531, 0.6325662145817305, -0.8976765867353075, 2.555749264626501}},
       {{7}, {0.9951347709141434, 0.6235137711103506, 0.6209409542862351, 1.8610209417774628}},
       {{}, {0.9951347709141434, 0.9951347709141434, 0.9951347709141434, 0.9951347709141434}},
       {{2, 3, 4}, {0.998453548953378, 0.6272055277529961, -0.2823741134207412, 3.4536544992853617}}},
      2);
  follow<optim::SOAP>(
      {.lr = 0.02,
       .betas = {0.9, 0.99},
       .shampoo_beta = 0.8,
       .eps = 1e-4,
       .weight_decay = 0.1,
       .precondition_frequency = 3},
      {{{4, 4}, {0.9795132057223938, 0.6533496865810459, 0.43683493307410676, 2.80087495627877}},
       {{3, 4}, {0.9572030922261099, 0.6351849053890131, -0.9744719273713058, 2.4736641313282592}},
       {{2, 3, 2, 3}, {0.9462044800910858, 0.6546789136860295, 0.9533851508417751, 4.178962383336625}},
       {{2, 3, 4}, {1.0026350063631564, 0.6510992980194262, -0.33343492265333685, 3.420678488035395}}},
      3);
  follow<optim::SOAP>(
      {.lr = 0.02,
       .precondition_frequency = 1,
       .max_precond_dim = 4,
       .normalize_grads = true,
       .correct_bias = false},
      {{{3, 5}, {0.8416352931121213, 0.6276504877787553, 0.8256644800576735, 2.681257177633187}},
       {{5, 3}, {0.8885970400555624, 0.6931173339649327, 0.7574243458468466, 2.7086804036331866}},
       {{4, 4}, {0.9582423858785302, 0.6754756372371733, 0.2932798915599425, 2.8642595220344265}}},
      2);
  follow<optim::SOAP>(
      {.lr = 0.02,
       .precondition_frequency = 2,
       .max_precond_dim = 6,
       .merge_dims = true,
       .precondition_1d = true},
      {{{2}, {0.9463977655957285, 0.6599233156099232, 0.6599233156099232, 1.1537623296026707}},
       {{4, 3}, {0.9504098928843681, 0.6656610293076126, -0.9277719613991046, 2.5112617796586263}},
       {{6, 2, 3}, {0.9693452677315049, 0.6605071264420211, 0.9367894620146048, 4.29680340547854}}},
      3);
}

TEST_CASE("Muon takes tensors of more dims as matrices, and leaves the rest to AdamW") {
  const Tensor cube = parameter({3, 2, 4}), matrix = parameter({3, 8}), vector = parameter({6});
  const Tensor excluded = parameter({2, 3}), same = parameter({6});
  optim::Muon muon(
      {{{cube, matrix, vector}, {.adamw_lr = 0.01}}, {{excluded}, {.use_muon = false, .adamw_lr = 0.01}}});
  optim::AdamW adamw({same}, {.lr = 0.01});
  for (int t = 1; t <= 5; ++t) {
    step_with(muon, {cube, matrix, vector, excluded}, t);
    step_with(adamw, {same}, t);
  }
  CHECK(cube.to_vector() == matrix.to_vector());
  CHECK(vector.to_vector() == same.to_vector());
  CHECK(excluded.to_vector() == same.to_vector());
  CHECK(muon.state_dict().contains("0.momentum_buffer"));
  CHECK(!muon.state_dict().contains("0.exp_avg"));
  CHECK(muon.state_dict().contains("3.exp_avg_sq"));
}

TEST_CASE("an option that decides what is recorded causes one more recording, a number none") {
  const Tensor p = parameter({3, 4}), q = parameter({3, 4});
  optim::Muon eager({p}), recorded({q});
  auto step = rg::compile_step([&](const Tensor& g) {
    q.set_grad(g);
    recorded.step();
  });
  for (int t = 1; t <= 6; ++t) {
    for (optim::Muon* o : {&eager, &recorded}) {
      optim::MuonOptions& options = o->param_groups()[0].options;
      options.lr = 0.01 * t;
      options.momentum = 0.9 + 0.01 * t;
      options.ns_steps = t < 4 ? 5 : 4;
    }
    step_with(eager, {p}, t);
    step(gradient(t, {3, 4}));
    CHECK(p.to_vector() == q.to_vector());
  }
  CHECK(step.stats().captures == 2);
}
