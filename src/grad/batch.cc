#include "grad/batch.h"
#include "base/quantities.h"

#include <algorithm>
#include <set>

#include "analysis/calls.h"
#include "analysis/lanes.h"
#include "base/codes/batching.h"
#include "grad/batch_call.h"
#include "grad/dataflow.h"
#include "grad/lift.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/walk.h"

namespace relay {
namespace {

// An operator without a rule, and what it gives cannot be stacked.
struct Parting {
  Expr at;
  std::string what, why;
};

Expr int64(int64_t value) { return constant(Tensor::scalar(value, DType::Int(64))); }

class Batching {
 public:
  Batching(BatchAnalysis& analysis, const Module& mod)
      : a_(analysis), types_(analysis.types()), lanes_(types_.lanes()), mod_(mod), names_(mod) {
    if (auto* v = as<DimVarNode>(lanes_)) lanes_var_ = v->var;
  }

  Batched run(const std::string& entry, const BatchOptions& options) {
    std::vector<GlobalVar> names = mod_->global_vars;
    std::vector<Function> functions = mod_->functions;
    // Each function of the module that is batched, under a name of its own.
    for (const auto& [name, g] : a_.globals()) {
      if (!a_.is_batched_global(name)) continue;
      auto type = cast<FuncTypeNode>(types_.type_of(*g.type));
      variants_[name] =
          global_var(names_.fresh(name + "_lanes"),
                     func_type(type->arg_types, type->ret_type, type_params(g.function)));
    }
    std::vector<Function> made;
    for (const auto& [name, variant] : variants_) made.push_back(variant_of(name));
    size_t next = 0;
    Function f;
    for (const auto& [name, variant] : variants_) {
      // The entry itself is there for those that call it.
      if (name != entry || called_.contains(name)) {
        names.push_back(variant);
        functions.push_back(fresh_copy(made[next]));
      }
      if (name == entry) f = fresh_copy(with_axes(made[next], *a_.global(entry).type, options));
      ++next;
    }
    std::vector<TypeData> data = mod_->type_definitions;
    data.insert(data.end(), types_.made_types().begin(), types_.made_types().end());
    return {make_module(std::move(names), std::move(functions), std::move(data), mod_->attrs), f,
            std::move(lane_by_lane_)};
  }

 private:
  std::vector<TypeVar> type_params(const Function& f) const {
    std::vector<TypeVar> out = f->type_params;
    if (lanes_var_) out.push_back(lanes_var_);
    return out;
  }

  // The function in all lanes. With the original's binders.
  Function variant_of(const std::string& name) {
    const BatchAnalysis::Global& g = a_.global(name);
    rewrite(g.function->body);
    Function f = made_function(*g.function.get(), g.type);
    Dict attrs;
    if (f->has_attr(kCheckpoint)) attrs[kCheckpoint] = f->attrs.at(kCheckpoint);
    return function(f->params, f->body, f->ret_type, type_params(g.function), attrs, f->span);
  }

  // ---- Values

  LaneType* of(const Expr& e) { return a_.of(e); }
  bool is_batched(const LaneType& t) const { return types_.is_batched(t.bit); }

  Var now(const Var& v) {
    NodeRef& known = made_[v.get()];
    if (!known) known = var(v->name_hint, types_.type_of(*of(v)), v->span);
    return cast<VarNode>(known);
  }

  Expr now(const Expr& e) {
    if (auto* v = as<VarNode>(e)) return now(ref(*v));
    if (auto* g = as<GlobalVarNode>(e)) {
      auto it = variants_.find(g->name_hint);
      if (it == variants_.end()) return e;
      called_.insert(g->name_hint);
      return it->second;
    }
    const NodeRef* known = made_.find(e.get());
    return known == nullptr ? e : Expr::unchecked(*known);
  }

  Expr now_as(const Expr& e, const LaneType& wanted) { return as_lanes(now(e), *of(e), wanted); }

