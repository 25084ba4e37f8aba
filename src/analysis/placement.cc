#include "analysis/placement.h"

#include <algorithm>

#include "analysis/primitives.h"
#include "base/codes/lowering.h"
#include "ir/interface_devices.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

using runtime::Device;

bool has_unknown_size(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors && std::ranges::any_of(*tensors, [](const TensorType& t) {
           return t->shape_var || std::ranges::any_of(t->shape, is_any);
         });
}

bool has_strings(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  return tensors &&
         std::ranges::any_of(*tensors, [](const TensorType& t) { return t->dtype.is_string(); });
}

bool has_effect(const Node& kernel) {
  bool found = false;
  post_order(
      NodeRef(&kernel),
      [&](const Node& n) {
        auto* op = as<OpNode>(&n);
        found |= op != nullptr && op->row->effect.get() == Effect::Io;
      },
      family::expr);
  return found;
}

// Constants are wherever they are used.
bool is_free(const Expr& e) { return isa<ConstantNode>(e); }

}  // namespace

const char* host_only(const CallNode& c) {
  if (has_unknown_size(c.type)) return "the size of its result is known only when it is computed";
  const bool strings = has_strings(c.type) || std::ranges::any_of(c.args, [](const Expr& a) {
                         return has_strings(a->type);
                       });
  if (strings) return "it reads or gives strings";
  if (has_effect(*c.op.get())) return "it has an effect beside its result";
  return nullptr;
}

PlacingCall placing_call(const CallNode& call) {
  const CallNode* c = &call;
  if (auto* f = primitive_of(call)) {
    c = as<CallNode>(f->body);
    const bool alone = c != nullptr && f->params.size() == 1 && c->args.size() == 1 &&
                       c->args[0].get() == f->params[0].get();
    if (!alone) return {};
  }
  return {as_device_copy(*c), as_on_device(*c)};
}

bool gives_on_device(const CallNode& call, const OnDeviceAttrs& attrs) {
  return attrs.constrain_result || isa<VarNode>(call.args[0]) ||
         isa<TupleGetItemNode>(call.args[0]);
}

bool uses_devices(const Module& mod) {
  bool found = false;
  for (const Function& f : mod->functions) {
    if (found) break;
    post_order_outside_primitives(f, [&](const Node& n) {
      auto* c = as<CallNode>(&n);
      if (c == nullptr) return;
      const PlacingCall what = placing_call(*c);
      auto* primitive = primitive_of(*c);
      found |= what.copy != nullptr || what.on_device != nullptr ||
               (primitive != nullptr && primitive->has_attr(attr::kDevice));
    });
  }
  return found;
}

Placement::Placement(const Module& mod, const std::vector<Function>& entries, bool proposes)
    : proposes_(proposes) {
  if (!uses_devices(mod) && !has_interface_devices(mod)) return;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    globals_[mod->global_vars[i]->name_hint] = mod->functions[i].get();
    of_[mod->functions[i].get()] = domains_.of_type(mod->functions[i]->type);
  }
  for (const Function& f : mod->functions) {
    post_order_outside_primitives(f, [&](const Node& n) { note_binding(n); });
  }
  for (const Function& f : mod->functions) {
    post_order_outside_primitives(f, [&](const Node& n) { visit(n); });
  }
  for (const Function& f : mod->functions) place_interface(f, mod);
  resolve(entries);
}

void Placement::place_interface(const Function& f, const Module& mod) {
  const InterfaceDevices placed = interface_devices(*f.get(), mod);
  if (placed.empty()) return;
  Domain* d = of_.at(f.get());
  for (const auto& [number, device] : placed.params) {
    domains_.place(DeviceDomains::part(d, number), device, f->params[number]->span);
    interface_.push_back(DeviceDomains::part(d, number));
  }
  const std::vector<Domain*> results =
      parts_of(DeviceDomains::part(d, f->params.size()), f->body->type);
  for (const auto& [number, device] : placed.results) {
    domains_.place(results.at(number), device, f->body->span);
    interface_.push_back(results.at(number));
  }
}

