#include "grad/untaken.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <unordered_map>

#include "analysis/calls.h"
#include "grad/asked_factor.h"
#include "grad/call_gradient.h"
#include "grad/let_chains.h"
#include "grad/slope.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// The mask of a value all of whose elements are asked for.
constexpr int kAll = -1;
constexpr const char* kDerivativeOf = "annotation.derivative_of";

// The mask of a tensor without uses.
constexpr int kNone = -2;

bool has_leaves(const std::vector<Expr>& args) {
  return std::ranges::all_of(args, [](const Expr& a) { return is_leaf(*a.get()); });
}

// Tensors from tensors.
bool is_operation(const Expr& e) {
  const OpNode* op = called_op(e);
  return op != nullptr && op->row->effect.get() == Effect::Pure && flatten_tensor_types(e->type) &&
         has_leaves(as<CallNode>(e)->args);
}

// A tuple of tensors.
bool is_group(const Expr& e) {
  auto* t = as<TupleNode>(e);
  return t != nullptr && has_leaves(t->fields) &&
         std::ranges::all_of(t->fields, [](const Expr& f) { return isa<TensorTypeNode>(f->type); });
}

// A tensor from a function.
bool is_call(const Expr& e) {
  auto* c = as<CallNode>(e);
  return c != nullptr && (isa<GlobalVarNode>(c->op) || isa<VarNode>(c->op)) &&
         is_floating(e->type) && has_leaves(c->args);
}

bool is_where(const CallNode& c) { return as<OpNode>(c.op)->name == "where"; }

bool has_where(const Function& f) {
  bool found = false;
  post_order(
      f->body,
      [&](const Node& n) {
        auto* op = as<OpNode>(&n);
        found |= op != nullptr && op->name == "where";
      },
      family::program);
  return found;
}

// Whether a mask broadcasts to a tensor of that type without making it larger.
bool fits(const Type& mask, const Type& type) {
  const auto &m = as<TensorTypeNode>(mask)->shape, &t = as<TensorTypeNode>(type)->shape;
  if (m.size() > t.size()) return false;
  for (size_t i = 0; i < m.size(); ++i) {
    const Dim &a = m[i], &b = t[t.size() - m.size() + i];
    const auto one = as_const(a);
    if (!(one && *one == 1) && (is_any(a) || is_any(b) || !dim_equal(a, b))) return false;
  }
  return true;
}

bool is_scalar(const Type& t) { return as<TensorTypeNode>(t)->rank() == 0; }

bool is_open(const Type& t) { return std::ranges::any_of(as<TensorTypeNode>(t)->shape, is_any); }

Expr sized(const char* op, const char* op_like, const Expr& e, const Expr& like) {
  if (is_open(like->type)) return call(op_like, {e, like});
  const auto& shape = as<TensorTypeNode>(like->type)->shape;
  return make_call(op, {e}, {{"shape", to_value(Dims(shape.begin(), shape.end()))}}, Span{});
}

Expr dtype_cast(const Expr& e, DType dtype) {
  if (as<TensorTypeNode>(e->type)->dtype == dtype) return e;
  return make_call("cast", {e}, {{"dtype", dtype.to_string()}}, Span{});
}

class ChainOfLets {
 public:
  ChainOfLets(const LetChains& chains, const Lets& lets) : chains_(chains), lets_(lets) {}

  Lets masked() {
    if (std::ranges::none_of(lets_, [](const auto& l) {
          return is_operation(l.second) && is_where(*as<CallNode>(l.second));
        })) {
      return lets_;
    }
    read();
    for (int i = count_; i-- > 0;) {
      if (at(i).called) {
        look_at_call(i);
      } else if (at(i).op != nullptr) {
        look_at(i);
      }
    }
    if (!any_cut_) return lets_;
    for (int i = 0; i < count_; ++i) find_needs(i);
    for (int i = 0; i < count_; ++i) {
      if (at(i).called) {
        write_call(at(i));
      } else if (at(i).stays) {
        out_.emplace_back(at(i).name, at(i).value);
      } else if (at(i).outside) {
        emit(i, false);
      }
    }
    return std::move(out_);
  }

