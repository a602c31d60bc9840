// Function<MyOp>: a user-defined differentiable function, in libtorch's form.
//
//   struct Scale : rg::Function<Scale> {
//     static rg::Tensor forward(rg::AutogradContext* ctx, const rg::Tensor& x, double factor) {
//       ctx->saved_data["factor"] = factor;
//       return x * factor;
//     }
//     static rg::Tensors backward(rg::AutogradContext* ctx, const rg::Tensors& grads) {
//       return {grads[0] * ctx->saved_data["factor"], {}};   // one entry per argument of forward; undefined where there is no gradient
//     }
//   };
//   rg::Tensor y = Scale::apply(x, 2.0);
//
// forward runs without gradients and tangents; the call is one tape record. Tensors given to save_for_backward become
// slots like any other: version-checked, packed by hooks, unpacked before backward is called.
// Arguments are numbered. Each tensor of a Tensors has its own number. An argument that is no tensor and an empty
// std::optional<Tensor> have a number, too.
// backward is called even when no gradient has arrived, as in PyTorch: with zeros, or with undefined tensors after
// set_materialize_grads(false).
// A result that is an argument, or a view of memory that others can see, is a view that cannot be written to while
// gradients are on.
// By default backward is opaque: a recorded graph calls it as one node, whatever it does. With `static constexpr bool
// is_traceable = true` (libtorch's name) it promises to consist of tensor functions on its arguments, saved tensors and
// saved_data. Then its operations are recorded, its saved tensors are unpacked where it asks for them, and the numbers
// of saved_data are inputs of the graph; its texts and lists are structure. While a whole function is recorded (tracer/function/compile.h), forward of an
// opaque one is not called either: an Observer makes a node of the call.
// An optional `static rg::Tensors jvp(ctx, tangents)` provides forward mode: it gets one tangent per argument and
// returns one per result.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "engine/autocast.h"
#include "engine/rule.h"
#include "engine/saved_value.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

class AutogradContext {
 public:
  /// Keeps tensors for backward: arguments, results or other tensors.
  void save_for_backward(Tensors tensors) { to_save_ = std::move(tensors); }
  /// In backward and jvp: the saved tensors, in the order in which they were given.
  Tensors get_saved_variables() const;
  /// Results that have no gradient.
  void mark_non_differentiable(const Tensors& results);
  /// Arguments that forward wrote to in place, by ops or through data_ptr. Each must also be a result.
  /// Error(leaf_inplace) for a leaf that requires a gradient.
  void mark_dirty(const Tensors& arguments) { dirty_ = arguments; }
  /// With false, backward sees undefined tensors for results without a gradient instead of zeros.
  void set_materialize_grads(bool on) { materialize_ = on; }
  /// In backward: whether this backward wants the gradient of argument i. In a recorded function: whether the recorded
  /// backward wants it.
  bool needs_input_grad(size_t i) const;

  /// Attributes for backward: numbers, texts, lists of integers.
  std::map<std::string, SavedValue> saved_data;
  /// Anything else that an opaque backward needs. Tensors in it are neither checked for writes nor packed, and live as
  /// long as the record.
  std::shared_ptr<void> saved_object;

 private:
  friend struct FunctionCall;
  // The place of a saved tensor: operand or result `index` of the record; -1: an undefined one.
  struct SavedPlace {
    bool is_result;
    int index;
    friend bool operator==(const SavedPlace&, const SavedPlace&) = default;
  };
  Tensors to_save_, dirty_;
  std::vector<SavedPlace> saved_;
  std::vector<const TensorImpl*> non_differentiable_;
  bool materialize_ = true;
  // Tells an observer which gradients backward does not give.
  std::shared_ptr<std::atomic<uint64_t>> missing_;
  Tensors (*backward_)(AutogradContext*, const Tensors&) = nullptr;
  ScalarType autocast_ = ScalarType::Undefined;  // that forward ran under: backward does, too
  size_t arguments_ = 0;
};

/// The part of Function<F>::apply that does not depend on F.
struct FunctionCall {
  using Forward = std::function<Tensors(AutogradContext*)>;
  using Backward = Tensors (*)(AutogradContext*, const Tensors&);
  /// Forward with other tensors in place of those among its arguments; the entry of an argument that is no tensor is
  /// undefined.
  using ForwardOf = std::function<Tensors(AutogradContext*, const Tensors&)>;

  /// A function and the place of its call. `arguments` has one entry per argument of forward, and one per tensor for a
  /// list; null for an argument that is no tensor.
  struct Of {
    const OpInfo* op;
    Backward backward;
    bool traceable;
    SourceLocation where;
    ScalarType autocast = retrograd::detail::autocast_dtype();  // around the call
  };
  static Tensors apply(const Of& function, const std::vector<const Tensor*>& arguments,
                       const Forward& forward);

