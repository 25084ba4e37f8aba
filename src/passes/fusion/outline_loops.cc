#include "passes/fusion/outline_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "analysis/primitives.h"
#include "base/ancestors.h"
#include "ir/op.h"
#include "ir/open_sizes.h"
#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/structure/to_a_normal_form.h"

namespace relay {
namespace {

// Kernels are nests of statements, which lowering descends; deeper programs are not written by hand.
constexpr int kMostDepth = 48;
// Below this many expressions a kernel is compiled in well under a second.
constexpr size_t kMostNodes = 4000;
// So many operations are done as fast by a plain loop as by a kernel of its own, which is entered first.
constexpr double kFewOperations = 512;
// Beside an axis of any length, a row has so many elements at most.
constexpr int64_t kShortAxis = 64;
// Tensors have so few axes that the sizes of one are numbers beside each other.
constexpr double kMostAxes = 8;
// How far from a slice what is computed of it is found.
constexpr int kMostSteps = 16;

constexpr const char* kNotCalled = "a function in it is not called where it is defined";

// Why a kernel of a loop has no value of a type; empty: it may. One that is `stored` has elements.
std::string defect_of(const Type& type, bool stored = true) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return "it carries a value of type " + to_string(type);
  for (const TensorType& t : *tensors) {
    if (stored && std::ranges::any_of(t->shape, [](const Dim& d) { return as_const(d) == 0; }))
      return "it carries a tensor without elements";
    if (t->dtype.is_only_moved() || t->dtype.is_string())
      return "it carries elements of dtype " + t->dtype.to_string();
  }
  return {};
}

// The elements of all tensors of a type; infinity where a size is open.
double elements_of(const Type& type) {
  double out = 0;
  const auto tensors = flatten_tensor_types(type);
  for (const TensorType& t : *tensors) {
    double count = 1;
    for (const Dim& d : t->shape) {
      auto size = as_const(d);
      count *= size ? static_cast<double>(*size) : std::numeric_limits<double>::infinity();
    }
    const bool none = std::ranges::any_of(t->shape, [](const Dim& d) { return as_const(d) == 0; });
    out += none ? 0 : count;
  }
  return out;
}

// About the operations of a call: each element that it reads or makes; of a contraction the terms of its sums, m k n for
// operands of m k and k n elements.
double operations_of(const CallNode& c, FusionClass fusion) {
  double out = elements_of(c.type), read = 0, all = out;
  for (const Expr& a : c.args) {
    read += elements_of(a->type);
    all *= elements_of(a->type);
  }
  return fusion == FusionClass::OutEWiseFusable ? std::sqrt(all) : std::max(out, read);
}

bool is_of_scalars(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors &&
         std::ranges::all_of(*tensors, [](const TensorType& t) { return t->shape.empty(); });
}
bool takes_scalars(const CallNode& c) {
  return std::ranges::all_of(c.args, [&](const Expr& a) { return is_of_scalars(a->type); });
}
bool is_of_scalars(const CallNode& c) { return is_of_scalars(c.type) && takes_scalars(c); }

// What an assertion says.
bool is_text(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr && t->shape.empty() && t->dtype.is_string();
}

// A number, or elements along one axis of any length: a row of a matrix, a part of a vector.
bool is_line(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  if (t == nullptr) return false;
  int64_t others = 1;
  int long_axes = 0;
  for (const Dim& d : t->shape) {
    auto size = as_const(d);
    if (size && *size <= kShortAxis) {
      others *= *size;
    } else {
      ++long_axes;
    }
  }
  return long_axes <= 1 && others <= kShortAxis;
}

// Whether a size of a tensor is a number of the call.
bool has_named_size(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr &&
         std::ranges::any_of(t->shape, [](const Dim& d) { return !as_const(d) && !is_any(d); });
}

bool is_open(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors && std::ranges::any_of(*tensors, [](const TensorType& t) {
           return std::ranges::any_of(t->shape, is_any);
         });
}

// Why a kernel of a loop does not know the sizes of a call's result, which no type says; empty: it does. The sizes of rows
// that an iteration selects are numbers of the iteration, of which operators derive those of their results.
std::string defect_of_sizes(const CallNode& c) {
  if (!is_open(c.type) && std::ranges::none_of(c.args, is_open, &ExprNode::type)) return {};
  if (makes_open_row(ref(c))) return {};
  std::vector<Expr> args;
  for (const Expr& a : c.args) {
    Type named =
        with_sizes_named(a->type, [](size_t, size_t) { return dim(type_var("s", Kind::Dim)); });
    args.push_back(var("v", std::move(named)));
  }
  const std::string defect = "computes " + to_string(c.type) + " in each iteration";
  try {
    if (is_open(call(c.op, std::move(args), c.attrs, c.span)->type)) return defect;
  } catch (const UserError&) {
    return defect;  // it takes no operands of such sizes
  }
  // What is stored by a rule's own statements takes memory of a known size.
  const bool by_element = as<OpNode>(c.op)->row->fusion <= FusionClass::Injective;
  const bool stored = (!by_element || may_end_run(c)) && !writes_over(ref(c));
  return is_open(c.type) && stored ? defect : "";
}

// How the elements of a result depend on those of operands, of which an operator of open sizes takes the first from its
// static form.
FusionClass class_of(const OpInfo& row) {
  return row.static_form ? OpRegistry::global().get(row.static_form->op)->row->fusion : row.fusion;
}

// Why a kernel of a loop does not compute the call of an operator; empty: it does. `of_rows`: it computes a number or a row
// from rows. `once`: it does so at an end, and not in each iteration.
std::string defect_of(const CallNode& c, bool of_rows, bool once) {
  const OpInfo& row = *as<OpNode>(c.op)->row;
  const bool asserts = is_assertion(ref(c));
  if (row.effect != Effect::Pure && !asserts) return row.name + " has an effect";
  std::string defect = defect_of(c.type, false);
  for (const Expr& a : c.args) {
    const auto tensors = flatten_tensor_types(a->type);
    if (asserts && tensors &&
        std::ranges::all_of(*tensors, [](const TensorType& t) { return is_text(t) || is_line(t); }))
      continue;
    if (defect.empty()) defect = defect_of(a->type, false);
  }
  if (asserts) return defect;
  if (!defect.empty()) return defect;
  if (row.compute == nullptr) return row.name + " is no kernel";
  if (std::string d = defect_of_sizes(c); !d.empty()) return row.name + " " + d;
  if (is_of_scalars(c) || writes_over(ref(c))) return {};
  if (makes_open_row(ref(c)) && is_line(c.type)) return {};
  if ((once || is_open(c.type)) && class_of(row) <= FusionClass::Injective) return {};
  if (row.fusion == FusionClass::Injective && isa<TensorTypeNode>(c.type)) return {};
  if (row.fusion <= FusionClass::OutEWiseFusable &&
      (of_rows || operations_of(c, row.fusion) <= kFewOperations))
    return {};
  return row.name + " computes " + to_string(c.type) + " in each iteration";
}

// One loop, with the loops inside it: whether it can be a kernel, and what it is made of.
class LoopNest {
 public:
  // `called_once`: behind its definition, one expression uses the loop. `outside`: whether an expression below the loop is
  // computed before the loop begins.
  LoopNest(const LetNode& l, bool called_once, const std::function<bool(const Node&)>& outside)
      : outside_(outside) {
    auto* entry = as<CallNode>(l.body);
    if (!called_once || entry == nullptr || !(entry->op == l.var)) {
      reason_ = "it is not called where it is defined";
      span_ = l.value->span;
      return;
    }
    // Kernels take tensors, and give one, or a tuple of several.
    for (const Expr& a : entry->args) {
      if (!isa<TensorTypeNode>(a->type)) fail(entry->span, "its state is a " + to_string(a->type));
    }
    if (!is_result_of_kernel(entry->type))
      fail(entry->span, "its result is a " + to_string(entry->type));
    find_invariants(l.value);
    add_loop(l, -1, true);
    // What is computed in each iteration first: it must not be what an end may compute only.
    while ((!work_.empty() || !ends_.empty()) && reason_.empty()) {
      std::vector<Work>& from = work_.empty() ? ends_ : work_;
      Work w = from.back();
      from.pop_back();
      visit(w);
    }
  }

