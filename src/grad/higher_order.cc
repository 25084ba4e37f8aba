#include "grad/higher_order.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/calls.h"
#include "base/codes/gradients.h"
#include "grad/call_gradient.h"
#include "grad/dataflow.h"
#include "grad/dataflow_runs.h"
#include "grad/grad_cell.h"
#include "grad/lift.h"
#include "grad/tape_entry.h"
#include "ir/bindings.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"
#include "types/eta_expansion.h"

namespace relay {
namespace {

// The type of a gradient: of floats their own, of others the empty tuple. For tensors and tuples.
Type adjoint_type(const Type& t) {
  auto* tuple = as<TupleTypeNode>(t);
  if (tuple == nullptr) return is_floating(t) ? t : Type(tuple_type({}));
  std::vector<Type> fields;
  for (const Type& f : tuple->fields) fields.push_back(adjoint_type(f));
  return tuple_type(std::move(fields));
}

// The function that a function of the module names as its gradient. Throws E1006.
GlobalVar custom_gradient(const Module& mod, const std::string& name, const Function& f) {
  const AttrValue& named = f->attrs.at(kCustomGradient);
  auto* text = named.get_if<std::string>();
  GlobalVar g = text == nullptr ? nullptr : mod->find_global_var(*text);
  bool tensors = is_floating(f->body->type);
  std::vector<Type> params, adjoints;
  for (const Var& p : f->params) {
    tensors &= flatten_tensor_types(p->type).has_value();
    params.push_back(p->type);
    adjoints.push_back(adjoint_type(p->type));
  }
  params.push_back(f->body->type);
  FuncType wanted = func_type(std::move(params), tuple_type(std::move(adjoints)), f->type_params);
  Type given = g ? Type(mod->find(*text)->type) : nullptr;
  if (given && tensors && structural_equal(given, wanted)) return g;
  throw UserError(
      Diagnostic(codes::grad_custom, f->span,
                 tensors ? "the custom gradient of @" + name + " has the wrong type"
                         : "@" + name +
                               " has a custom gradient, but does not map tensors to one "
                               "floating tensor")
          .expected("a function @" + to_string(named) + ": " + to_string(Type(wanted)))
          .found(given ? to_string(given) : "no such function")
          .help(
              "its parameters are those of the function and the adjoint of its result; it gives a "
              "tuple with the adjoint of each parameter, () for one without floats"));
}

Type tape_type() { return ref_type(func_type({}, tuple_type({}))); }

class Reverse : public Lifting {
 public:
  explicit Reverse(const Module& mod) : Lifting(mod, "_grad"), tape_(var("tape", tape_type())) {
    cell_ = known_cell(mod);
    if (cell_.data) return;
    cell_ = new_cell(names());
    made_types_.push_back(cell_.data);
  }

  const GradCell& cell() const { return cell_; }
  const Var& tape() const { return tape_; }

 protected:
  Type lifted_tensor(const TensorType& t) override {
    return tuple_type({t, ref_type(cell_.of(t))});
  }
  Expr lifted_constant(const Constant& c) override {
    return tuple({c, ref_create(cell_.none(c->type))});
  }
  // A cell is for one type: the value gets another one, whose adjoint goes to the first.
  Expr lifted_use(const Expr& value, const TensorType& to) override {
    Bindings b;
    Expr whole = b.leaf(value);
    Var x = b.bind("x", tuple_get_item(whole, 0)), before = b.bind("a", tuple_get_item(whole, 1));
    Var c = b.bind("c", ref_create(cell_.none(to)));
    Expr spread = cell_.choose(c, tuple({}), [&](const Expr& g) {
      Bindings inner;
      Expr more = inner.bind("d", call("reshape_like", {g, x}));
      return inner.in(cell_.accumulate(before, more));
    });
    push(spread, b);
    return b.in(tuple({x, c}));
  }
  Var context() override { return tape_; }
  void enter(const Var& context) override { tape_ = context; }

