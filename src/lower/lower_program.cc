#include "lower/lower_program.h"

#include <algorithm>

#include "analysis/evaluate_constants.h"
#include "analysis/loop_kernels.h"
#include "analysis/primitives.h"
#include "base/budget.h"
#include "ir/devices.h"
#include "ir/open_sizes.h"
#include "ir/type_params.h"
#include "ir/views.h"
#include "ir/whole_parts.h"
#include "lower/compose.h"
#include "lower/interface/compute_rule.h"
#include "node/structural.h"
#include "node/walk.h"
#include "tir/schedule_report.h"

namespace relay {
namespace {

KernelSite site_of(const FunctionNode& f) {
  KernelSite site{f.span.describe(), ""};
  if (auto reason = f.attrs.find(attr::kFusionReason); reason != f.attrs.end()) {
    if (auto* text = reason->second.get_if<std::string>()) site.ends = *text;
  }
  return site;
}

// A function of one operator call whose result has data-dependent sizes.
bool has_data_dependent_result(const FunctionNode& f) {
  auto* call = as<CallNode>(f.body);
  auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
  return op != nullptr && data_decides_shape(*op->row);
}

// The same function with a result of that type.
Function with_result(const FunctionNode& f, const Type& type) {
  auto* call = new CallNode(*as<CallNode>(f.body));
  Expr body(call);
  call->type = type;
  auto* sized = new FunctionNode(f);
  Function out(sized);
  sized->body = body;
  sized->ret_type = type;
  sized->type = deduce_type(*sized);
  return out;
}

// A size that is more than a sum of names.
bool is_compound(const Dim& d) {
  bool compound = false, broadcast = false;
  post_order(d, [&](const Node& n) {
    auto* op = as<DimOpNode>(&n);
    if (op == nullptr) return;
    broadcast |= op->op == DimOpKind::Broadcast;
    bool scaled = op->op == DimOpKind::Mul && (as_const(op->a) || as_const(op->b));
    compound |= !scaled && op->op != DimOpKind::Add && op->op != DimOpKind::Sub;
  });
  return compound && !broadcast;
}

size_t count_assumptions(const Function& f) {
  size_t count = 0;
  post_order(
      f->body,
      [&](const Node& n) {
        if (auto* c = as<CallNode>(&n)) count += assumptions_of(*c).size();
      },
      family::expr);
  return count;
}

// Whether some sizes make all of these equal: a tensor of (n,) may be broadcast with (3,) and with
// (4,), but is not as large as both.
bool may_be_equal(const std::vector<DimAssumption>& sizes) {
  DimScope dims;
  return std::ranges::all_of(sizes, [&](const DimAssumption& s) {
    auto a = tir::as_int(dims.lower(s.a)), b = tir::as_int(dims.lower(s.b));
    dims.make_equal(s.a, s.b);
    return !a || !b || *a == *b;
  });
}

// The type with other sizes, for a tensor or a tuple of tensors.
Type with_sizes(const Type& type, const std::function<Dim(const Dim&)>& size) {
  auto changed = [&](const Type& part) -> Type {
    auto* tensor = as<TensorTypeNode>(part);
    if (tensor == nullptr || tensor->shape_var) return part;
    std::vector<Dim> shape = tensor->shape;
    std::ranges::transform(shape, shape.begin(), size);
    return tensor_type(std::move(shape), tensor->dtype);
  };
  auto* tuple = as<TupleTypeNode>(type);
  if (tuple == nullptr) return changed(type);
  std::vector<Type> fields;
  for (const Type& f : tuple->fields) fields.push_back(changed(f));
  return tuple_type(std::move(fields));
}

// The dimension with values in the place of names.
Dim with_values(const Dim& d, const TypeParams& values) {
  Type type = with_type_params(tensor_type({d}, tir::kIndex), values);
  return as<TensorTypeNode>(type)->shape[0];
}

// Bytes of the largest parameter of constant sizes.
int64_t largest_of_known_size(const FunctionNode& f) {
  int64_t most = 0;
  for (const Var& p : f.params) most = std::max(most, bytes_of(p->type).value_or(0));
  return most;
}

}  // namespace

bool has_open_size(const Type& t) {
  auto tensors = flatten_tensor_types(t);
  return tensors && std::ranges::any_of(*tensors, [](const TensorType& tensor) {
           return std::ranges::any_of(tensor->shape, is_any);
         });
}

bool has_open_size(const FunctionNode& f) {
  return has_open_size(f.body->type) ||
         std::ranges::any_of(f.params, [](const Var& p) { return has_open_size(p->type); });
}

bool is_view(const FunctionNode& f) {
  return f.params.size() == 1 && behind_views(f.body.get()) == f.params[0].get();
}

bool is_view_sized_by_data(const FunctionNode& f) {
  return has_data_dependent_result(f) && !f.params.empty() &&
         behind_views(f.body.get()) == f.params[0].get();
}

bool is_device_copy(const FunctionNode& f) {
  auto* c = as<CallNode>(f.body);
  return c != nullptr && as_device_copy(*c) != nullptr;
}

bool shares_its_operand(const FunctionNode& f) { return is_view(f) || is_view_sized_by_data(f); }

LoweredProgram::LoweredProgram(const Module& mod, std::shared_ptr<KernelProvider> provider,
                               int64_t large_weights)
    : provider_(std::move(provider)), large_weights_(large_weights) {
  for (const Function& f : mod->functions) {
    post_order_outside_primitives(f->body, [&](const Node& n) {
      auto* c = as<CallNode>(&n);
      auto* primitive = c == nullptr ? nullptr : primitive_of(*c);
      if (primitive == nullptr || calls_.contains(primitive)) return;
      check_budget();
      Function plain = without_reason(ref(*primitive));
      uint64_t hash = structural_hash(plain);
      if (const LoweredCall* same = find_same(plain, hash)) {
        LoweredCall& known = calls_.emplace(primitive, *same).first->second;
        known.site = site_of(*primitive);
        return;
      }
      LoweredCall& made = calls_.emplace(primitive, lower(plain, *f.get())).first->second;
      made.site = site_of(*primitive);
      // Otherwise it names sizes of its own, or says at which operator a run has ended.
      bool general = made.primitive == plain && made.sized == plain && made.versions.empty();
      if (general && !made.assumes_sizes) calls_by_hash_[hash].push_back(&made);
    });
  }
}

const LoweredCall* LoweredProgram::find_same(const Function& f, uint64_t hash) const {
  auto same_hash = calls_by_hash_.find(hash);
  if (same_hash == calls_by_hash_.end()) return nullptr;
  for (const LoweredCall* known : same_hash->second) {
    if (structural_equal(known->primitive, f)) return known;
  }
  return nullptr;
}

LoweredCall LoweredProgram::lower(const Function& f, const FunctionNode& around) {
  LoweredCall out;
  size_t named = 0;
  out.primitive = with_named_parameters(f, named);
  out.sized = out.primitive;
  out.assumes_sizes = count_assumptions(out.primitive) > 0;
  if (is_view(*out.primitive.get()) || is_device_copy(*out.primitive.get())) return out;
  const Function written = out.primitive;
  size_t next = named;
  out.primitive = with_named_sizes(out.primitive, named, out.named);
  std::vector<TypeVar> names;
  while (next < named) names.push_back(size_name(next++));
  out.sized = out.primitive;
  const FunctionNode& g = *out.primitive.get();
  if (!has_open_size(g.body->type)) {
    // No size of the call has a name yet, so that positions may take the first ones.
    out.kernel = named == 0 && !out.assumes_sizes
                     ? provider_->add_alike(
                           out.primitive, [&](size_t n) { return size_name(n); }, out.named)
                     : provider_->add(out.primitive, KernelOf::result);
    auto broadcasts = broadcasts_of(g);
    if (!broadcasts.empty() && may_be_equal(broadcasts)) {
      out.equal_sizes = provider_->add(out.primitive, KernelOf::equal_sizes);
    }
    out.versions = versions_of(out, names, written, around);
    return out;
  }
  if (!has_data_dependent_result(g)) return out;
  out.sizes = provider_->add(out.primitive, KernelOf::sizes);
  out.sized = with_result(
      g, with_sizes_named(g.body->type, [&](size_t, size_t) { return dim(size_name(named++)); }));
  if (!is_view_sized_by_data(g)) out.kernel = provider_->add(out.sized, KernelOf::result);
  return out;
}

std::vector<VariantSizes> LoweredProgram::versions_of(const LoweredCall& call,
                                                      const std::vector<TypeVar>& names,
                                                      const Function& written,
                                                      const FunctionNode& around) const {
  std::vector<VariantSizes> out;
  if (!provider_->reduces(call.kernel)) return out;
  std::vector<KnownSizes> likely = likely_sizes(around, *written.get());
  const bool by_hints = !likely.empty();
  if (!by_hints) likely.push_back(one_row(call.kernel, written, around));
  const bool broadcasts = !broadcasts_of(*written.get()).empty();
  for (KnownSizes& sizes : likely) {
    if (sizes.empty()) continue;
    TypeParams values;
    for (const auto& [v, size] : sizes) values[v.get()] = dim(size);
    // Of sizes that are open still it is not known which are equal.
    if (broadcasts && !broadcasts_of(*for_sizes(written, values).get()).empty()) continue;
    VariantSizes version{std::move(sizes), {}};
    for (size_t i = 0; i < names.size(); ++i) {
      version.named.emplace_back(names[i], with_values(call.named[i], values));
    }
    out.push_back(std::move(version));
  }
  auto few = by_hints || !names.empty() ? std::nullopt : provider_->few_rows(call.kernel);
  if (!few) return out;
  std::vector<TypeVar> open = open_dimensions(around, *written.get());
  if (open.size() == 1 && least_size(around, open.front()) <= *few)
    out.push_back({.at_most = {{open.front(), *few}}});
  return out;
}

KnownSizes LoweredProgram::one_row(int32_t general, const Function& written,
                                   const FunctionNode& around) const {
  if (largest_of_known_size(*written.get()) < large_weights_ ||
      !provider_->has_symbolic_rows(general))
    return {};
  KnownSizes out;
  for (const TypeVar& v : open_dimensions(around, *written.get())) {
    if (least_size(around, v) > 1) return {};
    out.emplace_back(v, 1);
  }
  return out;
}

Function LoweredProgram::with_named_parameters(const Function& f, size_t& named) {
  if (!has_open_size(*f.get())) return f;
  Rewriter rename(family::expr);
  for (const Var& p : f->params) {
    if (!has_open_size(p->type)) continue;
    Type type = with_sizes_named(p->type, [&](size_t, size_t) { return dim(size_name(named++)); });
    rename.set(p, var(p->name_hint, type));
  }
  Function out = rename.apply(f);
  if (!is_loop_kernel(*out.get())) return out;
  out = with_state_sizes(out);
  RELAY_CHECK(out != nullptr, "the sizes of a loop's state are known where its kernel is made");
  return out;
}

Function LoweredProgram::with_named_sizes(const Function& f, size_t& named,
                                          std::vector<Dim>& sizes) {
  TypeParams values;
  std::vector<TypeVar> names;
  auto name = [&](const Dim& whole) {
    if (!is_compound(whole)) return whole;
    // That a size is a whole number of parts stays known.
    const auto [parts, part] = whole_parts(whole);
    const Dim d = parts ? parts : whole;
    auto known = std::ranges::find_if(sizes, [&](const Dim& s) { return dim_equal(s, d); });
    if (known != sizes.end()) {
      return dim(names[static_cast<size_t>(known - sizes.begin())]) * dim(part);
    }
    names.push_back(size_name(named + sizes.size()));
    sizes.push_back(d);
    values.emplace(names.back().get(), d);
    return dim(names.back()) * dim(part);
  };
  Rewriter rename(family::expr);
  for (const Var& p : f->params) {
    size_t before = sizes.size();
    Type type = with_sizes(p->type, name);
    if (sizes.size() > before || !structural_equal(type, p->type)) {
      rename.set(p, var(p->name_hint, type));
    }
  }
  if (sizes.empty()) return f;
  try {
    Function out =
        rename.apply(function(f->params, f->body, nullptr, f->type_params, f->attrs, f->span));
    // That two names are one size would be asked at every call.
    if (structural_equal(with_type_params(out->body->type, values), f->body->type) &&
        count_assumptions(out) == count_assumptions(f)) {
      named += sizes.size();
      return out;
    }
  } catch (const UserError&) {
    // An attribute says something of the sizes as they were.
  }
  sizes.clear();
  return f;
}

int32_t LoweredProgram::copy(const Type& type, runtime::Device device) {
  Var x = var("x", type);
  Dict attrs{{attr::kPrimitive, AttrValue(int64_t{1})}};
  if (device != runtime::Device::cpu()) attrs[attr::kDevice] = AttrValue(device.to_string());
  return provider_->add(function({x}, x, type, {}, attrs), KernelOf::result);
}

TypeVar LoweredProgram::size_name(size_t n) {
  while (size_names_.size() <= n) {
    size_names_.push_back(type_var("d" + std::to_string(size_names_.size()), Kind::Dim));
  }
  return size_names_[n];
}

}  // namespace relay