  // ---- opaque functions while a function is recorded
  /// The properties of a call that are known only after it.
  struct Signature {
    const OpInfo* op;
    std::vector<TensorType> arguments, results;  // undefined: no tensor
    std::vector<TensorType> others;              // saved, but neither argument nor result
    std::vector<AutogradContext::SavedPlace> saved;
    std::vector<std::pair<int, int>> dirty;  // argument (-1: none of them), and the result that it becomes
    std::vector<int> non_differentiable;     // results
    // A result that shares the memory of an argument that is not dirty, and that argument.
    std::vector<std::pair<int, int>> shown;
    bool materialize;
    friend bool operator==(const Signature&, const Signature&) = default;
  };
  /// Is told of the calls of opaque functions on this thread, and records them while a function is recorded.
  class Observer {
   public:
    /// `missing`: bit i will be set when backward gives no gradient for argument i although it is wanted.
    virtual void called(Signature, std::shared_ptr<std::atomic<uint64_t>> /*missing*/) {}
    // While a function is recorded:
    /// Returns the results, then the others, as recorded values. `context` is that of the record; each run has its own.
    virtual Tensors record(const Of& function, const std::vector<const Tensor*>& arguments,
                           const ForwardOf& forward, const Signature& signature,
                           const AutogradContext& context);
    /// The expected signature of a call that is recorded now.
    virtual const Signature& expected(const Of& function, const std::vector<TensorType>& arguments);

    static Observer* current();
    class Scope {
     public:
      explicit Scope(Observer* observer);
      ~Scope();
      Scope(const Scope&) = delete;

     private:
      Observer* outer_;
    };

   protected:
    ~Observer() = default;
  };
  static bool is_recorded() {
    return Emitter::current().values() == Emitter::Values::of_function && Observer::current();
  }
  static Tensors apply_recorded(const Of& function, const std::vector<const Tensor*>& arguments,
                                const ForwardOf& forward);
  /// A call without its record.
  struct Ran {
    std::shared_ptr<AutogradContext> context;
    Tensors results, others;
    std::vector<std::pair<Tensor, int>> dirty;  // what was written to, and the result that it becomes
  };
  static Ran run_forward(const Of& function, const std::vector<const Tensor*>& arguments,
                         const Forward& forward);
  static Signature signature_of(const Of& function, const std::vector<const Tensor*>& arguments,
                                const Ran& ran);
  /// Makes the record.
  static Tensors link(const Of& function, const std::vector<const Tensor*>& arguments, const Ran& ran);
  /// run_backward with another context than that of the record. `wanted`: the arguments whose gradients are wanted;
  /// null: those that the running backward wants.
  static void call_backward(AutogradContext& context, const Record& record,
                            std::span<TensorImpl* const> operands, Tensor* results,
                            const std::vector<bool>* wanted = nullptr);
  /// The arguments of a record whose gradients the running backward wants.
  static std::vector<bool> wanted(const Record& record);
  static bool made(const Record& record) { return record.op->host_backward == run_backward; }

  static void vjp_traceable(RuleContext& rule);
  static void vjp_opaque(RuleContext& rule);
  static void jvp(TangentContext& rule, Backward jvp);
  /// Calls backward of a record's function: `operands` are the gradients of the results, then the saved tensors.
  static void run_backward(Record& record, std::span<TensorImpl* const> operands, Tensor* results);
  /// The number of operands of a record with an opaque backward that are arguments; the operands after them are saved
  /// tensors.
  static int arguments(const Record& record);
  /// The results that apply() computed beforehand.
  static void give_results(const Call& call, Tensor* results);
  static SaveSet saves(const Call& call, uint64_t wants);
  static void visit(void* attrs, AttrVisitor& visitor);

  // Attributes of the call. Fields that are not visited are not part of the key: an opaque backward reads its numbers
  // itself.
  struct Attrs {
    static constexpr size_t kNumbers = 16;
    AutogradContext* context;
    const Tensors* results;  // during apply()
    SaveSet saves;
    int64_t layout;  // a hash: the places of the saved tensors, the names of the numbers, autocast
    bool materialize, traceable;
    int8_t numbers;
    // A number of saved_data, in order of the names; traceable functions only.
    std::array<Scalar, kNumbers> number;
  };

 private:
  friend class AutogradContext;
  struct Run;
  static void place_saved(const Of& function, Ran& ran, const std::vector<const Tensor*>& arguments);
  static Attrs attrs_of(const Of& function, const Ran& ran);
  static Tensors gradients(const AutogradContext& context, const Record& record,
                           std::span<TensorImpl* const> given);
  static void check(const AutogradContext& context, const Record& record, Tensors& given,
                    const std::function<TensorType(int)>& type_of);
};

