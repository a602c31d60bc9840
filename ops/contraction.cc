// See ops/contraction.h.
//
// An operand of einsum becomes a Term: a tensor and the label of each of its dims. Labels are small integers:
// 0-25 A-Z, 26-51 a-z, and from 52 on the dims of "...", counted from the back. Two terms are multiplied at a
// time: labels are batch (in both, needed later), summed (in both, not needed later), or of one side. With
// dims put in the order batch, own, summed the pair is a product of matrices; where one of these groups is
// empty it is a plain product or a dot product.
#include "ops/contraction.h"

#include <algorithm>
#include <bitset>

#include <fmt/format.h>

#include "engine/autocast.h"
#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

constexpr int kEllipsis = 52;
constexpr int kLabels = kEllipsis + kMaxRank;
using Labels = std::vector<int>;
using LabelSet = std::bitset<kLabels>;

struct Term {
  Tensor tensor;
  Labels labels;
};

LabelSet set_of(const Labels& labels) {
  LabelSet set;
  for (int l : labels) set.set(static_cast<size_t>(l));
  return set;
}

class Einsum {
 public:
  explicit Einsum(std::string_view equation) {
    for (char c : equation)
      if (c != ' ') equation_ += c;
    const size_t arrow = equation_.find("->");
    left_ = std::string_view(equation_).substr(0, arrow);
    if (arrow != std::string::npos) right_ = std::string_view(equation_).substr(arrow + 2);
  }

  Tensor run(const Tensors& operands) {
    read_operands(operands);
    const Labels out = output_labels();
    const LabelSet wanted = set_of(out);
    Term result = terms_[0];
    for (size_t i = 1; i < terms_.size(); ++i) {
      LabelSet later = wanted;
      for (size_t j = i + 1; j < terms_.size(); ++j) later |= set_of(terms_[j].labels);
      result = multiply(result, terms_[i], later);
    }
    return ordered(sum_unless(result, wanted), out);
  }

 private:
  [[noreturn]] void refuse(std::string_view text) const {
    fail(Category::bad_argument, "einsum", fmt::format("\"{}\": {}", equation_, text));
  }