  // A value gets lanes where others have them.
  Expr as_lanes(const Expr& e, const LaneType& from, const LaneType& to) {
    if (from.kind == LaneType::Kind::Tensor)
      return is_batched(to) && !is_batched(from) ? in_all_lanes(e, lanes_) : e;
    if (from.kind != LaneType::Kind::Tuple || !differs(from, to)) return e;
    Bindings b;
    Expr whole = b.leaf(e);
    std::vector<Expr> fields;
    for (size_t i = 0; i < from.parts.size(); ++i)
      fields.push_back(as_lanes(b.leaf(tuple_get_item(whole, static_cast<int64_t>(i))),
                                *from.parts[i], *to.parts[i]));
    return b.in(tuple(std::move(fields)));
  }

  bool differs(const LaneType& from, const LaneType& to) const {
    if (from.kind == LaneType::Kind::Tensor) return is_batched(from) != is_batched(to);
    if (from.kind != LaneType::Kind::Tuple) return false;
    for (size_t i = 0; i < from.parts.size(); ++i) {
      if (differs(*from.parts[i], *to.parts[i])) return true;
    }
    return false;
  }

  // The tensors of `a` in lanes where the mask holds, of `b` in others; what has no lanes is `b`'s.
  Expr select(const Expr& mask, const Expr& a, const Expr& b, const LaneType& type) {
    if (type.kind == LaneType::Kind::Tensor) {
      if (!is_batched(type)) return b;
      return call("where", {lanes_of_rank(mask, tensor_of(a)->rank() - 1), a, b});
    }
    std::vector<Expr> fields;
    for (size_t i = 0; i < type.parts.size(); ++i) {
      auto at = static_cast<int64_t>(i);
      fields.push_back(select(mask, tuple_get_item(a, at), tuple_get_item(b, at), *type.parts[i]));
    }
    return tuple(std::move(fields));
  }

  // Tensors that nothing is read of, of a value of tensors in all lanes.
  static Expr zeros_of_type(const Type& type) {
    if (auto* t = as<TupleTypeNode>(type)) {
      std::vector<Expr> fields;
      for (const Type& f : t->fields) fields.push_back(zeros_of_type(f));
      return tuple(std::move(fields));
    }
    auto* t = as<TensorTypeNode>(type);
    if (!t->dtype.is_narrow()) return filled("zeros", t->shape, t->dtype);
    // Such elements are made by casting, and one dtype of them has no zero.
    return make_call("cast", {filled("ones", t->shape, DType::Float(32))},
                     {{"dtype", t->dtype.to_string()}}, Span{});
  }
  static Expr filled(const char* op, const std::vector<Dim>& shape, DType dtype) {
    return make_call(
        op, {},
        {{"shape", to_value(Dims(shape.begin(), shape.end()))}, {"dtype", dtype.to_string()}},
        Span{});
  }
  Expr mask_of(bool value) const {
    return filled(value ? "ones" : "zeros", {lanes_}, DType::Bool());
  }

  // ---- Expressions

  // Operands first; afterwards `now` knows them.
  void rewrite(const Expr& body) {
    post_order_if(
        body,
        [&](const Node& n) {
          if (made_.contains(&n) && !isa<VarNode>(&n)) return false;
          const LaneByLane* r = a_.region(n);
          if (r == nullptr) return true;
          const auto& e = static_cast<const ExprNode&>(n);
          lane_by_lane_.push_back(*r);
          made_[&n] = lane_loop(Expr(&e));
          return false;
        },
        [&](const Node& n) { node(n); }, family::program);
  }

  void node(const Node& n) {
    if (isa<VarNode>(&n)) return;
    if (n.info().family == family::pattern) {
      made_[&n] = pattern(n);
      return;
    }
    if (is_leaf(n)) return;
    const auto& e = static_cast<const ExprNode&>(n);
    BuildAt place(e.span);
    if (const BatchAnalysis::Masked* m = a_.tail_of(n)) {
      bool plain = !isa<LetNode>(&n) && !isa<IfNode>(&n) && !a_.is_tail_call(n, *m);
      if (plain) made_[&n] = expr(e);
      tail_[&n] = tail(e, *m);
      return;
    }
    made_[&n] = expr(e);
  }