void Placement::note_binding(const Node& n) {
  auto* l = as<LetNode>(&n);
  if (l == nullptr) return;
  auto* c = as<CallNode>(l->value);
  auto* boundary = c == nullptr ? nullptr : placing_call(*c).on_device;
  if (boundary != nullptr && !gives_on_device(*c, *boundary)) boundaries_.insert(l->var.get());
}

Domain* Placement::of(const Expr& e) {
  if (is_free(e)) return domains_.of_type(e->type);
  if (auto* g = as<GlobalVarNode>(e)) {
    auto f = globals_.find(g->name_hint);
    if (f != globals_.end()) return of_.at(f->second);
  }
  auto [it, fresh] = of_.emplace(e.get(), nullptr);
  if (fresh) it->second = domains_.of_type(e->type);
  return it->second;
}

void Placement::use(const Node& user, size_t operand, const Expr& value, Domain* to,
                    const Span& span) {
  if (is_free(value)) {
    if (!proposes_) wanted_[{&user, operand}] = to;
    return;
  }
  if (!proposes_) return domains_.unify(of(value), to, span);
  // Tensors, also in tuples, can be copied; all else is there.
  bool copied = false;
  struct Part {
    Type type;
    Domain *have, *wanted;
  };
  std::vector<Part> open{{value->type, of(value), to}};
  while (!open.empty()) {
    const Part part = std::move(open.back());
    open.pop_back();
    if (auto* t = as<TupleTypeNode>(part.type)) {
      for (size_t i = 0; i < t->fields.size(); ++i) {
        open.push_back(
            {t->fields[i], DeviceDomains::part(part.have, i), DeviceDomains::part(part.wanted, i)});
      }
      continue;
    }
    auto* tensor = as<TensorTypeNode>(part.type);
    const bool can_be = tensor != nullptr && !tensor->dtype.is_string();
    copied |= can_be;
    if (!can_be) domains_.unify(part.have, part.wanted, span);
  }
  if (copied) edges_.push_back({&user, operand, value, to, span});
}

void Placement::visit(const Node& n) {
  switch (n.kind()) {
    case ExprKind::Tuple: {
      auto& t = *as<TupleNode>(&n);
      Domain* d = of(Expr(&t));
      for (size_t i = 0; i < t.fields.size(); ++i) {
        Domain* field = DeviceDomains::part(d, i);
        if (!is_free(t.fields[i])) {
          domains_.unify(field, of(t.fields[i]), t.span);
        } else if (!proposes_) {
          wanted_[{&n, i}] = field;
        }
      }
      return;
    }
    case ExprKind::TupleGetItem: {
      auto& g = *as<TupleGetItemNode>(&n);
      Domain* field = DeviceDomains::part(of(g.tuple), static_cast<size_t>(g.index));
      return domains_.unify(field, of(Expr(&g)), g.span);
    }
    case ExprKind::Let: {
      auto& l = *as<LetNode>(&n);
      if (!is_free(l.value)) domains_.unify(of(l.var), of(l.value), l.span);
      return domains_.unify(of(Expr(&l)), of(l.body), l.span);
    }
    case ExprKind::If: {
      auto& i = *as<IfNode>(&n);
      Domain* host = domains_.leaf();
      domains_.place(host, Device::cpu(), i.span);
      use(i, 0, i.cond, host, i.span);
      use(i, 1, i.true_branch, of(Expr(&i)), i.span);
      return use(i, 2, i.false_branch, of(Expr(&i)), i.span);
    }
    case ExprKind::Match:
      return visit_match(*as<MatchNode>(&n));
    case ExprKind::Function: {
      auto& f = *as<FunctionNode>(&n);
      if (f.is_primitive()) return;
      Domain* d = of(Expr(&f));
      for (size_t i = 0; i < f.params.size(); ++i) {
        domains_.unify(DeviceDomains::part(d, i), of(f.params[i]), f.params[i]->span);
      }
      return use(f, 0, f.body, DeviceDomains::part(d, f.params.size()), f.body->span);
    }
    case ExprKind::RefCreate: {
      auto& r = *as<RefCreateNode>(&n);
      return use(r, 0, r.value, DeviceDomains::part(of(Expr(&r)), 0), r.span);
    }
    case ExprKind::RefRead: {
      auto& r = *as<RefReadNode>(&n);
      return domains_.unify(DeviceDomains::part(of(r.ref), 0), of(Expr(&r)), r.span);
    }
    case ExprKind::RefWrite: {
      auto& r = *as<RefWriteNode>(&n);
      return use(r, 1, r.value, DeviceDomains::part(of(r.ref), 0), r.span);
    }
    case ExprKind::Constructor: {
      auto* c = as<ConstructorNode>(&n);
      domains_.collapse(of(Expr(c)), c->span);
      return;
    }
    case ExprKind::Call:
      return visit_call(*as<CallNode>(&n));
    default:
      return;
  }
}

