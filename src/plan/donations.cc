#include "plan/donations.h"

#include <algorithm>
#include <optional>

#include "analysis/primitives.h"
#include "ir/bindings.h"
#include "ir/slot_names.h"
#include "node/structural.h"
#include "node/walk.h"
#include "plan/outputs.h"

namespace relay::plan {
namespace {

constexpr size_t kAtTheEnd = static_cast<size_t>(-1);

// The bindings of the outermost scope in order, and what is returned.
struct Scope {
  explicit Scope(const FunctionNode& f) {
    const Expr* at = &f.body;
    for (; auto* l = as<LetNode>(*at); at = &l->body) add(l);
    result = *at;
  }

  void add(const LetNode* l) {
    index[l->var.get()] = lets.size();
    lets.push_back(l);
  }
  const LetNode* binding(const Expr& e) const {
    auto it = index.find(e.get());
    return it == index.end() ? nullptr : lets[it->second];
  }

  std::vector<const LetNode*> lets;
  std::unordered_map<const Node*, size_t> index;  // by variable
  Expr result;
};

const FunctionNode* kernel_of(const LetNode& l) {
  auto* c = as<CallNode>(l.value);
  auto* f = c == nullptr ? nullptr : primitive_of(*c);
  return f == nullptr || shares_its_operand(*f) || is_device_copy(*f) ? nullptr : f;
}

// What a name or a view stands for; null for anything else.
const Expr* behind(const LetNode& l) {
  if (isa<VarNode>(l.value)) return &l.value;
  auto* c = as<CallNode>(l.value);
  auto* f = c == nullptr ? nullptr : primitive_of(*c);
  return f != nullptr && shares_its_operand(*f) ? &c->args[0] : nullptr;
}

// The tensors of the result, in order; null where a tuple is made elsewhere.
std::vector<Expr> leaves_of(const Scope& scope) {
  std::vector<Expr> out, stack{scope.result};
  while (!stack.empty()) {
    Expr e = stack.back();
    stack.pop_back();
    const LetNode* l = scope.binding(e);
    if (auto* t = as<TupleNode>(l == nullptr ? e : l->value)) {
      stack.insert(stack.end(), t->fields.rbegin(), t->fields.rend());
    } else if (isa<TensorTypeNode>(e->type)) {
      out.push_back(e);
    } else {
      auto types = flatten_tensor_types(e->type);
      out.insert(out.end(), types ? types->size() : 1, nullptr);
    }
  }
  return out;
}

// The binding whose kernel makes the bytes of a tensor: itself, or behind names and views.
const LetNode* made_by(const Scope& scope, const Expr& leaf) {
  const LetNode* l = leaf ? scope.binding(leaf) : nullptr;
  while (l != nullptr && kernel_of(*l) == nullptr) {
    const Expr* from = behind(*l);
    l = from == nullptr ? nullptr : scope.binding(*from);
  }
  return l;
}

// Whether a tensor of the result is the parameter as it is.
bool is_unchanged(const Scope& scope, const Expr& leaf, const Var& param) {
  const Expr* at = &leaf;
  while (*at && *at != param) {
    const LetNode* l = scope.binding(*at);
    if (l == nullptr || !isa<VarNode>(l->value)) return false;
    at = &l->value;
  }
  return *at != nullptr;
}

// What of the outermost scope shares the parameter's memory, or may, and who reads it last.
struct Readers {
  VarSet sharers;
  std::optional<size_t> last;  // of scope.lets; kAtTheEnd: the result
};

// Whether a value may be, or hold, the tensor: another tensor of as many elements may be a view.
bool may_share(const Type& value, const Type& tensor) {
  auto *a = as<TensorTypeNode>(value), *b = as<TensorTypeNode>(tensor);
  if (a == nullptr) return true;
  if (a->dtype != b->dtype) return false;
  return !is_static_tensor(value) || !is_static_tensor(tensor) ||
         bytes_of(value) == bytes_of(tensor);
}

Readers readers_of(const Scope& scope, const Var& param) {
  Readers out;
  out.sharers.insert(param.get());
  auto reads = [&](const Expr& e) {
    bool found = out.sharers.contains(e.get());
    if (isa<VarNode>(e) || isa<ConstantNode>(e)) return found;
    post_order(
        e, [&](const Node& n) { found = found || out.sharers.contains(&n); }, family::program);
    return found;
  };
  for (size_t i = 0; i < scope.lets.size(); ++i) {
    const LetNode& l = *scope.lets[i];
    auto* c = as<CallNode>(l.value);
    bool closed = c != nullptr && primitive_of(*c) != nullptr;
    if (!(closed ? std::ranges::any_of(c->args, reads) : reads(l.value))) continue;
    out.last = i;
    if (kernel_of(l) == nullptr && may_share(l.var->type, param->type)) {
      out.sharers.insert(l.var.get());
    }
  }
  if (reads(scope.result)) out.last = kAtTheEnd;
  return out;
}

bool uses(const LetNode& l, const Node* variable) {
  bool found = false;
  if (auto* c = as<CallNode>(l.value); c != nullptr && primitive_of(*c) != nullptr) {
    return std::ranges::any_of(c->args, [&](const Expr& a) { return a.get() == variable; });
  }
  post_order(
      l.value, [&](const Node& n) { found = found || &n == variable; }, family::program);
  return found;
}

// The tensors among the arguments that are in the set, by their place.
std::vector<size_t> inputs_among(const CallNode& c, const VarSet& set) {
  std::vector<size_t> out;
  size_t place = 0;
  for (const Expr& a : c.args) {
    size_t count = flatten_tensor_types(a->type)->size();
    for (size_t i = 0; i < count && set.contains(a.get()); ++i) out.push_back(place + i);
    place += count;
  }
  return out;
}

// Why the kernel of the binding cannot write over the parameter; empty when it can.
std::string refusal(const LetNode& l, const Readers& readers, const Var& param,
                    const LoweredProgram& lowered) {
  const FunctionNode& f = *kernel_of(l);
  const CallNode& c = *as<CallNode>(l.value);
  std::vector<size_t> read = inputs_among(c, readers.sharers);
  if (read.empty()) return "";
  if (is_update(f)) {
    auto args = operator_args(c, f);
    bool data_only = read.size() == 1 && args && (*args)[0] == param;
    return data_only ? "" : "the update reads the input where it does not write";
  }
  const LoweredCall& call = lowered.call(f);
  if (call.equal_sizes >= 0) return "sizes of the kernel that makes it may be broadcast";
  const KernelProvider& provider = *lowered.provider();
  const bool only_result = provider.signature(call.kernel).results.size() == 1;
  auto is = [&](size_t i, Aliasing how) {
    return only_result && provider.aliasing(call.kernel, {.input = i}) == how;
  };
  auto at_same_index = [&](size_t i) { return is(i, Aliasing::same_index); };
  if (std::ranges::all_of(read, at_same_index) ||
      (read.size() == 1 && is(read[0], Aliasing::written_over))) {
    return "";
  }
  return "the kernel that makes it reads the input at other places";
}

std::string why_not(const Scope& scope, const FunctionNode& f, const DonatedInput& d,
                    bool writes_outputs, const VarSet& escapes, const Joins& joins,
                    const LoweredProgram& lowered) {
  const Var& param = f.params[d.param];
  std::vector<Expr> leaves = leaves_of(scope);
  if (is_unchanged(scope, leaves[d.output], param)) return "";
  const LetNode* made = made_by(scope, leaves[d.output]);
  if (made == nullptr) return "no kernel of the function makes the output";
  const FunctionNode& kernel = *kernel_of(*made);
  const LoweredCall& call = lowered.call(kernel);
  if (call.kernel < 0 || call.sizes >= 0 || has_open_size(kernel)) {
    return "only a run tells the sizes of the kernel that makes it";
  }
  const Node* v = made->var.get();
  if (!isa<TensorTypeNode>(made->var->type)) return "the kernel that makes it has other results";
  if (scalar_dtype(made->var->type)) return "a scalar has no memory of its own";
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (i != d.output && made_by(scope, leaves[i]) == made) {
      return "output '" + result_name(f, i) + "' is the same value";
    }
  }
  if (escapes.contains(param.get())) return "the input is passed on as a value";
  // An object in the parameter's register has its shape.
  bool same_type = structural_equal(made->var->type, param->type);
  if (!same_type && (!writes_outputs || escapes.contains(v))) {
    return "the output is computed in another shape";
  }
  if (joins.inside.contains(v) || joins.joined.contains(v)) {
    return "the output is computed inside another value";
  }
  Readers readers = readers_of(scope, param);
  if (readers.last && *readers.last > scope.index.at(v)) {
    return *readers.last == kAtTheEnd ? std::string("the input is part of the result")
                                      : "the input is read after the output is computed, for %" +
                                            scope.lets[*readers.last]->var->name_hint;
  }
  return refusal(*made, readers, param, lowered);
}

}  // namespace

