#include "passes/fusion/join_kernels.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/primitives.h"
#include "analysis/read_counts.h"
#include "ir/op.h"
#include "ir/views.h"
#include "node/walk.h"

namespace relay {
namespace {

// Elements of a result up to which a kernel is small: fewer than threads are worth. A size that only a run knows counts as so many.
constexpr int64_t kMostElements = 16384, kTypicalSize = 16;
// As many operators as FuseOps puts into a kernel, and as many results as a call passes without effort.
constexpr size_t kMostJoined = 64, kMostResults = 16;

bool is_small(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  if (t == nullptr || t->shape.empty()) return false;
  int64_t elements = 1;
  for (const Dim& d : t->shape) {
    if (is_any(d)) return false;
    const int64_t size = as_const(d).value_or(kTypicalSize);
    if (size > kMostElements || (elements *= size) > kMostElements) return false;
  }
  return true;
}

// The operators of an element-wise kernel that is small and may be part of another one; nullopt of anything else.
// `cuts`: of one that cuts a tensor into several, too.
std::optional<size_t> operators_of(const Expr& value, bool cuts) {
  auto* c = as<CallNode>(value);
  auto* f = c == nullptr ? nullptr : primitive_of(*c);
  if (f == nullptr) return std::nullopt;
  for (const auto& [name, unused] : f->attrs) {
    if (name != attr::kPrimitive && name != attr::kFusionReason) return std::nullopt;
  }
  auto* parts = as<TupleTypeNode>(value->type);
  const bool small =
      parts == nullptr ? is_small(value->type) : std::ranges::all_of(parts->fields, is_small);
  if (!small || (parts != nullptr && !(cuts && isa<CallNode>(f->body)))) return std::nullopt;
  bool fits = true, moves_only = true;
  size_t operators = 0;
  post_order(
      f->body,
      [&](const Node& n) {
        if (isa<LetNode>(&n) || isa<IfNode>(&n) || isa<FunctionNode>(&n)) fits = false;
        auto* call = as<CallNode>(&n);
        if (call == nullptr) return;
        auto* op = as<OpNode>(call->op);
        const bool one = isa<TensorTypeNode>(call->type) || call == f->body.get();
        if (op == nullptr || op->row->effect != Effect::Pure || !one ||
            op->row->fusion > FusionClass::Injective) {
          fits = false;
          return;
        }
        const auto& memory = op->row->memory;
        fits &= !memory || memory(*call) != Memory::Updated;
        moves_only &= only_reshapes(*op->row);
        ++operators;
      },
      family::expr);
  return fits && !moves_only ? std::optional(operators) : std::nullopt;
}

using VarCounts = std::unordered_map<const Node*, int>;

// A Let chain as it is put in another order.
class Block {
 public:
  // `reads`: in the whole function. `cuts`: whether what cuts a tensor into several is part of the kernels that read these.
  Block(const Expr& chain, const VarCounts& reads, bool cuts) : reads_(reads), cuts_(cuts) {
    Expr at = chain;
    for (auto* l = as<LetNode>(at); l != nullptr; l = as<LetNode>(at)) {
      add(*l);
      at = l->body;
    }
    result_ = at;
  }

  bool joins() const {
    return std::ranges::any_of(items_, [](const Item& i) { return i.kernels > 1; });
  }

  // Null where a part that was cut off is read by anything else, too.
  Expr written() const {
    Expr out = result_;
    for (auto item = items_.rbegin(); item != items_.rend(); ++item) {
      if (item->kernels > 1) {
        out = joined(*item, out);
        if (!out) return nullptr;
        continue;
      }
      for (size_t i = item->lets.size(); i-- > 0;) {
        const LetNode& l = *item->lets[i];
        out = let(l.var, l.value, out, l.span);
      }
    }
    return out;
  }

 private:
  // Bindings of kernels that become one, or any other binding; empty where its bindings have moved on.
  struct Item {
    std::vector<const LetNode*> lets;
    size_t kernels = 0;
    size_t operators = 0;
    bool is_read = false;  // by an item behind it
  };

