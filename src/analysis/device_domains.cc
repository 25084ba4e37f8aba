#include "analysis/device_domains.h"

#include "base/codes/lowering.h"
#include "base/diagnostic.h"

namespace relay {
namespace {

// Types are graphs, whose parts may be many more than their nodes: of those with more parts all tensors are on one device.
constexpr size_t kMaxParts = 10000;

std::vector<Type> parts_of(const Type& type) {
  if (auto* t = as<TupleTypeNode>(type)) return t->fields;
  if (auto* r = as<RefTypeNode>(type)) return {r->value};
  if (auto* f = as<FuncTypeNode>(type)) {
    std::vector<Type> out = f->arg_types;
    out.push_back(f->ret_type);
    return out;
  }
  return {};
}

[[noreturn]] void conflict(const Domain& a, const Domain& b, const Span& span) {
  const std::string first = a.device->to_string(), second = b.device->to_string();
  Diagnostic d(codes::device_conflict, span, "a value is used on " + first + " and on " + second);
  for (const Domain* side : {&a, &b}) {
    std::string text = "this is on " + side->device->to_string();
    if (side->why != nullptr) text += std::string(": ") + side->why;
    if (side->decided || side->why != nullptr) d.note(side->decided, text);
  }
  throw UserError(std::move(d).help("copy it: device_copy(x, src_virtual_device=\"" + first +
                                    "\", dst_virtual_device=\"" + second + "\")"));
}

}  // namespace

Domain* DeviceDomains::leaf() { return &all_.emplace_back(); }

Domain* DeviceDomains::of_type(const Type& type) {
  Domain* out = leaf();
  const size_t first = all_.size();
  std::vector<std::pair<Type, Domain*>> open{{type, out}};
  while (!open.empty() && all_.size() - first < kMaxParts) {
    auto [t, d] = std::move(open.back());
    open.pop_back();
    if (!t) continue;
    for (const Type& p : parts_of(t)) {
      d->parts.push_back(leaf());
      open.emplace_back(p, d->parts.back());
    }
  }
  if (!open.empty()) out->parts.clear();
  return out;
}

Domain* DeviceDomains::root(Domain* d) {
  while (d->parent != nullptr) {
    if (d->parent->parent != nullptr) d->parent = d->parent->parent;
    d = d->parent;
  }
  return d;
}

Domain* DeviceDomains::part(Domain* whole, size_t index) {
  whole = root(whole);
  return whole->is_leaf() ? whole : whole->parts[index];
}

Domain* DeviceDomains::join(Domain* a, Domain* b, const Span& span) {
  a = root(a);
  b = root(b);
  if (a == b) return a;
  if (a->device && b->device && *a->device != *b->device) conflict(*a, *b, span);
  if (!a->device && b->device) {
    a->device = b->device;
    a->decided = b->decided;
    a->why = b->why;
  }
  b->parent = a;
  return a;
}

Domain* DeviceDomains::collapse(Domain* d, const Span& span) {
  d = root(d);
  if (d->is_leaf()) return d;
  std::vector<Domain*> open = std::move(d->parts);
  d->parts.clear();
  while (!open.empty()) {
    Domain* part = root(open.back());
    open.pop_back();
    if (part == d) continue;
    open.insert(open.end(), part->parts.begin(), part->parts.end());
    part->parts.clear();
    join(d, part, span);
  }
  return d;
}

void DeviceDomains::unify(Domain* a, Domain* b, const Span& span) {
  std::vector<std::pair<Domain*, Domain*>> open{{a, b}};
  while (!open.empty()) {
    Domain *x = root(open.back().first), *y = root(open.back().second);
    open.pop_back();
    if (x == y) continue;
    if (x->parts.size() != y->parts.size()) {
      collapse(x, span);
      collapse(y, span);
    }
    for (size_t i = 0; i < x->parts.size(); ++i) open.emplace_back(x->parts[i], y->parts[i]);
    join(x, y, span);
  }
}

void DeviceDomains::unify_where_possible(Domain* a, Domain* b) {
  for (auto [x, y] : leaves(a, b)) {
    x = root(x);
    y = root(y);
    const bool differ = x->device && y->device && *x->device != *y->device;
    if (!differ) join(x, y, {});
  }
}

void DeviceDomains::place(Domain* d, runtime::Device device, const Span& span, const char* why) {
  const Domain decided{.device = device, .decided = span, .why = why};
  for (Domain* x : leaves(d)) {
    if (!x->device) {
      x->device = device;
      x->decided = span;
      x->why = why;
    } else if (*x->device != device) {
      conflict(*x, decided, span);
    }
  }
}

std::vector<Domain*> DeviceDomains::leaves(Domain* d) {
  std::vector<Domain*> out, open{d};
  while (!open.empty()) {
    Domain* at = root(open.back());
    open.pop_back();
    if (at->is_leaf()) out.push_back(at);
    open.insert(open.end(), at->parts.rbegin(), at->parts.rend());
  }
  return out;
}

std::vector<std::pair<Domain*, Domain*>> DeviceDomains::leaves(Domain* a, Domain* b) {
  std::vector<std::pair<Domain*, Domain*>> out, open{{a, b}};
  while (!open.empty()) {
    auto [x, y] = open.back();
    open.pop_back();
    x = root(x);
    y = root(y);
    if (x->is_leaf() && y->is_leaf()) {
      out.emplace_back(x, y);
      continue;
    }
    const size_t parts = std::max(x->parts.size(), y->parts.size());
    for (size_t i = parts; i-- > 0;) open.emplace_back(part(x, i), part(y, i));
  }
  return out;
}

runtime::Device DeviceDomains::device(Domain* leaf) {
  return root(leaf)->device.value_or(runtime::Device::cpu());
}

}  // namespace relay
