#include "passes/placement/copies.h"

#include <algorithm>
#include <map>

#include "analysis/placement.h"
#include "analysis/primitives.h"

namespace relay {
namespace {

using runtime::Device;

class Copier : public RewriterOutsidePrimitives {
 public:
  Copier(const Placement& where, bool fused) : where_(where), fused_(fused) {}

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    switch (original.get()->kind()) {
      case ExprKind::Call:
        return call_of(*as<CallNode>(original), rebuilt);
      case ExprKind::If: {
        auto &before = *as<IfNode>(original), &i = *as<IfNode>(rebuilt);
        Expr cond = placed(before, 0, before.cond, i.cond);
        Expr yes = placed(before, 1, before.true_branch, i.true_branch);
        Expr no = placed(before, 2, before.false_branch, i.false_branch);
        const bool same = cond == i.cond && yes == i.true_branch && no == i.false_branch;
        return same ? rebuilt : NodeRef(if_(cond, yes, no, i.span));
      }
      case ExprKind::Match:
        return match_of(*as<MatchNode>(original), rebuilt);
      case ExprKind::Function: {
        auto &before = *as<FunctionNode>(original), &f = *as<FunctionNode>(rebuilt);
        if (f.is_primitive()) return rebuilt;
        Expr body = placed(before, 0, before.body, f.body);
        if (body == f.body) return rebuilt;
        return function(f.params, body, f.ret_type, f.type_params, f.attrs, f.span);
      }
      case ExprKind::RefCreate: {
        auto &before = *as<RefCreateNode>(original), &r = *as<RefCreateNode>(rebuilt);
        Expr value = placed(before, 0, before.value, r.value);
        return value == r.value ? rebuilt : NodeRef(ref_create(value, r.span));
      }
      case ExprKind::RefWrite: {
        auto &before = *as<RefWriteNode>(original), &r = *as<RefWriteNode>(rebuilt);
        Expr value = placed(before, 1, before.value, r.value);
        return value == r.value ? rebuilt : NodeRef(ref_write(r.ref, value, r.span));
      }
      default:
        return rebuilt;
    }
  }

 private:
  NodeRef call_of(const CallNode& before, const NodeRef& rebuilt) {
    auto& c = *as<CallNode>(rebuilt);
    const PlacingCall what = placing_call(before);
    // What is fused has its copies; kernels alone may need more.
    if (fused_ && (what.copy != nullptr || what.on_device != nullptr)) return rebuilt;
    if (what.on_device != nullptr) return value_of(before, c, *what.on_device, rebuilt);
    if (what.copy != nullptr) {
      const Device from = where_.device_of(before.args[0]);
      const Device to = known_device(what.copy->dst_virtual_device);
      return isa<ConstantNode>(c.args[0]) ? NodeRef(c.args[0]) : NodeRef(copy(c.args[0], from, to));
    }
    std::vector<Expr> args;
    for (size_t i = 0; i < c.args.size(); ++i) {
      args.push_back(placed(before, i, before.args[i], c.args[i]));
    }
    if (args == c.args) return rebuilt;
    return call(c.op, std::move(args), c.attrs, c.span, c.type_args);
  }

  // What stands for a call of on_device.
  NodeRef value_of(const CallNode& before, const CallNode& c, const OnDeviceAttrs& attrs,
                   const NodeRef& rebuilt) {
    const Expr& value = c.args[0];
    if (isa<ConstantNode>(value)) return value;
    auto* made = as<CallNode>(value);
    const bool of_constants =
        made != nullptr && isa<OpNode>(made->op) &&
        std::ranges::all_of(made->args, [](const Expr& a) { return isa<ConstantNode>(a); });
    if (of_constants && known_device(attrs.virtual_device) != Device::cpu()) return rebuilt;
    return gives_on_device(before, attrs) ? placed(before, 0, before.args[0], value) : value;
  }

  NodeRef match_of(const MatchNode& before, const NodeRef& rebuilt) {
    auto& m = *as<MatchNode>(rebuilt);
    std::vector<Clause> clauses;
    for (size_t i = 0; i < m.clauses.size(); ++i) {
      Expr rhs = placed(before, i + 1, before.clauses[i]->rhs, m.clauses[i]->rhs);
      clauses.push_back(rhs == m.clauses[i]->rhs ? m.clauses[i] : clause(m.clauses[i]->lhs, rhs));
    }
    return clauses == m.clauses ? rebuilt
                                : NodeRef(match(m.data, std::move(clauses), m.complete, m.span));
  }

  // The operand, copied to where its user needs it.
  Expr placed(const Node& user, size_t operand, const Expr& before, const Expr& value) {
    Domain* wanted = where_.wanted(user, operand);
    return wanted == nullptr ? value : placed(value, where_.domain(before), wanted);
  }

  Expr placed(const Expr& value, Domain* have, Domain* wanted) {
    auto* tuple_type = as<TupleTypeNode>(value->type);
    if (tuple_type == nullptr) {
      if (!isa<TensorTypeNode>(value->type)) return value;
      return copy(value, DeviceDomains::device(have), DeviceDomains::device(wanted));
    }
    auto* written = as<TupleNode>(value);
    std::vector<Expr> fields;
    bool same = true;
    for (size_t i = 0; i < tuple_type->fields.size(); ++i) {
      Expr field = written != nullptr ? written->fields[i]
                                      : Expr(tuple_get_item(value, static_cast<int64_t>(i)));
      fields.push_back(placed(field, DeviceDomains::part(have, i), DeviceDomains::part(wanted, i)));
      same = same && fields.back() == field;
    }
    return same ? value : Expr(tuple(std::move(fields), value->span));
  }

  Expr copy(const Expr& value, Device from, Device to) {
    if (from == to || isa<ConstantNode>(value)) return value;
    Expr& made = copies_[{value.get(), to.type, to.id}];
    if (made) return made;
    keep_.push_back(value);
    const bool by_host = from != Device::cpu() && to != Device::cpu();
    Expr source = by_host ? copy(value, from, Device::cpu()) : value;
    made = copy_of(source, by_host ? Device::cpu() : from, to);
    return made;
  }

  Expr copy_of(const Expr& value, Device from, Device to) const {
    if (!fused_) return device_copy(value, from, to);
    Var p = var("p0", value->type);
    Expr body = device_copy(p, from, to);
    return call(function({p}, body, body->type, {}, {{attr::kPrimitive, AttrValue(int64_t{1})}}),
                {value}, nullptr, value->span);
  }

  const Placement& where_;
  const bool fused_;
  std::map<std::tuple<const Node*, uint16_t, uint16_t>, Expr> copies_;
  std::vector<Expr> keep_;  // the keys of copies_ alive
};

}  // namespace

Module with_device_copies(const Module& mod, const std::vector<Function>& entries, bool fused) {
  const Placement where = Placement::propose(mod, entries);
  return map_functions(
      mod, [&](const GlobalVar&, const Function& f) { return Copier(where, fused).apply(f); });
}

}  // namespace relay