  Function prepared(const Function& f) override { return runs_.outlined(f); }

  Expr lifted_call(const CallNode& c, const std::vector<Expr>& args) override;
  Expr lifted_prepared(const CallNode& c, const std::vector<Expr>& args) override;

  // The function itself forward, and its lifted form with a tape of its own backward: from the
  // arguments once the adjoint is there, so that nothing of it is computed before.
  Expr lifted_checkpoint(const CallNode& c, const std::vector<Expr>& args) override {
    bool tensors = is_floating(c.type) && c.type_args.empty();
    for (const Expr& a : c.args) tensors &= flatten_tensor_types(a->type).has_value();
    if (!tensors) return nullptr;
    GlobalVar again = lifted_function(as<GlobalVarNode>(c.op)->name_hint);
    Bindings b;
    std::vector<Expr> values;
    std::vector<Part> parts;
    for (size_t i = 0; i < args.size(); ++i)
      take_apart(c.args[i]->type, args[i], b, values.emplace_back(), parts);
    Var v = b.bind("v", call(c.op, values, nullptr, c.span));
    Var result_cell = b.bind("c", ref_create(cell_.none(v->type)));
    Expr spread = cell_.choose(result_cell, tuple({}), [&](const Expr& g) {
      Bindings inner;
      Var tape = inner.bind("tape", ref_create(function({}, tuple({}))));
      std::vector<Expr> lifted{tape};
      size_t next = 0;
      for (const Expr& a : c.args) {
        lifted.push_back(put_together(a->type, parts, next, [&](const Expr& value) {
          return inner.leaf(call("after", {value, g}));
        }));
      }
      Var y = inner.bind("y", call(again, lifted, nullptr, c.span));
      inner.bind("_", cell_.accumulate(inner.bind("a", tuple_get_item(y, 1)), g));
      return inner.in(call(inner.bind("back", ref_read(tape)), {}));
    });
    push(spread, b);
    return b.in(tuple({v, result_cell}));
  }

  Expr lifted_custom_call(const CallNode& c, const Function& f,
                          const std::vector<Expr>& args) override {
    const std::string& name = as<GlobalVarNode>(c.op)->name_hint;
    GlobalVar gradient = custom_gradient(module(), name, f);
    Bindings b;
    std::vector<Expr> values;
    std::vector<Part> parts;
    for (size_t i = 0; i < args.size(); ++i)
      take_apart(c.args[i]->type, args[i], b, values.emplace_back(), parts);
    Var v = b.bind("v", call(c.op, values, nullptr, c.span, c.type_args));
    std::vector<Expr> cells;
    Expr result = with_cells(v->type, v, b, cells);
    push(cells[0], parts, b, [&](const Expr& g) {
      values.push_back(g);
      Expr found = call(gradient, values, nullptr, c.span, c.type_args);
      std::vector<Expr> adjoints;
      // A parameter without floats has the empty tuple, which has no tensors.
      for (size_t i = 0; i < args.size(); ++i)
        add_adjoints(c.args[i]->type, tuple_get_item(found, static_cast<int64_t>(i)), adjoints);
      return adjoints;
    });
    return b.in(result);
  }

 private:
  Expr with_cells(const Type& type, const Expr& value, Bindings& b, std::vector<Expr>& cells) {
    if (auto* t = as<TupleTypeNode>(type)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < t->fields.size(); ++i) {
        fields.push_back(
            with_cells(t->fields[i], tuple_get_item(value, static_cast<int64_t>(i)), b, cells));
      }
      return tuple(std::move(fields));
    }
    cells.emplace_back();
    if (!is_floating(type)) return value;
    cells.back() = b.bind("c", ref_create(cell_.none(type)));
    return tuple({value, cells.back()});
  }

