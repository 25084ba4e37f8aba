#include "lower/loop_program.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/loop_kernels.h"
#include "node/walk.h"

namespace relay {

bool is_scalar_type(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  return t != nullptr && t->shape.empty();
}

size_t count_of_tensors(const Type& type) { return flatten_tensor_types(type)->size(); }

std::unique_ptr<LoopBlock> LoopProgram::read(const Expr& body) {
  std::unique_ptr<LoopBlock> out = parse(body, false);
  number(*out, nullptr);
  return out;
}

const std::vector<LoopProgram::Root>& LoopProgram::roots(const Node* v) {
  auto& out = roots_[v];
  if (out.empty()) {
    const size_t count = count_of_tensors(static_cast<const ExprNode*>(v)->type);
    for (size_t k = 0; k < count; ++k) out.emplace_back(v, k);
  }
  return out;
}

Expr LoopProgram::definition(const Expr& e) const {
  auto it = definitions_.find(e.get());
  return it == definitions_.end() ? e : it->second;
}

bool LoopProgram::is_used_after(const Node* v, int position,
                                const std::vector<std::pair<int, int>>& excluded,
                                const std::function<bool(int64_t field)>& matters) const {
  auto it = uses_.find(v);
  if (it == uses_.end()) return false;
  auto at = std::ranges::upper_bound(it->second, position, {}, &Use::position);
  return std::any_of(at, it->second.end(), [&](const Use& use) {
    auto holds = [&](const auto& range) {
      return range.first <= use.position && use.position < range.second;
    };
    return std::ranges::none_of(excluded, holds) && matters(use.field);
  });
}

std::unique_ptr<LoopBlock> LoopProgram::parse(Expr e, bool tail) {
  auto out = std::make_unique<LoopBlock>();
  auto repeats = [](const FunctionNode& f, const Node* name) {
    bool found = false;
    post_order(
        f.body, [&](const Node& n) { found |= &n == name; }, family::program);
    return found;
  };
  // Functions whose calls something follows.
  std::unordered_set<const Node*> called_here;
  for (Expr at = e; isa<LetNode>(at); at = as<LetNode>(at)->body) {
    auto& l = *as<LetNode>(at);
    if (auto* c = as<CallNode>(l.value); c != nullptr && !(l.body == l.var))
      called_here.insert(c->op.get());
  }
  for (; isa<LetNode>(e); e = as<LetNode>(e)->body) {
    auto& l = *as<LetNode>(e);
    if (auto* f = as<FunctionNode>(l.value)) {
      if (tail && !called_here.contains(l.var.get()) && !repeats(*f, l.var.get())) {
        open_.insert(l.var.get());
        out->joins.push_back({.var = l.var, .function = f, .body = parse(f->body, true)});
      } else {
        functions_.emplace(l.var.get(), f);
      }
      continue;
    }
    LoopItem item{.var = l.var, .value = l.value};
    if (auto* i = as<IfNode>(l.value)) {
      const bool ends = tail && l.body == l.var;
      item.then_block = parse(i->true_branch, ends);
      item.else_block = parse(i->false_branch, ends);
    } else if (auto* c = as<CallNode>(l.value)) {
      auto f = functions_.find(c->op.get());
      // A function is entered once; the other calls of it go on with it.
      if (f != functions_.end() && open_.insert(c->op.get()).second) {
        item.loop = f->second;
        item.repeats = repeats(*f->second, c->op.get());
        item.body = parse(f->second->body, true);
      }
    }
    out->items.push_back(std::move(item));
  }
  out->result = e;
  delay_writes(*out);
  return out;
}

void LoopProgram::variables_of(const LoopItem& item, std::unordered_set<const Node*>& out) {
  post_order(
      item.value,
      [&](const Node& n) {
        if (isa<VarNode>(&n)) out.insert(&n);
      },
      family::program);
  if (item.loop == nullptr) return;
  post_order(
      item.loop->body,
      [&](const Node& n) {
        if (isa<VarNode>(&n)) out.insert(&n);
      },
      family::program);
}

bool LoopProgram::asserts(const LoopItem& item) {
  bool found = false;
  auto look = [&](const Node& n) {
    if (auto* c = as<CallNode>(&n)) found = found || is_assertion(ref(*c));
  };
  post_order(item.value, look, family::program);
  if (item.loop != nullptr) post_order(item.loop->body, look, family::program);
  return found;
}

bool LoopProgram::is_late(const LoopItem& item) {
  auto tensors = flatten_tensor_types(item.value->type);
  const bool scalars =
      std::ranges::all_of(*tensors, [](const TensorType& t) { return t->shape.empty(); });
  return item.loop != nullptr || writes_over(item.value) || (item.then_block && !scalars);
}

void LoopProgram::delay_writes(LoopBlock& block) {
  std::vector<LoopItem>& items = block.items;
  const bool tail = block.ends_in_tail();
  const size_t count = items.size() - (tail ? 1 : 0);
  std::unordered_map<const Node*, size_t> made;
  for (size_t i = 0; i < count; ++i) made.emplace(items[i].var.get(), i);
  std::vector<std::vector<size_t>> users(count);
  std::vector<size_t> waits(count);
  std::optional<size_t> asserted;  // assertions keep their order
  for (size_t i = 0; i < count; ++i) {
    if (asserts(items[i])) {
      if (asserted) {
        users[*asserted].push_back(i);
        ++waits[i];
      }
      asserted = i;
    }
    std::unordered_set<const Node*> read;
    variables_of(items[i], read);
    for (const Node* v : read) {
      auto it = made.find(v);
      if (it == made.end() || it->second == i) continue;
      users[it->second].push_back(i);
      ++waits[i];
    }
  }
  std::map<size_t, bool> early, late;  // what is ready, in the order of the program
  auto ready = [&](size_t i) { (is_late(items[i]) ? late : early).emplace(i, true); };
  for (size_t i = 0; i < count; ++i) {
    if (waits[i] == 0) ready(i);
  }
  std::vector<LoopItem> out;
  while (!early.empty() || !late.empty()) {
    auto& from = early.empty() ? late : early;
    const size_t i = from.begin()->first;
    from.erase(from.begin());
    for (size_t user : users[i]) {
      if (--waits[user] == 0) ready(user);
    }
    out.push_back(std::move(items[i]));
  }
  if (tail) out.push_back(std::move(items.back()));
  RELAY_CHECK(out.size() == items.size(), "a block of a loop depends on itself");
  items = std::move(out);
}

void LoopProgram::use(const Expr& e, int64_t field) {
  if (isa<VarNode>(e)) uses_[e.get()].push_back({next_, field});
}

std::vector<LoopProgram::Root> LoopProgram::roots_of(const Expr& e) {
  if (isa<VarNode>(e)) return roots(e.get());
  return std::vector<Root>(count_of_tensors(e->type), Root{nullptr, 0});
}

void LoopProgram::number(LoopBlock& block, Leaves* leaves) {
  number_items(block, leaves);
  for (size_t k = block.joins.size(); k-- > 0;) number(block.joins[k], leaves);
}

void LoopProgram::number(LoopJoin& join, Leaves* leaves) {
  const std::vector<Root>& given = joined_[join.var.get()].roots;
  size_t next = 0;
  for (const Var& p : join.function->params) {
    std::vector<Root>& mine = roots_[p.get()];
    const size_t count = count_of_tensors(p->type);
    for (size_t k = 0; k < count; ++k) {
      const Root root = next < given.size() ? given[next++] : Root{nullptr, 0};
      mine.push_back(root.first == nullptr ? Root{p.get(), k} : root);
    }
  }
  join.position = ++next_;
  number(*join.body, leaves);
  join.end = next_;
}

void LoopProgram::number_body(LoopItem& item, Leaves& leaves) {
  std::unordered_map<const Node*, Leaves> around = std::exchange(joined_, {});
  number(*item.body, &leaves);
  for (auto& [join, calls] : joined_) {
    bool is_parameter = false;
    for (Root& r : calls.roots) r = given(item, r, is_parameter);
    if (calls.any) around[join].add(calls.roots);
  }
  joined_ = std::move(around);
}

void LoopProgram::number_items(LoopBlock& block, Leaves* leaves) {
  for (size_t i = 0; i < block.items.size(); ++i) {
    LoopItem& item = block.items[i];
    const bool tail = i + 1 == block.items.size() && block.ends_in_tail() && leaves != nullptr;
    item.position = ++next_;
    definitions_.emplace(item.var.get(), item.value);
    auto* part = as<TupleGetItemNode>(item.value);
    for_each_child(*item.value.get(), [&](const NodeRef& child) {
      if (auto* v = as<VarNode>(child)) use(ref(*v), part == nullptr ? kWhole : part->index);
    });
    std::vector<Root>& mine = roots_[item.var.get()];
    if (item.then_block) {
      Leaves* inside = tail ? leaves : nullptr;
      number(*item.then_block, inside);
      const int begin = next_ + 1;
      number(*item.else_block, inside);
      item.else_range = {begin, next_ + 1};
      item.end = next_;
      if (tail) return;
      mine = roots_of(item.then_block->result);
      const std::vector<Root> other = roots_of(item.else_block->result);
      for (size_t k = 0; k < mine.size(); ++k) {
        if (mine[k] != other[k]) mine[k] = {item.var.get(), k};
      }
    } else if (item.loop != nullptr) {
      Leaves own;
      number_body(item, own);
      item.end = next_;
      mine = results_of(item, own);
      if (tail) leaves->add(mine);
      if (tail) return;
    } else if (auto* c = as<CallNode>(item.value); c != nullptr && open_.contains(c->op.get())) {
      std::vector<Root> all;
      for (const Expr& a : c->args) {
        const std::vector<Root> more = roots_of(a);
        all.insert(all.end(), more.begin(), more.end());
      }
      joined_[c->op.get()].add(all);
      if (tail) return;
    } else if (writes_over(item.value)) {
      mine = roots_of(as<CallNode>(item.value)->args[0]);
    } else if (auto* t = as<TupleNode>(item.value)) {
      for (const Expr& f : t->fields) {
        const std::vector<Root> more = roots_of(f);
        mine.insert(mine.end(), more.begin(), more.end());
      }
    } else if (auto* g = as<TupleGetItemNode>(item.value)) {
      const std::vector<Root> all = roots_of(g->tuple);
      size_t first = 0;
      for (int64_t f = 0; f < g->index; ++f) {
        first +=
            count_of_tensors(as<TupleTypeNode>(g->tuple->type)->fields[static_cast<size_t>(f)]);
      }
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      mine.assign(begin, begin + static_cast<std::ptrdiff_t>(count_of_tensors(g->type)));
    }
    for (size_t k = 0; k < mine.size(); ++k) {
      if (mine[k].first == nullptr) mine[k] = {item.var.get(), k};
    }
    if (mine.empty()) roots(item.var.get());
  }
  ++next_;
  use(block.result);
  if (leaves != nullptr) leaves->add(roots_of(block.result));
}

LoopProgram::Root LoopProgram::given(const LoopItem& item, const Root& root, bool& is_parameter) {
  auto& args = as<CallNode>(item.value)->args;
  for (size_t k = 0; k < args.size(); ++k) {
    if (item.loop->params[k].get() != root.first) continue;
    is_parameter = true;
    return roots_of(args[k])[root.second];
  }
  return root;
}

std::vector<LoopProgram::Root> LoopProgram::results_of(const LoopItem& item, const Leaves& leaves) {
  std::vector<Root> out = leaves.roots;
  out.resize(count_of_tensors(item.value->type), Root{nullptr, 0});
  for (Root& r : out) {
    bool is_parameter = !item.repeats;
    r = given(item, r, is_parameter);
    if (!is_parameter) r = {nullptr, 0};
  }
  return out;
}

}  // namespace relay
