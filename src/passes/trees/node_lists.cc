#include "passes/trees/node_lists.h"

#include "analysis/calls.h"
#include "grad/dataflow.h"
#include "grad/lift.h"

namespace relay::trees {

const Type& int64_type() {
  static const Type type = scalar_type(DType::Int(64));
  return type;
}
Expr int64(int64_t value) { return constant(Tensor::scalar(value, DType::Int(64))); }
Expr add(const Expr& a, const Expr& b) { return call("add", {a, b}); }
Expr field(const Expr& e, size_t i) { return tuple_get_item(e, static_cast<int64_t>(i)); }

Expr numbers(const Dim& from, const Dim& count) {
  return make_call("arange", {},
                   {{"start", to_value(from)},
                    {"stop", to_value(from + count)},
                    {"step", int64_t{1}},
                    {"dtype", "int64"}},
                   Span{});
}
Expr numbers(const Expr& count) { return call("dyn.arange", {int64(0), count, int64(1)}); }
Expr rows(const Expr& of, const Expr& which) {
  return make_call("take", {of, which}, {{"axis", int64_t{0}}, {"mode", "fast"}}, Span{});
}
Expr zeros(const TensorType& type) {
  return make_call("zeros", {},
                   {{"shape", to_value(Dims(type->shape.begin(), type->shape.end()))},
                    {"dtype", type->dtype.to_string()}},
                   Span{});
}
Expr joined(const std::vector<Expr>& parts) {
  if (parts.size() == 1) return parts[0];
  return make_call("concatenate", {tuple(parts)}, {{"axis", int64_t{0}}}, Span{});
}
static Expr with_axis(const Expr& e) {
  return make_call("expand_dims", {e}, {{"axis", int64_t{0}}}, Span{});
}

TensorType in_rows(const TensorType& row, const Dim& count) {
  std::vector<Dim> shape = row->shape;
  shape.insert(shape.begin(), count);
  return tensor_type(std::move(shape), row->dtype);
}
Type token_type(const Dim& count) { return tensor_type({count}, DType::Int(64)); }

namespace {
Expr put_together_from(const Type& type, const std::vector<Expr>& tensors, size_t& next) {
  auto* t = as<TupleTypeNode>(type);
  if (t == nullptr) return tensors[next++];
  std::vector<Expr> fields;
  for (const Type& f : t->fields) fields.push_back(put_together_from(f, tensors, next));
  return tuple(std::move(fields));
}
}  // namespace

Expr put_together(const Type& type, const std::vector<Expr>& tensors) {
  size_t next = 0;
  return put_together_from(type, tensors, next);
}

std::vector<TypeVar> joined(std::vector<TypeVar> a, const std::vector<TypeVar>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

GlobalVar Work::declare(const std::string& base, const std::vector<Var>& params, const Type& result,
                        std::vector<TypeVar> type_params) {
  std::vector<Type> types;
  for (const Var& p : params) types.push_back(p->type);
  return global_var(names.fresh(base), func_type(std::move(types), result, std::move(type_params)));
}

void Work::define(const GlobalVar& name, std::vector<Var> params, const Expr& body,
                  std::vector<TypeVar> type_params) {
  Type result = as<FuncTypeNode>(name->type)->ret_type;
  Function f = function(std::move(params), body, result, std::move(type_params));
  mod = with_function(mod, name, fresh_copy(f));
}

void Work::redefine(const std::string& name, const Function& f, const Expr& body) {
  Function made = function(f->params, body, f->body->type, f->type_params, f->attrs, f->span);
  mod = with_function(mod, mod->find_global_var(name), fresh_copy(made));
}

NodeLists::NodeLists(Work& work) : work_(work) {
  GlobalTypeVar header = global_type_var(work.names.fresh("Nodes"));
  TypeVar a = type_var("A");
  Type list = type_call(header, {a});
  auto constructor = [&](const char* name, std::vector<Type> inputs, int64_t tag) {
    return make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = work.names.fresh(name);
      n.inputs = inputs;
      n.belong_to = header;
      n.tag = tag;
      n.type = func_type(inputs, list, {a});
    });
  };
  data_ = make<TypeDataNode>([&](TypeDataNode& n) {
    n.header = header;
    n.type_vars = {a};
    n.constructors = {constructor("More", {a, list}, 0), constructor("NoMore", {}, 1)};
  });
  std::vector<TypeData> types = work.mod->type_definitions;
  types.push_back(data_);
  work.mod = make_module(work.mod->global_vars, work.mod->functions, types, work.mod->attrs);
}

Type NodeLists::of(const Type& t) const { return type_call(data_->header, {t}); }
Expr NodeLists::none(const Type& t) const {
  return call(data_->constructors[1], {}, nullptr, {}, {t});
}
Expr NodeLists::more(const Expr& head, const Expr& rest) const {
  return call(data_->constructors[0], {head, rest}, nullptr, {},
              as<TypeCallNode>(rest->type)->args);
}
// Looks into a list of that type.
Expr NodeLists::choose(const Expr& list, const Type& t, const Expr& if_none,
                       const std::function<Expr(const Var& head, const Var& rest)>& if_more) const {
  Var head = var("head", t), rest = var("rest", of(t));
  return match(
      list, {clause(constructor_pattern(data_->constructors[0], {head, rest}), if_more(head, rest)),
             clause(constructor_pattern(data_->constructors[1], {}), if_none)});
}