  // The lifted value that has these parts, in order.
  static Expr put_together(const Type& type, const std::vector<Part>& parts, size_t& next,
                           const std::function<Expr(const Expr& value)>& made) {
    auto* t = as<TupleTypeNode>(type);
    if (t == nullptr) {
      const Part& p = parts[next++];
      Expr value = isa<TensorTypeNode>(type) ? made(p.value) : p.value;
      return p.carried ? Expr(tuple({value, p.carried})) : value;
    }
    std::vector<Expr> fields;
    for (const Type& f : t->fields) fields.push_back(put_together(f, parts, next, made));
    return tuple(std::move(fields));
  }

  // The adjoint of each tensor of a type, null for those without floats.
  static void add_adjoints(const Type& type, const Expr& adjoint, std::vector<Expr>& out) {
    auto* t = as<TupleTypeNode>(type);
    if (t == nullptr) return out.push_back(is_floating(type) ? adjoint : nullptr);
    for (size_t i = 0; i < t->fields.size(); ++i)
      add_adjoints(t->fields[i], tuple_get_item(adjoint, static_cast<int64_t>(i)), out);
  }

  // Puts on the tape what a result does to the arguments: `gradient` makes their adjoints of its own,
  // which is in `cell`.
  void push(const Expr& cell, const std::vector<Part>& parts, Bindings& b,
            const std::function<std::vector<Expr>(const Expr& adjoint)>& gradient) {
    bool wanted = false;
    for (const Part& p : parts) wanted |= static_cast<bool>(p.carried);
    if (!wanted) return;
    bool reaches = false;
    Expr spread = cell_.choose(cell, tuple({}), [&](const Expr& g) {
      std::vector<Expr> adjoints = gradient(g);
      Bindings inner;
      std::vector<std::pair<Expr, Expr>> sums;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (adjoints[i] && parts[i].carried)
          sums.emplace_back(parts[i].carried, inner.leaf(adjoints[i]));
      }
      for (auto& [place, more] : sums) inner.bind("_", cell_.accumulate(place, more));
      reaches = !sums.empty();
      return inner.in(tuple({}));
    });
    if (reaches) push(spread, b);
  }

  // Puts what runs on the way back on the tape.
  void push(const Expr& spread, Bindings& b) {
    Var before = b.bind("before", ref_read(tape_));
    Bindings body;
    body.bind("_", spread);
    b.bind("_", ref_write(tape_, function({}, body.in(call(before, {})))));
  }

  GradCell cell_;
  Var tape_;
  DataflowRuns runs_;
};

Expr Reverse::lifted_call(const CallNode& c, const std::vector<Expr>& args) {
  TapeEntry entry(cell_, [this](const Expr& spread, Bindings& b) { push(spread, b); });
  std::vector<TapeEntry::Operand> operands;
  for (size_t i = 0; i < args.size(); ++i) {
    // Nobody asks for the adjoint of a constant.
    operands.push_back(isa<ConstantNode>(c.args[i]) ? entry.constant(c.args[i])
                                                    : entry.input(c.args[i]->type, args[i]));
  }
  return entry.result({entry.call_of(c, "v", operands)});
}

Expr Reverse::lifted_prepared(const CallNode& c, const std::vector<Expr>& args) {
  const DataflowRun* run = runs_.find(c);
  if (run == nullptr) return nullptr;
  TapeEntry entry(cell_, [this](const Expr& spread, Bindings& b) { push(spread, b); });
  std::unordered_map<const Node*, TapeEntry::Operand> known;
  for (size_t i = 0; i < args.size(); ++i)
    known[run->inputs[i].get()] = entry.input(run->inputs[i]->type, args[i]);
  auto operand = [&](const Expr& e) {
    return isa<VarNode>(e) ? known.at(e.get()) : entry.constant(e);
  };
  for (const auto& [v, value] : run->lets) {
    std::vector<TapeEntry::Operand> operands;
    if (auto* field = as<TupleGetItemNode>(value)) {
      known[v.get()] = entry.field_of(operand(field->tuple), field->index);
    } else if (auto* t = as<TupleNode>(value)) {
      for (const Expr& f : t->fields) operands.push_back(operand(f));
      known[v.get()] = entry.tuple_of(operands);
    } else {
      auto* call_node = as<CallNode>(value);
      for (const Expr& a : call_node->args) operands.push_back(operand(a));
      known[v.get()] = entry.call_of(*call_node, v->name_hint, operands);
    }
  }
  std::vector<TapeEntry::Operand> results;
  for (const Var& v : run->results) results.push_back(known.at(v.get()));
  return entry.result(results);
}

