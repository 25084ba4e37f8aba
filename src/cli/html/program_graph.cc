#include "cli/html/program_graph.h"

#include <unordered_map>

#include "analysis/primitives.h"
#include "lower/compose.h"
#include "node/walk.h"

namespace relay::cli {
namespace {

bool has_box(const Node& n) {
  switch (n.kind()) {
    case ExprKind::Op:
    case ExprKind::GlobalVar:
    case ExprKind::Constructor:
    case ExprKind::Constant:
    case ExprKind::Let:
      return false;
    default:
      return isa<ExprNode>(&n);
  }
}

}  // namespace

ProgramGraph program_graph(const Function& f) {
  // Variables of `let` are replaced by their values, so that edges go from operator to operator.
  std::unordered_map<const Node*, const Node*> values;
  post_order(
      f,
      [&](const Node& n) {
        if (auto* l = as<LetNode>(&n)) values[l->var.get()] = l->value.get();
      },
      family::program);
  // The expression that computes what `n` stands for.
  auto computed_by = [&](const Node* n) {
    while (true) {
      if (auto found = values.find(n); found != values.end()) {
        n = found->second;
      } else if (auto* l = as<LetNode>(n)) {
        n = l->body.get();
      } else {
        return n;
      }
    }
  };
  ProgramGraph out;
  std::unordered_map<const Node*, size_t> numbers;
  post_order_outside_primitives(f->body, [&](const Node& n) {
    if (!has_box(n) || values.contains(&n)) return;
    auto& e = static_cast<const ExprNode&>(n);
    const size_t number = out.nodes.size();
    numbers[&n] = number;
    out.nodes.push_back(&e);
    auto add_edge = [&](const NodeRef& operand) {
      auto found = numbers.find(computed_by(operand.get()));
      if (found != numbers.end() && found->second < number)
        out.edges.emplace_back(found->second, number);
    };
    for_each_child(e, [&](const NodeRef& child) {
      if (auto* clause = as<ClauseNode>(child)) {
        add_edge(clause->rhs);
      } else {
        add_edge(child);
      }
    });
  });
  return out;
}

std::string label_of(const ExprNode& e) {
  if (auto* c = as<CallNode>(&e)) {
    if (auto* op = as<OpNode>(c->op)) return op->name;
    if (auto* g = as<GlobalVarNode>(c->op)) return "@" + g->name_hint;
    if (auto* made = as<ConstructorNode>(c->op)) return made->name_hint;
    if (auto* v = as<VarNode>(c->op)) return "%" + v->name_hint + "(...)";
    auto* kernel = primitive_of(*c);
    return kernel != nullptr ? kernel_name(*kernel) : "call";
  }
  if (auto* v = as<VarNode>(&e)) return "%" + v->name_hint;
  if (auto* g = as<TupleGetItemNode>(&e)) return "." + std::to_string(g->index);
  if (auto* c = as<ConstantNode>(&e)) return c->name_hint.empty() ? "const" : c->name_hint;
  std::string name(e.info().name);
  return name.substr(name.find('.') + 1);
}

}  // namespace relay::cli