  NodeRef pattern(const Node& n) {
    std::vector<NodeRef> children = children_of(n);
    for (NodeRef& c : children) {
      if (!c) continue;
      if (auto* v = as<VarNode>(c)) {
        c = now(ref(*v));
      } else if (auto* constructor = as<ConstructorNode>(c)) {
        c = types_.constructor(ref(*constructor),
                               *a_.of(Pattern(static_cast<const PatternNode*>(&n))));
      } else if (c.get()->info().family == family::expr) {
        // The right side of a clause: its match brings it to one type with the others.
        c = now(Expr::unchecked(c));
      } else if (const NodeRef* known = made_.find(c.get())) {
        c = *known;
      }
    }
    return with_children(NodeRef(&n), children);
  }

  Expr expr(const ExprNode& e) {
    if (auto* c = as<CallNode>(&e)) return call_in_lanes(*c);
    if (auto* t = as<TupleNode>(&e)) {
      const LaneType& type = *of(Expr(&e));
      std::vector<Expr> fields;
      for (size_t i = 0; i < t->fields.size(); ++i)
        fields.push_back(now_as(t->fields[i], *type.parts[i]));
      return tuple(std::move(fields), e.span);
    }
    if (auto* g = as<TupleGetItemNode>(&e)) return tuple_get_item(now(g->tuple), g->index, e.span);
    if (auto* l = as<LetNode>(&e))
      return let(now(l->var), now_as(l->value, *of(l->var)), now(l->body), e.span);
    if (auto* i = as<IfNode>(&e)) return branch(*i);
    if (auto* f = as<FunctionNode>(&e)) return made_function(*f, of(Expr(&e)));
    if (auto* r = as<RefCreateNode>(&e))
      return ref_create(now_as(r->value, *of(Expr(&e))->parts[0]), e.span);
    if (auto* r = as<RefReadNode>(&e)) return ref_read(now(r->ref), e.span);
    if (auto* w = as<RefWriteNode>(&e))
      return ref_write(now(w->ref), now_as(w->value, *of(w->ref)->parts[0]), e.span);
    auto* m = as<MatchNode>(&e);
    RELAY_CHECK(m != nullptr, "a kind of expression");
    std::vector<Clause> clauses;
    for (const Clause& c : m->clauses) {
      auto made = cast<ClauseNode>(made_.at(c.get()));
      clauses.push_back(clause(made->lhs, as_lanes(made->rhs, *of(c->rhs), *of(Expr(&e)))));
    }
    return match(now(m->data), std::move(clauses), m->complete, e.span);
  }

  Expr branch(const IfNode& i) {
    const LaneType& type = *of(Expr(&i));
    Expr cond = now(i.cond);
    Expr a = now_as(i.true_branch, type), b = now_as(i.false_branch, type);
    if (!is_batched(*of(i.cond))) return if_(cond, a, b, i.span);
    Bindings bindings;
    Expr first = bindings.leaf(a), second = bindings.leaf(b);
    return bindings.in(select(cond, first, second, type));
  }

  Expr call_in_lanes(const CallNode& c) {
    const LaneType& type = *of(Expr(&c));
    if (called_op(Expr(&c)) != nullptr) return operator_in_lanes(c, type);
    std::vector<Expr> args;
    if (auto* constructor = as<ConstructorNode>(c.op)) {
      std::vector<LaneType*> inputs = types_.inputs(ref(*constructor), type);
      for (size_t i = 0; i < c.args.size(); ++i) args.push_back(now_as(c.args[i], *inputs[i]));
      std::vector<Type> type_args;
      for (const LaneType* p : type.parts) type_args.push_back(types_.type_of(*p));
      return call(types_.constructor(ref(*constructor), type), std::move(args), nullptr, c.span,
                  std::move(type_args));
    }
    const BatchAnalysis::CallTypes& seen = a_.call_types(c);
    for (size_t i = 0; i < c.args.size(); ++i) args.push_back(now_as(c.args[i], *seen.params[i]));
    Expr callee = now(c.op);
    std::vector<Type> type_args;
    for (size_t i = 0; i < seen.type_args.size(); ++i) {
      type_args.push_back(seen.type_args[i] == nullptr ? c.type_args[i]
                                                       : types_.type_of(*seen.type_args[i]));
    }
    // The number of lanes is found like other sizes.
    if (lanes_var_ && callee.get() != c.op.get() && isa<GlobalVarNode>(callee)) type_args.clear();
    return as_lanes(call(callee, std::move(args), nullptr, c.span, std::move(type_args)),
                    *seen.result, type);
  }