 private:
  // A use whose adjoint goes to the operand. The masks are of the elements that are asked for: `here` as the
  // operand is used, `below` as the operand is.
  struct Use {
    int user;
    size_t place;
    int here, below;
    bool spoilt;  // the adjoint may be NaN where the masks do not hold
  };
  struct Item {
    Var name;
    Expr value;
    const CallNode* op = nullptr;  // an operator's
    std::vector<Expr> args = {};   // its operands: tensors, of tuples their fields
    bool grouped = false;          // there are such tuples
    bool stays = true;             // where it is; the others are computed for whom they are for
    bool called = false;           // a function's, of leaves
    // The field of an operator's result: of which item, and which one.
    int whole = -1;
    size_t field = 0;
    std::vector<int> parts = {};  // the items that are fields of this one
    // The last Let that it depends on, and the last of these that is not moved; none: -1.
    int last = -1, fixed = -1;
    bool outside = false;  // others than operators of this chain use it
    // A value that has its shape for certain, also where sizes are `?`.
    const Node* shape = nullptr;
    std::vector<std::vector<Use>> uses = {};  // of each tensor of it
    int first_user = 0;
    std::vector<int> cuts = {};  // of each operand the mask to put on
    std::vector<int> factors =
        {};  // of a sum of products: of each operand the elements that matter
    std::vector<bool> smooth = {};  // of each operand whether an adjoint goes to it
    // Of the masks in it, and in what it is made of. Where these need what it is made of, it is
    // computed without masks, too, under another name.
    int needs = -1, needs_fixed = -1;
    Var plain = nullptr;
    bool made = false, made_plain = false;
  };
  Item& at(int i) { return items_[static_cast<size_t>(i)]; }

  int find(const Expr& e) const {
    auto it = by_name_.find(e.get());
    return it == by_name_.end() ? -1 : it->second;
  }

  int add(Item item) {
    const int number = static_cast<int>(items_.size());
    if (item.shape == nullptr) item.shape = item.name.get();
    by_name_[item.name.get()] = number;
    items_.push_back(std::move(item));
    return number;
  }

  const Node* shape_of(const Expr& e) {
    const int known = find(e);
    return known < 0 ? e.get() : at(known).shape;
  }

  // Of an operator by elements: that of its arguments, numbers left out, where they have one.
  const Node* common_shape(const CallNode& c) {
    if (!isa<TensorTypeNode>(c.type)) return nullptr;
    if (!one_to_one(c) && (c.attrs != nullptr || !by_element(c))) return nullptr;
    const Node* common = nullptr;
    for (const Expr& a : c.args) {
      if (!isa<TensorTypeNode>(a->type)) return nullptr;
      if (is_scalar(a->type)) continue;
      const Node* own = shape_of(a);
      if (common != nullptr && own != common) return nullptr;
      common = own;
    }
    return common;
  }

  void read() {
    count_ = static_cast<int>(lets_.size());
    std::unordered_map<const Node*, int> inside;
    for (const auto& [name, value] : lets_) {
      if (chains_.uses(value.get()) != 1 || !is_operation(value)) continue;
      for (const Expr& a : as<CallNode>(value)->args) ++inside[a.get()];
    }
    // One use is that of its Let.
    auto others_use = [&](const Var& v) { return chains_.uses(v.get()) > inside[v.get()] + 1; };
    std::unordered_map<const Node*, const TupleNode*> groups;
    for (const auto& [name, value] : lets_) {
      const int number = static_cast<int>(items_.size());
      Item item{name, value};
      item.last = number;
      item.first_user = count_;
      if (chains_.uses(value.get()) != 1) {
        item.fixed = number;
      } else if (is_operation(value)) {
        item.op = as<CallNode>(value);
        for (const Expr& a : item.op->args) {
          auto group = groups.find(a.get());
          if (group == groups.end()) {
            item.args.push_back(a);
          } else {
            item.args.insert(item.args.end(), group->second->fields.begin(),
                             group->second->fields.end());
            item.grouped = true;
          }
        }
        item.grouped &= std::ranges::all_of(item.op->args, [&](const Expr& a) {
          return isa<TensorTypeNode>(a->type) || groups.contains(a.get());
        });
        item.uses.resize(flatten_tensor_types(name->type)->size());
        item.shape = common_shape(*item.op);
        take_along(item);
      } else if (is_group(value) && !others_use(name)) {
        groups[name.get()] = as<TupleNode>(value);
        for (const Expr& f : as<TupleNode>(value)->fields) ++inside[f.get()];
        item.args = as<TupleNode>(value)->fields;
        take_along(item);
        item.cuts.clear();
      } else if (auto* get = as<TupleGetItemNode>(value);
                 get != nullptr && find(get->tuple) >= 0 && at(find(get->tuple)).op != nullptr) {
        item.whole = find(get->tuple);
        item.field = static_cast<size_t>(get->index);
        item.args = {get->tuple};
        ++inside[get->tuple.get()];
        at(item.whole).parts.push_back(number);
        take_along(item);
      } else {
        item.fixed = number;
        item.called = is_call(value);
        if (item.called) {
          item.args = as<CallNode>(value)->args;
          item.uses.resize(1);
          item.cuts.assign(item.args.size(), kAll);
        }
      }
      add(std::move(item));
    }
    for (Item& item : items_) item.outside = others_use(item.name);
  }

