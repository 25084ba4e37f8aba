#include "passes/structure/form.h"

#include "analysis/primitives.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

struct Named {
  Form form;
  const char* name;
};
constexpr Named kForms[] = {{Form::anf, "anf"},
                            {Form::basic_blocks, "basic_blocks"},
                            {Form::fused, "fused"},
                            {Form::lifted, "lifted"}};

using Defect = std::optional<FormDefect>;

// What is wrong with one expression outside primitive functions, as far as it and its operands tell.
Defect defect_of(const ExprNode& e, Form form) {
  Defect out;
  auto found = [&](Form f, std::string detail) {
    if (!out) out = FormDefect{f, e.span, std::move(detail)};
  };
  if (has(form, Form::anf)) {
    for_each_operand(e, [&](const Expr& operand, bool opens_scope) {
      if (is_leaf(*operand) || as_primitive(operand.get()) != nullptr) return;
      bool is_let = isa<LetNode>(operand);
      if (opens_scope) {
        if (!is_let) found(Form::anf, "a result has no name");
      } else if (!isa<LetNode>(&e) || is_let) {
        found(Form::anf, "an operand has no name");
      }
    });
  }
  if (has(form, Form::fused)) {
    auto* c = as<CallNode>(&e);
    auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
    if (op != nullptr)
      found(Form::fused, std::string(op->name) + " is called outside a primitive function");
  }
  return out;
}

Defect block_defect(const Function& f) {
  ScopeTree tree = analyze_scopes(*f.get());
  auto block = [&](int scope) { return tree.scopes[static_cast<size_t>(scope)].block; };
  Defect out;
  for (const ExprNode* e : tree.order) {
    const int* own = tree.scope_of.find(e);
    if (own == nullptr) continue;
    for_each_operand(*e, [&](const Expr& operand, bool opens) {
      const int* at = tree.scope_of.find(operand.get());
      if (at == nullptr || out) return;
      int use = opens ? tree.opened(*e, operand.get()) : *own;
      if (block(use) != block(*at)) {
        out = FormDefect{Form::basic_blocks, operand->span,
                         "an expression is used in another block than its own"};
      }
    });
  }
  return out;
}

// What the function gives, behind the names that A-normal form gives it.
const Node* result_of(const Function& f) {
  NodeMap<const Node*> values;
  const Node* at = f->body.get();
  while (auto* l = as<LetNode>(at)) {
    values[l->var.get()] = l->value.get();
    at = l->body.get();
  }
  const Node* const* value = values.find(at);
  return value == nullptr ? at : *value;
}

Defect function_defect(const Function& f, Form form) {
  if (f->is_primitive()) return std::nullopt;
  Defect out;
  const Node* closure = f->has_attr(attr::kClosure) ? result_of(f) : nullptr;
  auto foreign = [](const Node& n) {
    auto* inner = as<FunctionNode>(&n);
    return inner != nullptr && (inner->has_attr(attr::kCompiler) || inner->has_attr(attr::kExtern));
  };
  post_order_if(
      f, [&](const Node& n) { return !out && as_primitive(&n) == nullptr; },
      [&](const Node& n) {
        if (out || (n.info().family & family::expr) == 0) return;
        auto& e = static_cast<const ExprNode&>(n);
        if (has(form, Form::lifted) && isa<FunctionNode>(&n) && &n != f.get() && &n != closure &&
            !foreign(n)) {
          out = FormDefect{Form::lifted, e.span, "a function stands inside another"};
        } else {
          out = defect_of(e, form);
        }
      },
      family::program);
  if (!out && has(form, Form::basic_blocks)) out = block_defect(f);
  return out;
}

}  // namespace

std::string to_string(Form form) {
  std::string out;
  for (const Named& f : kForms) {
    if (has(form, f.form)) out += (out.empty() ? "" : ", ") + std::string(f.name);
  }
  return out.empty() ? "any" : out;
}

std::optional<FormDefect> find_form_defect(const Module& mod, Form form) {
  if (form == Form::any) return std::nullopt;
  for (const Function& f : mod->functions) {
    if (Defect defect = function_defect(f, form)) return defect;
  }
  return std::nullopt;
}

}  // namespace relay
