#include "cli/graph.h"

#include <unordered_map>

#include "analysis/primitives.h"
#include "ir/scope.h"
#include "ir/text/text.h"
#include "lower/compose.h"
#include "node/walk.h"

namespace relay::cli {
namespace {

std::string escape_dot(const std::string& text) {
  std::string out;
  for (char c : escape_for_terminal(text, 300)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string escape_html(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// An operator or value as a short label.
std::string label_of(const ExprNode& e) {
  if (auto* c = as<CallNode>(&e)) {
    if (auto* op = as<OpNode>(c->op)) return op->name;
    if (auto* g = as<GlobalVarNode>(c->op)) return "@" + g->name_hint;
    auto* kernel = primitive_of(*c);
    return kernel != nullptr ? kernel_name(*kernel) : "call";
  }
  if (auto* v = as<VarNode>(&e)) return "%" + v->name_hint;
  if (auto* g = as<TupleGetItemNode>(&e)) return "." + std::to_string(g->index);
  if (auto* c = as<ConstantNode>(&e)) return c->name_hint.empty() ? "const" : c->name_hint;
  std::string name(e.info().name);
  return name.substr(name.find('.') + 1);
}

// The expressions worth a box, operands first; the insides of kernels are left to the kernel.
std::vector<const ExprNode*> boxes_of(const Function& f) {
  std::vector<const ExprNode*> out;
  post_order_outside_primitives(f->body, [&](const Node& n) {
    switch (n.kind()) {
      case ExprKind::Op:
      case ExprKind::GlobalVar:
      case ExprKind::Constructor:
      case ExprKind::Constant:
      case ExprKind::Let:
        return;
      default:
        if (isa<ExprNode>(&n)) out.push_back(static_cast<const ExprNode*>(&n));
    }
  });
  return out;
}

// Let-bound variables are replaced by their values, so that edges go from operator to operator.
std::unordered_map<const Node*, const Node*> values_of_variables(const Function& f) {
  std::unordered_map<const Node*, const Node*> out;
  post_order(
      f,
      [&](const Node& n) {
        if (auto* l = as<LetNode>(&n)) out[l->var.get()] = l->value.get();
      },
      family::expr | family::pattern);
  return out;
}

}  // namespace

std::string graph_dot(const Module& mod) {
  std::string out = "digraph relay {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    auto values = values_of_variables(f);
    std::unordered_map<const Node*, std::string> names;
    auto resolve = [&](const Node* n) {
      for (auto it = values.find(n); it != values.end(); it = values.find(n)) n = it->second;
      return n;
    };
    out += "  subgraph \"cluster_" + std::to_string(i) + "\" {\n    label=\"@" +
           escape_dot(mod->global_vars[i]->name_hint) + "\";\n";
    for (const ExprNode* e : boxes_of(f)) {
      if (values.contains(e)) continue;
      std::string name = "n" + std::to_string(i) + "_" + std::to_string(names.size());
      names[e] = name;
      std::string type = e->type ? "\\n" + escape_dot(to_string(e->type)) : "";
      out += "    " + name + " [label=\"" + escape_dot(label_of(*e)) + type + "\"" +
             (isa<VarNode>(e) ? ", shape=oval" : "") + "];\n";
      for_each_child(*e, [&](const NodeRef& child) {
        auto from = names.find(resolve(child.get()));
        if (from != names.end()) out += "    " + from->second + " -> " + name + ";\n";
      });
    }
    out += "  }\n";
  }
  return out + "}\n";
}

std::string graph_html(const Module& mod, const CompiledModule* compiled,
                       const std::string& title) {
  std::string body;
  std::unordered_map<std::string, const CompiledKernel*> kernels;
  if (compiled != nullptr) {
    for (const CompiledKernel& k : compiled->kernels) kernels[k.name] = &k;
  }
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    auto values = values_of_variables(f);
    std::unordered_map<const Node*, size_t> numbers;
    auto resolve = [&](const Node* n) {
      for (auto it = values.find(n); it != values.end(); it = values.find(n)) n = it->second;
      return n;
    };
    body += "<h2>@" + escape_html(mod->global_vars[i]->name_hint) + "</h2><p class=t>" +
            escape_html(f->type ? to_string(f->type) : "") + "</p><div class=g>";
    for (const ExprNode* e : boxes_of(f)) {
      if (values.contains(e)) continue;
      size_t number = numbers.size();
      numbers[e] = number;
      std::string id = std::to_string(i) + "-" + std::to_string(number);
      std::string from;
      for_each_child(*e, [&](const NodeRef& child) {
        auto it = numbers.find(resolve(child.get()));
        if (it == numbers.end()) return;
        from += " <a href=\"#" + std::to_string(i) + "-" + std::to_string(it->second) + "\">" +
                std::to_string(it->second) + "</a>";
      });
      std::string label = label_of(*e);
      body += "<details id=\"" + id + "\" class=" + (isa<VarNode>(e) ? "v" : "o") +
              "><summary><b>" + std::to_string(number) + "</b> " +
              escape_html(escape_for_terminal(label, 200)) +
              (from.empty() ? "" : " <span class=f>&larr;" + from + "</span>") + "</summary>";
      if (e->type) body += "<p class=t>" + escape_html(to_string(e->type)) + "</p>";
      if (e->span)
        body += "<p class=s>" + escape_html(escape_for_terminal(e->span.describe())) + "</p>";
      auto* c = as<CallNode>(e);
      auto* inner = c == nullptr ? nullptr : primitive_of(*c);
      if (inner != nullptr) {
        PrintOptions options;
        options.show_metadata = false;
        body += "<pre>" + escape_html(print_expr(inner->body, options)) + "</pre>";
        for (const auto& [name, kernel] : kernels) {
          if (!(kernel->primitive.get() == inner)) continue;
          body += "<p>" + escape_html(kernel->schedule) +
                  "</p><details><summary>loops</summary><pre>" +
                  escape_html(tir::to_string(kernel->lowered)) + "</pre></details>";
        }
      }
      body += "</details>";
    }
    body += "</div>";
  }
  return "<!doctype html><html lang=en><meta charset=utf-8><title>" + escape_html(title) +
         "</title><style>body{font:14px sans-serif;margin:2em;max-width:70em}"
         ".g{border-left:2px solid #ccc;padding-left:1em}details{margin:3px 0;padding:3px 8px;"
         "border:1px solid #bbb;border-radius:4px}.v{background:#eef}.o{background:#f8f8f4}"
         ".t{font-family:monospace;color:#555;margin:4px 0}.s{color:#777;margin:4px 0}"
         ".f{color:#888}pre{background:#fff;border:1px solid #ddd;padding:8px;overflow:auto}"
         "details:target{outline:2px solid #f80}</style><h1>" +
         escape_html(title) + "</h1>" + body + "</html>\n";
}

}  // namespace relay::cli
