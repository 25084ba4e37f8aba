#include "ir/op.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <utility>

#include "base/codes/operators.h"
#include "base/codes/text.h"
#include "base/codes/types.h"
#include "base/fork.h"
#include "base/suggest.h"

namespace relay {

std::string_view to_string(FusionClass c) {
  switch (c) {
    case FusionClass::ElemWise:
      return "ElemWise";
    case FusionClass::Broadcast:
      return "Broadcast";
    case FusionClass::Injective:
      return "Injective";
    case FusionClass::CommReduce:
      return "CommReduce";
    case FusionClass::OutEWiseFusable:
      return "OutEWiseFusable";
    case FusionClass::Opaque:
      return "Opaque";
  }
  return "?";
}

const TensorTypeNode* RelationContext::tensor(size_t i) {
  const Type& t = args_[i];
  if (auto* tensor = as<TensorTypeNode>(t)) {
    if (!tensor->shape_var && !tensor->dtype_var) return tensor;
    return fail(codes::type_rank,
                "argument '" + std::string(op_.args[i].name) +
                    "' must be a tensor of known rank and base type",
                "a tensor like Tensor[(n, m), float32]", to_string(t),
                tensor->shape_var ? "name the dimensions instead of the shape: [n: Dim, m: Dim]"
                                  : "write the function for one base type");
  }
  if (!t || isa<IncompleteTypeNode>(t)) return nullptr;
  return fail(codes::type_mismatch,
              "argument '" + std::string(op_.args[i].name) + "' must be a tensor", "a tensor",
              to_string(t));
}

std::optional<std::vector<TensorType>> RelationContext::tensors(size_t i) {
  const Type& t = args_[i];
  if (!t || isa<IncompleteTypeNode>(t)) return std::nullopt;
  auto* tuple = as<TupleTypeNode>(t);
  if (tuple == nullptr) {
    fail(codes::type_mismatch,
         "argument '" + std::string(op_.args[i].name) + "' must be a tuple of tensors",
         "a tuple of tensors", to_string(t), "wrap the tensors in a tuple: (a, b)");
    return std::nullopt;
  }
  std::vector<TensorType> out;
  for (const Type& f : tuple->fields) {
    if (isa<TensorTypeNode>(f)) {
      out.push_back(cast<TensorTypeNode>(f));
      continue;
    }
    if (f && !isa<IncompleteTypeNode>(f)) {
      fail(codes::type_mismatch,
           "argument '" + std::string(op_.args[i].name) + "' must hold tensors only",
           "a tuple of tensors", to_string(t));
    }
    return std::nullopt;
  }
  return out;
}

std::nullptr_t RelationContext::fail(const DiagnosticCode& code, std::string message,
                                     std::string expected, std::string found, std::string help) {
  if (!failure_) {
    failure_ = Diagnostic(code, span_, std::string(op_.name) + ": " + std::move(message));
    failure_->expected(std::move(expected)).found(std::move(found)).help(std::move(help));
  }
  return nullptr;
}

bool RelationContext::equal(const Dim& a, const Dim& b) {
  if (dim_differs(a, b)) return false;
  if (!dim_equal(a, b) && !is_any(a) && !is_any(b)) {
    assumptions_.push_back({DimAssumption::kEqual, a, b});
  }
  return true;
}

bool RelationContext::at_least(const Dim& a, const Dim& b) {
  Dim difference = a - b;
  if (auto known = as_const(difference)) return *known >= 0;
  if (!is_any(difference) && !never_negative(difference)) {
    assumptions_.push_back({DimAssumption::kAtLeast, a, b});
  }
  return true;
}

Dim RelationContext::broadcast(const Dim& a, const Dim& b) {
  if (as_const(a) == 1) return b;
  if (as_const(b) == 1 || dim_equal(a, b)) return a;
  if (dim_differs(a, b)) return nullptr;
  if (!is_any(a) && !is_any(b)) {
    bool alike = never_one(a) && never_one(b);
    assumptions_.push_back({alike ? DimAssumption::kEqual : DimAssumption::kBroadcast, a, b});
  }
  return relay::broadcast(a, b);
}

std::string to_string(const DimAssumption& assumption) {
  std::string a = to_string(assumption.a), b = to_string(assumption.b);
  switch (assumption.kind) {
    case DimAssumption::kEqual:
      return a + " must equal " + b;
    case DimAssumption::kAtLeast:
      return a + " must be at least " + b;
    case DimAssumption::kBroadcast:
      return a + " must equal " + b + ", or one of them be 1";
  }
  return "";
}

namespace {

// Far beyond any memory, far below where sizes in bytes overflow 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 48;
constexpr int64_t kMaxRank = 64;

void check_result(RelationContext& ctx, const Type& result) {
  auto tensors = flatten_tensor_types(result);
  if (!tensors) return;
  for (const TensorType& t : *tensors) {
    if (t->rank() > kMaxRank) {
      ctx.fail(codes::type_overflow, "the result has too many dimensions",
               "at most " + std::to_string(kMaxRank), std::to_string(t->rank()));
      return;
    }
    int64_t total = 1;
    bool huge = false;
    for (const Dim& d : t->shape) {
      auto size = as_const(d);
      if (!size) continue;
      if (*size < 0) {
        ctx.fail(codes::type_shape, "a size of the result would be negative", "0 or more",
                 to_string(Type(t)));
        return;
      }
      // Strides are products too, so an empty axis excuses nothing.
      int64_t factor = std::max<int64_t>(*size, 1);
      huge |= total >= kMaxElements / factor;
      if (!huge) total *= factor;
    }
    if (huge) {
      ctx.fail(codes::type_overflow, "the result is absurdly large", "fewer than 2^48 elements",
               to_string(Type(t)));
      return;
    }
  }
}

}  // namespace

std::string named_args(const OpInfo& op) {
  std::string names;
  for (const ArgInfo& a : op.args) names += (names.empty() ? " (" : ", ") + std::string(a.name);
  return std::to_string(op.args.size()) + (names.empty() ? "" : names + ")");
}

namespace {

// The first dtype of a type's tensors that is not computed with.
std::optional<DType> only_moved_part(const Type& type) {
  if (auto* t = as<TensorTypeNode>(type)) {
    return t->dtype.is_only_moved() ? std::optional(t->dtype) : std::nullopt;
  }
  auto parts = isa<TupleTypeNode>(type) ? flatten_tensor_types(type) : std::nullopt;
  for (const TensorType& t : parts.value_or(std::vector<TensorType>{})) {
    if (t->dtype.is_only_moved()) return t->dtype;
  }
  return std::nullopt;
}

bool refuses_narrow(RelationContext& ctx, const Type& type) {
  auto part = type && !ctx.op().takes_narrow ? only_moved_part(type) : std::nullopt;
  if (!part) return false;
  if (part->is_string()) {
    ctx.fail(codes::type_dtype, "strings are moved and compared, not computed with",
             "a dtype of numbers", part->to_string());
  } else {
    ctx.fail(codes::type_dtype, "elements of this dtype are stored and cast, not computed with",
             "a wider dtype", part->to_string(), "cast before and after");
  }
  return true;
}

bool has_strings(const Type& type) {
  auto part = type ? only_moved_part(type) : std::nullopt;
  return part && part->is_string();
}

// Where no strings come in, only operators of text make some: the words of all others are numbers.
bool invents_strings(RelationContext& ctx, const Type& result) {
  if (!has_strings(result) || ctx.op().name.starts_with("text.")) return false;
  for (size_t i = 0; i < ctx.size(); ++i) {
    if (has_strings(ctx.arg(i))) return false;
  }
  ctx.fail(codes::type_dtype, "strings are moved and compared, not computed with",
           "a dtype of numbers", "string");
  return true;
}

}  // namespace

Type RelationContext::by_relation(const OpInfo& other, std::initializer_list<size_t> args,
                                  Attrs attrs) {
  std::vector<Type> types;
  for (size_t i : args) types.push_back(args_[i]);
  RelationContext inner(other, std::move(types), attrs ? std::move(attrs) : attrs_, span_, result_);
  Type out = other.relation(inner);
  for (auto& [i, type] : inner.solved_) solved_.emplace_back(args.begin()[i], std::move(type));
  for (DimAssumption& a : inner.assumptions_) assumptions_.push_back(std::move(a));
  if (inner.failure_ && !failure_) failure_ = std::move(inner.failure_);
  return out;
}

Type run_relation(RelationContext& ctx) {
  for (size_t i = 0; i < ctx.size(); ++i) {
    if (refuses_narrow(ctx, ctx.arg(i))) return nullptr;
  }
  Type result = ctx.op().relation(ctx);
  if (result && !ctx.failure() && !refuses_narrow(ctx, result) && !invents_strings(ctx, result)) {
    check_result(ctx, result);
  }
  return ctx.failure() ? nullptr : result;
}

std::vector<DimAssumption> assumptions_of(const CallNode& call) {
  auto* op = as<OpNode>(call.op);
  if (op == nullptr) return {};
  std::vector<Type> args;
  for (const Expr& a : call.args) args.push_back(a->type);
  RelationContext ctx(*op->row, std::move(args), call.attrs, call.span);
  run_relation(ctx);
  return ctx.assumptions();
}

Type apply_relation(const OpInfo& op, const std::vector<Type>& args, const Attrs& attrs,
                    const Span& span) {
  if (args.size() != op.args.size()) {
    throw UserError(
        Diagnostic(codes::type_arity, span,
                   std::string(op.name) + " is called with the wrong number of arguments")
            .expected(named_args(op))
            .found(std::to_string(args.size())));
  }
  if (op.attrs != nullptr && (!attrs || &attrs->info() != op.attrs.get())) {
    throw UserError(Diagnostic(codes::op_bad_attribute, span,
                               std::string(op.name) + " is called with attributes of another kind")
                        .expected(std::string(op.attrs->name))
                        .found(attrs ? std::string(attrs->info().name) : "none"));
  }
  RelationContext ctx(op, args, attrs, span);
  Type result = run_relation(ctx);
  if (ctx.failure()) throw UserError(*ctx.failure());
  return result;
}

Attrs default_attrs(const OpInfo& op) {
  return op.attrs == nullptr ? nullptr : Attrs::unchecked(NodeRef(op.attrs->create(*op.attrs)));
}

std::string_view to_string(Absent reason) {
  switch (reason) {
    case Absent::Unsaid:
      return "nothing is said";
    case Absent::Pending:
      return "the rule is due and not written yet";
    case Absent::NotDifferentiable:
      return "no argument moves the result smoothly, but for a trained model's numbers, which are "
             "constants";
    case Absent::NoArithmetic:
      return "elements are moved, made, compared or counted";
    case Absent::DataDecides:
      return "how much is computed depends on values";
    case Absent::AxesAsWritten:
      return "the axes are as the attributes say";
    case Absent::OnePiece:
      return "the result is one piece of memory";
    case Absent::NotOneSum:
      return "what is computed is not one sum of products";
    case Absent::Replaced:
      return "a pass replaces the operator before kernels are made";
    case Absent::MadeByPasses:
      return "passes make the operator after gradients are taken";
    case Absent::LaneByLane:
      return "a batch is computed one lane after the other";
    case Absent::OnlySizes:
      return "the result depends on sizes only";
    case Absent::Defined:
      return "the operator is written in others";
    case Absent::ByNumPy:
      return "the tests have the formula over NumPy's arrays";
  }
  return "?";
}

bool may_end_run(const CallNode& call) {
  auto* op = as<OpNode>(call.op);
  if (op == nullptr) return false;
  const EndRule& rule = op->row->may_end_run;
  return (rule != nullptr && rule(call)) || !assumptions_of(call).empty();
}

std::vector<std::string_view> missing_columns(const OpInfo& row) {
  std::vector<std::string_view> out;
  auto demand = [&](std::string_view name, bool there) {
    if (!there) out.push_back(name);
  };
  // A rule, or one of the reasons that excuse this column. An empty function is no rule.
  auto rule = [&]<class T>(std::string_view name, const Column<T>& column,
                           std::initializer_list<Absent> excuses = {}) {
    bool given = static_cast<bool>(column);
    if constexpr (std::is_class_v<T> && std::is_constructible_v<bool, const T&>)
      given = given && static_cast<bool>(column.get());
    bool excused = !column && std::ranges::find(excuses, column.reason()) != excuses.end();
    demand(name, given || excused);
  };
  auto documented = [](const ArgInfo& a) { return !a.name.empty() && !a.doc.empty(); };
  bool stored = std::any_of(row.examples.begin(), row.examples.end(),
                            [](const OpExample& e) { return !e.results.empty(); });
  demand("doc", !row.doc.empty());
  demand("args", std::all_of(row.args.begin(), row.args.end(), documented));
  rule("fusion", row.fusion);
  rule("effect", row.effect);
  rule("relation", row.relation);
  rule("compute", row.compute, {Absent::Replaced, Absent::Defined});
  bool defined = !row.compute && row.compute.reason() == Absent::Defined;
  // Beside a rule a definition says what the gradient is.
  bool by_definition = !row.gradient && row.gradient.reason() == Absent::Pending;
  demand("definition", row.definition ? defined || by_definition : !defined);
  if (row.fusion && row.fusion.get() == FusionClass::OutEWiseFusable)
    rule("contraction", row.contraction, {Absent::NotOneSum});
  rule("layout", row.layout, {Absent::AxesAsWritten});
  rule("memory", row.memory, {Absent::OnePiece});
  rule("precision", row.precision);
  rule("cost", row.cost, {Absent::NoArithmetic, Absent::DataDecides});
  rule("gradient", row.gradient,
       {Absent::Pending, Absent::NotDifferentiable, Absent::MadeByPasses});
  bool by_broadcasting = row.fusion && row.fusion.get() <= FusionClass::Broadcast;
  if (!row.batching.unsaid() || (!by_broadcasting && !row.contraction && !defined))
    rule("batching", row.batching, {Absent::LaneByLane, Absent::OnlySizes});
  auto complete = [&](const OpExample& e) { return e.args.size() == row.args.size(); };
  demand("examples", !row.examples.empty() && std::ranges::all_of(row.examples, complete));
  rule("expected", row.expected, {Absent::ByNumPy});
  if (row.expected) demand("results of an example", stored);
  return out;
}

struct OpRegistry::State {
  mutable ForkSafeSharedMutex mutex;
  std::map<std::string, Op, std::less<>> ops;
  // The names of Relay's own operators, and the namespaces in them.
  std::set<std::string, std::less<>> own, own_namespaces;

