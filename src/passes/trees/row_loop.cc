#include "passes/trees/row_loop.h"

#include <algorithm>
#include <ranges>

#include "grad/dataflow.h"
#include "ir/bindings.h"
#include "node/walk.h"

namespace relay::trees {
namespace {

std::function<Expr(const Expr&)> row_of(const Type& type, const std::vector<Expr>& tensors) {
  return [type, tensors](const Expr& at) {
    std::vector<Expr> parts;
    for (const Expr& t : tensors) parts.push_back(rows(t, at));
    return put_together(type, parts);
  };
}

bool uses(const Expr& e, const Var& v) {
  bool found = false;
  post_order(
      e, [&](const Node& n) { found |= &n == v.get(); }, family::program);
  return found;
}

}  // namespace

void RowLoop::make(const Find& find) {
  const Function& f = loop_.function;
  const Var& list = f->params[loop_.list];
  std::vector<Var> params;
  std::vector<Expr> own, outer;
  for (const Var& p : f->params) {
    params.push_back(var(p->name_hint, p->type, p->span));
    own.push_back(params.back());
    if (p != list) outer.push_back(p);
  }
  params.erase(params.begin() + static_cast<int64_t>(loop_.list));
  TypeVar count = type_var("n", Kind::Dim);
  Var nodes = var("nodes", lists_.of(loop_.item->type)),
      token = var("token", token_type(dim(count)));
  Var last = var("last", int64_type());
  params.insert(params.end(), {nodes, token, last});
  std::vector<TypeVar> sizes = joined(f->type_params, {count});
  GlobalVar over = work_.declare(loop_.name + "_rows", params, f->body->type, sizes);
  work_.define(over, params, body(find, own, nodes, token, last), sizes);

  Bindings b;
  Var found = b.bind("found", lists_.elements(list->type, loop_.more, loop_.element, list, int64(0),
                                              lists_.none(loop_.item->type)));
  Expr total = b.leaf(field(found, 0));
  outer.insert(outer.end(), {lists_.onto(field(found, 1), lists_.none(loop_.item->type)),
                             numbers(total), total});
  Expr all = b.in(call(over, std::move(outer)));
  work_.redefine(loop_.name, f, all);
}

// fn (the loop's parameters but for the list, nodes, token, last)
Expr RowLoop::body(const Find& find, const std::vector<Expr>& own, const Var& nodes,
                   const Var& token, const Var& last) {
  Bindings b;
  RowValues results;
  std::map<size_t, std::vector<Expr>> tensors;  // of all elements, by Let
  for (size_t let : loop_.calls) {
    auto* c = as<CallNode>(loop_.step.lets[let].second);
    auto [forest, member] = find(as<GlobalVarNode>(c->op)->name_hint);
    std::vector<Expr> shared;
    for (size_t i : forest->family().members[member].shared)
      shared.push_back(outside(c->args[i], own));
    Var all = b.bind("all", forest->rows_of(member, shared, nodes, token));
    for (const Expr& t : forest->of_member(member, all)) tensors[let].push_back(b.leaf(t));
  }
  std::set<size_t> alone = of_element_alone();
  auto in_alone = [&](size_t i) { return alone.contains(i); };
  std::vector<size_t> wanted;
  for (size_t i = 0; i < loop_.step.lets.size(); ++i) {
    bool is_call = tensors.contains(i);
    if (!in_alone(i) && !is_call) continue;
    bool used = std::ranges::any_of(loop_.again->args, [&](const Expr& a) {
      return a.get() == loop_.step.lets[i].first.get();
    });
    for (size_t k = i + 1; k < loop_.step.lets.size() && !used; ++k) {
      used = !in_alone(k) && !tensors.contains(k) &&
             uses(loop_.step.lets[k].second, loop_.step.lets[i].first);
    }
    results[i] = nullptr;
    if (!used) continue;
    if (is_call) {
      results[i] = row_of(loop_.step.lets[i].first->type, tensors[i]);
    } else {
      wanted.push_back(i);
    }
  }
  if (!wanted.empty()) {
    Var made = b.bind("made", in_rows_alone(alone, wanted, tensors, own, token));
    for (size_t k = 0; k < wanted.size(); ++k) {
      std::vector<Expr> parts;
      for (const Expr& t : tensors_of(field(made, k))) parts.push_back(b.leaf(t));
      results[wanted[k]] = row_of(loop_.step.lets[wanted[k]].first->type, parts);
    }
  }
  return b.in(loop_over_rows(loop_, own, int64(0), last, results));
}

Expr RowLoop::outside(const Expr& arg, const std::vector<Expr>& own) const {
  for (size_t i = 0; i < own.size(); ++i) {
    if (loop_.function->params[i].get() == arg.get()) return own[i];
  }
  return arg;
}

// The Lets that need nothing but the element's results and what is the same for all.
std::set<size_t> RowLoop::of_element_alone() const {
  std::set<const Node*> known;
  for (size_t i = 0; i < loop_.unchanged.size(); ++i) {
    if (loop_.unchanged[i]) known.insert(loop_.function->params[i].get());
  }
  for (size_t let : loop_.calls) known.insert(loop_.step.lets[let].first.get());
  std::set<size_t> out;
  for (size_t i = 0; i < loop_.step.lets.size(); ++i) {
    const auto& [v, value] = loop_.step.lets[i];
    if (known.contains(v.get()) || !row_types(v->type) || !purity_.of(value).pure()) continue;
    std::vector<Var> free = free_vars(value);
    if (!std::ranges::all_of(free, [&](const Var& f) { return known.contains(f.get()); })) continue;
    known.insert(v.get());
    out.insert(i);
  }
  return out;
}

// Their values for all elements: a tuple of those wanted.
Expr RowLoop::in_rows_alone(const std::set<size_t>& alone, const std::vector<size_t>& wanted,
                            const std::map<size_t, std::vector<Expr>>& tensors,
                            const std::vector<Expr>& own, const Var& token) {
  std::vector<Var> params;
  std::vector<Expr> args, fields;
  std::vector<BatchAxes> axes;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!loop_.unchanged[i]) continue;
    params.push_back(loop_.function->params[i]);
    args.push_back(own[i]);
    axes.push_back({std::nullopt});
  }
  params.push_back(var("place", int64_type()));
  args.push_back(token);
  axes.emplace_back();
  for (const auto& [let, parts] : tensors) {
    params.push_back(loop_.step.lets[let].first);
    args.push_back(put_together(params.back()->type, parts));
    axes.emplace_back();
  }
  for (size_t i : wanted) fields.push_back(loop_.step.lets[i].first);
  Expr body = tuple(std::move(fields));
  for (size_t i : std::ranges::reverse_view(alone))
    body = let(loop_.step.lets[i].first, loop_.step.lets[i].second, body);
  Function one = fresh_copy(function(params, body, body->type, loop_.function->type_params));
  return call(in_lanes(work_, ctx_, one, loop_.name + "_element", axes), std::move(args));
}

}  // namespace relay::trees