class Forward : public Lifting {
 public:
  explicit Forward(const Module& mod) : Lifting(mod, "_jvp") {}

 protected:
  Type lifted_tensor(const TensorType& t) override { return tuple_type({t, t}); }
  Expr lifted_constant(const Constant& c) override { return tuple({c, zeros_of(c)}); }

  Expr lifted_call(const CallNode& c, const std::vector<Expr>& args) override {
    Bindings b;
    std::vector<Expr> values, tangents;
    std::vector<Part> parts;
    for (size_t i = 0; i < args.size(); ++i) {
      if (isa<ConstantNode>(c.args[i])) {
        values.push_back(c.args[i]);
        parts.push_back({c.args[i]->type, c.args[i], nullptr});
      } else {
        take_apart(c.args[i]->type, args[i], b, values.emplace_back(), parts);
      }
    }
    for (const Part& p : parts) tangents.push_back(p.carried);
    Call primal = call(c.op, values, c.attrs, c.span);
    Var v = b.bind("v", primal);
    size_t next = 0;
    std::vector<Expr> found = has_floats(v->type) ? call_tangent(*primal.get(), v, tangents)
                                                  : std::vector<Expr>(tensors_of(v).size());
    return b.in(with_tangents(v->type, v, found, next, b));
  }

  Expr lifted_custom_call(const CallNode& c, const Function&, const std::vector<Expr>&) override {
    throw UserError(Diagnostic(codes::grad_function, c.span,
                               "@" + as<GlobalVarNode>(c.op)->name_hint +
                                   " has a custom gradient, which says nothing to forward mode")
                        .help("use reverse mode, or take the attribute custom_gradient away"));
  }

 private:
  static Expr with_tangents(const Type& type, const Expr& value, const std::vector<Expr>& tangents,
                            size_t& next, Bindings& b) {
    if (auto* t = as<TupleTypeNode>(type)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < t->fields.size(); ++i) {
        fields.push_back(with_tangents(t->fields[i], tuple_get_item(value, static_cast<int64_t>(i)),
                                       tangents, next, b));
      }
      return tuple(std::move(fields));
    }
    const Expr& t = tangents[next++];
    if (!is_floating(type)) return value;
    return tuple({value, b.leaf(t ? t : zeros_of(value))});
  }
};

// ---- From values to lifted values, and back

[[noreturn]] void refuse(const Span& span, const std::string& what, const Type& type,
                         const std::string& help) {
  throw UserError(Diagnostic(codes::grad_function, span, what)
                      .expected("tensors, tuples, data and references of them")
                      .found(to_string(type))
                      .help(help));
}

// Walks through a value by its type: data by functions that call themselves. What a data type's
// definition says stands for its values, so the walk over types ends with it.
class Conversion {
 public:
  enum Kind {
    Lift,     // a value, with an empty cell for each tensor of floats
    Seed,     // adds 1 to each cell of a lifted value; gives the value
    Plain,    // what a lifted value was before
    Collect,  // the gradients in the cells of a lifted value
  };

  Conversion(Reverse& reverse, const Module& mod, Kind kind)
      : reverse_(reverse), mod_(mod), kind_(kind) {}

