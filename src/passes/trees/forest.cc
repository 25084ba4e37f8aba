#include "passes/trees/forest.h"

#include "analysis/calls.h"
#include "grad/dataflow.h"
#include "node/walk.h"

namespace relay::trees {

GlobalVar in_lanes(Work& work, PassContext& ctx, const Function& one, const std::string& base,
                   const std::vector<BatchAxes>& axes) {
  std::string name = work.names.fresh(base), many = work.names.fresh(base + "_rows");
  BatchOptions options;
  options.in_axes = axes;
  options.strict = true;
  Module whole = with_function(work.mod, global_var(name, one->type), one);
  Module made = add_batched(whole, name, options, many, ctx);
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < made->functions.size(); ++i) {
    if (made->global_vars[i]->name_hint == name) continue;
    names.push_back(made->global_vars[i]);
    functions.push_back(made->functions[i]);
  }
  work.mod = make_module(names, functions, made->type_definitions, made->attrs);
  return work.mod->find_global_var(many);
}

Expr loop_over_rows(const ListLoop& loop, const std::vector<Expr>& args, const Expr& first,
                    const Expr& last, const RowValues& results) {
  Bindings outer;
  Var at = var("at", int64_type());
  std::vector<Var> params{at};
  std::vector<Expr> begin{first}, next{add(at, int64(1))};
  std::vector<std::pair<Var, Expr>> same;
  for (size_t i = 0; i < args.size(); ++i) {
    const Var& p = loop.function->params[i];
    if (i == loop.list) continue;
    if (loop.unchanged[i]) {
      same.emplace_back(p, args[i]);
    } else {
      params.push_back(p);
      begin.push_back(args[i]);
      next.push_back(loop.again->args[i]);
    }
  }
  std::vector<Type> types;
  for (const Var& p : params) types.push_back(p->type);
  Type result = loop.function->body->type;
  Var self = var("loop", func_type(std::move(types), result));
  Expr step = call(self, std::move(next));
  for (size_t i = loop.step.lets.size(); i-- > 0;) {
    auto known = results.find(i);
    const auto& [v, value] = loop.step.lets[i];
    if (known == results.end()) {
      step = let(v, value, step);
    } else if (known->second) {
      step = let(v, known->second(at), step);
    }
  }
  Expr body = if_(call("less", {at, last}), step, loop.end);
  Expr out = let(self, function(std::move(params), body, result), call(self, std::move(begin)));
  for (size_t i = same.size(); i-- > 0;) out = let(same[i].first, same[i].second, out);
  return out;
}

Forest::Forest(Work& work, NodeLists& lists, PassContext& ctx, const TreeFamily& family)
    : work_(work), lists_(lists), ctx_(ctx), family_(family) {
  const TreeFunction& first = family.members[0];
  dims_ = first.function->type_params;
  for (size_t i : first.shared) {
    const Var& p = first.function->params[i];
    shared_.push_back(var(p->name_hint, p->type, p->span));
  }
  Dims counts;
  for (const TreeFunction& m : family.members) {
    base_.push_back(results_.size());
    counts.push_back(dim(counts_.emplace_back(type_var("n_" + m.name, Kind::Dim))));
    Type type = in_terms_of_first(m, m.function->body->type);
    const auto row = row_types(type);
    for (const TensorType& t : *row) results_.push_back(in_rows(t, counts.back()));
  }
  base_.push_back(results_.size());
  std::vector<Type> types(results_.begin(), results_.end());
  result_ = tuple_type(types);
  for (const Var& p : shared_) params_.push_back(p);
  for (size_t m = 0; m < family.members.size(); ++m) {
    nodes_.push_back(var("nodes", lists.of(tree_type(m))));
    tokens_.push_back(var("token", token_type(counts[m])));
  }
  params_.insert(params_.end(), nodes_.begin(), nodes_.end());
  params_.insert(params_.end(), tokens_.begin(), tokens_.end());
  name_ = work.declare(first.name + "_forest", params_, result_, joined(dims_, counts_));
}