  // What is computed for its uses.
  void take_along(Item& item) {
    item.stays = false;
    for (const Expr& a : item.args) {
      const int operand = find(a);
      if (operand >= 0) item.fixed = std::max(item.fixed, at(operand).fixed);
    }
    item.cuts.assign(item.args.size(), kAll);
    item.smooth.assign(item.args.size(), false);
  }

  // ---- Masks: values of bools, by number

  const Type& type_of(int mask) { return at(mask).name->type; }

  int derived(const Expr& value) {
    if (find(value) >= 0) return find(value);
    Item item{var("mask", value->type), value};
    item.stays = false;
    item.shape = common_shape(*as<CallNode>(value));
    post_order(
        value,
        [&](const Node& n) {
          auto* v = as<VarNode>(&n);
          const int from = v == nullptr ? -1 : find(ref(*v));
          if (from < 0) return;
          item.last = std::max(item.last, at(from).last);
          item.fixed = std::max(item.fixed, at(from).fixed);
        },
        family::expr);
    return add(std::move(item));
  }

  int condition(const Expr& e) {
    int known = find(e);
    if (known < 0) {
      known = add(Item{Var::unchecked(e), e});
      at(known).made = true;
    }
    if (as<TensorTypeNode>(e->type)->dtype == DType::Bool()) return known;
    int& truth = truths_.try_emplace(known, kAll).first->second;
    if (truth == kAll) truth = derived(dtype_cast(e, DType::Bool()));
    return truth;
  }

  int opposite(int mask) {
    int& found = opposites_.try_emplace(mask, kAll).first->second;
    if (found == kAll) found = derived(call("logical_not", {at(mask).name}));
    return found;
  }

  int joined(const char* op, int a, int b) {
    if (a == b) return a;
    int& found = joined_.try_emplace({op, {std::min(a, b), std::max(a, b)}}, kAll).first->second;
    if (found == kAll) found = derived(call(op, {at(a).name, at(b).name}));
    return found;
  }

  int both(int a, int b) { return a == kAll ? b : b == kAll ? a : joined("logical_and", a, b); }

  int some(int mask) {
    if (is_scalar(type_of(mask))) return mask;
    int& found = somewhere_.try_emplace(mask, kAll).first->second;
    if (found == kAll) found = derived(call("any", {at(mask).name}));
    return found;
  }

  int any_of(const std::vector<Use>& uses) {
    if (uses.empty()) return kNone;
    std::vector<int> masks;
    for (const Use& u : uses) {
      if (u.below == kAll) return kAll;
      if (std::ranges::find(masks, u.below) == masks.end()) masks.push_back(u.below);
    }
    for (int m : masks) {
      auto it = opposites_.find(m);
      if (it != opposites_.end() && std::ranges::find(masks, it->second) != masks.end())
        return kAll;
    }
    int all = masks[0];
    for (size_t k = 1; k < masks.size(); ++k) all = joined("logical_or", all, masks[k]);
    return all;
  }