// `from`, its last element first, in front of `to`.
Expr NodeLists::onto(const Expr& from, const Expr& to) {
  Type t = as<TypeCallNode>(to->type)->args[0];
  if (!onto_) {
    TypeVar a = type_var("A");
    Var source = var("from", of(a)), target = var("to", of(a));
    onto_ = work_.declare("onto", {source, target}, of(a), {a});
    work_.define(onto_, {source, target},
                 choose(source, a, target,
                        [&](const Var& head, const Var& rest) {
                          return call(onto_, {rest, more(head, target)}, nullptr, {}, {a});
                        }),
                 {a});
  }
  return call(onto_, {from, to}, nullptr, {}, {t});
}

// The tensors of a list, the last one first, as rows of one tensor: (count, ..).
Expr NodeLists::stacked(const Expr& list, const TensorType& row, const Expr& count,
                        const Dim& size) {
  GlobalVar& f = stacked_[to_string(row)];
  if (row->dtype.is_floating()) {
    if (!f) f = halves(row);
    return rows(field(call(f, {list, count}), 0), numbers(dim(0), size));
  }
  if (!f) f = one_by_one(row);
  TensorType all = in_rows(row, size);
  Expr made = call(f, {list, count, zeros(all)});
  return rows(made, numbers(dim(0), size));
}
// The same of numbers of which only a run knows how many there are.
Expr NodeLists::numbers_of(const Expr& list, const Expr& count) {
  TensorType row = cast<TensorTypeNode>(int64_type());
  GlobalVar& f = stacked_[to_string(row)];
  if (!f) f = one_by_one(row);
  Expr room = make_call("dyn.zeros", {with_axis(count)}, {{"dtype", "int64"}}, Span{});
  return call(f, {list, count, room});
}

// fn (list, count, to) -> (count and how many the list has, the list, last element first, onto `to`)
Expr NodeLists::elements(const Type& list, const Constructor& more_of, size_t element,
                         const Expr& from, const Expr& count, const Expr& to) {
  GlobalVar& f = elements_[to_string(list)];
  if (!f) {
    Type t = as<TypeCallNode>(to->type)->args[0];
    Var source = var("list", list), number = var("count", int64_type()), target = var("to", of(t));
    Type result = tuple_type({int64_type(), of(t)});
    f = work_.declare("elements", {source, number, target}, result);
    TypeData definition = work_.mod->find_type(more_of->belong_to->name_hint);
    Var head = var("head", t), rest = var("rest", list);
    std::vector<Var> parts = element == 0 ? std::vector{head, rest} : std::vector{rest, head};
    Constructor end = definition->constructors[more_of->tag == 0 ? 1 : 0];
    work_.define(f, {source, number, target},
                 match(source, {clause(constructor_pattern(more_of, parts),
                                       call(f, {rest, add(number, int64(1)), more(head, target)})),
                                clause(constructor_pattern(end, {}), tuple({number, target}))}));
  }
  return call(f, {from, count, to});
}

// Each row is written into its place.
GlobalVar NodeLists::one_by_one(const TensorType& row) {
  Var list = var("list", of(row)), at = var("at", int64_type()),
      out = var("out", in_rows(row, dim_any()));
  GlobalVar f = work_.declare("stacked", {list, at, out}, out->type);
  Expr before = call("subtract", {at, int64(1)});
  work_.define(
      f, {list, at, out}, choose(list, row, out, [&](const Var& head, const Var& rest) {
        Bindings b;
        Var place = b.bind("place", before);
        return b.in(call(f, {rest, place, call("update_slice", {out, with_axis(head), place})}));
      }));
  return f;
}

// Halves are joined, so that each row is copied a logarithm of times, and so is its gradient.
GlobalVar NodeLists::halves(const TensorType& row) {
  Var list = var("list", of(row)), count = var("count", int64_type());
  Type result = tuple_type({in_rows(row, dim_any()), of(row)});
  GlobalVar f = work_.declare("stacked", {list, count}, result);
  auto some = [&](const Expr& e, int64_t n) { return rows(e, numbers(int64(n))); };
  TensorType one = in_rows(row, dim(1));
  Expr nothing = tuple({some(zeros(one), 0), list});
  Expr leaf = choose(list, row, nothing, [&](const Var& head, const Var& rest) {
    return tuple({some(with_axis(head), 1), rest});
  });
  Bindings b;
  Var half = b.bind("half", call("floor_divide", {count, int64(2)}));
  Var last = b.bind("last", call(f, {list, half}));
  Var first = b.bind("first", call(f, {b.leaf(field(last, 1)), call("subtract", {count, half})}));
  Expr both = b.in(tuple({joined({field(first, 0), field(last, 0)}), field(first, 1)}));
  work_.define(f, {list, count}, if_(call("less_equal", {count, int64(1)}), leaf, both));
  return f;
}

}  // namespace relay::trees