  // The caller holds the mutex.
  Op add(std::shared_ptr<const OpInfo> row) {
    Op op = make<OpNode>([&](OpNode& n) {
      n.name = row->name;
      n.row = std::move(row);
    });
    ops.emplace(op->name, op);
    return op;
  }
};

OpRegistry::OpRegistry() : state_(std::make_unique<State>()) {}
OpRegistry::~OpRegistry() = default;

OpRegistry& OpRegistry::global() {
  static OpRegistry registry;
  return registry;
}

namespace {

// Everything before the first dot; empty when there is none.
std::string_view namespace_of(std::string_view name) {
  size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

// Identifiers with dots between them, two or more.
bool is_namespaced(std::string_view name) {
  bool start = true, dotted = false;
  for (char c : name) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (start ? !letter : !(letter || (c >= '0' && c <= '9') || c == '.')) return false;
    start = c == '.';
    dotted |= start;
  }
  return dotted && !start;
}

}  // namespace

Op OpRegistry::add(OpInfo row) {
  auto refuse = [&](const DiagnosticCode& code, std::string what) {
    return Diagnostic(code, {}, "operator '" + row.name + "' " + std::move(what));
  };
  std::unique_lock lock(state_->mutex);
  if (!is_namespaced(row.name) || state_->own_namespaces.contains(namespace_of(row.name))) {
    throw UserError(refuse(codes::op_bad_name, "is not named in a namespace of its own")
                        .expected("letters, digits and _ with a dot: mylib.op")
                        .found(row.name));
  }
  if (state_->ops.contains(row.name)) {
    throw UserError(refuse(codes::op_name_taken, "is registered already")
                        .help("remove it first, or choose another name"));
  }
  std::string missing;
  for (std::string_view column : missing_columns(row)) {
    missing += (missing.empty() ? "" : ", ") + std::string(column);
  }
  if (!missing.empty()) {
    throw UserError(refuse(codes::op_incomplete, "says nothing in some columns")
                        .expected("a rule in each, or the reason why there is none")
                        .found("nothing in " + missing)
                        .help("such as layout = Absent::AxesAsWritten"));
  }
  return state_->add(std::make_shared<const OpInfo>(std::move(row)));
}

void OpRegistry::remove(std::string_view name) {
  Op gone = get(name);  // dies after the lock
  std::unique_lock lock(state_->mutex);
  if (state_->own.contains(name)) {
    throw UserError(
        Diagnostic(codes::op_bad_name, {},
                   "operator '" + std::string(name) + "' is Relay's own and cannot be removed"));
  }
  if (auto it = state_->ops.find(name); it != state_->ops.end()) state_->ops.erase(it);
}

void OpRegistry::install(std::span<const OpInfo> rows) {
  std::unique_lock lock(state_->mutex);
  for (const OpInfo& row : rows) {
    RELAY_CHECK(!state_->ops.contains(row.name), row.name + " is registered twice");
    // Not owned: the rows outlive the registry.
    state_->add(std::shared_ptr<const OpInfo>(std::shared_ptr<void>(), &row));
    state_->own.insert(row.name);
    if (auto space = namespace_of(row.name); !space.empty()) state_->own_namespaces.emplace(space);
  }
}

Op OpRegistry::find(std::string_view name) const {
  std::shared_lock lock(state_->mutex);
  auto it = state_->ops.find(name);
  return it == state_->ops.end() ? nullptr : it->second;
}

Op OpRegistry::get(std::string_view name, const Span& span) const {
  if (Op op = find(name)) return op;
  std::vector<Op> ops = all();
  std::vector<std::string_view> known;
  for (const Op& op : ops) known.push_back(op->name);
  throw UserError(Diagnostic(codes::text_unknown_operator, span,
                             "there is no operator '" + std::string(name) + "'")
                      .help(suggest(name, known)));
}

std::vector<Op> OpRegistry::all() const {
  std::shared_lock lock(state_->mutex);
  std::vector<Op> out;
  out.reserve(state_->ops.size());
  for (const auto& [name, op] : state_->ops) out.push_back(op);
  return out;
}

}  // namespace relay