// Adds the functions. Throws UserError of `batch` for a clause that cannot be computed in lanes.
void Forest::make() {
  std::vector<Var> level = shared_;
  level.insert(level.end(), tokens_.begin(), tokens_.end());
  std::vector<TypeVar> sizes = joined(dims_, counts_);
  Bindings b;
  std::vector<Expr> args(level.begin(), level.end());
  Expr any;
  for (size_t m = 0; m < family_.members.size(); ++m) {
    GlobalVar split = splitter(m);
    for (Nodes& n : levels_[m]) {
      level.push_back(n.count);
      n.size = type_var("k", Kind::Dim);
      sizes.push_back(n.size);
      n.place = var("places", token_type(dim(n.size)));
      level.push_back(n.place);
      for (Block& block : n.loops) {
        block.size = type_var("e", Kind::Dim);
        sizes.push_back(block.size);
        block.token = var("elements", token_type(dim(block.size)));
        level.push_back(block.token);
      }
      for (const Var& list : n.lists) level.push_back(list);
    }
    std::vector<Expr> start{nodes_[m], int64(0)};
    for (const Var& a : accumulators_[m]) start.push_back(first_value(a));
    Var parts = b.bind("parts", call(split, std::move(start)));
    size_t next = 0;
    for (const Nodes& n : levels_[m]) {
      Expr count = b.leaf(field(parts, next++));
      any = any ? add(any, count) : count;
      args.push_back(count);
      args.push_back(lists_.numbers_of(field(parts, next++), count));
      for (size_t k = 0; k < n.loops.size(); ++k) args.push_back(numbers(field(parts, next++)));
      for (size_t k = 0; k < n.lists.size(); ++k) args.push_back(field(parts, next++));
    }
  }
  GlobalVar computed = work_.declare(family_.members[0].name + "_level", level, result_, sizes);
  std::vector<Expr> empty;
  for (const TensorType& t : results_) empty.push_back(zeros(t));
  Expr body = if_(call("equal", {any, int64(0)}), tuple(empty), call(computed, std::move(args)));
  // What it is made of is added first: the module holds no call of a function that it does not have.
  Expr below = level_body();
  work_.define(computed, level, below, sizes);
  work_.define(name_, params_, b.in(body), joined(dims_, counts_));
}

// All rows of the trees in lists, one for each member, of which the sizes are those of the tokens.
Expr Forest::rows_of(const std::vector<Expr>& shared, const std::vector<Expr>& nodes,
                     const std::vector<Expr>& tokens) const {
  std::vector<Expr> args = shared;
  args.insert(args.end(), nodes.begin(), nodes.end());
  args.insert(args.end(), tokens.begin(), tokens.end());
  return call(name_, std::move(args));
}
// The same of trees of one member.
Expr Forest::rows_of(size_t member, const std::vector<Expr>& shared, const Expr& nodes,
                     const Expr& token) const {
  std::vector<Expr> lists, tokens;
  for (size_t m = 0; m < family_.members.size(); ++m) {
    lists.push_back(m == member ? nodes : lists_.none(tree_type(m)));
    tokens.push_back(m == member ? token : numbers(dim(0), dim(0)));
  }
  return rows_of(shared, lists, tokens);
}
// The tensors of a member among those that the family gives.
std::vector<Expr> Forest::of_member(size_t m, const Expr& all) const {
  std::vector<Expr> out;
  for (size_t i = base_[m]; i < base_[m + 1]; ++i) out.push_back(field(all, i));
  return out;
}

// The member itself: a forest of one tree.
void Forest::redefine(size_t member) {
  const TreeFunction& m = family_.members[member];
  const Function& f = m.function;
  std::vector<Expr> shared;
  for (size_t i : m.shared) shared.push_back(f->params[i]);
  Bindings b;
  Expr tree = f->params[m.tree];
  Var all = b.bind("rows", rows_of(member, shared, lists_.more(tree, lists_.none(tree->type)),
                                   numbers(dim(0), dim(1))));
  std::vector<Expr> tensors;
  for (const Expr& t : of_member(member, all)) tensors.push_back(rows(t, int64(0)));
  Expr body = b.in(put_together(f->body->type, tensors));
  work_.redefine(m.name, f, body);
}

Type Forest::tree_type(size_t m) const {
  const TreeFunction& f = family_.members[m];
  return in_terms_of_first(f, f.function->params[f.tree]->type);
}

