#include "eval/arguments.h"
#include "base/quantities.h"

#include <unordered_map>

#include "base/codes/runtime.h"

namespace relay {
namespace {

using runtime::Cell;
using runtime::Object;
using runtime::ObjectKind;

const char* kind_name(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::tensor:
      return "a tensor";
    case ObjectKind::adt:
      return "a value of a data type";
    case ObjectKind::tuple:
      return "a tuple";
    case ObjectKind::closure:
      return "a function";
    case ObjectKind::ref:
      return "a reference";
  }
  return "a value";
}

std::string found_text(const Object* value) {
  if (value == nullptr) return "nothing";
  if (runtime::kind_of(value) != ObjectKind::tensor) return kind_name(runtime::kind_of(value));
  Tensor t = runtime::tensor_of(const_cast<Object*>(value));
  return runtime::type_string(t.dtype(), t.shape());
}

class Checker {
 public:
  // The expected type and the type found; empty if the value fits.
  std::string mismatch(const Type& type, const Object* value) {
    std::vector<std::pair<Type, const Object*>> stack{{type, value}};
    while (!stack.empty()) {
      auto [t, v] = stack.back();
      stack.pop_back();
      if (!t || isa<TypeVarNode>(t) || isa<IncompleteTypeNode>(t)) continue;
      if (v == nullptr || runtime::kind_of(v) != kind_of(t)) return found_text(v);
      if (auto* tensor = as<TensorTypeNode>(t)) {
        if (!fits(*tensor, runtime::tensor_of(const_cast<Object*>(v)))) return found_text(v);
      } else if (auto* tuple = as<TupleTypeNode>(t)) {
        const Cell* c = &runtime::cell_of(v);
        if (c->count != tuple->fields.size()) {
          return "a tuple of " + counted(c->count, "field");
        }
        for (uint32_t i = c->count; i-- > 0;) stack.emplace_back(tuple->fields[i], c->fields[i]);
      } else if (auto* r = as<RefTypeNode>(t)) {
        stack.emplace_back(r->value, runtime::cell_of(v).fields[0]);
      }
    }
    return {};
  }

 private:
  static ObjectKind kind_of(const Type& t) {
    switch (t->kind()) {
      case TypeKind::TensorType:
        return ObjectKind::tensor;
      case TypeKind::TupleType:
        return ObjectKind::tuple;
      case TypeKind::FuncType:
        return ObjectKind::closure;
      case TypeKind::RefType:
        return ObjectKind::ref;
      default:
        return ObjectKind::adt;
    }
  }

  bool fits(const TensorTypeNode& t, const Tensor& tensor) {
    if (!t.dtype_var && !(t.dtype == tensor.dtype())) return false;
    if (t.shape_var) return true;
    if (t.rank() != tensor.rank()) return false;
    for (size_t i = 0; i < t.shape.size(); ++i) {
      auto known = as_const(t.shape[i]);
      if (auto* named = as<DimVarNode>(t.shape[i])) {
        auto [it, fresh] = dims_.emplace(named->var.get(), tensor.dim(i));
        if (!fresh) known = it->second;
      }
      if (known && *known != tensor.dim(i)) return false;
    }
    return true;
  }

  std::unordered_map<const Node*, int64_t> dims_;
};

}  // namespace

void check_arguments(const FunctionNode& f, const std::string& name,
                     std::span<const runtime::Value> args) {
  if (args.size() != f.params.size()) {
    throw UserError(Diagnostic(codes::run_input, f.span,
                               "@" + name + " is called with the wrong number of arguments")
                        .expected(std::to_string(f.params.size()))
                        .found(std::to_string(args.size())));
  }
  Checker checker;
  Diagnostics problems;
  for (size_t i = 0; i < args.size(); ++i) {
    const Var& p = f.params[i];
    const Type& type = p->type ? p->type : p->type_annotation;
    std::string found = checker.mismatch(type, args[i].object());
    if (found.empty()) continue;
    problems
        .error(codes::run_input, p->span,
               "argument '" + escape_for_terminal(p->name_hint, 200) + "' of @" + name +
                   " has the wrong type")
        .expected(to_string(type))
        .found(std::move(found));
  }
  problems.throw_if_errors();
}

}  // namespace relay
