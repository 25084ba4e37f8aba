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
#include "grad/untaken.h"
#include "grad/value_conversion.h"
#include "ir/bindings.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/strings.h"
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
  Expr lifted_use(const Expr& value, const TensorType& to, const Expr& known) override {
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
    return b.in(tuple({known ? known : x, c}));
  }
  Var context() override { return tape_; }
  void enter(const Var& context) override { tape_ = context; }

  Function prepared(const Function& f) override { return runs_.outlined(without_untaken(f)); }

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
    // The adjoint of a constant is unused.
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
  Expr lifted_use(const Expr& value, const TensorType&, const Expr& known) override {
    if (!known) return value;
    Bindings b;
    Var d = b.bind("d", tuple_get_item(b.leaf(value), 1));
    Var named = b.bind("d", call("reshape_like", {d, known}));
    return b.in(tuple({known, named}));
  }

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

using Side = Conversion::Side;

// Values with an empty cell for each tensor of floats.
Conversion with_empty_cells(Reverse& reverse, const Module& mod) {
  return {reverse, mod, {Side::Plain, Side::None, Side::Lifted}, [&](const Conversion::Tensor& t) {
            Var cell = t.bindings.bind("a", ref_create(reverse.cell().none(t.type)));
            return Expr(tuple({t.value, cell}));
          }};
}

// Ends the run where the weight of a tensor has another shape, which only a run tells.
void check_weight(const Expr& weight, const Expr& value, Bindings& b) {
  const auto& shape = as<TensorTypeNode>(value->type)->shape;
  if (std::ranges::none_of(shape, is_any)) return;
  auto sizes = [&](const Expr& e) {
    return b.bind("shape", make_call("shape_of", {e}, {{"dtype", "int64"}}, value->span));
  };
  auto says = [](const char* words) {
    return constant(runtime::make_strings({}, {words}), Span{});
  };
  Expr given = sizes(weight), wanted = sizes(value);
  Expr same = b.bind("same", call("equal", {given, wanted}));
  Expr all = b.bind(
      "all", make_call("all", {same}, {{"axis", to_value(std::vector<int64_t>{0})}}, value->span));
  Expr said = b.bind("said", tuple({says("the weights of a vjp have the shape "), given,
                                    says(", and what they weight has "), wanted}));
  b.bind("_", make_call("debug.check", {all, said}, {}, value->span));
}

// Adds to each cell of a lifted value: 1, or the tensor of the other value that is there. Gives the value.
Conversion seeding(Reverse& reverse, const Module& mod, bool with_weights) {
  return {reverse,
          mod,
          {Side::Lifted, with_weights ? Side::Plain : Side::None, Side::Plain},
          [&](const Conversion::Tensor& t) {
            Expr value = t.bindings.bind("y", tuple_get_item(t.value, 0)),
                 cell = t.bindings.bind("a", tuple_get_item(t.value, 1));
            if (t.with) check_weight(t.with, value, t.bindings);
            Expr more = t.with ? t.bindings.leaf(t.with) : t.bindings.bind("one", ones_of(value));
            t.bindings.bind("_", reverse.cell().accumulate(cell, more));
            return value;
          }};
}

// The gradients in the cells of a lifted value.
Conversion collecting(Reverse& reverse, const Module& mod) {
  return {reverse,
          mod,
          {Side::Lifted, Side::None, Side::Gradient},
          [&](const Conversion::Tensor& t) -> Expr {
            Expr value = t.bindings.bind("y", tuple_get_item(t.value, 0)),
                 cell = t.bindings.bind("a", tuple_get_item(t.value, 1));
            return t.bindings.bind(
                "d", reverse.cell().choose(cell, zeros_of(value), [](const Expr& g) { return g; }));
          }};
}

// What a lifted value was before.
Conversion plain(Lifting& lifting, const Module& mod) {
  return {lifting,
          mod,
          {Side::Lifted, Side::None, Side::Plain},
          [](const Conversion::Tensor& t) -> Expr {
            return t.bindings.bind("y", tuple_get_item(t.value, 0));
          }};
}

// Values with their tangents.
Conversion with_tangents(Forward& forward, const Module& mod) {
  return {forward,
          mod,
          {Side::Plain, Side::Gradient, Side::Lifted},
          [](const Conversion::Tensor& t) -> Expr {
            return tuple({t.value, t.with});
          }};
}

// The tangents of a lifted value.
Conversion tangents_of(Forward& forward, const Module& mod) {
  return {forward,
          mod,
          {Side::Lifted, Side::None, Side::Gradient},
          [](const Conversion::Tensor& t) -> Expr {
            return t.bindings.bind("d", tuple_get_item(t.value, 1));
          }};
}

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
    refuse_value(p->span, "the parameter '" + p->name_hint + "' holds references", type,
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
      family::program);
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

// The parameters of a derivative that take values, and the lifted ones that stand for them inside.
class Parameters {
 public:
  // A lifted parameter is what `lift` makes of the value and, where there are tangents, of the
  // tangent, which is one more parameter.
  Parameters(const Function& own, const Function& lifted, const Conversion& lift,
             const Conversion& plain, const Module& mod, bool with_tangents)
      : plain_(plain) {
    std::vector<Var> tangents;
    for (size_t i = 0; i < own->params.size(); ++i) {
      const Var& p = own->params[i];
      const bool changes = lifted->params[i] != p;
      Var outer = changes ? var(p->name_hint, p->type, p->span) : p;
      all_.push_back(outer);
      Expr d;
      if (with_tangents) {
        tangents.push_back(
            var("d" + p->name_hint, Conversion::gradient_type(mod, content_type(p), p->span)));
        d = tangents.back();
      }
      if (!changes) {
        kept_.push_back(outer);
        continue;
      }
      enter(p, outer, lifted->params[i], lift, d);
    }
    all_.insert(all_.end(), tangents.begin(), tangents.end());
  }