  // Empty: it can.
  const std::string& reason() const { return reason_; }
  const Span& span() const { return span_; }
  // The function, defined outside, whose call is the reason.
  const Node* missing() const { return missing_; }
  // What the kernel is given: expressions that are computed once, outside of the loop.
  const std::vector<Expr>& parameters() const { return parameters_; }
  // The definitions of joins that something follows.
  const std::unordered_set<const Node*>& joined_inside() const { return joined_inside_; }
  // Whether a function in it calls itself.
  bool repeats() const { return !going_on_.empty(); }

 private:
  // A loop; `around`: the loop in whose tail position it is called, which its leaves may go on with. A function that runs
  // once is one, too.
  struct Loop {
    int around;
    int depth;
    // Whether it, or the outermost of the loops around it, is entered once.
    bool entered_once;
  };
  // An expression, and the loop in whose tail position it is; -1: in none. `once`: it is computed once at most.
  struct Work {
    Expr e;
    int tail;
    int depth;
    bool once;
  };

  static bool mentions(const Expr& e, const Node* what) {
    bool found = false;
    post_order(
        e, [&](const Node& n) { found |= &n == what; }, family::program);
    return found;
  }

  void fail(const Span& span, std::string why) {
    if (!reason_.empty()) return;
    reason_ = std::move(why);
    span_ = span;
  }

  // Expressions in which nothing changes from iteration to iteration.
  void find_invariants(const Expr& loop) {
    auto changes = [&](const Node& n) {
      bool changes = false;
      for_each_child(n, [&](const NodeRef& c) { changes |= changing_.contains(c.get()); });
      return changes;
    };
    // Binders come before what they bind is used.
    post_order(
        loop,
        [&](const Node& n) {
          if (auto* f = as<FunctionNode>(&n))
            for (const Var& p : f->params) changing_.insert(p.get());
          if (auto* l = as<LetNode>(&n)) {
            changing_.insert(l->var.get());
            values_.emplace(l->var.get(), l->value);
          }
        },
        family::program);
    post_order(
        loop,
        [&](const Node& n) {
          if (changes(n)) changing_.insert(&n);
        },
        family::program);
  }

  // Whether an expression is a size that the types say: what is known of it inside of the kernel bounds indices.
  static bool is_size(const Expr& e) {
    if (!is_call_to(e, "take")) return is_call_to(e, "shape_of");
    const auto& args = as<CallNode>(e)->args;
    if (!is_call_to(args[0], "shape_of") || !isa<ConstantNode>(args[1])) return false;
    const Expr& of = as<CallNode>(args[0])->args[0];
    auto* t = as<TensorTypeNode>(of->type);
    return t != nullptr && std::ranges::none_of(t->shape, is_any);
  }