namespace detail {
template <class F>
constexpr std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("F = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') == name.npos ? 0 : name.rfind(':') + 1);
}

// The kind of an argument of a user-defined function.
template <class T>
inline constexpr bool is_tensor = std::is_base_of_v<Tensor, T>;
template <class T>
inline constexpr bool is_optional_tensor = std::is_base_of_v<std::optional<Tensor>, T>;
template <class T>
inline constexpr bool is_tensor_list = std::is_base_of_v<Tensors, T>;
/// A container of tensors, or of such containers, whose tensors would be treated as constants.
template <class T>
constexpr bool hides_tensors() {
  if constexpr (is_tensor<T> || is_optional_tensor<T> || is_tensor_list<T>)
    return false;
  else if constexpr (std::is_array_v<T>)
    return is_tensor<std::remove_all_extents_t<T>>;
  else if constexpr (requires { typename T::value_type; }) {
    using Value = std::remove_cv_t<typename T::value_type>;
    if constexpr (std::is_same_v<Value, T>)
      return false;
    else
      return is_tensor<Value> || is_optional_tensor<Value> || is_tensor_list<Value> || hides_tensors<Value>();
  }
  return false;
}

/// An argument that is used again later with other tensors: an argument that is no tensor keeps its present value.
template <class T>
struct FunctionArgument {
  explicit FunctionArgument(const T& x) : kept(x) {}
  const std::decay_t<const T>& with(const Tensor*& next) const { return ++next, kept; }
  std::decay_t<const T> kept;
};
template <class T>
requires is_tensor<T>
struct FunctionArgument<T> {
  explicit FunctionArgument(const T&) {}
  const Tensor& with(const Tensor*& next) const { return *next++; }
};
template <class T>
requires is_optional_tensor<T>
struct FunctionArgument<T> {
  explicit FunctionArgument(const T& x) : has_value(x.has_value()) {}
  std::optional<Tensor> with(const Tensor*& next) const {
    const Tensor& given = *next++;
    return has_value ? std::optional<Tensor>(given) : std::nullopt;
  }
  bool has_value;
};
template <class T>
requires is_tensor_list<T>
struct FunctionArgument<T> {
  explicit FunctionArgument(const T& x) : size(x.size()) {}
  Tensors with(const Tensor*& next) const {
    Tensors list(next, next + size);
    next += size;
    return list;
  }
  size_t size;
};

/// Notes the tensors of an argument (FunctionCall::Of).
template <class T>
void add_argument(std::vector<const Tensor*>& to, const T& x) {
  if constexpr (is_tensor<T>)
    to.push_back(&x);
  else if constexpr (is_optional_tensor<T>)
    to.push_back(x && x->defined() ? &*x : nullptr);
  else if constexpr (is_tensor_list<T>)
    for (const Tensor& t : x) to.push_back(&t);
  else
    to.push_back(nullptr);
}

// The supported forms of a user-defined function.
template <class F, class... Args>
constexpr bool has_forward() {
  if constexpr (requires(AutogradContext * c, const Args&... a) { F::forward(c, a...); }) {
    using Result =
        decltype(F::forward(static_cast<AutogradContext*>(nullptr), std::declval<const Args&>()...));
    return std::is_convertible_v<Result, Tensor> || std::is_convertible_v<Result, Tensors>;
  }
  return false;
}
template <class F>
constexpr bool has_backward() {
  if constexpr (requires(AutogradContext * c, const Tensors& g) { F::backward(c, g); })
    return std::is_convertible_v<decltype(F::backward(static_cast<AutogradContext*>(nullptr),
                                                      std::declval<const Tensors&>())),
                                 Tensors>;
  return false;
}
}  // namespace detail

template <class F>
class Function {
  // The location of the call, as a default argument: hence an overload for each number of arguments.
  using Where = SourceLocation;