  // The labels of the operands or the result in the text; "..." stands for `dots` dims.
  Labels parse(std::string_view text, int dots) const {
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c >= 'A' && c <= 'Z')
        labels.push_back(c - 'A');
      else if (c >= 'a' && c <= 'z')
        labels.push_back(26 + c - 'a');
      else if (text.substr(i, 3) == "...") {
        if (text.find("...", i + 3) != std::string_view::npos)
          refuse("more than one \"...\" in a row of letters");
        for (int d = dots; d > 0; --d) labels.push_back(kEllipsis + d - 1);
        i += 2;
      } else {
        refuse(fmt::format("'{}' is not allowed", c));
      }
    }
    return labels;
  }

  void read_operands(const Tensors& operands) {
    if (operands.empty()) refuse("no operands");
    std::string_view rest = left_;
    for (size_t i = 0; i < operands.size(); ++i) {
      const size_t comma = rest.find(',');
      if ((comma == std::string_view::npos) != (i + 1 == operands.size()))
        refuse(fmt::format("it does not have {} operands", operands.size()));
      read_operand(rest.substr(0, comma), operands[i]);
      if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
  }

  void read_operand(std::string_view text, const Tensor& x) {
    const int letters = static_cast<int>(parse(text, 0).size()), rank = static_cast<int>(x.dim());
    const bool dotted = text.find("...") != std::string_view::npos;
    if (dotted ? letters > rank : letters != rank)
      refuse(fmt::format("\"{}\" does not fit {}", text, describe(x)));
    ellipsis_ = std::max(ellipsis_, rank - letters);
    Term term{x, parse(text, rank - letters)};
    for (int l : term.labels) ++uses_[static_cast<size_t>(l)];
    take_diagonals(term);
    terms_.push_back(std::move(term));
  }

  // A label that occurs twice: the diagonal of its two dims becomes the last dim.
  void take_diagonals(Term& term) const {
    Labels& labels = term.labels;
    for (size_t second = 1; second < labels.size();) {
      const auto first =
          static_cast<size_t>(std::find(labels.begin(), labels.end(), labels[second]) - labels.begin());
      if (first == second) {
        ++second;
        continue;
      }
      const Shape& shape = term.tensor.impl().shape();
      if (!(shape[static_cast<int>(first)] == shape[static_cast<int>(second)]))
        fail(Category::shape_mismatch, "einsum",
             fmt::format("\"{}\": a repeated letter has different sizes in {}", equation_,
                         describe(term.tensor)));
      term.tensor = diagonal(term.tensor, 0, static_cast<int64_t>(first), static_cast<int64_t>(second));
      labels.push_back(labels[second]);
      labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(second));
      labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(first));
      second = 1;
    }
  }

  Labels output_labels() const {
    Labels out;
    if (right_) {
      out = parse(*right_, ellipsis_);
      for (int l : out) {
        if (std::count(out.begin(), out.end(), l) > 1) refuse("a letter occurs twice in the result");
        if (uses_[static_cast<size_t>(l)] == 0) refuse("a letter of the result occurs in no operand");
      }
      return out;
    }
    for (int d = ellipsis_; d > 0; --d) out.push_back(kEllipsis + d - 1);
    for (int l = 0; l < kEllipsis; ++l)
      if (uses_[static_cast<size_t>(l)] == 1) out.push_back(l);
    return out;
  }

  Term sum_unless(const Term& term, const LabelSet& wanted) const {
    IntList dims;
    Term out;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      if (wanted[static_cast<size_t>(term.labels[i])])
        out.labels.push_back(term.labels[i]);
      else
        dims.push_back(static_cast<int64_t>(i));
    }
    out.tensor = dims.empty() ? term.tensor : sum(term.tensor, dims);
    return out;
  }

  // The tensor with its dims in this order.
  Tensor ordered(const Term& term, const Labels& order) const {
    IntArray dims;
    for (int l : order)
      dims.push_back(std::find(term.labels.begin(), term.labels.end(), l) - term.labels.begin());
    bool moved = false;
    for (size_t i = 0; i < dims.size(); ++i) moved |= dims[i] != static_cast<int64_t>(i);
    return moved ? permute(term.tensor, dims) : term.tensor;
  }

  static Dim size_of(const Term& term, int label) {
    const auto i = std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin();
    return term.tensor.impl().shape()[static_cast<int>(i)];
  }

  // The common size of a label in both terms; a size of 1 is broadcast.
  Dim joint_size(const Term& a, const Term& b, int label) const {
    const Dim x = size_of(a, label), y = size_of(b, label);
    if (x.raw() == 1) return y;
    if (y.raw() != 1 && !(x == y))
      fail(Category::shape_mismatch, "einsum",
           fmt::format("\"{}\": a letter has sizes {} and {}", equation_, to_string(x), to_string(y)));
    return x;
  }

  // Labels of a pair of terms and their common sizes, by their role.
  struct Group {
    Labels labels;
    Shape shape;
    void add(int label, Dim size) {
      labels.push_back(label);
      shape.push_back(size);
    }
  };

  Term multiply(const Term& left, const Term& right, const LabelSet& wanted) const {
    const LabelSet in_left = set_of(left.labels), in_right = set_of(right.labels);
    const Term a = sum_unless(left, wanted | in_right), b = sum_unless(right, wanted | in_left);
    Group batch, summed, own_a, own_b;
    for (int l : a.labels) {
      if (!in_right[static_cast<size_t>(l)])
        own_a.add(l, size_of(a, l));
      else
        (wanted[static_cast<size_t>(l)] ? batch : summed).add(l, joint_size(a, b, l));
    }
    for (int l : b.labels)
      if (!in_left[static_cast<size_t>(l)]) own_b.add(l, size_of(b, l));
    Term result;
    Shape shape;
    for (const Group* group : {&batch, &own_a, &own_b}) {
      result.labels.insert(result.labels.end(), group->labels.begin(), group->labels.end());
      for (Dim d : group->shape) shape.push_back(d);
    }
    const Tensor x = gathered(a, {&batch, &own_a, &summed}), y = gathered(b, {&batch, &summed, &own_b});
    const Tensor out = contract(x, y, own_a.labels.empty() && own_b.labels.empty(), summed.labels.empty());
    result.tensor = out.impl().shape() == shape ? out : reshape_to(out, shape);
    return result;
  }

  // x is (batch..., m, k), y is (batch..., k, n); k counts as 1 when nothing is summed.
  Tensor contract(const Tensor& x, const Tensor& y, bool nothing_own, bool nothing_summed) const {
    if (nothing_summed) return mul(x, y);
    if (!nothing_own) return ops::product(x, y, {});
    if (x.dim() == 2) return dot(reshape_to(x, {x.impl().shape()[1]}), reshape_to(y, {y.impl().shape()[0]}));
    const Tensor turned = transpose(y, -2, -1);
    return sum(mul(x, turned), -1, false, x.dtype());
  }

  // The dims of three groups: the first group as batch dims, each of the others as one dim.
  Tensor gathered(const Term& term, std::initializer_list<const Group*> groups) const {
    Labels order;
    Shape full, grouped;
    for (const Group* group : groups) {
      order.insert(order.end(), group->labels.begin(), group->labels.end());
      for (Dim d : group->shape) full.push_back(d);
      if (group == *groups.begin())
        grouped = group->shape;
      else
        grouped.push_back(group->shape.numel());
    }
    const Tensor x = expand_to(ordered(term, order), full);
    return full == grouped ? x : reshape_to(x, grouped);
  }

  std::string equation_;
  std::string_view left_;
  std::optional<std::string_view> right_;
  std::vector<Term> terms_;
  int uses_[kLabels] = {};
  int ellipsis_ = 0;  // dims that "..." stands for, at most
};

}  // namespace

