// Attributes outside of their domain, as a hostile text of a graph may have them. For every op of the op table, each
// integer, size, number and flag of its example call is replaced by others, one at a time. Then either the text of the
// node is refused when it is read, or the graph gives the same in replay and in a plan: the same bits, or an error in
// both.
//
// The sanitizers' build of this test checks that reads and writes stay within their memory.
#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "engine/allocator.h"
#include "engine/each_field.h"
#include "engine/runner.h"
#include "ir/replay.h"
#include "ir/type_check.h"
#include "ir/verify.h"
#include "ops/families.h"
#include "tests/errors.h"
#include "tests/ir/ir_test.h"
#include "tests/ir/run_text.h"

namespace {

namespace rg = retrograd;
namespace ir = rg::ir;
using ir_test::is_large;
using rg::Tensor;
using rg::Tensors;
using rg::TensorType;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t power(int n) { return int64_t{1} << n; }
constexpr int64_t kIntegers[] = {kLeast,
                                 kLeast + power(31),
                                 -power(32),
                                 -2,
                                 -1,
                                 0,
                                 1,
                                 2,
                                 3,
                                 64,
                                 171,
                                 power(31) - 1,
                                 power(31),
                                 power(32),
                                 power(32) + 1,
                                 power(48) + 1,
                                 power(62),
                                 kMost - 1,
                                 kMost};
constexpr int64_t kNumbers[] = {-1, 0, 1, 3}, kFlags[] = {0, 1};

// ---- the calls ------------------------------------------------------------------------------------------------------

struct Sample {
  const rg::OpInfo* op;
  std::vector<TensorType> operands;  // of dtype Undefined where there is none
  std::vector<std::byte> attrs;
  std::vector<TensorType> results;
};

// Commas within a shape do not separate.
std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (const char c : list) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      parts.push_back(std::exchange(part, {}));
    else if (c != ' ')
      part += c;
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

// "f32[2,3], none {dim=0} : f32[2]" as a graph of one node.
std::string text_of(std::string_view op, std::string_view example) {
  const size_t colon = example.rfind(" : "), brace = std::min(example.find('{'), colon);
  std::string inputs, operands, results;
  int values = 0;
  for (const std::string& operand : parts_of(example.substr(0, brace))) {
    const bool is_tensor = operand.find('[') != std::string::npos;
    if (is_tensor) inputs += fmt::format("{}%{}: {}", values ? ", " : "", values, operand);
    operands += operands.empty() ? " " : ", ";
    operands += is_tensor ? fmt::format("%{}", values++) : operand;
  }
  for (size_t i = 0, n = parts_of(example.substr(colon + 3)).size(); i < n; ++i)
    results += fmt::format("{}%r{}", i ? ", " : "", i);
  return fmt::format("graph @t({}) {{\n  {} = {}{} {}{}\n}}\n", inputs, results, op, operands,
                     example.substr(brace, colon - brace), example.substr(colon));
}

// An elementwise op needs no example: its operands are of one type.
template <class Op>
std::string example_of() {
  if constexpr (requires { Op::example; }) {
    return std::string(Op::example);
  } else {
    std::string text;
    for (int i = 0; i < Op::arity; ++i) text += i ? ", f32[2,3]" : "f32[2,3]";
    typename Op::Attrs attrs{};
    if (!rg::ops::info<Op>.has_scalar_operand)
      if (const std::string fields = ir::attrs_text(rg::ops::info<Op>, &attrs); !fields.empty())
        text += fmt::format(" {{{}}}", fields);
    return text + (Op::promotion == rg::ops::Promotion::boolean ? " : bool[2,3]" : " : f32[2,3]");
  }
}

Sample sample_of(const rg::OpInfo& op, std::string_view example) {
  const ir::Graph graph = ir_test::parse(text_of(op.name, example));
  const ir::Node& node = graph.nodes()[0];
  Sample s{&op, {}, std::vector<std::byte>(op.attrs_size), {}};
  for (ir::ValueId v : graph.operands(node))
    s.operands.push_back(v == ir::kNoValue ? TensorType{} : graph.type(v));
  if (op.attrs_size) std::memcpy(s.attrs.data(), node.attrs, op.attrs_size);
  for (int i = 0; i < node.results; ++i) s.results.push_back(graph.type(node.first_result + i));
  return s;
}

// ---- the changes ----------------------------------------------------------------------------------------------------

/// An integer, size, number or flag among the attributes: where it is, how it is set, and to what.
struct Place {
  std::string name;
  std::span<const int64_t> values;
  std::function<void(std::byte* attrs, int64_t to)> set;  // Error for what it cannot hold
};

template <class T>
Place place(std::string name, const std::vector<std::byte>& attrs, const T& field,
            std::span<const int64_t> values) {
  const auto offset = reinterpret_cast<const std::byte*>(&field) - attrs.data();
  return {std::move(name), values, [offset](std::byte* bytes, int64_t to) {
            const T value = [&] {
              if constexpr (std::is_same_v<T, bool>)
                return to != 0;
              else
                return T(to);
            }();
            std::memcpy(bytes + offset, &value, sizeof(T));
          }};
}

std::vector<Place> places_of(Sample& s) {
  std::vector<Place> places;
  const auto add = [&](std::string_view name, const auto& field, std::span<const int64_t> values) {
    places.push_back(place(std::string(name), s.attrs, field, values));
  };
  ir::for_each_field(*s.op, s.attrs.data(),
                     ir::Fields{[&](std::string_view name, int64_t& v) { add(name, v, kIntegers); },
                                [&](std::string_view name, rg::Dim& v) { add(name, v, kIntegers); },
                                [&](std::string_view name, rg::Scalar& v) { add(name, v, kNumbers); },
                                [&](std::string_view name, bool& v) { add(name, v, kFlags); },
                                [&](std::string_view name, rg::Shape& v) {
                                  for (int i = 0; i < v.rank(); ++i) add(name, v[i], kIntegers);
                                },
                                [&](std::string_view name, rg::IntList& v) {
                                  for (int i = 0; i < v.size(); ++i) add(name, v[i], kIntegers);
                                }});
  return places;
}

// ---- what becomes of them -------------------------------------------------------------------------------------------

// The types that the op's rule gives, or none where it refuses the call.
std::optional<std::vector<TensorType>> types_of(const Sample& s, std::vector<std::byte> attrs) {
  std::vector<rg::RefPtr<rg::TensorImpl>> cells;
  const auto cell = [&] { return cells.emplace_back(rg::TensorImpl::make()).get(); };
  std::vector<rg::TensorImpl*> operands, results;
  for (const TensorType& type : s.operands) {
    operands.push_back(type.dtype == rg::ScalarType::Undefined ? nullptr : cell());
    if (operands.back()) operands.back()->set_type(type.dtype, type.device, type.shape);
  }
  for (size_t i = 0; i < s.results.size(); ++i) results.push_back(cell());
  try {
    ir::infer_types({s.op, operands, attrs.data(), {}, static_cast<int>(results.size())}, results.data());
  } catch (const rg::Error&) {
    return {};
  }
  std::vector<TensorType> types;
  for (const rg::TensorImpl* result : results) types.push_back(result->type());
  return types;
}

std::string text_of(const Sample& s, const std::vector<std::byte>& attrs,
                    const std::vector<TensorType>& types) {
  ir::Graph graph;
  graph.name = "t";
  std::vector<ir::ValueId> operands, outputs;
  for (const TensorType& type : s.operands)
    operands.push_back(type.dtype == rg::ScalarType::Undefined ? ir::kNoValue : graph.add_tensor_input(type));
  const ir::Node& node = graph.append(*s.op, operands, attrs.data(), types);
  for (int i = 0; i < node.results; ++i) outputs.push_back(node.first_result + i);
  graph.set_outputs(outputs);
  return graph.print();
}

std::optional<ir::Graph> read(const std::string& text) {
  try {
    return ir_test::parse(text);
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::bad_argument);
    return {};
  }
}