// The sizes that a member names, in the names of the first one.
Type Forest::in_terms_of_first(const TreeFunction& m, const Type& type) const {
  const TreeFunction& first = family_.members[0];
  if (&m == &first || m.function->type_params.empty()) return type;
  std::unordered_map<const Node*, NodeRef> names;
  for (size_t i = 0; i < m.shared.size(); ++i) {
    auto mine = flatten_tensor_types(m.function->params[m.shared[i]]->type);
    auto known = flatten_tensor_types(first.function->params[first.shared[i]]->type);
    for (size_t k = 0; mine && known && k < mine->size(); ++k) {
      for (size_t d = 0; d < (*mine)[k]->shape.size(); ++d) {
        if (auto* v = as<DimVarNode>((*mine)[k]->shape[d]);
            v != nullptr && isa<DimVarNode>((*known)[k]->shape[d]))
          names.emplace(v->var.get(), as<DimVarNode>((*known)[k]->shape[d])->var);
      }
    }
  }
  return Type::unchecked(substitute(type, names));
}

Expr Forest::first_value(const Var& accumulator) const {
  auto* list = as<TypeCallNode>(accumulator->type);
  return list == nullptr ? int64(0) : lists_.none(list->args[0]);
}

// fn (nodes, at, what is known of those before): lists of places and parts, by constructor.
GlobalVar Forest::splitter(size_t member) {
  const TreeFunction& m = family_.members[member];
  auto list = [&](const char* name, const Type& t) { return var(name, lists_.of(t)); };
  std::vector<Nodes>& all = levels_.emplace_back();
  std::vector<Var>& known = accumulators_.emplace_back();
  for (const TreeClause& c : m.clauses) {
    Nodes n;
    known.push_back(n.count = var("count", int64_type()));
    known.push_back(n.places = list("places", int64_type()));
    for (const TreeClause::Part& p : c.loops) {
      const ListLoop& loop = family_.loops[p.of];
      const Type& element = loop.item->type;
      Block block{var("total", int64_type()), list("elements", element),
                  list("first", int64_type()), list("last", int64_type())};
      known.push_back(block.total);
      n.loops.push_back(block);
    }
    for (size_t k : c.payload)
      n.lists.push_back(n.payload.emplace_back(list("payload", c.fields[k]->type)));
    for (const TreeClause::Part& p : c.calls)
      n.lists.push_back(n.parts.emplace_back(list("parts", c.fields[p.field]->type)));
    for (const Block& b : n.loops) n.lists.insert(n.lists.end(), {b.elements, b.first, b.last});
    known.insert(known.end(), n.lists.begin(), n.lists.end());
    all.push_back(std::move(n));
  }
  std::vector<Var> params{list("nodes", tree_type(member)), var("at", int64_type())};
  params.insert(params.end(), known.begin(), known.end());
  std::vector<Type> types;
  for (const Var& v : known) types.push_back(v->type);
  GlobalVar name = work_.declare(m.name + "_split", params, tuple_type(types));
  Expr done = tuple(std::vector<Expr>(known.begin(), known.end()));
  Expr body =
      lists_.choose(params[0], tree_type(member), done, [&](const Var& node, const Var& rest) {
        std::vector<Clause> clauses;
        for (size_t c = 0; c < m.clauses.size(); ++c)
          clauses.push_back(sorted(m.clauses[c], all[c], node->type, params, known, name, rest));
        return match(node, std::move(clauses));
      });
  work_.define(name, params, body);
  return name;
}

