#include "tir/verify.h"
#include "base/quantities.h"

#include <unordered_map>
#include <unordered_set>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/block_contraction.h"
#include "tir/intrinsics.h"
#include "tir/warp_nest.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

constexpr size_t kShownText = 600;

class Verifier {
 public:
  explicit Verifier(const PrimFuncNode& f) : f_(f) {}

  void run() {
    for (const Var& d : f_.dims) bind(d);
    check(f_.at_most.empty() || f_.at_most.size() == f_.dims.size(),
          "the dimensions have another number of greatest values");
    check(f_.num_inputs >= 0 && f_.num_inputs <= static_cast<int64_t>(f_.params.size()),
          "the number of inputs is not one of parameters");
    for (size_t i = 0; i < f_.params.size(); ++i) {
      add_buffer(f_.params[i], static_cast<int64_t>(i) < f_.num_inputs);
    }
    for (int64_t i : f_.in_place) {
      check(i >= 0 && i < f_.num_inputs,
            "a parameter that may be written in place is not an input");
      check(f_.num_inputs + 1 == static_cast<int64_t>(f_.params.size()),
            "several outputs are written in place of an input");
    }
    check(f_.body != nullptr, "there is no body");
    enter(f_.body);
    while (!work_.empty()) {
      Work w = std::move(work_.back());
      work_.pop_back();
      for (const Node* v : w.unbind) bound_.erase(v);
      if (w.release != nullptr) buffers_.erase(w.release);
      if (w.stmt != nullptr) {
        at_ = w.stmt;
        statement(*w.stmt);
      }
    }
    at_ = nullptr;
    if (!has_matrix_loop_ || has_block_) return;
    const std::string defect = warp_nest_defect(f_.body);
    check(defect.empty(), defect);
  }

 private:
  // A statement to check, or what ends with one that has been.
  struct Work {
    const StmtNode* stmt = nullptr;
    std::vector<const Node*> unbind = {};
    const Node* release = nullptr;
  };

  [[noreturn]] void fail(const std::string& what) const {
    std::string text = at_ != nullptr ? to_string(Stmt(at_)) : std::string();
    if (text.size() > kShownText) text = text.substr(0, kShownText) + "...\n";
    internal_error(__FILE__, __LINE__,
                   "kernel " + f_.name + " is malformed: " + what + "\n" + text);
  }
  void check(bool holds, const std::string& what) const {
    if (!holds) fail(what);
  }
  template <class Text>
  requires std::is_invocable_v<Text>
  void check(bool holds, Text what) const {
    if (!holds) fail(what());
  }

  // ---- Scopes

  void enter(const Stmt& s) {
    check(s != nullptr, "a statement is missing");
    work_.push_back({.stmt = s.get()});
  }
  void bind(const Var& v) {
    check(v != nullptr, "a variable is missing");
    check(bound_.insert(v.get()).second, "variable " + v->name + " is bound inside its own scope");
  }
  void add_buffer(const Buffer& b, bool input) {
    check(b != nullptr, "a buffer is missing");
    for (const PrimExpr& e : b->shape) index_value(e, "a dimension of " + b->name);
    for (const PrimExpr& e : b->within) index_value(e, "a dimension around " + b->name);
    check(b->within.empty() || b->within.size() == b->shape.size(),
          "buffer " + b->name + " lies in an array of another rank");
    check(buffers_.emplace(b.get(), input).second,
          "buffer " + b->name + " is given memory inside its own scope");
  }

  // ---- Expressions

  void value(const PrimExpr& e, DType dtype, const std::string& what) {
    check(e != nullptr, [&] { return what + " is missing"; });
    expression(e);
    check(e->dtype == dtype,
          [&] { return what + " is " + e->dtype.to_string() + ", not " + dtype.to_string(); });
  }
  void index_value(const PrimExpr& e, const std::string& what) { value(e, kIndex, what); }