  // ---- Operators

  Expr operator_in_lanes(const CallNode& c, const LaneType& type) {
    const OpInfo& row = *as<OpNode>(c.op)->row;
    std::vector<Expr> args;
    std::vector<bool> batched;
    bool any = false;
    for (const Expr& a : c.args) {
      batched.push_back(types_.any(*of(a)));
      any = any || batched.back();
      args.push_back(now(a));
    }
    if (!any) return all_lanes(call(c.op, std::move(args), c.attrs, c.span), type);
    if (!row.batching && row.batching.reason() == Absent::OnlySizes) {
      for (size_t i = 0; i < args.size(); ++i) {
        if (batched[i]) args[i] = one_lane(args[i], c.args[i]->type);
      }
      return all_lanes(call(c.op, std::move(args), c.attrs, c.span), type);
    }
    if (Expr made = batched_call({c, args, batched, lanes_})) {
      check_rule(row, made->type, types_.type_of(type));
      return made;
    }
    LaneByLane why{c.span, row.name, "the operator has no rule for its arguments with lanes"};
    if (!can_be_stacked(c.type))
      throw Parting{Expr(&c), why.what,
                    "its result has a size of its own in each lane, or holds strings"};
    lane_by_lane_.push_back(why);
    return lane_loop(Expr(&c));
  }

  static void check_rule(const OpInfo& row, const Type& made, const Type& wanted) {
    auto given = flatten_tensor_types(made), expected = flatten_tensor_types(wanted);
    bool same = given && given->size() == expected->size();
    for (size_t i = 0; same && i < given->size(); ++i) {
      const TensorTypeNode &a = *(*given)[i].get(), &b = *(*expected)[i].get();
      same = a.dtype == b.dtype && a.rank() == b.rank();
      for (size_t d = 0; same && d < a.shape.size(); ++d)
        same = !dim_differs(a.shape[d], b.shape[d]);
    }
    RELAY_CHECK(same,
                row.name + " in all lanes gives " + to_string(made) + ", not " + to_string(wanted));
  }

  static bool can_be_stacked(const Type& type) {
    const auto tensors = flatten_tensor_types(type);
    return tensors && std::ranges::all_of(*tensors, [](const TensorType& t) {
             return !t->dtype.is_string() && std::ranges::none_of(t->shape, is_any);
           });
  }

  // A tensor of the type that one lane has, whatever is in it.
  Expr one_lane(const Expr& e, const Type& lane) {
    if (can_be_stacked(lane)) return zeros_of_type(lane);
    return make_call("take", {e, int64(0)}, {{"axis", int64_t{0}}}, e->span);
  }

  // A value without lanes, as its type wants it.
  Expr all_lanes(const Expr& e, const LaneType& type) {
    if (type.kind == LaneType::Kind::Tensor) return is_batched(type) ? in_all_lanes(e, lanes_) : e;
    if (!types_.any(type)) return e;
    Bindings b;
    Expr whole = b.leaf(e);
    std::vector<Expr> fields;
    for (size_t i = 0; i < type.parts.size(); ++i)
      fields.push_back(all_lanes(tuple_get_item(whole, static_cast<int64_t>(i)), *type.parts[i]));
    return b.in(tuple(std::move(fields)));
  }

  // ---- Functions

  Function made_function(const FunctionNode& f, const LaneType* type) {
    std::vector<Var> params;
    for (const Var& p : f.params) params.push_back(now(p));
    Expr body;
    if (const BatchAnalysis::Masked* m = a_.masked(f)) {
      body = masked_loop(*m, params);
    } else {
      body = now_as(f.body, *type->result());
    }
    Type result = body->type;
    return function(std::move(params), body, result, f.type_params, f.attrs, f.span);
  }

