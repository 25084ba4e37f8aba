#include "eval/assumed_sizes.h"

#include <algorithm>

#include "base/codes/runtime.h"
#include "ir/open_sizes.h"
#include "ir/type_params.h"

namespace relay {
namespace {

using runtime::Object;
using runtime::ObjectKind;

bool has_unknown_size(const Expr& arg) {
  auto tensors = arg->type ? flatten_tensor_types(arg->type) : std::nullopt;
  return tensors && std::ranges::any_of(*tensors, [](const TensorType& t) {
           return !t->shape_var && !t->const_shape();
         });
}

// The sizes that occur as whole dimensions in the type of a value.
void find_sizes(const Type& type, const Object* value, TypeParams& sizes) {
  std::vector<std::pair<Type, const Object*>> stack{{type, value}};
  while (!stack.empty()) {
    auto [t, v] = std::move(stack.back());
    stack.pop_back();
    auto* tuple = as<TupleTypeNode>(t);
    auto* tensor = as<TensorTypeNode>(t);
    if (tuple != nullptr && runtime::kind_of(v) == ObjectKind::tuple) {
      const runtime::Cell* cell = &runtime::cell_of(v);
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        stack.emplace_back(tuple->fields[i], cell->fields[i]);
      }
    } else if (tensor != nullptr && runtime::is_object(v) && v->kind == ObjectKind::tensor) {
      auto* rep = static_cast<const Tensor::Rep*>(v);
      for (size_t i = 0; i < tensor->shape.size(); ++i) {
        auto* named = as<DimVarNode>(tensor->shape[i]);
        if (named != nullptr) sizes.emplace(named->var.get(), dim(rep->shape[i]));
      }
    }
  }
}

}  // namespace

AssumedSizes assumed_sizes(const CallNode& call) {
  if (std::ranges::none_of(call.args, has_unknown_size)) return {};
  AssumedSizes out;
  std::vector<Expr> args;
  size_t count = 0;
  for (const Expr& a : call.args) {
    out.args.push_back(with_sizes_named(a->type, [&](size_t, size_t) {
      return dim(type_var("d" + std::to_string(count++), Kind::Dim));
    }));
    args.push_back(count == 0 ? a : Expr(var("sized", out.args.back())));
  }
  if (count == 0) {
    out.assumptions = assumptions_of(call);
    return out;
  }
  try {
    out.assumptions = assumptions_of(*relay::call(call.op, std::move(args), call.attrs, call.span));
  } catch (const UserError&) {
    // An operator that takes `?` and has no name for it checks its sizes at run time.
  }
  return out;
}

void check_assumed_sizes(const CallNode& call, const AssumedSizes& assumed,
                         std::span<const runtime::Value> args) {
  if (assumed.assumptions.empty()) return;
  TypeParams sizes;
  for (size_t i = 0; i < args.size(); ++i) {
    find_sizes(assumed.args[i], args[i].object(), sizes);
  }
  auto size_of = [&](const Dim& d) {
    return as_const(dim_argument(with_type_params(Type::unchecked(d), sizes)));
  };
  for (const DimAssumption& s : assumed.assumptions) {
    auto a = size_of(s.a), b = size_of(s.b);
    if (!a || !b || *a == *b || (s.kind == DimAssumption::kAtLeast && *a > *b) ||
        (s.kind == DimAssumption::kBroadcast && (*a == 1 || *b == 1))) {
      continue;
    }
    throw RuntimeError(
        Diagnostic(codes::run_failed, call.span,
                   as<OpNode>(call.op)->name + ": the inputs do not fit: " + to_string(s))
            .expected(std::to_string(*b))
            .found(std::to_string(*a)));
  }
}

}  // namespace relay
