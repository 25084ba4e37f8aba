#include "grad/untaken.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "analysis/calls.h"
#include "grad/call_gradient.h"
#include "grad/let_chains.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// The mask of a value all of whose elements are asked for.
constexpr int kAll = -1;

// One tensor from tensors.
bool is_operation(const Expr& e) {
  const OpNode* op = called_op(e);
  if (op == nullptr || op->row->effect.get() != Effect::Pure || !isa<TensorTypeNode>(e->type))
    return false;
  return std::ranges::all_of(as<CallNode>(e)->args,
                             [](const Expr& a) { return is_leaf(*a.get()); });
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
      family::expr | family::pattern);
  return found;
}

// Whether an adjoint of 0 stays 0 when it is multiplied by it, or divided.
bool is_harmless(const Tensor& t) {
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const double v = t.get_as_double(i);
    if (v == 0 || !std::isfinite(v)) return false;
  }
  return true;
}

// Whether what an operator makes of an adjoint depends on its arguments or its result, and not only on
// their sizes: on numbers that may be infinite or NaN.
bool reads_values(const Expr& e, const Expr& adjoint, const CallNode& of) {
  std::vector<Expr> todo{e};
  std::unordered_map<const Node*, bool> seen;
  while (!todo.empty()) {
    const Expr x = todo.back();
    todo.pop_back();
    if (x == adjoint || !seen.emplace(x.get(), true).second) continue;
    if (isa<VarNode>(x) && is_floating(x->type)) return true;
    auto* k = as<ConstantNode>(x);
    const bool argument = k != nullptr && std::ranges::find(of.args, x) != of.args.end();
    if (argument && is_floating(k->type) && !is_harmless(k->data)) return true;
    auto* c = as<CallNode>(x);
    if (c == nullptr) {
      for_each_child(*x.get(), [&](const NodeRef& n) {
        if (n.get()->info().family == family::expr) todo.push_back(Expr::unchecked(n));
      });
      continue;
    }
    auto* op = as<OpNode>(c->op);
    const bool like = op != nullptr && std::string_view(op->name).ends_with("_like");
    for (size_t i = 0; i < c->args.size(); ++i) {
      if (!like || i + 2 == c->args.size()) todo.push_back(c->args[i]);
    }
  }
  return false;
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
    for (int i = count_; i-- > 0;) look_at(i);
    if (!any_cut_) return lets_;
    for (int i = 0; i < count_; ++i) find_needs(i);
    for (int i = 0; i < count_; ++i) {
      if (at(i).op == nullptr) {
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
    const CallNode* op = nullptr;  // null: not moved, or a value from outside
    // The last Let that it depends on, and the last of these that is not moved; none: -1.
    int last = -1, fixed = -1;
    bool outside = false;  // others than operators of this chain use it
    // A value that has its shape for certain, also where sizes are `?`.
    const Node* shape = nullptr;
    std::vector<Use> uses = {};
    int first_user = 0;
    int mask = kAll;
    bool spoilt = false;
    std::vector<int> cuts = {};     // of each operand the mask to put on
    std::vector<bool> smooth = {};  // of each operand whether an adjoint goes to it
    // Of the masks in it, and in what it is made of. Where these need what it is made of, it is
    // computed without masks, too, under another name.
    int needs = -1, needs_fixed = -1;
    Var plain = nullptr;
    bool made = false, made_plain = false;
  };
  // What an operator does to an adjoint.
  struct Slope {
    Var adjoint = nullptr;
    std::vector<Expr> of_args = {};  // empty: it has no gradient
    std::vector<bool> reads = {};    // which of them depend on values
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
      Item item{name, value};
      item.last = static_cast<int>(items_.size());
      item.first_user = count_;
      if (chains_.uses(value.get()) == 1 && is_operation(value)) {
        item.op = as<CallNode>(value);
        for (const Expr& a : item.op->args) {
          ++inside[a.get()];
          const int operand = find(a);
          if (operand >= 0) item.fixed = std::max(item.fixed, at(operand).fixed);
        }
        item.cuts.assign(item.op->args.size(), kAll);
        item.smooth.assign(item.op->args.size(), false);
        item.shape = common_shape(*item.op);
      } else {
        item.fixed = item.last;
      }
      add(std::move(item));
    }
    for (Item& item : items_) {
      // One use is that of its Let.
      item.outside = chains_.uses(item.name.get()) > inside[item.name.get()] + 1;
    }
  }

  // ---- Masks: values of bools, by number

  const Type& type_of(int mask) { return at(mask).name->type; }

  int derived(const Expr& value) {
    Item item{var("mask", value->type), value};
    item.op = as<CallNode>(value);
    item.shape = common_shape(*item.op);
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

  int any_of(const std::vector<Use>& uses) {
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

  Slope slope(const Item& item) {
    Slope out;
    const CallNode& c = *item.op;
    if (!as<OpNode>(c.op)->row->gradient) return out;
    out.adjoint = var("g", item.name->type);
    try {
      out.of_args = call_gradient(c, item.name, {out.adjoint});
    } catch (const UserError&) {
      // It is refused where the gradient is taken, if it is.
      return out;
    }
    for (const Expr& e : out.of_args) out.reads.push_back(e && reads_values(e, out.adjoint, c));
    return out;
  }

  static bool one_to_one(const CallNode& c) {
    return as<OpNode>(c.op)->row->fusion.get() == FusionClass::ElemWise && c.args.size() == 1 &&
           tensor_of(c.args[0])->rank() == as<TensorTypeNode>(c.type)->rank();
  }

  // Element i of the result depends on what broadcasts to it.
  static bool by_element(const CallNode& c) {
    if (as<OpNode>(c.op)->row->fusion.get() > FusionClass::Broadcast) return false;
    if (c.attrs == nullptr || one_to_one(c)) return true;
    return std::ranges::all_of(c.args, [&](const Expr& a) {
      return !is_floating(a->type) || same_shape(a->type, c.type);
    });
  }

  bool passes(const Item& item, const Slope& s, int mask) {
    const CallNode& c = *item.op;
    if (is_where(c)) return true;
    if (s.of_args.empty()) return false;
    if (!std::ranges::all_of(c.args, [](const Expr& a) { return isa<TensorTypeNode>(a->type); }))
      return false;
    if (is_scalar(type_of(mask)) || by_element(c)) return true;
    return as<OpNode>(c.op)->row->fusion.get() <= FusionClass::CommReduce &&
           std::ranges::find(s.reads, true) == s.reads.end();
  }

  // What is asked of an item, all of whose users have been looked at, and what it asks of its operands.
  void look_at(int number) {
    if (at(number).op == nullptr || !is_floating(at(number).name->type)) return;
    const std::vector<Use> uses = std::move(at(number).uses);
    if (!at(number).outside && uses.empty()) return;
    int mask = at(number).outside ? kAll : any_of(uses);
    if (mask != kAll && at(mask).fixed >= at(number).first_user) mask = kAll;
    const CallNode& c = *at(number).op;
    Slope s;
    if (mask != kAll && !is_where(c)) {
      s = slope(at(number));
      if (!passes(at(number), s, mask)) mask = kAll;
    }
    bool spoilt = false;
    for (const Use& u : uses) {
      if (mask != kAll && u.here == mask && u.below == mask) {
        spoilt |= u.spoilt;
      } else if (u.spoilt) {
        cut(u);
      }
    }
    for (size_t k = 0; k < c.args.size(); ++k) {
      if (!is_floating(c.args[k]->type)) continue;
      Use use{number, k, kAll, kAll, false};
      if (is_where(c)) {
        if (k == 0) continue;
        if (!isa<ConstantNode>(c.args[0])) {
          const int taken = condition(c.args[0]);
          use.here = both(mask, k == 1 ? taken : opposite(taken));
          use.below = of_operand(use.here, c.args[k], at(number).name);
        }
        use.spoilt = spoilt;
      } else if (mask != kAll) {
        if (!s.of_args[k]) continue;
        use.spoilt = spoilt || s.reads[k];
        use.here = mask;
        if (is_scalar(type_of(mask)) || by_element(c)) {
          use.below = of_operand(mask, c.args[k], at(number).name);
        } else {
          use.here = use.below = moved(at(number), s, k, mask);
        }
      }
      at(number).smooth[k] = true;
      const int operand = find(c.args[k]);
      if (operand >= 0 && operand < count_ && at(operand).op != nullptr) {
        at(operand).uses.push_back(use);
        at(operand).first_user = number;
      } else if (use.spoilt && !isa<ConstantNode>(c.args[k])) {
        cut(use);
      }
    }
  }

  // Elements are moved, or added up: those that an adjoint of ones comes to.
  int moved(const Item& item, const Slope& s, size_t k, int mask) {
    const DType dtype = as<TensorTypeNode>(item.name->type)->dtype;
    Expr ones =
        sized("broadcast_to", "broadcast_to_like", dtype_cast(at(mask).name, dtype), item.name);
    Rewriter seeded(family::expr);
    seeded.set(s.adjoint, ones);
    Expr found = seeded.apply(s.of_args[k]);
    return derived(call("greater", {found, constant(0, dtype)}));
  }

  void cut(const Use& use) {
    if (use.here == kAll) return;
    at(use.user).cuts[use.place] = use.here;
    any_cut_ = true;
  }

  // ---- The new chain

  void find_needs(int number) {
    Item& item = at(number);
    if (item.op == nullptr) return;
    auto need = [&](int last, int fixed) {
      item.needs = std::max(item.needs, last);
      item.needs_fixed = std::max(item.needs_fixed, fixed);
    };
    for (size_t k = 0; k < item.cuts.size(); ++k) {
      if (item.cuts[k] != kAll) need(at(item.cuts[k]).last, at(item.cuts[k]).fixed);
      const int operand = find(item.op->args[k]);
      if (operand >= 0 && operand < count_ && (item.smooth[k] || !at(operand).plain))
        need(at(operand).needs, at(operand).needs_fixed);
    }
    if (item.needs >= number || item.needs_fixed > item.fixed)
      item.plain = var(item.name->name_hint, item.name->type, item.name->span);
  }

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
      if (made || item.op == nullptr) {
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
      const int operand = find(item.op->args[k]);
      if (operand >= 0) visit(operand, plain || !item.smooth[k]);
    }
  }

  Expr named(const Expr& e, bool plain) {
    const int number = find(e);
    return plain && number >= 0 && at(number).plain ? Expr(at(number).plain) : e;
  }

  void write(const Item& item, bool plain) {
    const CallNode& c = *item.op;
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
    for (size_t k = 0; k < c.args.size(); ++k) {
      uncut.push_back(named(c.args[k], plain || !item.smooth[k]));
      const bool whole = plain || item.cuts[k] == kAll;
      args.push_back(whole ? uncut.back() : masked(item.cuts[k], uncut.back()));
    }
    Expr value = args == c.args ? item.value : Expr(call(c.op, args, c.attrs, c.span));
    // Sizes that only a run knows to be equal.
    if (!structural_equal(value->type, item.value->type))
      value = call(c.op, uncut, c.attrs, c.span);
    out_.emplace_back(plain ? item.plain : item.name, value);
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

  const LetChains& chains_;
  const Lets& lets_;
  int count_ = 0;  // of Lets; behind them are masks
  std::vector<Item> items_;
  std::unordered_map<const Node*, int> by_name_;
  std::unordered_map<int, int> truths_, opposites_;
  std::map<std::pair<std::string_view, std::pair<int, int>>, int> joined_;
  std::map<std::pair<int, const Node*>, Var> masked_;
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