  void add(const LetNode& l) {
    const std::optional<size_t> operators = operators_of(l.value, cuts_);
    if (auto* part = as<TupleGetItemNode>(l.value); part != nullptr && open_ >= 0) {
      auto it = item_of_.find(part->tuple.get());
      if (it != item_of_.end() && it->second == open_) {
        items_[static_cast<size_t>(open_)].lets.push_back(&l);
        item_of_[l.var.get()] = open_;
        return;
      }
    }
    // The last item that it reads.
    int64_t needs = -1;
    std::unordered_set<int64_t> read;
    auto reads = [&](const NodeRef& child) {
      auto it = item_of_.find(child.get());
      if (it == item_of_.end()) return;
      needs = std::max(needs, it->second);
      read.insert(it->second);
    };
    reads(l.value);
    for_each_child(*l.value.get(), reads);
    // What is inside of branches and functions may read anything.
    const bool shallow = isa<CallNode>(l.value) || isa<TupleNode>(l.value) ||
                         isa<TupleGetItemNode>(l.value) || isa<VarNode>(l.value);
    if (!shallow && open_ >= 0) read.insert(open_);
    if (operators && open_ >= 0) {
      Item& open = items_[static_cast<size_t>(open_)];
      const bool fits = open.operators + *operators <= kMostJoined && open.kernels < kMostResults;
      if (fits && needs > open_ && !open.is_read && barrier_ < open_) move_on();
      if (fits && needs <= open_) {
        read.erase(open_);
        mark(read);
        Item& into = items_[static_cast<size_t>(open_)];
        into.lets.push_back(&l);
        into.operators += *operators;
        ++into.kernels;
        item_of_[l.var.get()] = open_;
        return;
      }
    }
    mark(read);
    const auto index = static_cast<int64_t>(items_.size());
    items_.push_back({{&l}, operators ? size_t{1} : size_t{0}, operators.value_or(0)});
    item_of_[l.var.get()] = index;
    if (operators) open_ = index;
    auto* c = as<CallNode>(l.value);
    auto* f = c == nullptr ? nullptr : primitive_of(*c);
    if (f == nullptr ? !isa<TupleGetItemNode>(l.value) && !isa<TupleNode>(l.value)
                     : has_effect_or_updates(*f)) {
      barrier_ = index;
    }
  }

  static bool has_effect_or_updates(const FunctionNode& f) {
    bool found = false;
    post_order(
        f.body,
        [&](const Node& n) {
          auto* call = as<CallNode>(&n);
          if (call == nullptr) return;
          auto* op = as<OpNode>(call->op);
          found |= op == nullptr || op->row->effect != Effect::Pure ||
                   (op->row->memory && op->row->memory(*call) == Memory::Updated);
        },
        family::expr);
    return found;
  }

  void mark(const std::unordered_set<int64_t>& read) {
    for (int64_t i : read) items_[static_cast<size_t>(i)].is_read = true;
  }

  // The open item goes behind all others.
  void move_on() {
    Item moved = std::exchange(items_[static_cast<size_t>(open_)], {});
    open_ = static_cast<int64_t>(items_.size());
    for (const LetNode* l : moved.lets) item_of_[l->var.get()] = open_;
    items_.push_back(std::move(moved));
  }