void Placement::visit_call(const CallNode& c) {
  const PlacingCall what = placing_call(c);
  if (what.copy != nullptr || what.on_device != nullptr) return visit_placing(c, what);
  if (isa<OpNode>(c.op) || primitive_of(c) != nullptr) return visit_kernel(c);
  Domain* result = of(Expr(&c));
  if (isa<ConstructorNode>(c.op)) {
    Domain* data = domains_.collapse(result, c.span);
    for (size_t i = 0; i < c.args.size(); ++i) use(c, i, c.args[i], data, c.span);
    return;
  }
  Domain* callee = of(c.op);
  for (size_t i = 0; i < c.args.size(); ++i) {
    use(c, i, c.args[i], DeviceDomains::part(callee, i), c.span);
  }
  domains_.unify(DeviceDomains::part(callee, c.args.size()), result, c.span);
}

void Placement::visit_placing(const CallNode& c, PlacingCall what) {
  const Expr& value = c.args[0];
  if (what.copy != nullptr) {
    const std::string& from = what.copy->src_virtual_device;
    if (!from.empty() && !is_free(value)) domains_.place(of(value), known_device(from), c.span);
    return domains_.place(of(Expr(&c)), known_device(what.copy->dst_virtual_device), c.span);
  }
  const Device device = known_device(what.on_device->virtual_device);
  const bool result = gives_on_device(c, *what.on_device);
  if (is_free(value)) {
    if (result) domains_.place(of(Expr(&c)), device, c.span);
    return;
  }
  if (!proposes_) {
    domains_.place(of(value), device, c.span);
    return domains_.unify(of(value), of(Expr(&c)), c.span);
  }
  const bool computed = isa<CallNode>(value) || isa<IfNode>(value) || isa<MatchNode>(value);
  if (what.on_device->constrain_body && computed) domains_.place(of(value), device, c.span);
  if (result) {
    Domain* d = of(Expr(&c));
    domains_.place(d, device, c.span);
    return use(c, 0, value, d, c.span);
  }
  of_[&c] = of(value);
  boundaries_.insert(&c);
}

void Placement::visit_kernel(const CallNode& c) {
  Domain* kernel = domains_.collapse(of(Expr(&c)), c.span);
  kernels_[&c] = kernel;
  auto* primitive = primitive_of(c);
  const bool placed = primitive != nullptr && primitive->has_attr(attr::kDevice);
  if (placed) domains_.place(kernel, relay::kernel_device(*primitive), c.span);
  if (const char* why = host_only(c)) domains_.place(kernel, Device::cpu(), c.span, why);
  for (size_t i = 0; i < c.args.size(); ++i) use(c, i, c.args[i], kernel, c.span);
}

void Placement::visit_match(const MatchNode& m) {
  for (size_t i = 0; i < m.clauses.size(); ++i) {
    bind(m.clauses[i]->lhs, of(m.data));
    use(m, i + 1, m.clauses[i]->rhs, of(Expr(&m)), m.span);
  }
}

void Placement::bind(const Pattern& p, Domain* d) {
  std::vector<std::pair<Pattern, Domain*>> open{{p, d}};
  while (!open.empty()) {
    auto [pattern, domain] = std::move(open.back());
    open.pop_back();
    if (auto* v = as<PatternVarNode>(pattern)) {
      domains_.unify(domain, of(v->var), v->var->span);
    } else if (auto* c = as<PatternConstructorNode>(pattern)) {
      Domain* data = domains_.collapse(domain, {});
      for (const Pattern& part : c->patterns) open.emplace_back(part, data);
    } else if (auto* t = as<PatternTupleNode>(pattern)) {
      for (size_t i = 0; i < t->patterns.size(); ++i) {
        open.emplace_back(t->patterns[i], DeviceDomains::part(domain, i));
      }
    }
  }
}