Tensor einsum(std::string_view equation, const Tensors& operands, SourceLocation where) {
  const NamedCall call("einsum", where);
  const ops::AutocastFunction cast(CastPolicy::lower_precision, {});
  Tensors given;
  for (const Tensor& x : operands) given.push_back(cast(Operand(x, where)));
  return Einsum(equation).run(given);
}

Tensor tensordot(Operand a, const Tensor& b, int64_t dims) {
  const NamedCall call("tensordot", a.where());
  if (dims < 0) fail(Category::bad_argument, "tensordot", fmt::format("dims is {}", dims));
  const int64_t rank = a.tensor().dim();
  if (dims > rank || dims > b.dim())
    fail(Category::bad_dim, "tensordot", fmt::format("an operand has fewer than {} dims", dims));
  IntList last, first;
  for (int64_t i = 0; i < dims; ++i) {
    last.push_back(rank - dims + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

namespace {

// One side of a tensordot: free dims and contracted dims.
struct Side {
  Tensor tensor;
  IntArray free, contracted;
  Shape free_shape;
  Dim free_numel = 1;

  Side(const Tensor& x, const IntList& dims) : tensor(x) {
    const int rank = static_cast<int>(tensor.dim());
    uint64_t seen = 0;
    for (int64_t d : dims) {
      const int i = wrap_dim(d, rank, "tensordot");
      if (seen >> i & 1) fail(Category::bad_dim, "tensordot", fmt::format("dim {} is given twice", i));
      seen |= uint64_t{1} << i;
      contracted.push_back(i);
    }
    for (int i = 0; i < rank; ++i) {
      if (seen >> i & 1) continue;
      free.push_back(i);
      free_shape.push_back(size(i));
      free_numel *= size(i);
    }
  }
  Dim size(int64_t dim) const { return tensor.impl().shape()[static_cast<int>(dim)]; }
  // The tensor as a matrix, with the contracted dims last or first.
  Tensor matrix(bool contracted_last) const {
    IntArray order = contracted_last ? free : contracted;
    const IntArray& rest = contracted_last ? contracted : free;
    order.insert(order.end(), rest.begin(), rest.end());
    Dim numel = 1;
    for (int64_t d : contracted) numel *= size(d);
    const Tensor x = permute(tensor, order);
    return reshape_to(x, contracted_last ? Shape{free_numel, numel} : Shape{numel, free_numel});
  }
};

}  // namespace

Tensor tensordot(Operand a, const Tensor& b, const IntList& dims_a, const IntList& dims_b) {
  const NamedCall call("tensordot", a.where());
  if (dims_a.size() != dims_b.size())
    fail(Category::bad_argument, "tensordot", "the two lists of dims differ in length");
  const ops::AutocastFunction cast(CastPolicy::promote, {&a.tensor(), &b});
  Side left(cast(a), dims_a), right(cast(b), dims_b);
  for (size_t i = 0; i < left.contracted.size(); ++i) {
    const int64_t d = left.contracted[i], e = right.contracted[i];
    const Dim m = left.size(d), n = right.size(e);
    if (m.raw() == 1)
      right.tensor = sum(right.tensor, e, true, right.tensor.dtype());
    else if (n.raw() == 1)
      left.tensor = sum(left.tensor, d, true, left.tensor.dtype());
    else if (!(m == n))
      fail(Category::shape_mismatch, "tensordot",
           fmt::format("sizes {} and {} of dims {} and {} differ", to_string(m), to_string(n), d, e));
  }
  const Tensor out = ops::product(left.matrix(true), right.matrix(false), {});
  Shape shape = left.free_shape;
  for (Dim d : right.free_shape) shape.push_back(d);
  return reshape_to(out, shape);
}

}  // namespace retrograd