  // What a tail expression does in each lane: whether the function goes on, its result where it does
  // not, and its next parameters.
  Expr tail_result(const Expr& e, const BatchAnalysis::Masked& m) {
    const NodeRef* known = tail_.find(e.get());
    if (known != nullptr) return Expr::unchecked(*known);
    const LaneType& type = *of(Expr(m.function));
    std::vector<Expr> fields{mask_of(false), now_as(e, *type.result())};
    for (const Var& p : m.function->params) fields.push_back(now(p));
    return tuple(std::move(fields));
  }

  Expr tail(const ExprNode& e, const BatchAnalysis::Masked& m) {
    const LaneType& type = *of(Expr(m.function));
    if (auto* l = as<LetNode>(&e)) {
      if (l->body.get() == l->var.get()) return tail_result(l->value, m);
      return let(now(l->var), now_as(l->value, *of(l->var)), tail_result(l->body, m), e.span);
    }
    if (auto* i = as<IfNode>(&e)) {
      Expr cond = now(i->cond);
      Expr a = tail_result(i->true_branch, m), b = tail_result(i->false_branch, m);
      if (!is_batched(*of(i->cond))) return if_(cond, a, b, e.span);
      Bindings bindings;
      Expr first = bindings.leaf(a), second = bindings.leaf(b);
      auto field = [](const Expr& t, size_t k) {
        return Expr(tuple_get_item(t, static_cast<int64_t>(k)));
      };
      std::vector<Expr> fields{call("where", {cond, field(first, 0), field(second, 0)}),
                               select(cond, field(first, 1), field(second, 1), *type.result())};
      for (size_t k = 0; k < type.params(); ++k) {
        Expr one = field(first, k + 2), other = field(second, k + 2);
        if (a_.leaves_parameters(i->true_branch)) {
          fields.push_back(other);
        } else if (a_.leaves_parameters(i->false_branch)) {
          fields.push_back(one);
        } else {
          fields.push_back(select(cond, one, other, *type.parts[k]));
        }
      }
      return bindings.in(tuple(std::move(fields)));
    }
    if (!a_.is_tail_call(e, m)) return tail_result(Expr(&e), m);
    auto& c = static_cast<const CallNode&>(e);
    std::vector<Expr> fields{mask_of(true), zeros_of_type(types_.type_of(*type.result()))};
    for (size_t i = 0; i < c.args.size(); ++i) fields.push_back(now_as(c.args[i], *type.parts[i]));
    return tuple(std::move(fields));
  }

  // fn (active, result, params) { if (any(active)) { one step of all lanes; again } else { result } }
  Expr masked_loop(const BatchAnalysis::Masked& m, std::vector<Var>& params) {
    const LaneType& type = *of(Expr(m.function));
    Expr step = tail_result(m.function->body, m);
    Type result_type = types_.type_of(*type.result());
    // The parameters that the step knows are those of the loop.
    std::vector<Var> own = params;
    std::vector<Expr> first{mask_of(true), zeros_of_type(result_type)};
    for (Var& p : params) {
      p = var(p->name_hint, p->type, p->span);
      first.push_back(p);
    }
    Var active = var("active", mask_of(true)->type), result = var("result", result_type);
    std::vector<Type> loop_types{active->type, result_type};
    for (const Var& p : own) loop_types.push_back(p->type);
    Var loop = var("loop", func_type(loop_types, result_type));
    Bindings b;
    Var done = b.bind("step", step);
    auto field = [&](size_t k) { return Expr(tuple_get_item(done, static_cast<int64_t>(k))); };
    Var again = b.bind("again", field(0));
    Var goes = b.bind("goes_on", call("logical_and", {active, again}));
    Var ends = b.bind("ends", call("logical_and", {active, call("logical_not", {again})}));
    std::vector<Expr> next{goes, select(ends, b.leaf(field(1)), result, *type.result())};
    for (size_t k = 0; k < own.size(); ++k) {
      // Lanes that are done keep their parameters: nothing new happens in them. What is the same in all
      // lanes goes on for those that do.
      Expr p = b.leaf(field(k + 2));
      next.push_back(types_.any(*type.parts[k]) ? kept(goes, p, own[k], *type.parts[k]) : p);
    }
    Expr more = b.in(call(loop, std::move(next)));
    std::vector<Var> loop_params{active, result};
    loop_params.insert(loop_params.end(), own.begin(), own.end());
    Expr any = make_call("any", {active}, {}, m.function->span);
    Function body = function(std::move(loop_params), if_(any, more, result), result_type);
    return let(loop, body, call(loop, std::move(first)));
  }