  // `type` is the type of the value, not lifted.
  Expr operator()(const Type& type, const Expr& e, Bindings& b) {
    if (kind_ != Collect && !has_floats(type) && !may_hold(type)) return e;
    if (auto* t = as<TupleTypeNode>(type)) {
      Expr whole = b.leaf(e);
      std::vector<Expr> fields;
      for (size_t i = 0; i < t->fields.size(); ++i)
        fields.push_back((*this)(t->fields[i], tuple_get_item(whole, static_cast<int64_t>(i)), b));
      return tuple(std::move(fields));
    }
    if (isa<TensorTypeNode>(type)) return tensor(type, e, b);
    if (auto* r = as<RefTypeNode>(type)) {
      Expr content = (*this)(r->value, b.bind("r", ref_read(e)), b);
      return kind_ == Collect ? content : Expr(ref_create(content));
    }
    if (isa<TypeCallNode>(type) || isa<GlobalTypeVarNode>(type)) return data(type, e, b);
    if (kind_ == Collect) return tuple({});
    refuse(e->span, "a function cannot go into a gradient, or come out of it", type,
           "put the function into the program that is differentiated");
  }

 private:
  Expr tensor(const Type& type, const Expr& e, Bindings& b) {
    const GradCell& cell = reverse_.cell();
    if (!is_floating(type)) return kind_ == Collect ? Expr(tuple({})) : e;
    if (kind_ == Lift) return tuple({e, b.bind("a", ref_create(cell.none(type)))});
    Expr whole = b.leaf(e);
    Expr value = b.bind("y", tuple_get_item(whole, 0)),
         place = b.bind("a", tuple_get_item(whole, 1));
    if (kind_ == Plain) return value;
    if (kind_ == Collect)
      return b.bind("d", cell.choose(place, zeros_of(value), [](const Expr& g) { return g; }));
    b.bind("_", cell.accumulate(place, b.bind("one", ones_of(value))));
    return value;
  }

  TypeData definition(const Type& type) const {
    auto* c = as<TypeCallNode>(type);
    auto* header = as<GlobalTypeVarNode>(c != nullptr ? c->func : type);
    TypeData data = header == nullptr ? nullptr : mod_->find_type(header->name_hint);
    RELAY_CHECK(data, "a data type is defined");
    return data;
  }

  // Whether a data type occurs in a type: its definition may hold tensors.
  static bool may_hold(const Type& type) {
    bool found = false;
    post_order(
        type, [&](const Node& n) { found |= isa<GlobalTypeVarNode>(&n) || isa<FuncTypeNode>(&n); },
        family::type);
    return found;
  }

  Expr data(const Type& type, const Expr& e, Bindings& b) {
    std::string key = to_string(type);
    for (auto& [known, f] : open_) {
      if (known == key) return call(f, {e});
    }
    if (open_.size() > 64)
      refuse(e->span, "a data type contains itself with ever larger types", type, "");
    TypeData original = definition(type);
    auto* c = as<TypeCallNode>(type);
    std::vector<Type> args = c != nullptr ? c->args : std::vector<Type>();
    Type from = kind_ == Lift ? type : reverse_.lifted(type);
    Type to = kind_ == Lift      ? reverse_.lifted(type)
              : kind_ == Collect ? gradient_type(type, e->span)
                                 : type;
    Var self = var("convert", func_type({from}, to));
    open_.emplace_back(key, self);
    Var x = var("x", from);
    std::vector<Clause> clauses;
    std::vector<Type> to_args = as<TypeCallNode>(to) ? as<TypeCallNode>(to)->args : args;
    for (const Constructor& k : original->constructors) {
      std::vector<Type> inputs = constructor_inputs(original, k, args);
      std::vector<Var> parts;
      Bindings inner;
      std::vector<Expr> now;
      for (const Type& input : inputs)
        parts.push_back(var("p", kind_ == Lift ? input : reverse_.lifted(input)));
      for (size_t i = 0; i < inputs.size(); ++i)
        now.push_back(inner.leaf((*this)(inputs[i], parts[i], inner)));
      Constructor before = kind_ == Lift ? k : reverse_.lifted(k);
      Constructor after = kind_ == Lift ? reverse_.lifted(k) : k;
      clauses.push_back(clause(constructor_pattern(before, parts),
                               inner.in(call(after, now, nullptr, {}, to_args))));
    }
    open_.pop_back();
    Function f = function({x}, match(x, std::move(clauses)), to);
    return let(self, f, call(self, {b.leaf(e)}));
  }