  // The elements of an operand that broadcasts to `whole` of which some copy is asked for.
  int of_operand(int mask, const Expr& operand, const Expr& whole) {
    if (at(mask).shape == shape_of(operand) || is_scalar(type_of(mask)) ||
        fits(type_of(mask), operand->type)) {
      return mask;
    }
    const DType counts = DType::Int(32);
    Expr copies =
        sized("broadcast_to", "broadcast_to_like", dtype_cast(at(mask).name, counts), whole);
    Expr sums = sized("collapse_sum_to", "collapse_sum_like", copies, operand);
    return derived(call("greater", {sums, constant(0, counts)}));
  }

  // ---- From the results on

  static std::optional<Contraction> sum_of_products(const Item& item) {
    std::optional<Contraction> out = contraction_of(*item.op);
    if (out && out->operands.size() != item.args.size()) out.reset();
    return out;
  }

  bool passes(const Item& item, const Slope& s, const std::vector<int>& masks) {
    const CallNode& c = *item.op;
    if (is_where(c)) return true;
    if (s.of_args.size() != item.args.size()) return false;
    if (!std::ranges::all_of(item.args, [](const Expr& a) { return isa<TensorTypeNode>(a->type); }))
      return false;
    if (is_move(c, s)) return true;
    if (masks.size() != 1) return false;
    if (is_scalar(type_of(masks[0])) || by_element(c)) return true;
    // One that is asked for its derivative alone has only the factors that matter.
    const bool ready = std::ranges::all_of(item.uses[0], [&](const Use& u) {
      return at(u.user).op != nullptr && as<OpNode>(at(u.user).op->op)->name == kDerivativeOf;
    });
    return !ready && sum_of_products(item);
  }

  // Of each tensor of an item what is asked of it.
  std::vector<int> asked(Item& item) {
    std::vector<int> out;
    for (const std::vector<Use>& uses : item.uses) out.push_back(any_of(uses));
    for (int part : item.parts) {
      if (at(part).outside) out[at(part).field] = kAll;
    }
    for (int& mask : out) {
      if (item.outside) mask = kAll;
      if (mask >= 0 && at(mask).fixed >= item.first_user) mask = kAll;
    }
    return out;
  }

  // What is asked of an item, all of whose users have been looked at, and what it asks of its operands.
  void look_at(int number) {
    if (!has_floats(at(number).name->type)) return;
    std::vector<int> masks = asked(at(number));
    if (std::ranges::all_of(masks, [](int m) { return m == kNone; })) return;
    const CallNode& c = *at(number).op;
    Slope s;
    if (std::ranges::any_of(masks, [](int m) { return m >= 0; }) && !is_where(c)) {
      std::vector<bool> reached;
      for (int m : masks) reached.push_back(m != kNone);
      s = slope(c, at(number).name, at(number).args, reached);
      if (!passes(at(number), s, masks)) masks.assign(masks.size(), kAll);
    }
    const bool masked = std::ranges::any_of(masks, [](int m) { return m >= 0; });
    const int mask = masks[0];
    const bool by_copies = is_where(c) || !masked ||
                           (masks.size() == 1 && (is_scalar(type_of(mask)) || by_element(c)));
    const bool moves = !by_copies && is_move(c, s);
    const int seeds = moves ? seed(at(number), s, masks) : 0;
    std::optional<Contraction> sum;
    if (!by_copies && !moves) sum = sum_of_products(at(number));
    if (sum) at(number).factors.assign(at(number).args.size(), kAll);
    bool spoilt = false;
    for (size_t i = 0; i < masks.size(); ++i) {
      for (const Use& u : at(number).uses[i]) {
        const bool goes_on = masks[i] >= 0 && u.here == masks[i] && u.below == masks[i] &&
                             (by_copies || (moves && !adds_adjoints(c)));
        spoilt |= goes_on && u.spoilt;
        if (!goes_on && u.spoilt) cut(u);
      }
    }
    for (size_t k = 0; k < at(number).args.size(); ++k) {
      const Expr operand = at(number).args[k];
      if (!is_floating(operand->type)) continue;
      Use use{number, k, kAll, kAll, false};
      if (is_where(c)) {
        if (k == 0) continue;
        if (!isa<ConstantNode>(c.args[0])) {
          const int taken = condition(c.args[0]);
          use.here = both(mask, k == 1 ? taken : opposite(taken));
          use.below = of_operand(use.here, operand, at(number).name);
        }
        use.spoilt = spoilt;
      } else if (masked) {
        if (!s.of_args[k]) continue;
        use.spoilt = spoilt || s.reads[k];
        use.here = mask;
        if (by_copies) {
          use.below = of_operand(mask, operand, at(number).name);
        } else if (moves) {
          use.here = use.below = moved(s, k, seeds);
        } else {
          use.here = use.below = derived(asked_factor(c, *sum, k, at(number).args, at(mask).name));
          use.spoilt = false;
          at(number).factors[k] = use.here;
          any_cut_ = true;
        }
      }
      at(number).smooth[k] = true;
      ask(operand, use);
    }
  }