  // `select`, where what has no lanes is the new value.
  Expr kept(const Expr& mask, const Expr& next, const Expr& before, const LaneType& type) {
    if (type.kind == LaneType::Kind::Tensor)
      return is_batched(type) ? select(mask, next, before, type) : next;
    std::vector<Expr> fields;
    for (size_t i = 0; i < type.parts.size(); ++i) {
      auto at = static_cast<int64_t>(i);
      fields.push_back(
          kept(mask, tuple_get_item(next, at), tuple_get_item(before, at), *type.parts[i]));
    }
    return tuple(std::move(fields));
  }

  // ---- Lanes one after the other

  Expr lane(const Expr& e, const Expr& i, const LaneType& type) {
    if (type.kind == LaneType::Kind::Tensor) {
      if (!is_batched(type)) return e;
      return make_call("take", {e, i}, {{"axis", int64_t{0}}}, Span{});
    }
    if (!types_.any(type)) return e;
    std::vector<Expr> fields;
    for (size_t k = 0; k < type.parts.size(); ++k)
      fields.push_back(lane(tuple_get_item(e, static_cast<int64_t>(k)), i, *type.parts[k]));
    return tuple(std::move(fields));
  }

  // fn (i, results) { if (i < lanes) { loop(i + 1, results with those of lane i) } else { results } }
  Expr lane_loop(const Expr& e) {
    BuildAt place(e->span);
    const std::vector<Var>& inputs = a_.inputs(*e.get());
    Function own = fresh_copy(function(inputs, e, e->type));
    std::vector<Expr> zeros;
    std::vector<Type> stacked;
    const auto tensors = flatten_tensor_types(e->type);
    for (const TensorType& t : *tensors) {
      zeros.push_back(zeros_of_type(types_.in_all_lanes(t)));
      stacked.push_back(zeros.back()->type);
    }
    Type index = scalar_type(DType::Int(64)), all = tuple_type(stacked);
    Var i = var("i", index), results = var("results", all);
    Var loop = var("loop", func_type({index, all}, all));
    Expr body = own->body;
    for (size_t k = inputs.size(); k-- > 0;)
      body = let(own->params[k], lane(now(Expr(inputs[k])), i, *of(inputs[k])), body);
    Bindings b;
    Var one = b.bind("lane", body);
    std::vector<Expr> next;
    for (const Expr& t : tensors_of(one)) {
      Expr row = make_call("expand_dims", {t}, {{"axis", int64_t{0}}}, Span{});
      Expr before = tuple_get_item(results, static_cast<int64_t>(next.size()));
      next.push_back(call("update_slice", {before, row, i}));
    }
    Expr again = b.in(call(loop, {call("add", {i, int64(1)}), tuple(std::move(next))}));
    Function step = function({i, results}, if_(call("less", {i, count()}), again, results), all);
    Bindings outer;
    Var found =
        outer.bind("lanes", let(loop, step, call(loop, {int64(0), tuple(std::move(zeros))})));
    size_t next_field = 0;
    return outer.in(put_together(e->type, found, next_field));
  }

  static Expr put_together(const Type& type, const Expr& fields, size_t& next) {
    auto* t = as<TupleTypeNode>(type);
    if (t == nullptr) return tuple_get_item(fields, static_cast<int64_t>(next++));
    std::vector<Expr> out;
    for (const Type& f : t->fields) out.push_back(put_together(f, fields, next));
    return tuple(std::move(out));
  }