  // Of data, the same data with gradients in the place of what its parameters stand for: then what
  // the definition itself holds is only floats and data.
  Type gradient_type(const Type& type, const Span& span) {
    return Type::unchecked(rewrite(
        type,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* t = as<TensorTypeNode>(rebuilt);
          if (t != nullptr && !is_floating(Type(t))) return tuple_type({});
          if (auto* r = as<RefTypeNode>(rebuilt)) return r->value;
          auto* g = as<GlobalTypeVarNode>(rebuilt);
          if (g != nullptr) check_definition(*g, type, span);
          return rebuilt;
        },
        family::type));
  }

  void check_definition(const GlobalTypeVarNode& header, const Type& type, const Span& span) {
    for (const Constructor& c : mod_->find_type(header.name_hint)->constructors) {
      for (const Type& input : c->inputs) {
        post_order(
            input,
            [&](const Node& n) {
              auto* t = as<TensorTypeNode>(&n);
              bool other = t != nullptr && !is_floating(Type(t));
              if (other || isa<RefTypeNode>(&n) || isa<FuncTypeNode>(&n)) {
                refuse(span,
                       "the data type " + header.name_hint +
                           " holds more than floats, so its gradient is no value of it",
                       type, "give the data type a parameter for what is no float");
              }
            },
            family::type);
      }
    }
  }

  Reverse& reverse_;
  const Module& mod_;
  Kind kind_;
  std::vector<std::pair<std::string, Var>> open_;
};

// The type of a parameter, or of what it refers to.
const Type& content_type(const Var& p) {
  auto* r = as<RefTypeNode>(p->type);
  return r != nullptr ? r->value : p->type;
}

// A reference inside of something would be another one in the lifted value: what is written to it
// would be lost.
void refuse_references(const Type& type, const Var& p) {
  bool found = false;
  post_order(
      type, [&](const Node& n) { found |= isa<RefTypeNode>(&n); }, family::type);
  if (found)
    refuse(p->span, "the parameter '" + p->name_hint + "' holds references", type,
           "pass each reference as a parameter of its own");
}

// Refuses a function that is not closed: only its code is differentiated.
void check_closed(const Function& f) {
  std::vector<Var> free = free_vars(f);
  if (free.empty()) return;
  post_order(
      f,
      [&](const Node& n) {
        auto* w = as<RefWriteNode>(&n);
        if (w == nullptr) return;
        for (const Var& v : free) {
          if (w->ref != Expr(v)) continue;
          throw UserError(Diagnostic(codes::grad_captured_write, w->span,
                                     "the function writes to the reference '" + v->name_hint +
                                         "', which it captures")
                              .expected("references that are parameters, or made inside")
                              .help("what is written outside has no adjoint: pass the reference as "
                                    "a parameter, or return the value"));
        }
      },
      family::expr | family::pattern);
  throw UserError(Diagnostic(codes::grad_function, free.front()->span,
                             "the function captures '" + free.front()->name_hint + "'")
                      .expected("a function that captures nothing")
                      .help("pass it as a parameter"));
}

// The module in which constructors and functions are called where they stand, and the function too.
std::pair<Module, Function> prepared(const Module& mod, const Function& f) {
  check_closed(f);
  check_differentiable(f);
  FreshNames names(mod);
  GlobalVar here = global_var(names.fresh("differentiated"), f->type);
  Module with = eta_expand(with_function(mod, here, f), true, true);
  Function expanded = with->find(here->name_hint);
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  for (size_t i = 0; i < with->functions.size(); ++i) {
    if (with->global_vars[i] == here) continue;
    globals.push_back(with->global_vars[i]);
    functions.push_back(with->functions[i]);
  }
  return {make_module(globals, functions, with->type_definitions, with->attrs),
          fresh_copy(expanded)};
}

}  // namespace