Clause Forest::sorted(const TreeClause& c, const Nodes& n, const Type& type,
                      const std::vector<Var>& params, const std::vector<Var>& known,
                      const GlobalVar& name, const Var& rest) {
  std::vector<Type> type_args;
  if (auto* t = as<TypeCallNode>(type)) type_args = t->args;
  std::vector<Type> inputs = constructor_inputs(
      work_.mod->find_type(c.constructor->belong_to->name_hint), c.constructor, type_args);
  std::vector<Var> fields;
  for (size_t k = 0; k < inputs.size(); ++k) {
    fields.push_back(c.fields[k] ? var(c.fields[k]->name_hint, inputs[k]) : var("_", inputs[k]));
  }
  std::map<const Node*, Expr> next;
  Bindings b;
  next[n.count.get()] = add(n.count, int64(1));
  next[n.places.get()] = lists_.more(params[1], n.places);
  for (size_t i = 0; i < c.payload.size(); ++i)
    next[n.payload[i].get()] = lists_.more(fields[c.payload[i]], n.payload[i]);
  for (size_t i = 0; i < c.calls.size(); ++i)
    next[n.parts[i].get()] = lists_.more(fields[c.calls[i].field], n.parts[i]);
  for (size_t i = 0; i < c.loops.size(); ++i) {
    const ListLoop& loop = family_.loops[c.loops[i].of];
    const Block& block = n.loops[i];
    const Var& list = fields[c.loops[i].field];
    Var found = b.bind("found", lists_.elements(list->type, loop.more, loop.element, list,
                                                block.total, block.elements));
    Var last = b.bind("last", field(found, 0));
    next[block.total.get()] = last;
    next[block.elements.get()] = field(found, 1);
    next[block.first.get()] = lists_.more(block.total, block.first);
    next[block.last.get()] = lists_.more(last, block.last);
  }
  std::vector<Expr> args{rest, add(params[1], int64(1))};
  for (const Var& v : known) {
    auto changed = next.find(v.get());
    args.push_back(changed == next.end() ? Expr(v) : changed->second);
  }
  return clause(constructor_pattern(c.constructor, fields), b.in(call(name, std::move(args))));
}

// One depth: all below it first, then the nodes of each constructor.
Expr Forest::level_body() {
  Bindings b;
  size_t count = family_.members.size();
  std::vector<Expr> lists(count);
  Dims sizes(count, dim(0));
  for (size_t m = 0; m < count; ++m) lists[m] = lists_.none(tree_type(m));
  // Where the rows of each block begin; the last block is in the list first.
  std::map<const Var*, Dim> begin;
  auto place = [&](size_t member, const Var& list, const Dim& size) {
    begin[&list] = sizes[member];
    sizes[member] = sizes[member] + size;
  };
  std::vector<std::pair<size_t, const Var*>> blocks;
  for (size_t m = 0; m < count; ++m) {
    for (size_t c = 0; c < levels_[m].size(); ++c) {
      const TreeClause& clause = family_.members[m].clauses[c];
      const Nodes& n = levels_[m][c];
      for (size_t i = 0; i < n.parts.size(); ++i) {
        place(clause.calls[i].of, n.parts[i], dim(n.size));
        blocks.emplace_back(clause.calls[i].of, &n.parts[i]);
      }
      for (size_t i = 0; i < n.loops.size(); ++i) {
        size_t to = member_of_loop(family_.loops[clause.loops[i].of]);
        place(to, n.loops[i].elements, dim(n.loops[i].size));
        blocks.emplace_back(to, &n.loops[i].elements);
      }
    }
  }
  for (size_t i = blocks.size(); i-- > 0;)
    lists[blocks[i].first] = lists_.onto(*blocks[i].second, lists[blocks[i].first]);
  std::vector<Expr> tokens, shared(shared_.begin(), shared_.end());
  for (size_t m = 0; m < count; ++m) tokens.push_back(numbers(dim(0), sizes[m]));
  Var below = b.bind("below", rows_of(shared, lists, tokens));
  std::vector<Expr> results;
  for (size_t m = 0; m < count; ++m) {
    std::vector<Expr> places;
    std::vector<std::vector<Expr>> found(base_[m + 1] - base_[m]);
    Dim all = dim(0);
    for (size_t c = 0; c < levels_[m].size(); ++c) {
      const Nodes& n = levels_[m][c];
      places.push_back(n.place);
      all = all + dim(n.size);
      Var computed = b.bind("computed", clause_in_rows(m, c, below, begin, b));
      std::vector<Expr> tensors = tensors_of(computed);
      for (size_t i = 0; i < tensors.size(); ++i) found[i].push_back(tensors[i]);
    }
    Expr at = b.leaf(joined(places));
    Expr order = call("scatter_elements", {at, at, numbers(dim(0), all)});
    Var mine = b.bind("order", rows(order, tokens_[m]));
    for (const std::vector<Expr>& parts : found) results.push_back(rows(joined(parts), mine));
  }
  return b.in(tuple(std::move(results)));
}

size_t Forest::member_of_loop(const ListLoop& loop) const {
  const std::string& callee =
      as<GlobalVarNode>(as<CallNode>(loop.step.lets[loop.calls[0]].second)->op)->name_hint;
  for (size_t m = 0; m < family_.members.size(); ++m) {
    if (family_.members[m].name == callee) return m;
  }
  RELAY_CHECK(false, "a loop of a family calls a member");
}