  // Whether an operator's call, whose operands do not change, may be computed before the loop.
  bool is_invariant(const CallNode& c) const {
    if (changing_.contains(&c) || is_of_scalars(c) || is_size(ref(c))) return false;
    // Numbers side by side, such as the ends of a part, are known as numbers.
    if (!c.args.empty() && takes_scalars(c) && elements_of(c.type) <= kMostAxes) return false;
    // A number along a row is stored as a number: its elements need not be read.
    if (!c.args.empty() && takes_scalars(c) && is_of_rows(c) &&
        class_of(*as<OpNode>(c.op)->row) <= FusionClass::Broadcast)
      return false;
    bool pure = true;
    post_order(
        ref(c),
        [&](const Node& n) {
          auto* inner = as<CallNode>(&n);
          auto* op = inner == nullptr ? nullptr : as<OpNode>(inner->op);
          if (inner == nullptr) return;
          pure = pure && op != nullptr && op->row->effect == Effect::Pure && !may_end_run(*inner);
        },
        family::program);
    return pure;
  }

  // Whether a value is a part of a tensor, or computed from one. What is the same in all iterations, and stands inside of the
  // loop all the same, may end the run.
  bool is_of_part(const Expr& e, int steps = 0) const {
    if (auto v = values_.find(e.get()); v != values_.end()) return is_of_part(v->second, steps);
    auto* c = as<CallNode>(e);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    if (op != nullptr && makes_open_row(e)) return true;
    if (op == nullptr || steps == kMostSteps) return false;
    static constexpr std::string_view kParts[] = {"take", "strided_slice"};
    if (std::ranges::find(kParts, op->row->name) != std::end(kParts)) return true;
    return std::ranges::any_of(c->args, [&](const Expr& a) { return is_of_part(a, steps + 1); });
  }

  // Whether a call computes a row, or a number of rows, of which an iteration has one: elements of a row are computed as fast
  // inside of the loop's kernel as by a kernel of their own. One number along a row is a row, too. Of blocks, a kernel of its
  // own would have to be given copies.
  bool is_of_rows(const CallNode& c) const {
    if (class_of(*as<OpNode>(c.op)->row) == FusionClass::CommReduce && is_of_scalars(c.type) &&
        std::ranges::all_of(c.args,
                            [&](const Expr& a) { return is_open(a->type) && is_of_part(a); }))
      return true;
    if (class_of(*as<OpNode>(c.op)->row) <= FusionClass::Broadcast && has_named_size(c.type) &&
        (takes_scalars(c) ||
         std::ranges::any_of(c.args, [&](const Expr& a) { return is_of_part(a); })))
      return true;
    if (!is_line(c.type) || !std::ranges::all_of(c.args, is_line, &ExprNode::type)) return false;
    return std::ranges::all_of(c.args, [](const Expr& a) { return elements_of(a->type) == 1; }) ||
           std::ranges::any_of(c.args, [&](const Expr& a) { return is_of_part(a); });
  }

  static bool is_result_of_kernel(const Type& type) {
    auto* t = as<TupleTypeNode>(type);
    if (t == nullptr) return true;
    return t->fields.size() > 1 &&
           std::ranges::all_of(t->fields, [](const Type& f) { return isa<TensorTypeNode>(f); });
  }

  void parameter(const Expr& e) {
    const auto tensors = flatten_tensor_types(e->type);
    auto* t = as<TupleTypeNode>(e->type);
    const bool is_flat =
        t == nullptr
            ? isa<TensorTypeNode>(e->type)
            : std::ranges::all_of(t->fields, [](const Type& f) { return isa<TensorTypeNode>(f); });
    if (!tensors || !is_flat) return fail(e->span, "it reads a " + to_string(e->type));
    if (std::string d = is_text(e->type) ? "" : defect_of(e->type); !d.empty())
      return fail(e->span, d);
    parameters_.push_back(e);
  }

  void push(Work w) { (w.once ? ends_ : work_).push_back(std::move(w)); }

  // Whether what does not go on with a loop, in its tail position, is computed once.
  bool ended_once(int loop) const { return loops_[static_cast<size_t>(loop)].entered_once; }

  // Whether an expression goes on with a loop around it.
  bool goes_on(const Expr& e) const {
    bool found = false;
    post_order(
        e,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          found |= c != nullptr && going_on_.contains(c->op.get());
        },
        family::program);
    return found;
  }

  // The function that a Let binds and its body calls.
  void add_loop(const LetNode& l, int around, bool once) {
    auto& f = *as<FunctionNode>(l.value);
    const auto index = static_cast<int>(loops_.size());
    const int depth = around < 0 ? 0 : loops_[static_cast<size_t>(around)].depth + 1;
    loops_.push_back({around, depth, once || (around >= 0 && ended_once(around))});
    index_.emplace(l.var.get(), index);
    for (const Var& p : f.params) {
      if (std::string defect = defect_of(p->type); !defect.empty()) fail(p->span, defect);
    }
    if (std::string defect = defect_of(f.body->type); !defect.empty()) fail(f.body->span, defect);
    if (!f.type_params.empty()) fail(f.span, "it is polymorphic");
    if (mentions(l.value, l.var.get())) {
      going_on_.insert(l.var.get());
      once = false;
    }
    push({f.body, index, depth + 1, once});
  }

  // A function that does not call itself, which ends of what follows its definition call.
  void add_join(const LetNode& l, const Work& w) {
    auto& f = *as<FunctionNode>(l.value);
    for (const Var& p : f.params) {
      if (std::string defect = defect_of(p->type); !defect.empty()) fail(p->span, defect);
    }
    if (std::string defect = defect_of(f.body->type); !defect.empty()) fail(f.body->span, defect);
    if (!f.type_params.empty()) fail(f.span, "it is polymorphic");
    int tail = w.tail;
    if (tail < 0) {
      tail = static_cast<int>(loops_.size());
      loops_.push_back({-1, w.depth + 1, w.once});
      joined_inside_.insert(&l);
    }
    joins_.insert(l.var.get());
    index_.emplace(l.var.get(), tail);
    const bool again = goes_on(f.body);
    if (again) going_on_.insert(l.var.get());
    push({f.body, tail, w.depth + 1, w.once || (!again && ended_once(tail))});
    push({l.body, tail, w.depth, w.once});
  }

