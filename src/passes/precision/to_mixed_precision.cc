// ToMixedPrecision: sums of products, and what follows them, in 16-bit floats.
//
// before                              after (float16)
//   nn.softmax(nn.relu(               nn.softmax(cast(nn.relu(
//     nn.dense(%x, %w)))                nn.dense(cast(%x, "float16"), cast(%w, "float16"))), "float32"))
//
// An operator's row says what happens to its calls (Precision): those that gain are always computed in 16 bits, those that lose
// digits never, the others where their operands are in 16 bits already; constants beside these are rounded.
// What operators give to anything but operators keeps its dtype, and so do parameters and results.
// A sum of products whose result is wanted in float32 (by nn.softmax above, were there no nn.relu) gives
// its float32 sums: `nn.dense(..., out_dtype="float32")`, which is rounded for those who want 16 bits.
// Not legal as such: results are rounded more often. Loses where the machine has no 16-bit arithmetic.
// Does not look into attributes otherwise: a call that asks for a result in float32 gives one.
#include <unordered_map>

#include "analysis/calls.h"
#include "base/codes/passes.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/pass_list.h"

namespace relay {
namespace {

bool is_float32(const Type& t) {
  auto* tensor = as<TensorTypeNode>(t);
  return tensor != nullptr && !tensor->dtype_var && tensor->dtype.is_float(32);
}

class Mixing {
 public:
  explicit Mixing(DType low) : low_(low) {}

  NodeRef apply(const NodeRef& rebuilt) const {
    // A field of a tuple that was put together again is what was put there.
    if (auto* g = as<TupleGetItemNode>(rebuilt)) {
      auto* t = as<TupleNode>(g->tuple);
      return t == nullptr ? rebuilt : NodeRef(t->fields[static_cast<size_t>(g->index)]);
    }
    auto* c = as<CallNode>(rebuilt);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    if (op == nullptr || op->name == "cast" || !c->type) return rebuilt;
    const OpInfo& row = *op->row;
    if (!row.precision || row.precision.get() == Precision::Never) return rebuilt;
    if (row.precision.get() == Precision::Follow && !follows(*c)) return rebuilt;
    std::vector<Expr> args;
    for (const Expr& arg : c->args) args.push_back(lowered(arg, *c));
    if (args == c->args) return rebuilt;
    try {
      return as_before(call(c->op, std::move(args), c->attrs, c->span), c->type, *c);
    } catch (const UserError&) {
      return rebuilt;  // the operator does not take the dtype
    }
  }

 private:
  // What a cast from the low dtype has taken; null for anything else.
  Expr source(const Expr& e) const {
    auto* c = as<CallNode>(e);
    if (c == nullptr || !is_call_to(e, "cast")) return nullptr;
    auto* from = as<TensorTypeNode>(c->args[0]->type);
    return from != nullptr && from->dtype == low_ ? c->args[0] : nullptr;
  }

  // Whether the floats among the operands are low ones, one at least, or constants.
  bool follows(const CallNode& c) const {
    bool low = false, all = true;
    auto look = [&](const Expr& e) {
      if (!is_float32(e->type)) return;
      bool from_low = static_cast<bool>(source(e));
      low |= from_low;
      all &= from_low || isa<ConstantNode>(e);
    };
    for (const Expr& arg : c.args) {
      auto* t = as<TupleNode>(arg);
      if (t == nullptr) {
        if (!as<TensorTypeNode>(arg->type)) return false;
        look(arg);
        continue;
      }
      for (const Expr& field : t->fields) look(field);
    }
    return low && all;
  }

  Expr lowered(const Expr& e, const CallNode& at) const {
    if (auto* t = as<TupleNode>(e)) {
      std::vector<Expr> fields;
      for (const Expr& f : t->fields) fields.push_back(lowered(f, at));
      return fields == t->fields ? e : Expr(relay::tuple(std::move(fields)));
    }
    if (!is_float32(e->type)) return e;
    if (Expr from = source(e)) return from;
    return make_call("cast", {e}, {{"dtype", AttrValue(low_.to_string())}}, at);
  }