  // How many lanes there are, as an int64.
  Expr count() const {
    if (auto known = as_const(lanes_)) return int64(*known);
    return make_call("ndarray_size", {mask_of(false)}, {{"dtype", "int64"}}, Span{});
  }

  // ---- Axes

  static size_t axis_in(const Expr& e, int64_t axis) {
    return static_cast<size_t>(axis < 0 ? axis + tensor_of(e)->rank() : axis);
  }

  // From where the axes say to the first axis, or back.
  Expr at_axes(const Expr& e, const LaneType& type, const BatchAxes& axes, bool to_front) {
    if (type.kind == LaneType::Kind::Tensor) {
      if (!axes.axis || !is_batched(type)) return e;
      size_t at = axis_in(e, *axes.axis);
      return to_front ? with_axis_moved(e, at, 0) : with_axis_moved(e, 0, at);
    }
    if (type.kind != LaneType::Kind::Tuple) return e;
    std::vector<Expr> fields;
    for (size_t i = 0; i < type.parts.size(); ++i) {
      fields.push_back(at_axes(tuple_get_item(e, static_cast<int64_t>(i)), *type.parts[i],
                               axes.fields.empty() ? axes : axes.fields[i], to_front));
    }
    return tuple(std::move(fields));
  }

  Type type_at(const Type& type, const LaneType& lanes, const BatchAxes& axes) {
    if (lanes.kind == LaneType::Kind::Tensor) {
      if (!axes.axis || !is_batched(lanes)) return type;
      auto* t = as<TensorTypeNode>(type);
      std::vector<Dim> shape(t->shape.begin() + 1, t->shape.end());
      int64_t at = *axes.axis < 0 ? *axes.axis + t->rank() : *axes.axis;
      shape.insert(shape.begin() + at, lanes_);
      return tensor_type(std::move(shape), t->dtype);
    }
    if (lanes.kind != LaneType::Kind::Tuple) return type;
    std::vector<Type> fields;
    for (size_t i = 0; i < lanes.parts.size(); ++i) {
      fields.push_back(type_at(as<TupleTypeNode>(type)->fields[i], *lanes.parts[i],
                               axes.fields.empty() ? axes : axes.fields[i]));
    }
    return tuple_type(std::move(fields));
  }

  // Parameters and results with their lanes where the caller has them.
  Function with_axes(const Function& f, const LaneType& type, const BatchOptions& options) {
    std::vector<Var> params;
    Bindings b;
    Expr body = f->body;
    for (size_t i = f->params.size(); i-- > 0;) {
      const Var& p = f->params[i];
      const BatchAxes& axes = (*options.in_axes)[i];
      Type given = type_at(p->type, *type.parts[i], axes);
      if (to_string(given) == to_string(p->type)) {
        params.insert(params.begin(), p);
        continue;
      }
      Var outer = var(p->name_hint, given, p->span);
      params.insert(params.begin(), outer);
      body = let(p, at_axes(outer, *type.parts[i], axes, true), body);
    }
    Expr value = b.leaf(body);
    const LaneType& result = *a_.result();
    value = b.leaf(as_lanes(value, *type.result(), result));
    value = b.in(at_axes(value, result, options.out_axes, false));
    return function(std::move(params), value, value->type, f->type_params, f->attrs, f->span);
  }