  // Expressions that nothing but leaves follows are visited once each: sharing below a branch is fine.
  void visit(const Work& w) {
    auto is_new = [&] {
      if (w.once && seen_.contains(w.e.get())) return false;
      return (w.once ? seen_once_ : seen_).insert(w.e.get()).second;
    };
    if (w.tail < 0 && !is_new()) return;
    if (auto* v = as<VarNode>(w.e)) {
      if (index_.contains(v)) return fail(v->span, "a loop is used as a value");
      return changing_.contains(v) ? void() : parameter(w.e);
    }
    if (is_size(w.e)) return visit_size(w);
    if (!is_leaf(*w.e.get()) && !isa<TupleNode>(w.e) && outside_(*w.e.get())) return parameter(w.e);
    if (++count_ > kMostNodes) return fail(w.e->span, "it is longer than a kernel may be");
    if (w.depth > kMostDepth) return fail(w.e->span, "it is nested deeper than a kernel may be");
    auto inside = [&](const Expr& e) { push({e, -1, w.depth, w.once}); };
    switch (w.e->kind()) {
      case ExprKind::Constant:
        return as<ConstantNode>(w.e)->data.rank() > 0 || is_text(w.e->type) ? parameter(w.e)
                                                                            : void();
      case ExprKind::If: {
        auto& i = *as<IfNode>(w.e);
        if (std::string d = defect_of(i.type); !d.empty()) fail(i.span, d);
        for (const Expr& branch : {i.true_branch, i.false_branch}) {
          const bool ends = !w.once && w.tail >= 0 && ended_once(w.tail) && !goes_on(branch);
          push({branch, w.tail, w.depth + 1, w.once || ends});
        }
        // The condition is visited first: what branches share with it is computed around them.
        inside(i.cond);
        return;
      }
      case ExprKind::Tuple:
        for (const Expr& f : as<TupleNode>(w.e)->fields) inside(f);
        return;
      case ExprKind::TupleGetItem:
        return inside(as<TupleGetItemNode>(w.e)->tuple);
      case ExprKind::Let:
        return let(*as<LetNode>(w.e), w);
      case ExprKind::Call:
        return call(*as<CallNode>(w.e), w);
      default:
        return fail(w.e->span, "it holds a " + std::string(w.e->info().name));
    }
  }

  // Of the tensor whose size it is, nothing is read.
  void visit_size(const Work& w) {
    auto* c = as<CallNode>(w.e);
    if (!is_call_to(w.e, "shape_of")) c = as<CallNode>(c->args[0]);
    auto* made = as<CallNode>(c->args[0]);
    const bool of_sizes = made != nullptr && isa<OpNode>(made->op) && made->args.empty();
    if (!of_sizes) push({c->args[0], -1, w.depth, w.once});
  }

  void let(const LetNode& l, const Work& w) {
    if (isa<FunctionNode>(l.value)) {
      if (w.tail < 0 && index_.contains(l.var.get())) return;
      auto* entry = as<CallNode>(l.body);
      const bool called_here = entry != nullptr && entry->op == l.var;
      const bool is_primitive = as_primitive(l.value.get()) != nullptr;
      if (!is_primitive && !called_here && !mentions(l.value, l.var.get())) return add_join(l, w);
      if (is_primitive || !called_here) return fail(l.value->span, kNotCalled);
      for (const Expr& a : entry->args) {
        if (mentions(a, l.var.get())) fail(entry->span, "a loop calls itself in its own arguments");
        push({a, -1, w.depth, w.once});
      }
      add_loop(l, w.tail, w.once);
      // One that is not in tail position returns to where it is called.
      loops_.back().depth = w.depth + 1;
      return;
    }
    if (l.body == l.var) return push({l.value, w.tail, w.depth, w.once});
    push({l.value, -1, w.depth, w.once});
    push({l.body, w.tail, w.depth, w.once});
  }

  void call(const CallNode& c, const Work& w) {
    if (isa<OpNode>(c.op) && is_invariant(c)) return parameter(w.e);
    const bool makes_row = makes_open_row(ref(c));
    for (const Expr& a : c.args) {
      if (!makes_row || !isa<ConstantNode>(a)) push({a, -1, w.depth, w.once});
    }
    if (isa<OpNode>(c.op)) {
      if (std::string d = defect_of(c, is_of_rows(c), w.once); !d.empty()) fail(c.span, d);
      return;
    }
    auto called = index_.find(c.op.get());
    if (called == index_.end()) {
      missing_ = c.op.get();
      return fail(c.span, isa<GlobalVarNode>(c.op)
                              ? "it calls @" + as<GlobalVarNode>(c.op)->name_hint
                              : "it calls a function that is a value");
    }
    for (int at = w.tail; at >= 0; at = loops_[static_cast<size_t>(at)].around) {
      if (at == called->second) return;
    }
    fail(c.span,
         joins_.contains(c.op.get()) ? kNotCalled : "it calls itself where something follows");
  }

  const std::function<bool(const Node&)>& outside_;
  std::vector<Expr> parameters_;
  std::unordered_set<const Node*> changing_;
  std::unordered_map<const Node*, Expr> values_;  // of Lets
  std::vector<Loop> loops_;
  // Of the variable of a loop; of a join, that of the loop in whose tail position it is.
  std::unordered_map<const Node*, int> index_;
  std::unordered_set<const Node*> joins_, joined_inside_;
  std::unordered_set<const Node*> going_on_;  // loops that repeat, and joins that call them
  const Node* missing_ = nullptr;
  std::vector<Work> work_, ends_;
  std::unordered_set<const Node*> seen_, seen_once_;
  size_t count_ = 0;
  std::string reason_;
  Span span_;
};

