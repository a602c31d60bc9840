// Drawing arguments; see api_arguments.h.
#include "tests/fuzz/api_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>

namespace fuzz {
namespace {

constexpr int64_t kExtreme[] = {std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::min() + 1,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::max() - 1,
                                int64_t{1} << 31,
                                (int64_t{1} << 31) - 1,
                                -(int64_t{1} << 31),
                                int64_t{1} << 32,
                                int64_t{1} << 48,
                                int64_t{1} << 62,
                                -1000,
                                1000};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNumbers[] = {0.0,   -0.0, 1.0,  -1.0,      0.5,        2.0,  0.1,  1e-5,  1e-300, 1e300,
                               -1e18, 1e18, 3e38, kInfinity, -kInfinity, 0.25, -2.5, 255.0, 1e-45};
constexpr rg::ScalarType kDtypes[] = {rg::kFloat32,     rg::kFloat32, rg::kFloat32,  rg::kFloat64,
                                      rg::kFloat64,     rg::kFloat16, rg::kBFloat16, rg::kFloat8_e4m3fn,
                                      rg::kFloat8_e5m2, rg::kInt64,   rg::kInt64,    rg::kInt32,
                                      rg::kUInt8,       rg::kBool};
constexpr std::string_view kWords[] = {"mean",    "sum",       "none",     "batchmean", "constant",
                                       "reflect", "replicate", "circular", "nearest",   "nearest-exact",
                                       "linear",  "bilinear",  "bicubic",  "trilinear", "area",
                                       "tanh",    "trunc",     "floor",    "",          "valid",
                                       "same",    "prod",      "amax",     "xy",        "no such word"};
constexpr std::string_view kEquations[] = {
    "ij,jk->ik", "bij,bjk->bik", "ii->i",   "ij->ji", "i,j->ij", "...ij,...jk->...ik",
    "ij",        "i->",          "ij,ij->", "->",     "iij->ij", "ij,jk,kl->il",
    "...->...",  "i.j",          "ij->ijk", "a,b,c",  ",",       "ij,jk->"};

std::string text_of(const Tensor& t) {
  if (!t.defined()) return "undefined";
  std::string text = rg::describe(t);
  if (!t.is_contiguous() || t.storage_offset() != 0)
    text += fmt::format(" strides {} offset {}", fmt::join(t.strides(), ","), t.storage_offset());
  if (t.requires_grad()) text += t.is_leaf() ? " leaf" : " grad";
  return text;
}

}  // namespace

Arguments::Arguments(uint64_t seed) : random(seed), main_dtype_(random.pick(kDtypes)) {
  for (int64_t& size : palette_) size = random.between(1, 5);
  while (pool_.size() < kPool) add_to_pool(pool_.size(), fresh());
}

Arguments::~Arguments() {
  for (const auto& tensors : lent_) tensors->clear();
  for (const Tensor& t : pooled_) t.set_grad({});
}

Arguments::Pattern Arguments::parse(std::string_view pattern) {
  Pattern parsed;
  while (!pattern.empty()) {
    const size_t end = std::min(pattern.find(';'), pattern.size());
    const std::string_view part = pattern.substr(0, end);
    const char kind = part[part.find_first_not_of(' ')];
    (kind == '=' ? parsed.shapes : kind == '#' ? parsed.integers : parsed.tensors).push_back(part);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  return parsed;
}

void Arguments::begin(std::string_view function, std::string_view pattern) {
  text_ = fmt::format("{}(", function);
  operands_.clear();
  results_.clear();
  pattern_.reset();
  if (!pattern.empty() && random.chance(0.8)) {
    static constexpr rg::ScalarType kFloating[] = {rg::kFloat32, rg::kFloat64, rg::kFloat16, rg::kBFloat16};
    pattern_ = parse(pattern);
    pattern_->dtype = random.pick(kFloating);
    for (char c = 'a'; c <= 'z'; ++c) pattern_->size[static_cast<size_t>(c)] = size();
    for (char c = 'A'; c <= 'Z'; ++c) pattern_->size[static_cast<size_t>(c)] = random.between(2, 9);
  }
  if (random.chance(0.2)) add_to_pool(static_cast<size_t>(random.below(kPool)), fresh());
}

void Arguments::add_to_pool(size_t place, const Tensor& t) {
  if (place == pool_.size()) pool_.emplace_back();
  pool_[place] = t;
  pooled_.push_back(t);
}

void Arguments::keep(const Tensor& result) {
  if (!result.defined()) return;
  results_.push_back(result);
  for (const int64_t size : result.sizes())
    if (size > kLargestSize) return;
  if (result.numel() <= kMostElements && random.chance(0.5))
    add_to_pool(static_cast<size_t>(random.below(kPool)), result);
}

std::shared_ptr<const Tensors> Arguments::lend(Tensors tensors) {
  return lent_.emplace_back(std::make_shared<Tensors>(std::move(tensors)));
}

Tensor Arguments::numbers(const rg::IntArray& shape, rg::ScalarType dtype) {
  std::vector<double> values(static_cast<size_t>(rg::Shape(shape).numel().value()));
  const bool special = random.chance(0.2), whole = !rg::is_floating(dtype) || random.chance(0.2);
  for (double& v : values) {
    v = whole ? static_cast<double>(random.between(-2, 6)) : random.number(-2, 2);
    if (special && random.chance(0.2))
      v = whole ? static_cast<double>(random.pick(kExtreme)) : random.pick(kNumbers);
    if (special && !whole && random.chance(0.1)) v = std::numeric_limits<double>::quiet_NaN();
  }
  return rg::to(rg::tensor(values, shape, {rg::kFloat64}), dtype);
}

// A view of t, of whatever kind fits; mostly t itself.
Tensor Arguments::relaid(Tensor t) {
  switch (random.below(12)) {
    case 0: return t.dim() > 1 ? rg::transpose(t, 0, -1) : t;
    case 1: return t.dim() > 0 ? rg::slice(t, -1, random.below(2), {}, 2) : t;
    case 2: {
      if (t.dim() == 8) return t;
      rg::Shape shape = t.impl().shape();
      shape.insert(0, random.between(0, 3));
      return rg::expand_to(rg::unsqueeze(t, 0), shape);
    }
    case 3: return t.is_contiguous() && t.numel() > 3 ? rg::as_strided(t, {2, 2}, {1, 1}) : t;
    case 4: return t.dim() > 0 && t.size(0) > 0 ? rg::select(t, 0, random.below(t.size(0))) : t;
    case 5: return t.dim() > 0 && t.size(-1) > 0 ? rg::unbind(t, -1)[0] : t;
    case 6: return t.dim() > 1 ? rg::diagonal(t, random.between(-1, 1), 0, 1) : t;
    default: return t;
  }
}

rg::IntArray Arguments::sizes_of(std::string_view letters) const {
  rg::IntArray sizes;
  for (const char c : letters.substr(0, letters.find(':')))
    if (std::isalpha(c)) sizes.push_back(pattern_->size[static_cast<size_t>(c)]);
  return sizes;
}

Tensor Arguments::fitting(std::string_view part) {
  const rg::IntArray shape = sizes_of(part);
  Tensor t;
  if (const size_t colon = part.find(':'); colon != part.npos) {
    const int64_t bound = sizes_of(part.substr(colon + 1))[0];
    std::vector<double> places(static_cast<size_t>(rg::Shape(shape).numel().value()));
    for (double& place : places) place = static_cast<double>(random.below(bound));
    t = rg::tensor(places, shape, {rg::kInt64});
  } else {
    t = numbers(shape, random.chance(0.95) ? pattern_->dtype : random.pick(kDtypes));
    if (t.dim() > 1 && random.chance(0.2))  // the same sizes, the last dim not dense
      t = rg::transpose(rg::contiguous(rg::transpose(t, 0, -1)), 0, -1);
    if (t.is_floating_point() && random.chance(0.5)) t = t.detach().requires_grad_();
  }
  add_to_pool(static_cast<size_t>(random.below(kPool)), t);
  return t;
}

Tensors Arguments::wanting(int64_t most) {
  Tensors wanting;
  for (int64_t n = random.between(1, most) * 10; n > 0 && static_cast<int64_t>(wanting.size()) < most; --n)
    if (const Tensor& t = random.pick(pool_); t.is_floating_point() && t.requires_grad())
      wanting.push_back(t);
  return wanting;
}

int64_t Arguments::size() {
  return random.chance(0.06) ? 0 : random.chance(0.8) ? random.pick(palette_) : random.between(1, 5);
}

Tensor Arguments::fresh() {
  if (!pool_.empty() && random.chance(0.3)) {
    const Tensor& t = random.pick(pool_);
    return relaid(random.chance(0.2) ? t.detach() : t);
  }
  const int64_t rank = random.chance(0.05) ? random.between(5, 8) : random.below(5);
  rg::IntArray shape(static_cast<size_t>(rank));
  for (int64_t& s : shape) s = rank > 4 ? random.between(0, 2) : size();
  if (rank > 0 && random.chance(0.05)) random.pick(shape) = random.between(5, rank > 2 ? 17 : 300);
  Tensor t = relaid(numbers(shape, random.chance(0.5) ? main_dtype_ : random.pick(kDtypes)));
  if (t.is_floating_point() && random.chance(0.4)) t = t.detach().requires_grad_();
  return t;
}

Tensor Arguments::tensor() {
  Tensor t;
  if (pattern_ && !pattern_->tensors.empty() && random.chance(0.97)) {
    t = fitting(pattern_->tensors.front());
    pattern_->tensors.pop_front();
  } else if (!random.chance(pattern_ ? 0.3 : 0.02)) {
    t = random.pick(pool_);
  }
  note(text_of(t));
  if (level && t.defined() && t.is_floating_point() && random.chance(0.4)) {
    text_ += " dual";
    t = level->make_dual(t, rg::ones_like(t));
  }
  return t;
}

int64_t Arguments::integer() {
  if (pattern_ && random.chance(0.9)) {
    int64_t i = random.chance(0.7);
    if (!pattern_->integers.empty()) {
      i = sizes_of(pattern_->integers.front())[0];
      pattern_->integers.pop_front();
    }
    note(std::to_string(i));
    return i;
  }
  const double p = random.number(0, 1);
  const int64_t i = p < 0.75   ? random.between(-3, 4)
                    : p < 0.88 ? random.between(-10, 70)
                               : random.pick(kExtreme);
  note(std::to_string(i));
  return i;
}

double Arguments::number() {
  const double v = random.chance(0.3)    ? random.pick(kNumbers)
                   : random.chance(0.02) ? std::numeric_limits<double>::quiet_NaN()
                                         : random.number(-2, 2);
  note(fmt::format("{}", v));
  return v;
}

rg::IntArray Arguments::shape() {
  if (pattern_ && !pattern_->shapes.empty() && random.chance(0.9)) {
    const rg::IntArray shape = sizes_of(pattern_->shapes.front());
    pattern_->shapes.pop_front();
    note(fmt::format("[{}]", fmt::join(shape, ",")));
    return shape;
  }
  rg::IntArray shape(static_cast<size_t>(random.chance(0.05) ? random.between(5, 9) : random.below(5)));
  const bool extreme = random.chance(0.15);
  for (int64_t& s : shape) s = size();
  if (extreme && !shape.empty()) random.pick(shape) = random.chance(0.3) ? -1 : random.pick(kExtreme);
  if (extreme && !shape.empty() && random.chance(0.3)) random.pick(shape) = random.pick(kExtreme);
  note(fmt::format("[{}]", fmt::join(shape, ",")));
  return shape;
}

rg::IntArray Arguments::ints() {
  if (pattern_ && random.chance(0.9)) {
    const int64_t i = random.chance(0.7) ? 1 : random.below(3);
    note(fmt::format("[{}]", i));
    return {i};
  }
  rg::IntArray list(static_cast<size_t>(random.chance(0.03) ? random.between(5, 17) : random.below(4)));
  for (int64_t& i : list) i = random.chance(0.06) ? random.pick(kExtreme) : random.between(-2, 3);
  note(fmt::format("[{}]", fmt::join(list, ",")));
  return list;
}

rg::ScalarType Arguments::dtype() {
  const rg::ScalarType type = random.chance(0.02) ? rg::ScalarType::Undefined : random.pick(kDtypes);
  note(std::string(rg::name(type)));
  return type;
}

std::string_view Arguments::word() {
  const std::string_view word = random.pick(kWords);
  note(fmt::format("\"{}\"", word));
  return word;
}

std::string Arguments::equation() {
  std::string equation(random.pick(kEquations));
  while (random.chance(0.3)) {
    static constexpr std::string_view kLetters = "ijkab,->. A";
    const size_t at = static_cast<size_t>(random.below(static_cast<int64_t>(equation.size()) + 1));
    equation.replace(at, static_cast<size_t>(random.below(2)), 1, random.pick(kLetters));
  }
  note(fmt::format("\"{}\"", equation));
  return equation;
}

rg::Indices Arguments::indices() {
  rg::Indices list;
  for (int64_t n = random.below(5); n > 0; --n) switch (random.below(5)) {
      case 0: list.push_back(integer()); break;
      case 1:
        list.push_back(rg::indexing::Slice{get<std::optional<int64_t>>(), get<std::optional<int64_t>>(),
                                           random.chance(0.7) ? 1 : integer()});
        break;
      case 2: list.push_back(rg::indexing::Ellipsis); break;
      case 3: list.push_back(rg::indexing::None); break;
      default: list.push_back(tensor());
    }
  return list;
}

}  // namespace fuzz