  BatchAnalysis& a_;
  LaneTypes& types_;
  Dim lanes_;
  TypeVar lanes_var_;
  Module mod_;
  FreshNames names_;
  std::map<std::string, GlobalVar> variants_;
  std::set<std::string> called_;
  NodeMap<NodeRef> made_, tail_;
  std::vector<LaneByLane> lane_by_lane_;
};

[[noreturn]] void refuse(const DiagnosticCode& code, const Span& span, const std::string& what,
                         const std::string& expected, const std::string& found,
                         const std::string& help = {}) {
  throw UserError(Diagnostic(code, span, what).expected(expected).found(found).help(help));
}

// Axes exist, and say something about what has axes. Whether there are lanes at all.
bool check_axes(const Type& type, const BatchAxes& axes, const std::string& what,
                const Span& span) {
  if (!axes.fields.empty()) {
    auto* t = as<TupleTypeNode>(type);
    if (t == nullptr || t->fields.size() != axes.fields.size()) {
      refuse(codes::batch_axis, span, "the axes of " + what + " are those of another tuple",
             "an axis for each field of " + to_string(type), counted(axes.fields.size(), "axis"));
    }
    bool any = false;
    for (size_t i = 0; i < t->fields.size(); ++i)
      any |= check_axes(t->fields[i], axes.fields[i], what, span);
    return any;
  }
  if (!axes.axis) return false;
  if (auto* t = as<TupleTypeNode>(type)) {
    bool any = false;
    for (const Type& f : t->fields) any |= check_axes(f, axes, what, span);
    return any;
  }
  if (auto* t = as<TensorTypeNode>(type)) {
    if (*axes.axis < -(t->rank() + 1) || *axes.axis > t->rank()) {
      refuse(codes::batch_axis, span,
             "the batch of " + what + " has no axis " + std::to_string(*axes.axis),
             "an axis from " + std::to_string(-t->rank() - 1) + " to " + std::to_string(t->rank()),
             std::to_string(*axes.axis) + "; one lane is " + to_string(type));
    }
    return true;
  }
  bool data = isa<TypeCallNode>(type) || isa<GlobalTypeVarNode>(type);
  if (data && *axes.axis == 0) return true;
  refuse(data ? codes::batch_axis : codes::batch_function, span,
         data ? "data has the lanes along the first axis of its tensors"
              : what + " is no value that has lanes",
         data ? "axis 0, or None" : "tensors, tuples and data of them", to_string(type));
}

// A result without an axis is the same in all lanes.
void check_result(LaneTypes& types, const LaneType& type, const BatchAxes& axes, const Span& span) {
  if (!axes.fields.empty()) {
    for (size_t i = 0; i < axes.fields.size(); ++i)
      check_result(types, *type.parts[i], axes.fields[i], span);
    return;
  }
  if (axes.axis || !types.any(type)) return;
  refuse(codes::batch_axis, span, "a result depends on the lane and has no axis for it",
         "an axis in out_axes", "None for a result of " + to_string(type.type));
}

}  // namespace

Batched batch(const Module& mod, const std::string& entry, const BatchOptions& wanted) {
  BatchOptions options = wanted;
  Function f = mod->find(entry);
  if (!options.in_axes) options.in_axes.emplace(f->params.size(), options.in_axis);
  const std::vector<BatchAxes>& in_axes = *options.in_axes;
  if (in_axes.size() != f->params.size()) {
    refuse(codes::batch_axis, f->span, "in_axes are those of other parameters",
           counted(f->params.size(), "axis") + ", one for each parameter",
           std::to_string(in_axes.size()));
  }
  bool any = false;
  for (size_t i = 0; i < f->params.size(); ++i) {
    const Var& p = f->params[i];
    any |= check_axes(p->type, in_axes[i], "%" + p->name_hint, p->span);
  }
  check_axes(f->body->type, options.out_axes, "the result", f->span);
  if (!any) {
    refuse(codes::batch_nothing, f->span, "no parameter has lanes", "an axis in in_axes",
           "None for every parameter", "without a batch the function is called as it is");
  }
  if (!options.lanes) options.lanes = dim(type_var("lanes", Kind::Dim));
  BatchAnalysis analysis(mod, entry, options.lanes, in_axes, options.out_axes);
  for (;;) {
    analysis.analyze();
    check_result(analysis.types(), *analysis.result(), options.out_axes, f->span);
    try {
      Batched made = Batching(analysis, mod).run(entry, options);
      if (options.strict && !made.lane_by_lane.empty()) {
        const LaneByLane& first = made.lane_by_lane.front();
        throw UserError(Diagnostic(codes::batch_lane_by_lane, first.span,
                                   first.what + " would be computed one lane after the other")
                            .found(first.why)
                            .help("without strict it is, and the report says so"));
      }
      return made;
    } catch (const Parting& p) {
      analysis.part(p.at, p.what, p.why);
    }
  }
}

}  // namespace relay