// What uses the function that a Let binds.
struct Uses {
  const LetNode* let = nullptr;
  bool inside = false;                 // it calls itself
  bool in_functions = false;           // some users stand in functions that are defined behind it
  std::vector<const ExprNode*> users;  // expressions behind its definition
};

// Of the functions that a function's Lets bind.
std::unordered_map<const Node*, Uses> uses_of_functions(const ScopeTree& scopes) {
  std::unordered_map<const Node*, Uses> out;
  std::unordered_map<const Node*, int> bodies;
  for (const ExprNode* e : scopes.order) {
    auto* l = as<LetNode>(e);
    auto* f = l == nullptr ? nullptr : as<FunctionNode>(l->value);
    const int* scope = scopes.scope_of.find(e);
    const bool in_kernel = scope != nullptr && scopes.scopes[static_cast<size_t>(*scope)].primitive;
    if (f == nullptr || f->is_primitive() || in_kernel) continue;
    if (int body = scopes.opened(*f, f->body.get()); body >= 0) {
      bodies.emplace(l->var.get(), body);
      out[l->var.get()].let = l;
    }
  }
  if (bodies.empty()) return out;
  for (const ExprNode* e : scopes.order) {
    const int* scope = scopes.scope_of.find(e);
    if (scope == nullptr) continue;
    for_each_operand(*e, [&](const Expr& operand, bool) {
      auto body = bodies.find(operand.get());
      if (body == bodies.end()) return;
      Uses& uses = out[operand.get()];
      if (scopes.common(*scope, body->second) == body->second) {
        uses.inside = true;
      } else {
        if (uses.users.empty() || uses.users.back() != e) uses.users.push_back(e);
        const int* defined = scopes.scope_of.find(uses.let);
        auto function = [&](int of) { return scopes.scopes[static_cast<size_t>(of)].function; };
        uses.in_functions |= defined != nullptr && function(*scope) != function(*defined);
      }
    });
  }
  return out;
}

// The expressions in the tail position of one: the branches of an If, and what follows a definition.
std::vector<Expr> tails_of(const ExprNode& e) {
  if (auto* i = as<IfNode>(&e)) return {i->true_branch, i->false_branch};
  auto* l = as<LetNode>(&e);
  if (l == nullptr) return {};
  if (l->body == l->var) return {l->value};
  auto* f = as<FunctionNode>(l->value);
  // What a function gives whose calls are in tail position is given there, too.
  return f == nullptr || f->is_primitive() ? std::vector{l->body} : std::vector{l->body, f->body};
}

// The expressions of a function as a forest: above each stands the one in whose tail position it is. What has other uses, too,
// is a root; what is in the tail position of several stands below the innermost that is above all of them.
class TailTree {
 public:
  explicit TailTree(const Function& f) {
    std::vector<const Node*> order;
    post_order(
        f->body, [&](const Node& n) { order.push_back(&n); }, family::program);
    std::unordered_map<const Node*, int> above;
    for (const Node* n : std::views::reverse(order)) {
      auto* e = as<ExprNode>(n);
      if (e != nullptr && is_leaf(*e)) continue;
      const int mine = e == nullptr ? -1 : add(*e, above);
      const std::vector<Expr> tails = e == nullptr ? std::vector<Expr>{} : tails_of(*e);
      // The definition of a function tells where its result goes.
      const bool is_function = isa<FunctionNode>(n);
      for_each_child(*n, [&](const NodeRef& child) {
        const bool is_tail = std::ranges::find(tails, child.get(), &Expr::get) != tails.end();
        if (!is_function && !is_tail) above[child.get()] = -1;
      });
      for (const Expr& t : tails) {
        auto [use, fresh] = above.emplace(t.get(), mine);
        if (!fresh && use->second >= 0) use->second = common(use->second, mine);
      }
    }
  }

  // The number of an expression; -1 for variables and the like, and for what is not in the function.
  int find(const ExprNode& e) const {
    auto at = numbers_.find(&e);
    return at == numbers_.end() ? -1 : at->second;
  }
  const ExprNode& at(int i) const { return *expressions_[static_cast<size_t>(i)]; }
  int parent(int i) const { return steps_[static_cast<size_t>(i)].parent; }
  // The innermost that is above both, or one of them; -1 when there is none.
  int common(int a, int b) const {
    return common_ancestor(a, b, [&](int i) { return steps_[static_cast<size_t>(i)]; });
  }
  bool is_above(int a, int b) const { return a >= 0 && b >= 0 && common(a, b) == a; }

 private:
  int add(const ExprNode& e, const std::unordered_map<const Node*, int>& above) {
    const int mine = static_cast<int>(steps_.size());
    auto use = above.find(&e);
    auto step = [&](int i) { return steps_[static_cast<size_t>(i)]; };
    steps_.push_back(use == above.end() || use->second < 0 ? TreeStep{-1, 0, mine}
                                                           : step_below(use->second, step));
    expressions_.push_back(&e);
    numbers_.emplace(&e, mine);
    return mine;
  }

  std::vector<TreeStep> steps_;
  std::vector<const ExprNode*> expressions_;
  std::unordered_map<const Node*, int> numbers_;
};

