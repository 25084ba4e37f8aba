#include "passes/widen_half_precision.h"

#include <algorithm>

#include "analysis/calls.h"
#include "ir/contraction.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

bool is_half(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && (tensor->dtype.is_float(16) || tensor->dtype.is_bfloat16());
}

Expr widened(const Expr& e, const CallNode& at) {
  return make_call("cast", {e}, {{"dtype", AttrValue(std::string("float32"))}}, at);
}

// The call on float32 operands, as what it was; null when it is no contraction of 16-bit floats.
Expr widen(const CallNode& c) {
  auto* type = as<TensorTypeNode>(c.type);
  if (type == nullptr || !type->dtype.is_floating() || !contraction_of(c)) return nullptr;
  std::vector<Expr> args;
  for (const Expr& arg : c.args) {
    auto* tuple = as<TupleNode>(arg);
    std::vector<Expr> parts = tuple != nullptr ? tuple->fields : std::vector<Expr>{arg};
    for (Expr& part : parts) {
      if (!is_half(part->type)) return nullptr;
      part = widened(part, c);
    }
    args.push_back(tuple != nullptr ? relay::tuple(std::move(parts)) : parts[0]);
  }
  std::vector<std::pair<std::string, AttrValue>> changes;
  if (as<OpNode>(c.op)->row->attrs->find("out_dtype") != nullptr) {
    changes.emplace_back("out_dtype", AttrValue(std::string("float32")));
  }
  Expr sum = with_attrs(c, std::move(args), std::move(changes));
  if (type->dtype.is_float(32)) return sum;
  return make_call("cast", {sum}, {{"dtype", AttrValue(type->dtype.to_string())}}, c);
}

Module run(const Module& mod, PassContext& ctx) {
  if (!ctx.target.has_blocked_kernels) return mod;
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return cast<FunctionNode>(rewrite(
        f,
        [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          Expr wide = c == nullptr ? nullptr : widen(*c);
          return wide ? NodeRef(wide) : rebuilt;
        },
        family::expr | family::pattern));
  });
}

}  // namespace

const Pass kWidenHalfPrecision{"WidenHalfPrecision",
                               3,
                               Form::any,
                               Form::any,
                               "Computes contractions of 16-bit floats in float32.",
                               run};

}  // namespace relay