  // Checks what is below, with the variables that Lets bind on the way.
  void expression(const PrimExpr& root) {
    struct Frame {
      const PrimExprNode* node;
      bool body = false;   // of a Let: its body comes after its value
      bool done = false;   // operands have been looked at
      size_t visited = 0;  // how many nodes were known when a Let's body began
    };
    std::unordered_set<const Node*> known;
    std::vector<const Node*> order;
    std::vector<Frame> stack{{root.get()}};
    auto need = [&](const PrimExpr& e) {
      check(e != nullptr, "an operand is missing");
      if (!known.contains(e.get())) stack.push_back({e.get()});
    };
    while (!stack.empty()) {
      Frame& f = stack.back();
      const PrimExprNode& n = *f.node;
      if (!f.done && !f.body && known.contains(&n)) {
        stack.pop_back();
        continue;
      }
      if (auto* l = as<LetNode>(&n); l != nullptr && !f.done) {
        if (!f.body) {
          f.body = true;
          need(l->value);
          continue;
        }
        f.done = true;
        f.visited = order.size();
        bind(l->var);
        need(l->body);
        continue;
      }
      if (!f.done) {
        f.done = true;
        operands(n, need);
        continue;
      }
      if (auto* l = as<LetNode>(&n)) {
        // What was seen inside may use the variable, which now ends.
        bound_.erase(l->var.get());
        for (; order.size() > f.visited; order.pop_back()) known.erase(order.back());
      }
      dtypes(n);
      known.insert(&n);
      order.push_back(&n);
      stack.pop_back();
    }
  }

  template <class Need>
  void operands(const PrimExprNode& n, Need need) {
    if (auto* v = as<VarNode>(&n)) {
      check(bound_.contains(v), [&] { return "variable " + v->name + " is not bound here"; });
      return;
    }
    if (auto* l = as<LoadNode>(&n)) {
      for (const PrimExpr& i : l->indices) need(i);
      if (l->predicate) need(l->predicate);
      return;
    }
    for_each_child(n, [&](const NodeRef& c) { need(PrimExpr::unchecked(c)); });
  }