// let %f = fn ...; ... %f(x) ...   becomes   ... (let %f = fn ...; %f(x)) ...
//
// where %f is a loop, and this the only call that is not its own; and
//
// let %f = fn ...; g(if (c) { %f(x) } else { .. %f(y) .. })   becomes
// g(let %f = fn ...; if (c) { %f(x) } else { .. %f(y) .. })
//
// where %f does not call itself.
class DefineWhereCalled : public Rewriter {
 public:
  DefineWhereCalled() : Rewriter(family::program) {}

  Function run_on(const Function& f) {
    const ScopeTree scopes = analyze_scopes(*f.get());
    const std::unordered_map<const Node*, Uses> functions = uses_of_functions(scopes);
    if (functions.empty()) return f;
    const TailTree tails(f);
    for (const ExprNode* e : scopes.order) {
      auto* l = as<LetNode>(e);
      auto found = l == nullptr ? functions.end() : functions.find(l->var.get());
      if (found == functions.end() || found->second.let != l) continue;
      const auto& [var, uses] = *found;
      const ExprNode* place =
          uses.inside ? call_of_loop(var, uses) : place_of_join(tails, var, uses);
      // A definition that is a place does not move itself.
      if (place == nullptr || calls_.contains(l) || definitions_.contains(place)) continue;
      calls_[place].push_back(l);
      definitions_.insert(l);
    }
    return calls_.empty() ? f : apply(f);
  }

  // The function stands before what is behind its definition, and is rewritten before it.
  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (definitions_.contains(original.get())) return as<LetNode>(rebuilt)->body;
    auto called = calls_.find(original.get());
    if (called == calls_.end()) return rebuilt;
    for (const LetNode* l : called->second) {
      NodeRef value = lookup(l->value.get());
      rebuilt =
          let(l->var, value ? cast<ExprNode>(value) : l->value, cast<ExprNode>(rebuilt), l->span);
    }
    return rebuilt;
  }

 private:
  static const ExprNode* call_of_loop(const Node* var, const Uses& uses) {
    auto* c = uses.users.size() == 1 ? as<CallNode>(uses.users[0]) : nullptr;
    return c == nullptr || c->op.get() != var || uses.let->body.get() == c ? nullptr : c;
  }

  // The innermost expression in whose tail positions all calls of a function are, where what follows the definition is none.
  static const ExprNode* place_of_join(const TailTree& tails, const Node* var, const Uses& uses) {
    int at = -1;
    for (const ExprNode* user : uses.users) {
      auto* c = as<CallNode>(user);
      if (c == nullptr || c->op.get() != var) return nullptr;
      at = user == uses.users[0] ? tails.find(*c) : tails.common(at, tails.find(*c));
      if (at < 0) return nullptr;
    }
    if (at < 0 || tails.is_above(tails.find(*uses.let->body.get()), at)) return nullptr;
    auto moves = [&](const ExprNode& e) {
      auto* l = as<LetNode>(&e);
      return l == nullptr || isa<FunctionNode>(l->value);
    };
    while (at >= 0 && !moves(tails.at(at))) at = tails.parent(at);
    return at < 0 || tails.is_above(at, tails.find(*uses.let)) ? nullptr : &tails.at(at);
  }

  std::unordered_set<const Node*> definitions_;
  // What is defined in front of an expression. None of these functions calls another.
  std::unordered_map<const Node*, std::vector<const LetNode*>> calls_;
};

// The call with vectors of known sizes and bounds as stacks of numbers.
Call with_numbers(const CallNode& c) {
  std::vector<Expr> args;
  for (const Expr& a : c.args) {
    auto* known = as<ConstantNode>(a);
    if (known == nullptr || known->data.rank() != 1) {
      args.push_back(a);
      continue;
    }
    const Tensor& data = known->data;
    std::vector<Expr> numbers;
    for (int64_t i = 0; i < data.num_elements(); ++i)
      numbers.push_back(constant(Tensor::scalar(data.get_as_int(i), data.dtype())));
    args.push_back(call("stack", {tuple(std::move(numbers))}));
  }
  return call(c.op, std::move(args), c.attrs, c.span);
}

// The function of a loop as its kernel has it. Lines that are written are slices: rules for these write elements, and
// nothing else. What makes a tensor from nothing is made anew: the program outside may use it, too. The bounds of a part of a
// row are numbers, and no tensors in memory.
Expr inside_kernel(const Expr& loop) {
  return cast<ExprNode>(rewrite(
      loop,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* c = as<CallNode>(rebuilt);
        auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
        if (op != nullptr && makes_open_row(ref(*c))) return with_numbers(*c);
        if (op != nullptr && c->args.empty()) return call(c->op, {}, c->attrs, c->span);
        if (op == nullptr || op->row->memory == nullptr || op->row->memory(*c) != Memory::Updated)
          return rebuilt;
        return call(c->op, {c->args[0], c->args[1], tuple({c->args[2]})}, c->attrs, c->span);
      },
      family::program));
}

// let %rest = fn ...; e   becomes   let %once = fn () { let %rest = fn ...; e }; %once()
Let as_once(const Let& l) {
  Function f = function({}, l, l->type, {}, {}, l->value->span);
  Var name = var("once", f->type, l->span);
  return let(name, f, call(name, {}, nullptr, l->span), l->span);
}

// What of the definition of a function and of what follows it depends on variables that are bound there.
std::unordered_set<const Node*> bound_behind(const LetNode& definition) {
  std::unordered_set<const Node*> out;
  for (const LetNode* l = &definition; l != nullptr; l = as<LetNode>(l->body)) {
    out.insert(l);
    out.insert(l->var.get());
  }
  post_order(
      definition.body,
      [&](const Node& n) {
        for_each_child(n, [&](const NodeRef& c) {
          if (out.contains(c.get())) out.insert(&n);
        });
      },
      family::program);
  return out;
}