 public:
  /// Calls F::forward(ctx, args...), with up to eight arguments. Error(bad_argument) when backward gives a wrong number
  /// of gradients or one for an argument that is no tensor, cotangent_mismatch when a gradient has another type than
  /// its argument.
  template <class A>
  static auto apply(const A& a, Where where = Where::current()) {
    return call(where, a);
  }
  template <class A, class B>
  static auto apply(const A& a, const B& b, Where where = Where::current()) {
    return call(where, a, b);
  }
  template <class A, class B, class C>
  static auto apply(const A& a, const B& b, const C& c, Where where = Where::current()) {
    return call(where, a, b, c);
  }
  template <class A, class B, class C, class D>
  static auto apply(const A& a, const B& b, const C& c, const D& d, Where where = Where::current()) {
    return call(where, a, b, c, d);
  }
  template <class A, class B, class C, class D, class E>
  static auto apply(const A& a, const B& b, const C& c, const D& d, const E& e,
                    Where where = Where::current()) {
    return call(where, a, b, c, d, e);
  }
  template <class A, class B, class C, class D, class E, class G>
  static auto apply(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g,
                    Where where = Where::current()) {
    return call(where, a, b, c, d, e, g);
  }
  template <class A, class B, class C, class D, class E, class G, class H>
  static auto apply(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g, const H& h,
                    Where where = Where::current()) {
    return call(where, a, b, c, d, e, g, h);
  }
  template <class A, class B, class C, class D, class E, class G, class H, class I>
  static auto apply(const A& a, const B& b, const C& c, const D& d, const E& e, const G& g, const H& h,
                    const I& i, Where where = Where::current()) {
    return call(where, a, b, c, d, e, g, h, i);
  }

 private:
  template <class... Args>
  static auto call(Where where, const Args&... args) {
    constexpr bool has_forward = detail::has_forward<F, Args...>();
    constexpr bool has_backward = detail::has_backward<F>();
    constexpr bool has_arguments = !(detail::hides_tensors<Args>() || ...);
    static_assert(has_forward,
                  "forward of a Function is: public static Tensor (or Tensors) forward(AutogradContext* ctx, "
                  "...), and takes what apply() is given.");
    static_assert(has_backward,
                  "backward of a Function is: public static Tensors backward(AutogradContext* ctx, const "
                  "Tensors& grads).");
    static_assert(has_arguments,
                  "Tensors are given to a Function as Tensor, std::optional<Tensor> or Tensors.");
    if constexpr (has_forward && has_backward && has_arguments) return checked_call(where, args...);
  }
  template <class... Args>
  static auto checked_call(Where where, const Args&... args) {
    using Result = decltype(F::forward(static_cast<AutogradContext*>(nullptr), args...));
    std::vector<const Tensor*> arguments;
    arguments.reserve(sizeof...(Args));
    (detail::add_argument(arguments, args), ...);
    const FunctionCall::Of function{&op, own_backward, traceable(), where};
    Tensors results;
    if (!traceable() && FunctionCall::is_recorded())
      results = FunctionCall::apply_recorded(function, arguments, forward_of(args...));
    else
      results = FunctionCall::apply(function, arguments,
                                    [&](AutogradContext* ctx) { return list(F::forward(ctx, args...)); });
    if constexpr (std::is_convertible_v<Result, Tensor>)
      return std::move(results[0]);
    else
      return results;
  }
  static Tensors own_backward(AutogradContext* ctx, const Tensors& grads) { return F::backward(ctx, grads); }
  static Tensors own_jvp(AutogradContext* ctx, const Tensors& tangents) { return F::jvp(ctx, tangents); }
  static Tensors list(Tensors results) { return results; }
  static Tensors list(Tensor result) { return {std::move(result)}; }
  // Forward, to be called later with other tensors.
  template <class... Args>
  static FunctionCall::ForwardOf forward_of(const Args&... args) {
    return [kept = std::tuple<detail::FunctionArgument<Args>...>(detail::FunctionArgument<Args>(args)...)](
               AutogradContext* ctx, const Tensors& given) {
      const Tensor* next = given.data();
      return std::apply(
          [&](const auto&... argument) {
            const std::tuple<decltype(argument.with(next))...> values{argument.with(next)...};
            return std::apply([&](const auto&... value) { return list(F::forward(ctx, value...)); }, values);
          },
          kept);
    };
  }
  static constexpr bool traceable() {
    if constexpr (requires { F::is_traceable; })
      return F::is_traceable;
    else
      return false;
  }
  static constexpr OpInfo make() {
    OpInfo info;
    info.name = detail::type_name<F>();
    info.arity = -1;
    info.outputs = -1;
    info.traits = static_cast<uint32_t>(Trait::effect);
    info.attrs_size = sizeof(FunctionCall::Attrs);
    info.visit_attrs = FunctionCall::visit;
    info.host_backward = FunctionCall::run_backward;
    info.run_on_host = FunctionCall::give_results;
    info.saves = FunctionCall::saves;
    info.vjp = traceable() ? FunctionCall::vjp_traceable : FunctionCall::vjp_opaque;
    if constexpr (requires(AutogradContext * c, const Tensors& t) { F::jvp(c, t); })
      info.jvp = [](TangentContext& rule) { FunctionCall::jvp(rule, own_jvp); };
    return info;
  }
  static constexpr OpInfo op = make();
};

}  // namespace retrograd
#pragma GCC visibility pop