Derivative reverse_mode(const Module& mod, const Function& f, Weights weights, size_t count) {
  auto [program, own] = prepared(mod, f);
  Reverse reverse(program);
  Bindings b;
  Function none = function({}, tuple({}));
  std::vector<Var> params;
  Function lifted = reverse.lift(own);
  // The tape is made first; the parameters of the lifted function become values.
  Expr body = lifted->body;
  std::vector<std::pair<Var, Expr>> lets;
  std::vector<Expr> kept;
  std::vector<std::pair<Var, Var>> written;  // references outside, and as they are lifted
  lets.emplace_back(reverse.tape(), ref_create(none));
  for (size_t i = 0; i < own->params.size(); ++i) {
    const Type& type = own->params[i]->type;
    if (lifted->params[i] == own->params[i]) {
      params.push_back(own->params[i]);
      kept.push_back(own->params[i]);
      continue;
    }
    Var outer = var(own->params[i]->name_hint, type, own->params[i]->span);
    params.push_back(outer);
    Conversion lift(reverse, program, Conversion::Lift);
    Bindings in;
    auto* r = as<RefTypeNode>(type);
    if (r == nullptr) {
      refuse_references(type, own->params[i]);
      lets.emplace_back(lifted->params[i], in.in(lift(type, outer, in)));
      kept.push_back(lifted->params[i]);
      continue;
    }
    // The gradient is that of what the reference holds at first; what it holds in the end is written.
    refuse_references(r->value, own->params[i]);
    Expr content = in.in(lift(r->value, in.bind("r", ref_read(outer)), in));
    Var first = var("first", content->type);
    lets.emplace_back(first, content);
    lets.emplace_back(lifted->params[i], ref_create(first));
    kept.push_back(first);
    written.emplace_back(outer, lifted->params[i]);
  }
  Expr y = b.leaf(body);
  Expr value;
  const Type& result_type = own->body->type;
  if (weights == Weights::Ones) {
    value = b.leaf(Conversion(reverse, program, Conversion::Seed)(result_type, y, b));
  } else if (weights == Weights::First) {
    auto* parts = as<TupleTypeNode>(result_type);
    if (parts == nullptr || parts->fields.empty() || !has_floats(parts->fields[0]))
      refuse(f->span, "the first part of the result is what is differentiated", result_type, "");
    std::vector<Expr> fields;
    for (size_t i = 0; i < parts->fields.size(); ++i) {
      Conversion convert(reverse, program, i == 0 ? Conversion::Seed : Conversion::Plain);
      Var part = b.bind("part", tuple_get_item(y, static_cast<int64_t>(i)));
      fields.push_back(b.leaf(convert(parts->fields[i], part, b)));
    }
    value = b.leaf(tuple(std::move(fields)));
  } else {
    if (!flatten_tensor_types(result_type))
      refuse(f->span, "the result of vjp must be tensors", result_type, "");
    std::vector<Expr> fields;
    Var w = var("w", result_type);
    params.push_back(w);
    std::vector<std::pair<Expr, Expr>> todo{{y, w}};
    // The lifted result and its weights, field by field.
    std::function<Expr(const Type&, const Expr&, const Expr&)> seed =
        [&](const Type& t, const Expr& e, const Expr& weight) -> Expr {
      if (auto* tt = as<TupleTypeNode>(t)) {
        std::vector<Expr> parts;
        for (size_t i = 0; i < tt->fields.size(); ++i) {
          auto k = static_cast<int64_t>(i);
          parts.push_back(seed(tt->fields[i], tuple_get_item(e, k), tuple_get_item(weight, k)));
        }
        return tuple(std::move(parts));
      }
      if (!is_floating(t)) return e;
      b.bind("_", reverse.cell().accumulate(b.bind("a", tuple_get_item(e, 1)), b.leaf(weight)));
      return tuple_get_item(e, 0);
    };
    value = b.leaf(seed(result_type, y, w));
  }
  for (auto& [outer, inner] : written) {
    const Type& content = as<RefTypeNode>(outer->type)->value;
    Expr last =
        Conversion(reverse, program, Conversion::Plain)(content, b.bind("r", ref_read(inner)), b);
    b.bind("_", ref_write(outer, last));
  }
  b.bind("_", call(b.bind("back", ref_read(reverse.tape())), {}));
  std::vector<Expr> gradients;
  for (size_t i = 0; i < std::min(count, kept.size()); ++i) {
    gradients.push_back(b.leaf(Conversion(reverse, program, Conversion::Collect)(
        content_type(own->params[i]), kept[i], b)));
  }
  Expr result = b.in(tuple({value, tuple(std::move(gradients))}));
  for (size_t i = lets.size(); i-- > 0;) result = let(lets[i].first, lets[i].second, result);
  Function out = function(std::move(params), result, result->type, own->type_params, {}, f->span);
  return {reverse.finish(), out};
}