// Whether all sizes of a kernel are known from its operands.
bool has_known_sizes(const Function& f) {
  Rewriter named(family::program);
  bool open = false;
  for (const Var& p : f->params) {
    Type type = with_sizes_named(p->type, [&](size_t, size_t) {
      open = true;
      return dim(type_var("s", Kind::Dim));
    });
    if (!structural_equal(type, p->type)) named.set(p, var(p->name_hint, type, p->span));
  }
  const Function sized = open ? with_state_sizes(named.apply(f)) : f;
  return sized != nullptr && !has_open_state(sized);
}

// The call of the kernel for a loop that is one; null where a size of its state differs from iteration to iteration.
Call outlined(const LetNode& l, const LoopNest& nest) {
  auto& entry = *as<CallNode>(l.body);
  std::vector<Var> params;
  std::vector<Expr> args;
  auto parameter = [&](const Expr& value) {
    Var p = var("p" + std::to_string(params.size()), value->type, value->span);
    params.push_back(p);
    args.push_back(value);
    return p;
  };
  std::unordered_map<const Node*, NodeRef> inside;
  for (const Expr& e : nest.parameters()) {
    if (inside.contains(e.get())) continue;
    auto* t = as<TupleTypeNode>(e->type);
    if (t == nullptr) {
      inside.emplace(e.get(), parameter(e));
      continue;
    }
    std::vector<Expr> fields;
    for (size_t k = 0; k < t->fields.size(); ++k)
      fields.push_back(parameter(tuple_get_item(e, static_cast<int64_t>(k))));
    inside.emplace(e.get(), tuple(std::move(fields)));
  }
  std::vector<Expr> first;
  for (const Expr& a : entry.args) {
    auto* c = as<ConstantNode>(a);
    first.push_back(c != nullptr && c->data.rank() == 0 ? a : Expr(parameter(a)));
  }
  Expr joined = cast<ExprNode>(rewrite(
      l.value,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        return nest.joined_inside().contains(original.get()) ? as_once(cast<LetNode>(rebuilt))
                                                             : rebuilt;
      },
      family::program));
  Expr loop = inside_kernel(cast<ExprNode>(substitute(joined, inside, family::program)));
  Expr whole = let(l.var, loop, call(l.var, std::move(first), nullptr, entry.span), l.span);
  Function f = to_a_normal_form(function(params, whole, l.body->type, {}, {}, l.value->span));
  if (!has_known_sizes(f)) return nullptr;
  Function kernel = function(f->params, f->body, f->ret_type, {},
                             Dict{{attr::kPrimitive, AttrValue(int64_t{1})}}, l.value->span);
  return call(kernel, std::move(args), nullptr, entry.span);
}

// A nest, and the definition that it begins with.
using Visit = std::function<bool(const LetNode& place, const LetNode& l, const LoopNest& nest)>;

// The loops of a function, each with what is computed outside of it, and, before these, the functions that ends of loops
// behind them call, with all that follows their definitions. Where `visit` gives true, what the nest is given is visited
// next instead of what is inside it.
void for_each_loop(const Function& f, const Visit& visit) {
  const ScopeTree scopes = analyze_scopes(*f.get());
  const std::unordered_map<const Node*, Uses> functions = uses_of_functions(scopes);
  std::unordered_set<const Node*> seen;
  std::vector<Expr> work{f->body};
  auto enter = [&](const Node& n) {
    if (as_primitive(&n) != nullptr || !seen.insert(&n).second) return false;
    auto* l = as<LetNode>(&n);
    auto uses = l == nullptr ? functions.end() : functions.find(l->var.get());
    if (uses == functions.end()) return true;
    auto next = [&](const LoopNest& nest, const Expr& entry) {
      std::ranges::copy(nest.parameters(), std::back_inserter(work));
      std::ranges::copy(as<CallNode>(entry)->args, std::back_inserter(work));
    };
    if (!uses->second.inside) {
      const int* place = scopes.scope_of.find(l);
      if (!uses->second.in_functions || place == nullptr) return true;
      const Let once = as_once(ref(*l));
      const std::unordered_set<const Node*> behind = bound_behind(*l);
      LoopNest nest(*once.get(), true, [&](const Node& e) {
        const int* scope = scopes.scope_of.find(&e);
        return scope != nullptr && scopes.common(*scope, *place) == *scope && !behind.contains(&e);
      });
      if (!nest.repeats() || !visit(*l, *once.get(), nest)) return true;
      next(nest, once->body);
      return false;
    }
    auto& loop = *as<FunctionNode>(l->value);
    const int body = scopes.opened(loop, loop.body.get());
    LoopNest nest(*l, uses->second.users.size() == 1, [&](const Node& e) {
      const int* scope = scopes.scope_of.find(&e);
      return scope != nullptr && scopes.common(*scope, body) != body;
    });
    if (!visit(*l, *l, nest)) return true;
    next(nest, l->body);
    return false;
  };
  while (!work.empty()) {
    const Expr e = work.back();
    work.pop_back();
    post_order_if(
        e, enter, [](const Node&) {}, family::program);
  }
}

// Why a loop stays one, and where that is.
std::string reason_of(const LoopNest& nest) {
  return nest.reason() + (nest.span() ? " (" + nest.span().describe() + ")" : "");
}