Function with_late_updates(const Function& f, const Module& mod) {
  std::vector<DonatedInput> donated = donated_inputs(*f.get(), mod);
  if (donated.empty()) return f;
  Scope scope(*f.get());
  bool changed = false;
  // A binding that is moved may read another donated parameter, behind whose last read it then is.
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    bool moved = false;
    for (const DonatedInput& d : donated) {
      std::vector<Expr> leaves = leaves_of(scope);
      const LetNode* made = made_by(scope, leaves[d.output]);
      if (made == nullptr) continue;
      Readers readers = readers_of(scope, f->params[d.param]);
      size_t from = scope.index.at(made->var.get());
      if (!readers.last || *readers.last == kAtTheEnd || *readers.last <= from) continue;
      size_t to = *readers.last;
      auto begin = scope.lets.begin();
      bool free = std::none_of(begin + static_cast<std::ptrdiff_t>(from) + 1,
                               begin + static_cast<std::ptrdiff_t>(to) + 1,
                               [&](const LetNode* l) { return uses(*l, made->var.get()); });
      if (!free) continue;
      std::rotate(begin + static_cast<std::ptrdiff_t>(from),
                  begin + static_cast<std::ptrdiff_t>(from) + 1,
                  begin + static_cast<std::ptrdiff_t>(to) + 1);
      for (size_t i = from; i <= to; ++i) scope.index[scope.lets[i]->var.get()] = i;
      moved = true;
    }
    changed |= moved;
    if (!moved) break;
  }
  if (!changed) return f;
  Expr body = scope.result;
  for (size_t i = scope.lets.size(); i-- > 0;) {
    body = let(scope.lets[i]->var, scope.lets[i]->value, body, scope.lets[i]->span);
  }
  return function(f->params, body, f->ret_type, f->type_params, f->attrs, f->span);
}

Donations find_donations(const FunctionNode& f, const Module& mod, bool is_called,
                         bool writes_outputs, const VarSet& escapes, const Joins& joins,
                         const LoweredProgram& lowered) {
  Donations out;
  std::vector<DonatedInput> donated = donated_inputs(f, mod);
  if (donated.empty()) return out;
  Scope scope(f);
  for (const DonatedInput& d : donated) {
    Donation row{static_cast<int32_t>(d.param), static_cast<int32_t>(d.output)};
    row.reason = is_called ? "the program calls the function itself"
                           : why_not(scope, f, d, writes_outputs, escapes, joins, lowered);
    row.in_place = row.reason.empty();
    const LetNode* made = made_by(scope, leaves_of(scope)[d.output]);
    if (row.in_place && made != nullptr) out.written[made->var.get()] = out.rows.size();
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace relay::plan