  // Unused elements of a function's result are not distinguished: where there are no
  // others, its arguments get no adjoints.
  void look_at_call(int number) {
    for (const Use& u : at(number).uses[0]) {
      if (u.spoilt) cut(u);
    }
    const std::vector<int> masks = asked(at(number));
    if (masks[0] < 0) return;
    const int mask = some(masks[0]);
    if (at(mask).fixed >= number) return;
    for (size_t k = 0; k < at(number).args.size(); ++k) {
      if (is_floating(at(number).args[k]->type)) cut({number, k, mask, mask, true});
    }
  }

  void ask(const Expr& operand, const Use& use) {
    int of = find(operand);
    size_t field = 0;
    if (of >= 0 && at(of).whole >= 0) {
      field = at(of).field;
      of = at(of).whole;
    }
    if (of >= 0 && of < count_ && !at(of).uses.empty()) {
      at(of).uses[field].push_back(use);
      at(of).first_user = use.user;
    } else if (use.spoilt && !isa<ConstantNode>(operand)) {
      cut(use);
    }
  }

  // Adjoints of ones where something is asked for, by the number of the first.
  int seed(const Item& item, const Slope& s, const std::vector<int>& masks) {
    std::vector<Expr> made;
    for (size_t i = 0; i < masks.size(); ++i) {
      const Expr& g = s.adjoints[i];
      if (!g) continue;
      const DType dtype = as<TensorTypeNode>(g->type)->dtype;
      Expr ones =
          masks[i] == kAll ? Expr(constant(1, dtype)) : dtype_cast(at(masks[i]).name, dtype);
      Expr like =
          masks.size() == 1 ? Expr(item.name) : tuple_get_item(item.name, static_cast<int64_t>(i));
      made.push_back(sized("broadcast_to", "broadcast_to_like", ones, like));
    }
    const int first = derived(made[0]);
    for (size_t i = 1; i < made.size(); ++i) derived(made[i]);
    return first;
  }

  // Elements are moved, or added up: those that adjoints of ones come to.
  int moved(const Slope& s, size_t k, int seeds) {
    Rewriter seeded(family::expr);
    for (const Expr& g : s.adjoints) {
      if (g) seeded.set(g, at(seeds++).name);
    }
    Expr found = seeded.apply(s.of_args[k]);
    return derived(call("greater", {found, constant(0, as<TensorTypeNode>(found->type)->dtype)}));
  }

  void cut(const Use& use) {
    if (use.here == kAll) return;
    at(use.user).cuts[use.place] = use.here;
    any_cut_ = true;
  }

  // ---- The new chain

  void find_needs(int number) {
    Item& item = at(number);
    if (item.stays) return;
    auto need = [&](const Item& other) {
      item.needs = std::max(item.needs, other.last);
      item.needs_fixed = std::max(item.needs_fixed, other.fixed);
    };
    for (size_t k = 0; k < item.args.size(); ++k) {
      if (item.cuts[k] != kAll) need(at(item.cuts[k]));
      if (!item.factors.empty() && item.factors[k] != kAll) need(at(item.factors[k]));
      const int operand = find(item.args[k]);
      if (operand >= 0 && operand < count_ && (uses_masked(item, k) || !at(operand).plain)) {
        item.needs = std::max(item.needs, at(operand).needs);
        item.needs_fixed = std::max(item.needs_fixed, at(operand).needs_fixed);
      }
    }
    if (item.needs >= number || item.needs_fixed > item.fixed)
      item.plain = var(item.name->name_hint, item.name->type, item.name->span);
  }

