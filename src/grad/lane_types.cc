#include "grad/lane_types.h"

namespace relay {

bool is_tensors(const LaneType& t) {
  if (t.kind == LaneType::Kind::Tensor) return true;
  if (t.kind != LaneType::Kind::Tuple) return false;
  for (const LaneType* part : t.parts) {
    if (!is_tensors(*part)) return false;
  }
  return true;
}

LaneTypes::LaneTypes(const Module& mod, Dim lanes)
    : mod_(mod),
      lanes_(std::move(lanes)),
      names_(mod_),
      data_(
          mod_, names_, "_lanes", [](const TensorTypeNode&) { return true; },
          [this](const TensorType& t) { return in_all_lanes(t); }) {}

Type LaneTypes::in_all_lanes(const TensorType& t) const {
  std::vector<Dim> shape = t->shape;
  shape.insert(shape.begin(), lanes_);
  return tensor_type(std::move(shape), t->dtype);
}

int LaneTypes::new_bit() {
  implied_.emplace_back();
  return static_cast<int>(implied_.size()) - 1;
}

LaneType* LaneTypes::make(LaneType t) { return &all_.emplace_back(std::move(t)); }

LaneType* LaneTypes::fresh(const Type& type, const Variables& variables) {
  return build(type, variables, -1);
}

// `inner`: the bit of all tensors that are not in type variables; negative: each has its own.
LaneType* LaneTypes::build(const Type& type, const Variables& variables, int inner) {
  using Kind = LaneType::Kind;
  auto bit = [&] { return inner < 0 ? new_bit() : inner; };
  if (isa<TensorTypeNode>(type)) return make({Kind::Tensor, type, {}, bit()});
  if (auto* t = as<TupleTypeNode>(type)) {
    std::vector<LaneType*> parts;
    for (const Type& f : t->fields) parts.push_back(build(f, variables, inner));
    return make({Kind::Tuple, type, std::move(parts)});
  }
  if (auto* f = as<FuncTypeNode>(type)) {
    std::vector<LaneType*> parts;
    for (const Type& p : f->arg_types) parts.push_back(build(p, variables, inner));
    parts.push_back(build(f->ret_type, variables, inner));
    return make({Kind::Function, type, std::move(parts)});
  }
  if (auto* r = as<RefTypeNode>(type))
    return make({Kind::Reference, type, {build(r->value, variables, inner)}});
  auto data = [&](const Type& header, const std::vector<Type>& args) {
    std::vector<LaneType*> parts;
    for (const Type& a : args) parts.push_back(build(a, variables, inner));
    bool holds = data_.holds_tensors(as<GlobalTypeVarNode>(header)->name_hint);
    return make({Kind::Data, type, std::move(parts), holds ? bit() : -1});
  };
  if (auto* c = as<TypeCallNode>(type)) return data(c->func, c->args);
  if (isa<GlobalTypeVarNode>(type)) return data(type, {});
  auto known = variables.find(type.get());
  return known != variables.end() ? known->second : make({Kind::Other, type});
}

std::vector<LaneType*> LaneTypes::inputs(const Constructor& c, const LaneType& data) {
  TypeData definition = mod_->find_type(c->belong_to->name_hint);
  Variables variables;
  for (size_t i = 0; i < data.parts.size(); ++i)
    variables[definition->type_vars[i].get()] = data.parts[i];
  std::vector<LaneType*> out;
  for (const Type& input : c->inputs) out.push_back(build(input, variables, data.bit));
  return out;
}

LaneType* LaneTypes::instance(LaneType* scheme, const Variables& variables) {
  if (scheme->kind == LaneType::Kind::Other) {
    auto known = variables.find(scheme->type.get());
    return known != variables.end() ? known->second : scheme;
  }
  std::vector<LaneType*> parts;
  for (LaneType* p : scheme->parts) parts.push_back(instance(p, variables));
  if (parts == scheme->parts) return scheme;
  return make({scheme->kind, scheme->type, std::move(parts), scheme->bit});
}

void LaneTypes::match(const LaneType* scheme, LaneType* actual, Variables& variables) {
  if (scheme->kind == LaneType::Kind::Other) {
    variables.emplace(scheme->type.get(), actual);
    return;
  }
  for (size_t i = 0; i < scheme->parts.size() && i < actual->parts.size(); ++i)
    match(scheme->parts[i], actual->parts[i], variables);
}

void LaneTypes::implies(int from, int to) {
  if (from != to) implied_[static_cast<size_t>(from)].push_back(to);
}

void LaneTypes::equal(LaneType* a, LaneType* b) {
  if (a == b) return;
  RELAY_CHECK(a->kind == b->kind && a->parts.size() == b->parts.size(), "types of two kinds");
  if (a->bit >= 0) {
    implies(a->bit, b->bit);
    implies(b->bit, a->bit);
  }
  for (size_t i = 0; i < a->parts.size(); ++i) equal(a->parts[i], b->parts[i]);
}

void LaneTypes::flow(LaneType* from, LaneType* to) {
  if (from == to) return;
  if (from->kind == LaneType::Kind::Tensor && to->kind == LaneType::Kind::Tensor) {
    implies(from->bit, to->bit);
  } else if (from->kind == LaneType::Kind::Tuple && to->kind == LaneType::Kind::Tuple) {
    for (size_t i = 0; i < from->parts.size(); ++i) flow(from->parts[i], to->parts[i]);
  } else {
    equal(from, to);
  }
}

void LaneTypes::all_of(LaneType* t, int bit) {
  if (t->bit >= 0) {
    if (bit < 0) {
      sources_.push_back(t->bit);
    } else {
      implies(bit, t->bit);
    }
  }
  for (LaneType* p : t->parts) all_of(p, bit);
}

void LaneTypes::all_from(const LaneType* t, int bit) {
  if (t->bit >= 0) implies(t->bit, bit);
  for (const LaneType* p : t->parts) all_from(p, bit);
}

void LaneTypes::solve() {
  set_.assign(implied_.size(), false);
  std::vector<int> todo = sources_;
  while (!todo.empty()) {
    int bit = todo.back();
    todo.pop_back();
    if (set_[static_cast<size_t>(bit)]) continue;
    set_[static_cast<size_t>(bit)] = true;
    const std::vector<int>& next = implied_[static_cast<size_t>(bit)];
    todo.insert(todo.end(), next.begin(), next.end());
  }
}

bool LaneTypes::any(const LaneType& t) const {
  if (is_batched(t.bit)) return true;
  for (const LaneType* p : t.parts) {
    if (any(*p)) return true;
  }
  return false;
}

Type LaneTypes::type_of(const LaneType& t) {
  using Kind = LaneType::Kind;
  if (!any(t)) {
    // What a type variable stands for may be another type than the one that was written.
    bool variables = false;
    for (const LaneType* p : t.parts) variables |= p->kind == Kind::Other;
    if (!variables && t.kind != Kind::Data) return t.type;
  }
  std::vector<Type> parts;
  for (const LaneType* p : t.parts) parts.push_back(type_of(*p));
  switch (t.kind) {
    case Kind::Tensor:
      return in_all_lanes(cast<TensorTypeNode>(t.type));
    case Kind::Tuple:
      return tuple_type(std::move(parts));
    case Kind::Function: {
      Type result = parts.back();
      parts.pop_back();
      auto* f = as<FuncTypeNode>(t.type);
      return func_type(std::move(parts), result, f->type_params, f->type_constraints);
    }
    case Kind::Reference:
      return ref_type(parts[0]);
    case Kind::Data: {
      auto* c = as<TypeCallNode>(t.type);
      Type header = c != nullptr ? c->func : t.type;
      if (is_batched(t.bit)) header = data_.lifted(cast<GlobalTypeVarNode>(header));
      return c == nullptr && parts.empty() ? header : Type(type_call(header, std::move(parts)));
    }
    case Kind::Other:
      return t.type;
  }
  RELAY_CHECK(false, "a kind of type");
}

}  // namespace relay
