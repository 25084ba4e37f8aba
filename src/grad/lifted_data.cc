#include "grad/lifted_data.h"

#include "ir/type_params.h"
#include "node/walk.h"

namespace relay {

std::vector<Type> constructor_inputs(const TypeData& data, const Constructor& c,
                                     const std::vector<Type>& type_args) {
  TypeParams values;
  for (size_t i = 0; i < type_args.size(); ++i) values[data->type_vars[i].get()] = type_args[i];
  std::vector<Type> out;
  for (const Type& t : c->inputs) out.push_back(with_type_params(t, values));
  return out;
}

LiftedData::LiftedData(const Module& mod, FreshNames& names, std::string suffix, Touched touched,
                       TensorRule tensor)
    : mod_(mod),
      names_(names),
      suffix_(std::move(suffix)),
      touched_(std::move(touched)),
      tensor_(std::move(tensor)) {
  // A data type holds tensors when a constructor mentions one, or such a data type.
  for (bool changed = true; changed;) {
    changed = false;
    for (const TypeData& t : mod_->type_definitions) {
      bool& holds = holds_[t->header->name_hint];
      if (holds) continue;
      for (const Constructor& c : t->constructors) {
        for (const Type& input : c->inputs) {
          post_order(
              input,
              [&](const Node& n) {
                auto* tensor = as<TensorTypeNode>(&n);
                if (tensor != nullptr) holds |= touched_(*tensor);
                auto* g = as<GlobalTypeVarNode>(&n);
                if (g != nullptr) holds |= holds_tensors(g->name_hint);
              },
              family::type);
        }
      }
      changed |= holds;
    }
  }
}

bool LiftedData::holds_tensors(const std::string& data) const {
  auto it = holds_.find(data);
  return it != holds_.end() && it->second;
}

Type LiftedData::lifted(const Type& t) {
  return Type::unchecked(rewrite(
      t,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        if (auto* tensor = as<TensorTypeNode>(original)) {
          Type made = tensor_(ref(*tensor));
          return made ? NodeRef(made) : rebuilt;
        }
        if (auto* g = as<GlobalTypeVarNode>(original)) return lifted(ref(*g));
        return rebuilt;
      },
      family::type));
}

GlobalTypeVar LiftedData::lifted(const GlobalTypeVar& data) {
  return holds_tensors(data->name_hint) ? definition(data->name_hint)->header : data;
}

Constructor LiftedData::lifted(const Constructor& c) {
  const std::string& name = c->belong_to->name_hint;
  if (!holds_tensors(name)) return c;
  return definition(name)->constructors[static_cast<size_t>(c->tag)];
}

const TypeData& LiftedData::definition(const std::string& name) {
  TypeData& known = data_[name];
  if (known) return known;
  TypeData original = mod_->find_type(name);
  GlobalTypeVar header = global_type_var(names_.fresh(name + suffix_));
  // Known by its name while its own constructors are lifted.
  known = make<TypeDataNode>([&](TypeDataNode& n) { n.header = header; });
  std::vector<TypeVar> vars;
  std::vector<Type> args;
  for (const TypeVar& v : original->type_vars) {
    vars.push_back(type_var(v->name_hint, v->kind));
    args.push_back(vars.back());
  }
  // Written as the original is: with no type parameters there are two ways.
  const Type& own = as<FuncTypeNode>(original->constructors[0]->type)->ret_type;
  Type result = isa<GlobalTypeVarNode>(own) ? Type(header) : type_call(header, args);
  std::vector<Constructor> constructors;
  for (const Constructor& c : original->constructors) {
    std::vector<Type> inputs;
    for (const Type& t : constructor_inputs(original, c, args)) inputs.push_back(lifted(t));
    constructors.push_back(make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = names_.fresh(c->name_hint + suffix_);
      n.inputs = inputs;
      n.belong_to = header;
      n.tag = c->tag;
      n.span = c->span;
      n.type = func_type(inputs, result, vars);
    }));
  }
  data_[name] = make<TypeDataNode>([&](TypeDataNode& n) {
    n.header = header;
    n.type_vars = vars;
    n.constructors = constructors;
    n.span = original->span;
  });
  made_.push_back(data_[name]);
  return data_[name];
}

}  // namespace relay