  // A field of a result is made of the result with the masks.
  static bool uses_masked(const Item& item, size_t k) { return item.whole >= 0 || item.smooth[k]; }

  struct Task {
    int item;
    bool plain;
    bool ready = false;
  };

  // Writes down an item behind all that it needs.
  void emit(int number, bool plain) {
    std::vector<Task> todo{{number, plain}};
    while (!todo.empty()) {
      Task task = todo.back();
      Item& item = at(task.item);
      task.plain &= static_cast<bool>(item.plain);
      bool& made = task.plain ? item.made_plain : item.made;
      if (made || item.stays) {
        todo.pop_back();
      } else if (task.ready) {
        made = true;
        todo.pop_back();
        write(item, task.plain);
      } else {
        todo.back().ready = true;
        for_each_need(item, task.plain, [&](int need, bool as_plain) {
          todo.push_back({need, as_plain});
        });
      }
    }
  }

  template <class Visit>
  void for_each_need(const Item& item, bool plain, const Visit& visit) {
    if (item.cuts.empty()) {
      post_order(
          item.value,
          [&](const Node& n) {
            auto* v = as<VarNode>(&n);
            if (v != nullptr && find(ref(*v)) >= 0) visit(find(ref(*v)), true);
          },
          family::expr);
      return;
    }
    for (size_t k = 0; k < item.cuts.size(); ++k) {
      if (!plain && item.cuts[k] != kAll) visit(item.cuts[k], true);
      if (!plain && !item.factors.empty() && item.factors[k] != kAll) visit(item.factors[k], true);
      const int operand = find(item.args[k]);
      if (operand >= 0) visit(operand, plain || !uses_masked(item, k));
    }
  }

  Expr named(const Expr& e, bool plain) {
    const int number = find(e);
    return plain && number >= 0 && at(number).plain ? Expr(at(number).plain) : e;
  }

  void write(const Item& item, bool plain) {
    if (item.whole >= 0) {
      Expr whole = named(item.args[0], plain);
      const bool same = whole == item.args[0];
      out_.emplace_back(
          plain ? item.plain : item.name,
          same ? item.value : tuple_get_item(whole, static_cast<int64_t>(item.field)));
      return;
    }
    if (item.cuts.empty()) {
      Rewriter renamed(family::expr);
      post_order(
          item.value,
          [&](const Node& n) {
            auto* v = as<VarNode>(&n);
            if (v == nullptr) return;
            Expr now = named(ref(*v), true);
            if (now.get() != v) renamed.set(ref(*v), now);
          },
          family::expr);
      out_.emplace_back(item.name, renamed.apply(item.value));
      return;
    }
    std::vector<Expr> uncut, args;
    for (size_t k = 0; k < item.args.size(); ++k) {
      uncut.push_back(named(item.args[k], plain || !item.smooth[k]));
      const bool whole = plain || item.cuts[k] == kAll;
      args.push_back(whole ? uncut.back() : masked(item.cuts[k], uncut.back()));
    }
    Expr value = applied(item, args);
    // Sizes that only a run knows to be equal.
    if (!structural_equal(value->type, item.value->type)) value = applied(item, uncut);
    if (!plain && !item.factors.empty()) value = with_factors(item, value, args);
    out_.emplace_back(plain ? item.plain : item.name, value);
  }

  // The operator on other operands.
  Expr applied(const Item& item, const std::vector<Expr>& operands) {
    const CallNode& c = *item.op;
    if (!item.grouped)
      return operands == item.args ? item.value : Expr(call(c.op, operands, c.attrs, c.span));
    std::vector<Expr> args;
    auto next = operands.begin();
    for (const Expr& a : c.args) {
      auto* fields = as<TupleTypeNode>(a->type);
      if (fields == nullptr) {
        args.push_back(*next++);
        continue;
      }
      const auto end = next + static_cast<std::ptrdiff_t>(fields->fields.size());
      args.push_back(bound("joined", tuple({next, end})));
      next = end;
    }
    return call(c.op, args, c.attrs, c.span);
  }