// The clause of one node as a function, and what it gives for all nodes of that constructor.
Expr Forest::clause_in_rows(size_t member, size_t at, const Var& below,
                            const std::map<const Var*, Dim>& begin, Bindings& b) {
  const TreeFunction& m = family_.members[member];
  const TreeClause& c = m.clauses[at];
  const Nodes& n = levels_[member][at];
  Dim size = dim(n.size);
  std::vector<Var> params;
  std::vector<Expr> args;
  std::vector<BatchAxes> axes;
  std::vector<TypeVar> type_params = m.function->type_params;
  auto param = [&](const Var& p, const Expr& arg, bool in_rows) {
    params.push_back(p);
    args.push_back(arg);
    axes.push_back({in_rows ? std::optional<int64_t>(0) : std::nullopt});
  };
  for (size_t i = 0; i < m.shared.size(); ++i)
    param(m.function->params[m.shared[i]], shared_[i], false);
  // That there are rows is known even where nothing depends on them.
  param(var("place", int64_type()), n.place, true);
  for (size_t i = 0; i < c.payload.size(); ++i) {
    const Var& v = c.fields[c.payload[i]];
    param(v, lists_.stacked(n.payload[i], cast<TensorTypeNode>(v->type), n.count, size), true);
  }
  std::map<size_t, Expr> values;  // of Lets
  for (size_t i = 0; i < c.calls.size(); ++i) {
    Var which = b.bind("which", numbers(begin.at(&n.parts[i]), size));
    std::vector<Expr> tensors;
    for (const Expr& t : of_member(c.calls[i].of, below)) tensors.push_back(rows(t, which));
    const Var& v = c.body.lets[c.calls[i].let].first;
    values[c.calls[i].let] = nullptr;
    param(v, put_together(v->type, tensors), true);
  }
  for (size_t i = 0; i < c.loops.size(); ++i) {
    const ListLoop& loop = family_.loops[c.loops[i].of];
    const Block& block = n.loops[i];
    size_t to = member_of_loop(loop);
    TypeVar many = type_var("rows", Kind::Dim);
    type_params.push_back(many);
    std::vector<Var> all;
    for (const Expr& t : of_member(to, below)) {
      TensorType row = row_types(family_.members[to].function->body->type)->at(all.size());
      all.push_back(var("all", in_rows(row, dim(many))));
      // A node that is done with its list still looks at a row, if only at that of zeros.
      const TensorType& like = results_[base_[to] + all.size() - 1];
      std::vector<Dim> one_row = like->shape;
      one_row[0] = dim(1);
      TensorType nothing = tensor_type(std::move(one_row), like->dtype);
      param(all.back(), joined({t, zeros(nothing)}), false);
    }
    Var first = var("first", int64_type()), last = var("last", int64_type());
    Expr offset = numbers(begin.at(&block.elements), dim(1));
    TensorType number = cast<TensorTypeNode>(int64_type());
    param(first, add(lists_.stacked(block.first, number, n.count, size), offset), true);
    param(last, add(lists_.stacked(block.last, number, n.count, size), offset), true);
    auto row = [&, all, to](const Expr& r) {
      std::vector<Expr> tensors;
      for (const Var& t : all) {
        tensors.push_back(
            make_call("take", {t, r}, {{"axis", int64_t{0}}, {"mode", "clip"}}, Span{}));
      }
      return put_together(family_.members[to].function->body->type, tensors);
    };
    RowValues results;
    for (size_t let : loop.calls) results[let] = row;
    auto* call = as<CallNode>(c.body.lets[c.loops[i].let].second);
    values[c.loops[i].let] = loop_over_rows(loop, call->args, first, last, results);
  }
  Expr body = c.body.result;
  for (size_t i = c.body.lets.size(); i-- > 0;) {
    const auto& [v, value] = c.body.lets[i];
    auto known = values.find(i);
    if (known == values.end()) {
      body = let(v, value, body);
    } else if (known->second) {
      body = let(v, known->second, body);
    }
  }
  Function one = fresh_copy(function(params, body, m.function->body->type, type_params));
  return call(in_lanes(work_, ctx_, one, m.name + "_" + c.constructor->name_hint, axes),
              std::move(args));
}

}  // namespace relay::trees
