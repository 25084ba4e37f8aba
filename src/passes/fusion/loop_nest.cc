#include "passes/fusion/loop_nest.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/calls.h"
#include "analysis/loop_kernels.h"
#include "analysis/primitives.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"
#include "passes/fusion/loop_operators.h"

namespace relay::outline {
namespace {

// Kernels are nests of statements, which lowering descends; deeper programs are not written by hand.
constexpr int kMostDepth = 48;
// Below this many expressions a kernel is compiled in well under a second.
constexpr size_t kMostNodes = 4000;
// Tensors have so few axes that the sizes of one are numbers beside each other.
constexpr double kMostAxes = 8;
// How far from a slice what is computed of it is found.
constexpr int kMostSteps = 16;

constexpr const char* kNotCalled = "a function in it is not called where it is defined";

class Examination {
 public:
  explicit Examination(const std::function<bool(const Node&)>& outside) : outside_(outside) {}

  LoopNest run(const LetNode& l, bool called_once) {
    auto* entry = as<CallNode>(l.body);
    if (!called_once || entry == nullptr || !(entry->op == l.var)) {
      fail(l.value->span, "it is not called where it is defined");
      return std::move(nest_);
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
    while ((!work_.empty() || !ends_.empty()) && nest_.reason.empty()) {
      std::vector<Work>& from = work_.empty() ? ends_ : work_;
      Work w = from.back();
      from.pop_back();
      visit(w);
    }
    nest_.repeats = !going_on_.empty();
    return std::move(nest_);
  }

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
    if (!nest_.reason.empty()) return;
    nest_.reason = std::move(why);
    nest_.span = span;
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
    nest_.parameters.push_back(e);
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
      nest_.joined_inside.insert(&l);
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
      nest_.missing = c.op.get();
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
  LoopNest nest_;
  std::unordered_set<const Node*> changing_;
  std::unordered_map<const Node*, Expr> values_;  // of Lets
  std::vector<Loop> loops_;
  // Of the variable of a loop; of a join, that of the loop in whose tail position it is.
  std::unordered_map<const Node*, int> index_;
  std::unordered_set<const Node*> joins_;
  std::unordered_set<const Node*> going_on_;  // loops that repeat, and joins that call them
  std::vector<Work> work_, ends_;
  std::unordered_set<const Node*> seen_, seen_once_;
  size_t count_ = 0;
};

}  // namespace

LoopNest loop_nest(const LetNode& l, bool called_once,
                   const std::function<bool(const Node&)>& outside) {
  return Examination(outside).run(l, called_once);
}

}  // namespace relay::outline