Derivative forward_mode(const Module& mod, const Function& f) {
  auto [program, own] = prepared(mod, f);
  Forward forward(program);
  Function lifted = forward.lift(own);
  if (!flatten_tensor_types(own->body->type))
    refuse(f->span, "the result of forward mode must be tensors", own->body->type, "");
  std::vector<Var> params, tangents;
  std::vector<std::pair<Var, Expr>> lets;
  for (size_t i = 0; i < own->params.size(); ++i) {
    const Type& type = own->params[i]->type;
    if (!flatten_tensor_types(type))
      refuse(own->params[i]->span, "the parameters of forward mode must be tensors", type, "");
    bool changes = lifted->params[i] != own->params[i];
    Var x = changes ? var(own->params[i]->name_hint, type, own->params[i]->span) : own->params[i];
    Var dx = var("d" + x->name_hint, adjoint_type(type));
    params.push_back(x);
    tangents.push_back(dx);
    if (!changes) continue;
    std::function<Expr(const Type&, const Expr&, const Expr&)> zip =
        [&](const Type& t, const Expr& e, const Expr& d) -> Expr {
      auto* tt = as<TupleTypeNode>(t);
      if (tt == nullptr) return is_floating(t) ? Expr(tuple({e, d})) : e;
      std::vector<Expr> fields;
      for (size_t k = 0; k < tt->fields.size(); ++k) {
        auto at = static_cast<int64_t>(k);
        fields.push_back(zip(tt->fields[k], tuple_get_item(e, at), tuple_get_item(d, at)));
      }
      return tuple(std::move(fields));
    };
    lets.emplace_back(lifted->params[i], zip(type, x, dx));
  }
  Bindings b;
  Expr y = b.leaf(lifted->body);
  std::function<Expr(const Type&, const Expr&, int64_t)> side = [&](const Type& t, const Expr& e,
                                                                    int64_t which) -> Expr {
    auto* tt = as<TupleTypeNode>(t);
    if (tt == nullptr) {
      if (is_floating(t)) return tuple_get_item(e, which);
      return which == 0 ? e : Expr(tuple({}));
    }
    std::vector<Expr> fields;
    for (size_t k = 0; k < tt->fields.size(); ++k)
      fields.push_back(side(tt->fields[k], tuple_get_item(e, static_cast<int64_t>(k)), which));
    return tuple(std::move(fields));
  };
  const Type& type = own->body->type;
  Expr result = b.in(tuple({side(type, y, 0), side(type, y, 1)}));
  for (size_t i = lets.size(); i-- > 0;) result = let(lets[i].first, lets[i].second, result);
  params.insert(params.end(), tangents.begin(), tangents.end());
  Function out = function(std::move(params), result, result->type, own->type_params, {}, f->span);
  return {forward.finish(), out};
}

}  // namespace relay