// A function that calls itself, and no other does so, as one whose body is a loop; null where it is none. It may be
// called at other sizes than its own by others, but not by itself.
Function with_local_loop(const GlobalVar& name, const Function& f) {
  auto is_itself = [&](const Node& n) {
    auto* g = as<GlobalVarNode>(&n);
    return g != nullptr && g->name_hint == name->name_hint;
  };
  bool calls = false, fits = f->type_params.empty();
  post_order(
      f->body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr || !is_itself(*c->op.get())) return;
        calls = true;
        for (size_t i = 0; i < c->args.size() && fits; ++i)
          fits = i < f->params.size() && structural_equal(c->args[i]->type, f->params[i]->type);
      },
      family::program);
  if (!calls || !fits) return nullptr;
  std::vector<Var> params;
  std::vector<Expr> args;
  for (const Var& p : f->params) {
    params.push_back(var(p->name_hint, p->type, p->span));
    args.push_back(params.back());
  }
  Var loop = var(name->name_hint, f->type, f->span);
  Expr body = cast<ExprNode>(rewrite(
      f->body,
      [&](const NodeRef& n, NodeRef rebuilt) {
        return is_itself(*n.get()) ? NodeRef(loop) : rebuilt;
      },
      family::program));
  Function inner = function(f->params, body, f->ret_type, {}, {}, f->span);
  return function(params, let(loop, inner, call(loop, args, nullptr, f->span), f->span),
                  f->ret_type, {}, f->attrs, f->span);
}

Function with_reason(const FunctionNode& f, const std::string& reason) {
  Dict attrs = f.attrs;
  attrs[kInterpreted] = AttrValue(reason);
  return function(f.params, f.body, f.ret_type, f.type_params, std::move(attrs), f.span);
}

// Puts calls of kernels in the place of loops, and the reasons of the others into their functions. What a loop is given
// stands below it, and is rewritten before it.
class PlaceKernels : public Rewriter {
 public:
  PlaceKernels() : Rewriter(family::program) {}

  Function run_on(const Function& f) {
    std::unordered_map<const Node*, std::string> of_joins;
    for_each_loop(f, [&](const LetNode& place, const LetNode& l, const LoopNest& nest) {
      std::string reason = nest.reason().empty() ? "" : reason_of(nest);
      Call kernel = reason.empty() ? outlined(l, nest) : nullptr;
      if (kernel != nullptr) {
        kernels_.emplace(&place, kernel);
        return true;
      }
      if (reason.empty()) reason = "a size of its state is open (" + l.value->span.describe() + ")";
      if (&place != &l) {
        of_joins.emplace(place.var.get(), reason);
        return false;
      }
      // A loop whose end calls a function is part of no kernel for the reason why the function is none.
      if (auto join = of_joins.find(nest.missing()); join != of_joins.end()) reason = join->second;
      if (!as<FunctionNode>(l.value)->has_attr(kInterpreted))
        reasons_.emplace(l.value.get(), reason);
      return false;
    });
    return kernels_.empty() && reasons_.empty() ? f : apply(f);
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (auto reason = reasons_.find(original.get()); reason != reasons_.end())
      return with_reason(*as<FunctionNode>(rebuilt), reason->second);
    auto kernel = kernels_.find(original.get());
    if (kernel == kernels_.end()) return rebuilt;
    const CallNode& c = *kernel->second.get();
    std::vector<Expr> args;
    for (const Expr& a : c.args) {
      // The parts of a tuple are made for the kernel.
      auto* part = as<TupleGetItemNode>(a);
      NodeRef now = lookup(a.get());
      if (!now && part != nullptr) {
        now = lookup(part->tuple.get());
        if (now) now = tuple_get_item(cast<ExprNode>(now), part->index);
      }
      args.push_back(now ? cast<ExprNode>(now) : a);
    }
    return call(c.op, std::move(args), nullptr, c.span);
  }

 private:
  std::unordered_map<const Node*, Call> kernels_;
  std::unordered_map<const Node*, std::string> reasons_;
};

// Kernels of loops that a program begins with, and passes before this one have rewritten, in the form that their
// composition takes.
Function with_kernels_in_form(const Function& f) {
  return cast<FunctionNode>(rewrite(
      f,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* k = as_primitive(rebuilt.get());
        if (k == nullptr || !is_loop_kernel(*k)) return rebuilt;
        // What is marked as a kernel stays as it is.
        Function form = to_a_normal_form(
            function(k->params, k->body, k->ret_type, k->type_params, {}, k->span));
        form = function(form->params, form->body, form->ret_type, form->type_params, k->attrs,
                        k->span);
        return structural_equal(form, rebuilt) ? rebuilt : NodeRef(form);
      },
      family::program));
}

// The same for a function that is a loop itself.
Function outlined_function(const GlobalVar& name, const Function& given) {
  if (given->is_primitive()) return given;
  const Function f = with_kernels_in_form(given);
  auto outline = [](const Function& g) {
    Function f = g;
    // A definition may move to where another has moved.
    for (Function next = DefineWhereCalled().run_on(f); next != f;
         next = DefineWhereCalled().run_on(f))
      f = next;
    return PlaceKernels().run_on(f);
  };
  const Function local = with_local_loop(name, f);
  if (local == nullptr) return outline(f);
  const Function placed = outline(local);
  auto* left = as<LetNode>(placed->body);
  if (left == nullptr) return placed;
  const Function out = outline(f);
  if (out->has_attr(kInterpreted)) return out;
  const auto& attrs = as<FunctionNode>(left->value)->attrs;
  return with_reason(*out.get(), *attrs.find(kInterpreted)->second.get_if<std::string>());
}

Module run_outline_loops(const Module& mod, PassContext&) {
  return map_functions(mod, outlined_function);
}

}  // namespace

const Pass kOutlineLoops{"OutlineLoops",
                         2,
                         Form::any,
                         Form::any,
                         "Makes one kernel of a loop whose iterations compute single numbers.",
                         run_outline_loops};

}  // namespace relay