struct Counts {
  int ops = 0, refused = 0, large = 0, run = 0;
};

// As the node is; its text, read, is refused where the op's rule refuses it.
void check_call(const Sample& s, const std::vector<std::byte>& attrs, Counts& counts) {
  const std::optional<std::vector<TensorType>> types = types_of(s, attrs);
  const std::string text = text_of(s, attrs, types.value_or(s.results));
  const std::optional<ir::Graph> graph = read(text);
  if (!graph) return void(++counts.refused);
  if (!types) {
    FAIL_CHECK("it is read, though its rule refuses it:\n" << text);
    return;
  }
  ir::verify(*graph);
  if (is_large(*types)) return void(++counts.large);
  ++counts.run;
  ir_test::check_alike(*graph);
}

void check_op(Sample s, Counts& counts) {
  ++counts.ops;
  INFO(s.op->name);
  const int run = counts.run;
  check_call(s, s.attrs, counts);
  CHECK(counts.run == run + 1);
  for (const Place& place : places_of(s)) {
    for (int64_t value : place.values) {
      INFO(place.name << " = " << value);
      std::vector<std::byte> attrs = s.attrs;
      try {
        place.set(attrs.data(), value);
      } catch (const rg::Error&) {
        continue;  // no size has this value, and no text: see below
      }
      try {
        check_call(s, attrs, counts);
      } catch (const std::exception& e) {
        FAIL_CHECK("neither Error nor OutOfMemory: " << e.what());
      }
    }
  }
}