  void dtypes(const PrimExprNode& n) const {
    DType t = n.dtype;
    auto fits = [&](bool holds) {
      check(holds, [&] {
        return "dtypes in " + to_string(PrimExpr(&n)) + " of " + t.to_string() + " do not fit";
      });
    };
    switch (n.kind()) {
      case ExprKind::Var:
        return;
      case ExprKind::IntImm:
        return fits(!t.is_floating() && t.is_scalar());
      case ExprKind::FloatImm:
        return fits(t.is_floating() && t.is_scalar());
      case ExprKind::Binary: {
        auto& b = static_cast<const BinaryNode&>(n);
        DType of = b.a->dtype;
        fits(of == b.b->dtype && t == (is_comparison(b.op) ? DType::Bool(of.lanes) : of));
        if (b.op == BinaryOp::And || b.op == BinaryOp::Or) fits(of.is_bool());
        return fits(b.op < BinaryOp::BitAnd || !of.is_floating());
      }
      case ExprKind::Not:
        return fits(t.is_bool() && static_cast<const NotNode&>(n).a->dtype == t);
      case ExprKind::Select: {
        auto& s = static_cast<const SelectNode&>(n);
        // One condition may choose for all lanes.
        DType c = s.cond->dtype;
        return fits(c.is_bool() && (c.lanes == 1 || c.lanes == t.lanes) &&
                    s.true_value->dtype == t && s.false_value->dtype == t);
      }
      case ExprKind::Cast:
        return fits(static_cast<const CastNode&>(n).value->dtype.lanes == t.lanes);
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(n);
        auto defect = intrinsic_defect(c.name, t, c.args);
        check(!defect, [&] { return *defect; });
        IntrinsicRule rule = find_intrinsic(c.name)->rule;
        if (rule == IntrinsicRule::Lanes) return fits(t.is_scalar());
        for (const PrimExpr& a : c.args) {
          fits(rule == IntrinsicRule::Effect || a->dtype.lanes == t.lanes);
        }
        return;
      }
      case ExprKind::Load: {
        auto& l = static_cast<const LoadNode&>(n);
        int lanes = access(l.buffer, l.indices);
        fits(t == l.buffer->dtype.with_lanes(lanes));
        return fits(!l.predicate || l.predicate->dtype == DType::Bool(lanes));
      }
      case ExprKind::Ramp: {
        auto& r = static_cast<const RampNode&>(n);
        return fits(r.base->dtype == t.element() && r.stride->dtype == t.element());
      }
      case ExprKind::Broadcast:
        return fits(static_cast<const BroadcastNode&>(n).value->dtype == t.element());
      case ExprKind::Let: {
        auto& l = static_cast<const LetNode&>(n);
        return fits(l.var->dtype == l.value->dtype && l.body->dtype == t);
      }
      default:
        fail("a " + std::string(n.info().name) + " stands in a statement");
    }
  }

  // The lanes of an access.
  int access(const Buffer& b, const std::vector<PrimExpr>& indices) const {
    check(b != nullptr, "a buffer is missing");
    check(buffers_.contains(b.get()),
          [&] { return "buffer " + b->name + " is not a parameter and not allocated here"; });
    check(indices.size() == b->shape.size() || indices.size() == 1, [&] {
      return "buffer " + b->name + " of " + counted(b->shape.size(), "dimension") +
             " is accessed with " + counted(indices.size(), "index");
    });
    int lanes = 1;
    for (const PrimExpr& i : indices) lanes = std::max<int>(lanes, i->dtype.lanes);
    for (const PrimExpr& i : indices) {
      check(i->dtype.element() == kIndex && (i->dtype.lanes == 1 || i->dtype.lanes == lanes),
            [&] { return "an index of " + b->name + " is " + i->dtype.to_string(); });
    }
    return lanes;
  }

  // ---- Statements

  void statement(const StmtNode& s) {
    switch (s.kind()) {
      case StmtKind::Seq:
        for (size_t i = static_cast<const SeqNode&>(s).stmts.size(); i-- > 0;) {
          enter(static_cast<const SeqNode&>(s).stmts[i]);
        }
        return;
      case StmtKind::Store:
        return store(static_cast<const StoreNode&>(s));
      case StmtKind::For: {
        auto& n = static_cast<const ForNode&>(s);
        value(n.min, n.var->dtype, "the loop's start");
        value(n.extent, n.var->dtype, "the loop's extent");
        check(n.var->dtype.is_integer() && n.var->dtype.is_scalar(),
              "the loop is not over integers");
        has_matrix_loop_ |= n.hints.nest == LoopNest::Matrix;
        bind(n.var);
        work_.push_back({.unbind = {n.var.get()}});
        return enter(n.body);
      }
      case StmtKind::Block:
        has_block_ = true;
        return block(static_cast<const BlockNode&>(s));
      case StmtKind::If: {
        auto& n = static_cast<const IfNode&>(s);
        value(n.cond, DType::Bool(), "the condition");
        if (n.else_body) enter(n.else_body);
        return enter(n.then_body);
      }
      case StmtKind::While: {
        auto& n = static_cast<const WhileNode&>(s);
        value(n.cond, DType::Bool(), "the condition");
        return enter(n.body);
      }
      case StmtKind::Allocate: {
        auto& n = static_cast<const AllocateNode&>(s);
        add_buffer(n.buffer, /*input=*/false);
        work_.push_back({.release = n.buffer.get()});
        return enter(n.body);
      }
      case StmtKind::LetStmt: {
        auto& n = static_cast<const LetStmtNode&>(s);
        value(n.value, n.var->dtype, "the value of " + n.var->name);
        bind(n.var);
        work_.push_back({.unbind = {n.var.get()}});
        return enter(n.body);
      }
      case StmtKind::Check:
        check(static_cast<const CheckNode&>(s).error != 0,
              "a check fails with the number of success");
        return value(static_cast<const CheckNode&>(s).cond, DType::Bool(), "the condition");
      case StmtKind::Evaluate:
        check(static_cast<const EvaluateNode&>(s).value != nullptr, "the value is missing");
        return expression(static_cast<const EvaluateNode&>(s).value);
      default:
        fail("a " + std::string(s.info().name) + " is not a statement");
    }
  }

  void store(const StoreNode& s) {
    for (const PrimExpr& i : s.indices) {
      check(i != nullptr, "an index is missing");
      expression(i);
    }
    int lanes = access(s.buffer, s.indices);
    check(!buffers_.at(s.buffer.get()),
          [&] { return "input " + s.buffer->name + " is stored to"; });
    value(s.value, s.buffer->dtype.with_lanes(lanes), "the stored value");
    if (s.predicate) value(s.predicate, DType::Bool(lanes), "the predicate");
  }

  // ---- Blocks

  void block(const BlockNode& b) {
    check(b.iters.size() == b.bindings.size(), [&] {
      return "block " + b.name + " has " + std::to_string(b.bindings.size()) + " bindings for " +
             std::to_string(b.iters.size()) + " iteration variables";
    });
    bool reduces = false;
    std::vector<const Node*> unbind = {};
    for (size_t i = 0; i < b.iters.size(); ++i) {
      const IterVar& v = b.iters[i];
      check(v != nullptr, "an iteration variable is missing");
      value(b.bindings[i], v->var->dtype, "the binding of " + v->var->name);
      value(v->min, v->var->dtype, "the start of " + v->var->name);
      value(v->extent, v->var->dtype, "the extent of " + v->var->name);
      reduces |= v->kind == IterKind::Reduce;
    }
    for (const IterVar& v : b.iters) {
      bind(v->var);
      unbind.push_back(v->var.get());
    }
    if (b.predicate) value(b.predicate, DType::Bool(), "the predicate of block " + b.name);
    for (const auto* list : {&b.reads, &b.writes}) {
      for (const Region& r : *list) region_of(*r.get());
    }
    check(reduces || b.init == nullptr,
          [&] { return "block " + b.name + " has an initialisation and no reduction"; });
    accesses(b);
    std::string defect = contraction_defect(b);
    check(defect.empty(), [&] { return "the contraction of block " + b.name + ": " + defect; });
    work_.push_back({.unbind = std::move(unbind)});
    enter(b.body);
    if (b.init) enter(b.init);
  }

  void region_of(const RegionNode& r) {
    for (const auto* list : {&r.mins, &r.extents}) {
      for (const PrimExpr& e : *list) index_value(e, "a bound of the region of " + r.buffer->name);
    }
    check(buffers_.contains(r.buffer.get()) && r.mins.size() == r.buffer->shape.size() &&
              r.extents.size() == r.mins.size(),
          [&] { return "the region of " + r.buffer->name + " does not fit the buffer"; });
  }

  // Every access of the body lies in a region. A block may read what it writes, as reductions do,
  // without saying so.
  void accesses(const BlockNode& b) {
    bool has_loops = false;
    std::unordered_set<const Node*> local;  // variables that regions cannot speak of
    std::vector<std::pair<const Node*, bool>> found;
    auto look = [&](const Node& n) {
      has_loops |= isa<ForNode>(&n) || isa<BlockNode>(&n);
      if (auto* l = as<LetNode>(&n)) local.insert(l->var.get());
      if (auto* l = as<LetStmtNode>(&n)) local.insert(l->var.get());
      if (auto* a = as<AllocateNode>(&n)) local.insert(a->buffer.get());
      if (isa<LoadNode>(&n)) found.emplace_back(&n, false);
      if (isa<StoreNode>(&n)) found.emplace_back(&n, true);
    };
    if (b.init) post_order(b.init, look, family::tir_code);
    post_order(b.body, look, family::tir_code);
    Analyzer analyzer;
    for (const IterVar& v : b.iters) analyzer.bind(v->var, v->min, v->extent);
    for (const auto& [n, is_store] : found) {
      auto* s = is_store ? as<StoreNode>(n) : nullptr;
      auto* l = is_store ? nullptr : as<LoadNode>(n);
      const Buffer& buffer = is_store ? s->buffer : l->buffer;
      const std::vector<PrimExpr>& indices = is_store ? s->indices : l->indices;
      if (local.contains(buffer.get())) continue;
      auto among = [&](const std::vector<Region>& list) {
        for (const Region& r : list) {
          if (r->buffer == buffer && (has_loops || holds(*r.get(), indices, local, analyzer))) {
            return true;
          }
        }
        return false;
      };
      bool covered = among(b.writes) || (!is_store && among(b.reads));
      check(covered, [&, store = is_store] {
        return "block " + b.name + (store ? " writes " : " reads ") + buffer->name +
               " outside of the regions it names";
      });
    }
  }

  static bool holds(const RegionNode& r, const std::vector<PrimExpr>& indices,
                    const std::unordered_set<const Node*>& local, Analyzer& analyzer) {
    if (indices.size() != r.mins.size()) return true;  // flattened: by buffer only
    for (size_t d = 0; d < indices.size(); ++d) {
      const PrimExpr& i = indices[d];
      bool whole = as_int(r.mins[d]) == 0 && structural_equal(r.extents[d], r.buffer->shape[d]);
      if (whole || i->dtype.lanes > 1) continue;
      bool known = true;
      post_order(
          i, [&](const Node& n) { known &= !isa<LoadNode>(&n) && !local.contains(&n); },
          family::tir_expr);
      if (!known) return false;
      if (structural_equal(i, r.mins[d])) continue;
      if (!analyzer.can_prove(ge(i, r.mins[d])) ||
          !analyzer.can_prove(lt(i, r.mins[d] + r.extents[d]))) {
        return false;
      }
    }
    return true;
  }

  const PrimFuncNode& f_;
  const StmtNode* at_ = nullptr;  // for messages
  bool has_matrix_loop_ = false, has_block_ = false;
  std::unordered_set<const Node*> bound_;
  std::unordered_map<const Node*, bool> buffers_;  // those in scope; true: an input
  std::vector<Work> work_;
};

}  // namespace

void verify(const PrimFunc& f) { Verifier(*f).run(); }

}  // namespace relay::tir