  // The product as it was, with the derivatives of one without the factors that do not matter.
  Expr with_factors(const Item& item, const Expr& value, std::vector<Expr> args) {
    BuildAt place(item.value->span);
    for (size_t k = 0; k < args.size(); ++k) {
      if (item.factors[k] != kAll) args[k] = without(item.factors[k], args[k]);
    }
    Expr asked = applied(item, args);
    if (!structural_equal(asked->type, value->type)) return value;
    return call(kDerivativeOf, {bound("product", value), bound("asked", asked)});
  }

  void write_call(const Item& item) {
    const CallNode& c = *as<CallNode>(item.value);
    std::vector<Expr> args;
    for (size_t k = 0; k < item.args.size(); ++k) {
      if (item.cuts[k] != kAll) emit(item.cuts[k], true);
      args.push_back(item.args[k]);
      if (item.cuts[k] == kAll) continue;
      Expr kept = masked(item.cuts[k], args[k]);
      // Sizes that only a run knows to be equal.
      if (structural_equal(kept->type, args[k]->type)) args[k] = kept;
    }
    out_.emplace_back(item.name, args == c.args
                                     ? item.value
                                     : Expr(call(c.op, args, c.attrs, c.span, c.type_args)));
  }

  Var bound(const char* name, const Expr& value) {
    out_.emplace_back(var(name, value->type, value->span), value);
    return out_.back().first;
  }

  Var masked(int mask, const Expr& e) {
    Var& made = masked_[{mask, e.get()}];
    if (!made) {
      BuildAt place(e->span);
      Var constant = bound("kept", call("stop_gradient", {e}));
      made = bound("taken", call("where", {at(mask).name, e, constant}));
    }
    return made;
  }

  // 0 where the mask does not hold.
  Var without(int mask, const Expr& e) {
    Var& made = factors_[{mask, e.get()}];
    if (!made) {
      const DType dtype = as<TensorTypeNode>(e->type)->dtype;
      made = bound("factor", call("where", {at(mask).name, e, constant(0, dtype)}));
    }
    return made;
  }

  const LetChains& chains_;
  const Lets& lets_;
  int count_ = 0;           // of Lets; behind them are masks
  std::deque<Item> items_;  // others are added while one is looked at
  std::unordered_map<const Node*, int> by_name_;
  std::unordered_map<int, int> truths_, opposites_, somewhere_;
  std::map<std::pair<std::string_view, std::pair<int, int>>, int> joined_;
  std::map<std::pair<int, const Node*>, Var> masked_, factors_;
  bool any_cut_ = false;
  Lets out_;
};

// A body of operators, tuples and their fields alone, with a name for each; null: another body.
Expr named_body(const Expr& body) {
  Lets lets;
  Rewriter named(family::expr);
  bool plain = !is_leaf(*body.get());
  post_order_if(
      body, [](const Node& n) { return !isa<FunctionNode>(&n); },
      [&](const Node& n) {
        if (is_leaf(n)) return;
        Expr e = Expr::unchecked(NodeRef(&n));
        plain &= called_op(e) != nullptr || isa<TupleNode>(e) || isa<TupleGetItemNode>(e);
        if (!plain) return;
        Expr value = named.apply(e);
        lets.emplace_back(var("v", e->type, e->span), value);
        named.set(e, lets.back().first);
      },
      family::expr);
  if (!plain) return nullptr;
  Expr out = lets.back().first;
  for (size_t i = lets.size(); i-- > 0;) out = let(lets[i].first, lets[i].second, out);
  return out;
}

}  // namespace

Function without_untaken(const Function& f) {
  if (!has_where(f)) return f;
  Function ready = f;
  if (Expr body = named_body(f->body))
    ready = function(f->params, body, f->ret_type, f->type_params, f->attrs, f->span);
  LetChains chains(ready);
  Function out =
      chains.rewritten([&](const Lets& lets) { return ChainOfLets(chains, lets).masked(); });
  return out == ready ? f : out;
}

}  // namespace relay