class MemoryLimit {
 public:
  MemoryLimit() { rg::memory::set_limit(power(28)); }
  ~MemoryLimit() { rg::memory::set_limit(0); }
};

// A graph with one more node, which is refused with these words.
void check_refused(const std::string& node, const std::string& words) {
  const std::string text =
      "graph @t(%x: f32[3,4], %v: f32[2,3], %i: i64[2], %s: f32[2,4], %g: f32[1,2,4]) {\n  %r = " + node +
      "\n}\n";
  INFO(text);
  const std::string found = ir_test::error_of<rg::Error>([&] { ir_test::parse(text); });
  INFO(found);
  CHECK(found.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("attributes of every op at the ends of their types") {
  const MemoryLimit limit;
  const rg::NoGradGuard no_grad;
  Counts counts;
  rg::ops::for_each_family([&]<class List>(std::string_view) {
    List::for_each([&]<class Op>() { check_op(sample_of(rg::ops::info<Op>, example_of<Op>()), counts); });
  });
  CHECK(counts.ops > 150);
  CHECK(counts.refused > 1000);
  CHECK(counts.run > 500);
  CHECK(counts.large > 20);
}

TEST_CASE("views do not leave the memory that they are put into") {
  const std::string scatter =
      "as_strided_scatter %x, %v {size=[2,3], stride=[4,1], base_stride=[4,1], base_is_dense=true, offset=";
  for (const char* offset : {"2147483648", "4294967296", "6", "-1"})
    check_refused(scatter + offset + "} : f32[3,4]", "are not within the 12 of the base");
  check_refused(scatter + "9223372036854775807} : f32[3,4]", "is above 2^48");
  check_refused(scatter + "-9223372036854775808} : f32[3,4]", "is not a size or an index");
  check_refused(
      "as_strided_scatter %x, %v {size=[2,3], stride=[4,1], offset=0, base_stride=[4], base_is_dense=false} "
      ": f32[3,4]",
      "sizes and strides are not equally many");
  check_refused(
      "as_strided_backward %v {size=[2,3], stride=[4,1], offset=6, base_stride=[], base_is_dense=true, "
      "input_size=[12]} : f32[12]",
      "are not within the 12 of the base");
  check_refused("slice %x {dim=0, start=0, length=-9223372036854775808, step=1} : f32[3,4]",
                "is not a size or an index");
}

TEST_CASE("dims are not cut to 32 bits") {
  for (const char* dim : {"4294967296", "4294967297", "-9223372036854775808", "-1", "2"}) {
    const std::string attrs = std::string(" {dim=") + dim + "} : ", words = std::string("dim ") + dim;
    check_refused("cat %x, %x" + attrs + "f32[6,4]", words);
    check_refused("index_select %x, %i" + attrs + "f32[2,4]", words);
    check_refused("index_copy %x, %i, %s" + attrs + "f32[3,4]", words);
    check_refused("index_add %x, %i, %s" + attrs + "f32[3,4]", words);
    check_refused("flip %x {dims=[" + std::string(dim) + "]} : f32[3,4]", words);
  }
  check_refused("flip %x {dims=[0,0]} : f32[3,4]", "dim 0 is given twice");
  check_refused("argmax %g {dim=[0,2], keepdim=false} : i64[2]", "one dim or all");
}

TEST_CASE("numbers that an op is not defined for") {
  for (const char* n : {"2147483647", "4294967297", "171", "0", "-1"})
    check_refused("polygamma %x {n=" + std::string(n) + "} : f32[3,4]", "n is below 1 or above 170");
  for (const char* n : {"6", "-1", "4294967296"})
    check_refused("special_i0e %x {derivative=" + std::string(n) + "} : f32[3,4]", "go up to order 5");
  check_refused("special_bessel_i %x {order=17} : f32[3,4]", "order is at most 16");
  const std::string draw = ", seed=1, offset=0} : ";
  check_refused("dropout %x {p=1.5" + draw + "f32[3,4]", "outside [0, 1]");
  check_refused("bernoulli_number {size=[2], p=-0.5, dtype=f32" + draw + "f32[2]", "outside [0, 1]");
  check_refused("randint {size=[2], low=3, high=3, dtype=i64" + draw + "i64[2]", "must be below high");
  check_refused("randint {size=[2], low=0, high=3, dtype=bool" + draw + "bool[2]", "does not fit into bool");
  check_refused("normal {size=[2], mean=0.0, std=-1.0, dtype=f32" + draw + "f32[2]", "is negative");
  check_refused("normal_around none, none {mean=0.0, std=1.0, seed=1, offset=0} : f32[2]",
                "must be a tensor");
  check_refused("huber %x {delta=0.0} : f32[3,4]", "delta is not positive");
  check_refused("smooth_l1 %x {beta=0.0} : f32[3,4]", "beta is not positive");
}

TEST_CASE("windows that are none") {
  const std::string pad = "pad %x {before=[0,4], after=[0,0], mode=";
  for (const char* mode : {"3", "-1", "4294967298"})
    check_refused(pad + mode + "} : f32[3,8]", std::string("there is no mode ") + mode);
  const std::string pool = "avg_pool %g {kernel_size=[2], stride=[2], padding=[0], count_include_pad=true, ";
  check_refused(pool + "divisor_override=0, size=[3]} : f32[1,2,3]", "there are not 3 windows in 4");
  check_refused(pool + "divisor_override=9223372036854775807, size=[2]} : f32[1,2,2]", "is not representable as a double");
  const std::string grid = "interpolate %g {size=[5], align_corners=false, scale_d=0.0, scale_h=0.0, ";
  check_refused(grid + "mode=0, antialias=false, scale_w=1e-300} : f32[1,2,5]", "are not 5");
  check_refused(grid + "mode=3, antialias=false, scale_w=0.0} : f32[1,2,5]", "do not go together");
  check_refused(grid + "mode=2, antialias=true, scale_w=0.0} : f32[1,2,5]", "do not go together");
}

TEST_CASE("sizes that no memory has") {
  check_refused("full {size=[4611686018427387904,4], value=1, dtype=f32} : f32[4611686018427387904,4]",
                "does not fit into 63 bits");
  check_refused("full {size=[-1], value=1, dtype=f32} : f32[1]", "a size is negative");
  check_refused("view %x {size=[-3,-4]} : f32[3,4]", "a size is negative");
}

TEST_CASE("a size that comes out negative at other values is an error, not a tensor") {
  const ir::Graph graph = ir_test::parse(
      "graph @t[s0 = 6](%0: f32[s0]) {\n  %1 = full {size=[(s0-4)], value=1, dtype=f32} : f32[(s0-4)]\n"
      "  return %1\n}\n");
  ir::verify(graph);
  std::vector<ir::Binding> bindings(1);
  bindings[0].tensor = rg::ones({3});
  const std::vector<rg::Number> values = ir::symbol_values(graph, bindings);
  CHECK(rg::category_of([&] { ir::replay(graph, rg::eager_runner(), bindings); }) ==
        rg::Category::bad_argument);
  CHECK(rg::category_of([&] { rg::Plan({graph, values, rg::cpu_executor()}); }) ==
        rg::Category::bad_argument);
}