  // One call of a kernel that computes them all, and its results under their names.
  Expr joined(const Item& item, Expr rest) const {
    std::unordered_map<const Node*, NodeRef> inside;  // the values in the kernel
    std::vector<Var> params;
    std::vector<Expr> args, results;
    std::vector<Span> spans;
    VarCounts here;
    for (const LetNode* l : item.lets) {
      if (auto* part = as<TupleGetItemNode>(l->value)) {
        ++here[part->tuple.get()];
        Expr whole = Expr::unchecked(inside.at(part->tuple.get()));
        inside[l->var.get()] = tuple_get_item(whole, part->index, l->span);
        continue;
      }
      auto& c = *as<CallNode>(l->value);
      const FunctionNode& f = *primitive_of(c);
      std::unordered_map<const Node*, NodeRef> of_params;
      for (size_t i = 0; i < c.args.size(); ++i) {
        const Expr& arg = c.args[i];
        auto made = inside.find(arg.get());
        if (made == inside.end()) {
          params.push_back(
              var("p" + std::to_string(params.size()), f.params[i]->type, f.params[i]->span));
          args.push_back(arg);
          made = inside.emplace(arg.get(), params.back()).first;
        } else if (isa<VarNode>(arg)) {
          ++here[arg.get()];
        }
        of_params[f.params[i].get()] = made->second;
      }
      inside[l->var.get()] = substitute(f.body, of_params, family::expr);
      spans.push_back(l->span);
    }
    std::vector<const LetNode*> kept;
    for (const LetNode* l : item.lets) {
      auto reads = reads_.find(l->var.get());
      if (reads == reads_.end() || reads->second <= here[l->var.get()]) continue;
      if (isa<TupleTypeNode>(l->value->type) || isa<TupleGetItemNode>(l->value)) return nullptr;
      kept.push_back(l);
    }
    for (const LetNode* l : kept) results.push_back(Expr::unchecked(inside[l->var.get()]));
    if (results.empty()) return rest;
    const Span span = Span::join(spans);
    const bool single = results.size() == 1;
    Expr body = single ? results[0] : Expr(tuple(results, span));
    Function f = function(std::move(params), body, body->type, {},
                          Dict{{attr::kPrimitive, AttrValue(int64_t{1})}}, span);
    Expr value = call(f, std::move(args), nullptr, span);
    if (single) return let(kept[0]->var, value, rest, kept[0]->span);
    Var all = var("joined", value->type, span);
    for (size_t i = kept.size(); i-- > 0;) {
      Expr part = tuple_get_item(all, static_cast<int64_t>(i), kept[i]->span);
      rest = let(kept[i]->var, part, rest, kept[i]->span);
    }
    return let(all, value, rest, span);
  }

  std::vector<Item> items_;
  std::unordered_map<const Node*, int64_t> item_of_;
  int64_t open_ = -1;     // the last item that kernels join
  int64_t barrier_ = -1;  // the last one that kernels do not move over
  Expr result_;
  const VarCounts& reads_;
  bool cuts_;
};

class JoinBlocks : public RewriterOutsidePrimitives {
 public:
  explicit JoinBlocks(const Function& f) : reads_(read_counts(f->body)) {}

  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    // The rest of a chain belongs to what its first binding is a part of.
    if (isa<LetNode>(rebuilt)) return rebuilt;
    std::vector<NodeRef> parts = children_of(*rebuilt.get());
    bool changed = false;
    for (NodeRef& part : parts) {
      if (!part || !isa<LetNode>(part)) continue;
      for (bool cuts : {true, false}) {
        const Block block(Expr::unchecked(part), reads_, cuts);
        Expr written = block.joins() ? block.written() : nullptr;
        if (!written) continue;
        part = written;
        changed = true;
        break;
      }
    }
    return changed ? with_children(rebuilt, parts) : rebuilt;
  }

 private:
  VarCounts reads_;
};

bool calls_itself(const GlobalVar& name, const Function& f) {
  bool found = false;
  post_order_outside_primitives(f->body, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
    found |= g != nullptr && g->name_hint == name->name_hint;
  });
  return found;
}

Module run_join_kernels(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar& name, const Function& f) {
    return !f->is_primitive() && calls_itself(name, f) ? JoinBlocks(f).apply(f) : f;
  });
}

}  // namespace

const Pass kJoinKernels{"JoinKernels",
                        2,
                        Form::anf,
                        Form::anf,
                        "Makes one kernel of small ones that follow one another in a loop.",
                        run_join_kernels};

}  // namespace relay