  std::vector<Var>& all() { return all_; }
  // Of each parameter the lifted value that it has at first.
  const std::vector<Expr>& kept() const { return kept_; }

  // What references hold in the end is written to those outside.
  void write_back(Bindings& b) const {
    for (const auto& [outer, inner] : written_) {
      const Type& content = as<RefTypeNode>(outer->type)->value;
      Expr last = plain_(content, b.bind("r", ref_read(inner)), nullptr, b);
      b.bind("_", ref_write(outer, last));
    }
  }

  Expr in(Expr result) const {
    for (size_t i = lets_.size(); i-- > 0;) result = let(lets_[i].first, lets_[i].second, result);
    return result;
  }

 private:
  void enter(const Var& p, const Var& outer, const Var& lifted, const Conversion& lift,
             const Expr& d) {
    Bindings in;
    auto* r = as<RefTypeNode>(p->type);
    if (r == nullptr) {
      refuse_references(p->type, p);
      lets_.emplace_back(lifted, in.in(lift(p->type, outer, d, in)));
      kept_.push_back(lifted);
      return;
    }
    // The derivative is that of what the reference holds at first.
    refuse_references(r->value, p);
    Expr content = in.in(lift(r->value, in.bind("r", ref_read(outer)), d, in));
    Var first = var("first", content->type);
    lets_.emplace_back(first, content);
    lets_.emplace_back(lifted, ref_create(first));
    kept_.push_back(first);
    written_.emplace_back(outer, lifted);
  }

  const Conversion& plain_;
  std::vector<Var> all_;
  std::vector<Expr> kept_;
  std::vector<std::pair<Var, Expr>> lets_;
  std::vector<std::pair<Var, Var>> written_;  // references outside, and as they are lifted
};

}  // namespace

Derivative reverse_mode(const Module& mod, const Function& f, Weights weights, size_t count) {
  auto [program, own] = prepared(mod, f);
  Reverse reverse(program);
  Function lifted = reverse.lift(own);
  const Conversion lift = with_empty_cells(reverse, program), value_of = plain(reverse, program);
  Parameters params(own, lifted, lift, value_of, program, false);
  Bindings b;
  Expr y = b.leaf(lifted->body);
  Expr value;
  const Type& result_type = own->body->type;
  if (weights == Weights::Ones) {
    value = b.leaf(seeding(reverse, program, false)(result_type, y, nullptr, b));
  } else if (weights == Weights::First) {
    auto* parts = as<TupleTypeNode>(result_type);
    if (parts == nullptr || parts->fields.empty() || !has_floats(parts->fields[0]))
      refuse_value(f->span, "the first part of the result is what is differentiated", result_type,
                   "");
    const Conversion seeds = seeding(reverse, program, false);
    std::vector<Expr> fields;
    for (size_t i = 0; i < parts->fields.size(); ++i) {
      const Conversion& convert = i == 0 ? seeds : value_of;
      Var part = b.bind("part", tuple_get_item(y, static_cast<int64_t>(i)));
      fields.push_back(b.leaf(convert(parts->fields[i], part, nullptr, b)));
    }
    value = b.leaf(tuple(std::move(fields)));
  } else {
    Var w = var("w", result_type);
    params.all().push_back(w);
    value = b.leaf(seeding(reverse, program, true)(result_type, y, w, b));
  }
  params.write_back(b);
  b.bind("_", call(b.bind("back", ref_read(reverse.tape())), {}));
  const Conversion collect = collecting(reverse, program);
  std::vector<Expr> gradients;
  for (size_t i = 0; i < std::min(count, params.kept().size()); ++i) {
    gradients.push_back(
        b.leaf(collect(content_type(own->params[i]), params.kept()[i], nullptr, b)));
  }
  // The tape is made first; the parameters of the lifted function become values.
  Expr result = let(reverse.tape(), ref_create(function({}, tuple({}))),
                    params.in(b.in(tuple({value, tuple(std::move(gradients))}))));
  Function out = function(params.all(), result, result->type, own->type_params, {}, f->span);
  return {reverse.finish(), out};
}

Derivative forward_mode(const Module& mod, const Function& f) {
  auto [program, own] = prepared(mod, f);
  Forward forward(program);
  Function lifted = forward.lift(own);
  const Conversion lift = with_tangents(forward, program), value_of = plain(forward, program);
  Parameters params(own, lifted, lift, value_of, program, true);
  Bindings b;
  Expr y = b.leaf(lifted->body);
  const Type& type = own->body->type;
  Expr value = b.leaf(value_of(type, y, nullptr, b));
  Expr change = b.leaf(tangents_of(forward, program)(type, y, nullptr, b));
  params.write_back(b);
  Expr result = params.in(b.in(tuple({value, change})));
  Function out = function(params.all(), result, result->type, own->type_params, {}, f->span);
  return {forward.finish(), out};
}

}  // namespace relay