  Expr as_before(const Expr& e, const Type& wanted, const CallNode& at) const {
    if (auto* t = as<TupleTypeNode>(wanted)) {
      std::vector<Expr> fields;
      for (size_t i = 0; i < t->fields.size(); ++i) {
        Expr field = tuple_get_item(e, static_cast<int64_t>(i), at.span);
        fields.push_back(as_before(field, t->fields[i], at));
      }
      return relay::tuple(std::move(fields), at.span);
    }
    auto* have = as<TensorTypeNode>(e->type);
    if (have == nullptr || !is_float32(wanted) || have->dtype.is_float(32)) return e;
    return make_call("cast", {e}, {{"dtype", AttrValue(std::string("float32"))}}, at);
  }

  DType low_;
};

// Sums of products in 16 bits that are cast to float32 somewhere.
class WideSums {
 public:
  explicit WideSums(DType low) : low_(low) {}

  Function apply(const Function& f) {
    post_order(
        f, [&](const Node& n) { find(n); }, family::program);
    if (wide_.empty()) return f;
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef& original, NodeRef rebuilt) {
          if (const CallNode* sum = cast_sum(*original.get())) return NodeRef(wide_.at(sum));
          auto it = wide_.find(original.get());
          if (it == wide_.end()) return rebuilt;
          auto& c = *as<CallNode>(rebuilt);
          it->second = with_attrs(c, c.args, {kWide});
          return NodeRef(make_call("cast", {it->second}, {{"dtype", low_.to_string()}}, c));
        },
        family::program));
  }

 private:
  // The sum that a call casts to float32; null for anything else.
  const CallNode* cast_sum(const Node& n) const {
    auto* c = as<CallNode>(&n);
    if (c == nullptr || !is_call_to(Expr(c), "cast") || !is_float32(c->type)) return nullptr;
    auto* sum = as<CallNode>(c->args[0]);
    return sum != nullptr && wide_.contains(sum) ? sum : nullptr;
  }

  void find(const Node& n) {
    auto* c = as<CallNode>(&n);
    if (c == nullptr || !is_call_to(Expr(c), "cast") || !is_float32(c->type)) return;
    auto* sum = as<CallNode>(c->args[0]);
    auto* op = sum == nullptr ? nullptr : as<OpNode>(sum->op);
    auto* type = sum == nullptr ? nullptr : as<TensorTypeNode>(sum->type);
    if (op == nullptr || type == nullptr || type->dtype != low_ || !op->row->precision ||
        op->row->precision.get() != Precision::Always || !sum->attrs ||
        sum->attrs->info().find("out_dtype") == nullptr || !text_attr(*sum, "out_dtype").empty()) {
      return;
    }
    try {
      if (is_float32(with_attrs(*sum, sum->args, {kWide})->type)) wide_.emplace(sum, nullptr);
    } catch (const UserError&) {
      // The operator gives no other dtype.
    }
  }

  static inline const std::pair<std::string, AttrValue> kWide{"out_dtype", std::string("float32")};

  DType low_;
  std::unordered_map<const Node*, Expr> wide_;
};

Module run_to_mixed_precision(const Module& mod, PassContext& ctx) {
  auto name = ctx.option<std::string>(kToMixedPrecision, "mixed_precision_type");
  auto low = DType::parse(name);
  if (!low || !(low->is_float(16) || low->is_bfloat16())) {
    throw UserError(
        Diagnostic(codes::pass_option, {},
                   "the option 'mixed_precision_type' of ToMixedPrecision is not a dtype "
                   "of 16 bits")
            .expected("float16 or bfloat16")
            .found(name));
  }
  Mixing mixing(*low);
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    if (f->is_primitive()) return f;
    return WideSums(*low).apply(cast<FunctionNode>(rewrite(
        f, [&](const NodeRef&, NodeRef rebuilt) { return mixing.apply(rebuilt); },
        family::program)));
  });
}

}  // namespace

const Pass kToMixedPrecision{"ToMixedPrecision",
                             0,
                             Form::any,
                             Form::any,
                             "Computes sums of products and what follows them in 16-bit floats.",
                             run_to_mixed_precision,
                             {{"mixed_precision_type", PassOption::Type::text,
                               AttrValue(std::string("float16")), "float16 or bfloat16."}},
                             /*keeps_meaning=*/false};

}  // namespace relay