void Placement::resolve(const std::vector<Function>& entries) {
  if (!proposes_) return;
  auto is_boundary = [&](const Edge& e) { return boundaries_.contains(e.value.get()); };
  // What is computed for a device is computed there, as far as nothing else is said of it.
  std::unordered_set<const Domain*> outside;
  auto note = [&](Domain* d) {
    for (Domain* leaf : DeviceDomains::leaves(d)) outside.insert(leaf);
  };
  for (const Function& f : entries) note(of_.at(f.get()));
  for (const Edge& e : edges_) {
    if (is_boundary(e)) continue;
    for (auto [value, wanted] : DeviceDomains::leaves(of(e.value), e.wanted)) {
      if (!outside.contains(DeviceDomains::root(value)) &&
          !outside.contains(DeviceDomains::root(wanted)))
        domains_.unify_where_possible(value, wanted);
    }
  }
  auto place_rest = [&](Domain* d) {
    for (Domain* leaf : DeviceDomains::leaves(d)) {
      if (!leaf->device) domains_.place(leaf, Device::cpu(), {});
    }
  };
  std::unordered_set<const Domain*> placed;
  for (Domain* d : interface_) placed.insert(DeviceDomains::root(d));
  for (const Function& f : entries) {
    for (Domain* leaf : DeviceDomains::leaves(of_.at(f.get()))) {
      if (!placed.contains(leaf)) domains_.place(leaf, Device::cpu(), f->span);
    }
  }
  for (const Edge& e : edges_) {
    if (!is_boundary(e)) domains_.unify_where_possible(of(e.value), e.wanted);
  }
  for (const Edge& e : edges_) {
    place_rest(of(e.value));
    place_rest(e.wanted);
    wanted_[{e.user, e.operand}] = e.wanted;
  }
}

Domain* Placement::domain(const Expr& e) const {
  auto it = of_.find(e.get());
  return it == of_.end() ? nullptr : it->second;
}

Domain* Placement::wanted(const Node& user, size_t operand) const {
  auto it = wanted_.find({&user, operand});
  return it == wanted_.end() ? nullptr : it->second;
}

Device Placement::device_of(const Expr& e, std::initializer_list<size_t> path) const {
  Domain* d = domain(e);
  if (d == nullptr) return Device::cpu();
  for (size_t i : path) d = DeviceDomains::part(d, i);
  // Of several tensors the first.
  while (!DeviceDomains::root(d)->is_leaf()) d = DeviceDomains::part(d, 0);
  return DeviceDomains::device(d);
}

Domain* Placement::result(const FunctionNode& f) const {
  Domain* d = wanted(f, 0);
  return d != nullptr ? d : domain(f.body);
}

std::vector<Domain*> Placement::parts_of(Domain* d, const Type& type) {
  std::vector<Domain*> out;
  std::vector<std::pair<Type, Domain*>> open{{type, d}};
  while (!open.empty()) {
    auto [t, domain] = std::move(open.back());
    open.pop_back();
    auto* tuple = as<TupleTypeNode>(t);
    for (size_t i = tuple == nullptr ? 0 : tuple->fields.size(); i-- > 0;) {
      open.emplace_back(tuple->fields[i],
                        domain == nullptr ? nullptr : DeviceDomains::part(domain, i));
    }
    if (tuple != nullptr) continue;
    while (domain != nullptr && !DeviceDomains::root(domain)->is_leaf())
      domain = DeviceDomains::part(domain, 0);
    out.push_back(domain);
  }
  return out;
}

std::vector<Device> Placement::devices_of(Domain* d, const Type& type) {
  std::vector<Device> out;
  for (Domain* part : parts_of(d, type)) {
    out.push_back(part == nullptr ? Device::cpu() : DeviceDomains::device(part));
  }
  return out;
}

Device Placement::kernel_device(const CallNode& call) const {
  auto it = kernels_.find(&call);
  return it == kernels_.end() ? Device::cpu() : DeviceDomains::device(it->second);
}

}  // namespace relay
