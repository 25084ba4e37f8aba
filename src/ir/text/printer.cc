#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "base/budget.h"
#include "ir/op.h"
#include "ir/open_types.h"
#include "ir/scope.h"
#include "ir/text/format.h"
#include "ir/text/metadata.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "runtime/core/strings.h"

namespace relay {
namespace {

bool is_inline_literal(const Tensor& t) {
  if (t.rank() != 0) return false;
  DType d = t.dtype();
  if (d.is_bool() || d.is_string()) return true;
  if (d.is_int()) return d.bits != 8;
  // NaNs carry bits that no literal has.
  return d.code == DType::kFloat && !std::isnan(t.get_as_double(0));
}

template <class T>
std::string shortest(T v) {
  char buffer[40];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
}

std::string literal(const Tensor& t) {
  DType d = t.dtype();
  if (d.is_bool()) return t.get_as_int(0) != 0 ? "True" : "False";
  if (d.is_string()) return to_string(AttrValue(std::string(runtime::string_at(t, 0))));
  if (d.is_int()) {
    std::string text = std::to_string(t.get_as_int(0));
    return d.bits == 32 ? text : text + "i" + std::to_string(d.bits);
  }
  double v = t.get_as_double(0);
  std::string text = std::isinf(v)  ? (v < 0 ? "-inf" : "inf")
                     : d.bits == 64 ? shortest(v)
                                    : shortest(static_cast<float>(v));
  return text + (d.bits == 32 ? "f" : "f" + std::to_string(d.bits));
}

// Letters, digits and underscores; a name that starts otherwise gets a leading v.
std::string clean(const std::string& name) {
  std::string out;
  for (char c : name) {
    bool word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += word ? c : '_';
  }
  if (out.empty() ||
      !((out[0] >= 'a' && out[0] <= 'z') || (out[0] >= 'A' && out[0] <= 'Z') || out[0] == '_')) {
    out = "v" + out;
  }
  return out;
}

std::string padding(int indent) {
  return std::string(static_cast<size_t>(std::min(indent, kMaxIndentLevels)) * 2, ' ');
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  std::string module(const Module& mod) {
    out_ = "#[version = \"0.0.5\"]\n";
    for (const TypeData& t : mod->type_definitions) type_data(*t.get());
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      if (i > 0 || !mod->type_definitions.empty()) out_ += "\n";
      function(*mod->functions[i].get(), "def @" + mod->global_vars[i]->name_hint);
    }
    metadata();
    return std::move(out_);
  }

  std::string expr(const Expr& e) {
    // As the body of a function without parameters, without its head.
    Function wrapper = make<FunctionNode>([&](FunctionNode& f) { f.body = e; });
    declare_free_variables(e);
    start_function();
    tree_ = analyze_scopes(*wrapper.get());
    list_scopes();
    work_.push_back(ScopeText{0, 0});
    run();
    if (out_.ends_with("\n")) out_.pop_back();
    metadata();
    return std::move(out_);
  }

 private:
  struct ScopeText {
    int scope;
    int indent;
  };
  using Item = std::variant<std::string, ScopeText>;

  void metadata() {
    if (!options_.show_metadata || constants_.empty()) return;
    out_ += "\n#[metadata]\n" + text::write_metadata(constants_) + "\n";
  }

  void declare_free_variables(const Expr& e) {
    std::vector<TypeVar> types = free_type_vars(e);
    if (!types.empty()) out_ += "free_type [" + type_params(types) + "];\n";
    std::unordered_map<const Node*, bool> bound;
    std::vector<const VarNode*> free;
    post_order(
        e,
        [&](const Node& n) {
          for (const Field& f : n.info().fields) {
            if (f.role != Role::binder) continue;
            const void* at = f.in(n);
            for (size_t i = 0; i < f.ops->count(at); ++i)
              bound[f.ops->get_child(at, i).get()] = true;
          }
          if (auto* v = as<VarNode>(&n)) free.push_back(v);
        },
        family::program);
    for (const VarNode* v : free) {
      if (bound.contains(v)) continue;
      out_ += "free_var " + variable(*v);
      if (v->type) out_ += ": " + to_string(v->type);
      out_ += ";\n";
    }
  }

  void type_data(const TypeDataNode& t) {
    out_ += "\n";
    if (t.constructors.empty()) out_ += "extern ";
    out_ += "type " + t.header->name_hint;
    if (!t.type_vars.empty()) out_ += "[" + type_params(t.type_vars) + "]";
    if (t.constructors.empty()) {
      out_ += "\n";
      return;
    }
    out_ += " {\n";
    for (const Constructor& c : t.constructors) {
      out_ += "  " + c->name_hint;
      for (size_t i = 0; i < c->inputs.size(); ++i) {
        out_ += (i == 0 ? "(" : ", ") + to_string(c->inputs[i]);
      }
      out_ += c->inputs.empty() ? ",\n" : "),\n";
    }
    out_ += "}\n";
  }

  static std::string type_params(const std::vector<TypeVar>& vars) {
    std::string text;
    for (const TypeVar& v : vars) {
      if (!text.empty()) text += ", ";
      text += v->name_hint;
      if (v->kind != Kind::Type) text += ": " + std::string(to_string(v->kind));
    }
    return text;
  }

  void start_function() {
    names_.clear();
    used_.clear();
    suffix_.clear();
    numbers_.clear();
  }

  void function(const FunctionNode& f, const std::string& head) {
    start_function();
    tree_ = analyze_scopes(f);
    list_scopes();
    out_ += head + signature(f) + " {\n";
    work_.push_back(std::string("}\n"));
    work_.push_back(ScopeText{0, 1});
    run();
  }

  void list_scopes() {
    members_.assign(tree_.scopes.size(), {});
    for (const ExprNode* e : tree_.order) {
      if (is_leaf(*e)) continue;
      const int* scope = tree_.scope_of.find(e);
      if (scope != nullptr) members_[static_cast<size_t>(*scope)].push_back(e);
    }
    uses_.clear();
    let_values_.clear();
    for (const ExprNode* e : tree_.order) {
      for_each_child(*e, [&](const NodeRef& child) {
        auto* arm = as<ClauseNode>(child);
        ++uses_[arm != nullptr ? arm->rhs.get() : child.get()];
      });
      if (auto* l = as<LetNode>(e)) let_values_.insert(l->value.get());
    }
  }

  std::string signature(const FunctionNode& f) {
    std::string text;
    if (!f.type_params.empty()) text += "[" + type_params(f.type_params) + "]";
    text += "(";
    bool first = true;
    auto comma = [&] {
      if (!first) text += ", ";
      first = false;
    };
    for (const Var& p : f.params) {
      comma();
      text += variable(*p.get());
      if (p->type) {
        text += ": " + to_string(p->type);
      } else if (p->type_annotation) {
        text += ": " + to_string(p->type_annotation);
      }
    }
    for (const auto& [key, value] : f.attrs) {
      comma();
      text += key + "=" + to_string(value);
    }
    text += ")";
    if (f.ret_type) text += " -> " + to_string(f.ret_type);
    return text;
  }

  std::string variable(const VarNode& v) {
    auto it = names_.find(&v);
    if (it != names_.end()) return it->second;
    std::string base = clean(v.name_hint), name = base;
    // Equal hints are distinguished by a number, which goes on where it was left.
    while (!used_.insert(name).second) name = base + "_" + std::to_string(++suffix_[base]);
    return names_[&v] = "%" + name;
  }

  std::string leaf(const ExprNode& e) {
    switch (e.kind()) {
      case ExprKind::Var:
        return variable(static_cast<const VarNode&>(e));
      case ExprKind::GlobalVar:
        return "@" + static_cast<const GlobalVarNode&>(e).name_hint;
      case ExprKind::Op:
        return static_cast<const OpNode&>(e).name;
      case ExprKind::Constructor:
        return static_cast<const ConstructorNode&>(e).name_hint;
      default: {
        auto& c = static_cast<const ConstantNode&>(e);
        if (is_inline_literal(c.data)) return literal(c.data);
        auto [it, fresh] = constant_index_.emplace(&c, constants_.size());
        if (fresh) constants_.push_back(ref(c));
        return "meta[relay.Constant][" + std::to_string(it->second) + "]";
      }
    }
  }

  // An operand: a leaf, or the number of a line above.
  std::string atom(const Expr& e) {
    if (is_leaf(*e)) return leaf(*e.get());
    auto it = numbers_.find(e.get());
    return it == numbers_.end() ? "%?" : "%" + std::to_string(it->second);
  }

  void run() {
    while (!work_.empty()) {
      check_budget();
      Item item = std::move(work_.back());
      work_.pop_back();
      if (auto* text = std::get_if<std::string>(&item)) {
        out_ += *text;
      } else {
        ScopeText s = std::get<ScopeText>(item);
        print_scope(s.scope, s.indent);
      }
    }
  }

  void queue(std::vector<Item> items) {
    work_.insert(work_.end(), std::make_move_iterator(items.rbegin()),
                 std::make_move_iterator(items.rend()));
  }

  // The lines of a scope, the result last. Scopes inside are left as items for `run`.
  void print_scope(int scope, int indent) {
    std::string pad = padding(indent);
    std::vector<Item> items;
    const auto& s = tree_.scopes[static_cast<size_t>(scope)];
    const std::vector<const ExprNode*>& list = members_[static_cast<size_t>(scope)];
    for (const ExprNode* e : list) {
      items.emplace_back(pad);
      if (e == s.root) {
        if (auto* l = as<LetNode>(e)) {
          let_line(*l, items, indent);
          items.emplace_back(ScopeText{opened(*l, l->body), indent});
          queue(std::move(items));
          return;
        }
        pieces(*e, items, indent);
        items.emplace_back("\n");
        queue(std::move(items));
        return;
      }
      // The value of the scope's Let is printed behind its name.
      auto* l = as<LetNode>(s.root);
      bool let_value = l != nullptr && l->value.get() == e && uses_[e] == 1 && list.size() >= 2 &&
                       e == list[list.size() - 2];
      // So is a function that a Let among the lines names: it may refer to itself.
      if (let_value || (isa<FunctionNode>(e) && let_values_.contains(e) && uses_[e] == 1)) {
        items.pop_back();
        continue;
      }
      int number = static_cast<int>(numbers_.size());
      numbers_[e] = number;
      items.emplace_back("%" + std::to_string(number) + " = ");
      bound(*e, items, indent);
      items.emplace_back(";\n");
    }
    // The result is a leaf, or a value of an outer scope.
    items.emplace_back(pad + atom(Expr(s.root)) + "\n");
    queue(std::move(items));
  }

  void let_line(const LetNode& l, std::vector<Item>& items, int indent) {
    std::string head = "let " + variable(*l.var.get());
    const Type& type = l.var->type ? l.var->type : l.var->type_annotation;
    if (type) head += ": " + to_string(type);
    items.emplace_back(head + " = ");
    if (is_leaf(*l.value) || numbers_.contains(l.value.get())) {
      items.emplace_back(atom(l.value));
    } else {
      bound(*l.value.get(), items, indent);
    }
    items.emplace_back(";\n");
  }

  // What stands behind a name: a Let needs parentheses.
  void bound(const ExprNode& e, std::vector<Item>& items, int indent) {
    auto* inner = as<LetNode>(&e);
    if (inner == nullptr) return pieces(e, items, indent);
    items.emplace_back("(\n" + padding(indent + 1));
    let_line(*inner, items, indent + 1);
    items.emplace_back(ScopeText{opened(*inner, inner->body), indent + 1});
    items.emplace_back(padding(indent) + ")");
  }

  int opened(const ExprNode& opener, const Expr& inner) {
    return tree_.opened(opener, inner.get());
  }

  std::string note(const ExprNode& e) const {
    std::string text;
    if (options_.show_types && e.type) text += " ty=" + to_string(e.type);
    if (options_.show_spans && e.span) text += " span=" + escape_for_terminal(e.span.describe());
    size_t close;
    while ((close = text.find("*/")) != std::string::npos) text.replace(close, 2, "* /");
    return text.empty() ? text : " /*" + text + " */";
  }

  // The expression with its operands as atoms.
  void pieces(const ExprNode& e, std::vector<Item>& items, int indent) {
    std::string pad = padding(indent);
    switch (e.kind()) {
      case ExprKind::Call: {
        auto& c = static_cast<const CallNode&>(e);
        if (isa<ConstructorNode>(c.op) && c.args.empty()) {
          items.emplace_back(atom(c.op) + note(e));
          return;
        }
        std::string text = atom(c.op) + "(";
        bool first = true;
        for (const Expr& a : c.args) {
          if (!first) text += ", ";
          first = false;
          text += atom(a);
        }
        for (const auto& [key, value] : attr_values(c.attrs, true)) {
          if (!first) text += ", ";
          first = false;
          text += key + "=" + to_string(value);
        }
        items.emplace_back(text + ")" + note(e));
        return;
      }
      case ExprKind::Tuple: {
        auto& t = static_cast<const TupleNode&>(e);
        std::string text = "(";
        for (size_t i = 0; i < t.fields.size(); ++i) {
          if (i > 0) text += ", ";
          text += atom(t.fields[i]);
        }
        items.emplace_back(text + (t.fields.size() == 1 ? ",)" : ")"));
        return;
      }
      case ExprKind::TupleGetItem: {
        auto& g = static_cast<const TupleGetItemNode&>(e);
        items.emplace_back(atom(g.tuple) + "." + std::to_string(g.index) + note(e));
        return;
      }
      case ExprKind::If: {
        auto& i = static_cast<const IfNode&>(e);
        items.emplace_back("if (" + atom(i.cond) + ") {\n");
        items.emplace_back(ScopeText{opened(i, i.true_branch), indent + 1});
        items.emplace_back(pad + "} else {\n");
        // Branches that are the same node open one scope; it is printed twice.
        items.emplace_back(ScopeText{opened(i, i.false_branch), indent + 1});
        items.emplace_back(pad + "}");
        return;
      }
      case ExprKind::Match: {
        auto& m = static_cast<const MatchNode&>(e);
        items.emplace_back(std::string(m.complete ? "match" : "match?") + " (" + atom(m.data) +
                           ") {\n");
        for (const Clause& c : m.clauses) {
          items.emplace_back(pad + "  " + pattern(c->lhs) + " => {\n");
          items.emplace_back(ScopeText{opened(m, c->rhs), indent + 2});
          items.emplace_back(pad + "  },\n");
        }
        items.emplace_back(pad + "}");
        return;
      }
      case ExprKind::Function: {
        auto& f = static_cast<const FunctionNode&>(e);
        std::string head = "fn " + signature(f) + " {\n";
        items.emplace_back(std::move(head));
        items.emplace_back(ScopeText{opened(f, f.body), indent + 1});
        items.emplace_back(pad + "}");
        return;
      }
      case ExprKind::RefCreate:
        items.emplace_back("ref(" + atom(static_cast<const RefCreateNode&>(e).value) + ")");
        return;
      case ExprKind::RefRead:
        items.emplace_back("ref_read(" + atom(static_cast<const RefReadNode&>(e).ref) + ")");
        return;
      case ExprKind::RefWrite: {
        auto& w = static_cast<const RefWriteNode&>(e);
        items.emplace_back("ref_write(" + atom(w.ref) + ", " + atom(w.value) + ")");
        return;
      }
      default:
        items.emplace_back(leaf(e));
    }
  }

  std::string pattern(const Pattern& root) {
    std::string text;
    std::vector<std::variant<std::string, Pattern>> stack{root};
    while (!stack.empty()) {
      auto item = std::move(stack.back());
      stack.pop_back();
      if (auto* s = std::get_if<std::string>(&item)) {
        text += *s;
        continue;
      }
      const Pattern& p = std::get<Pattern>(item);
      auto list = [&](const std::vector<Pattern>& parts, bool one_comma) {
        stack.emplace_back(std::string(one_comma && parts.size() == 1 ? ",)" : ")"));
        for (size_t i = parts.size(); i-- > 0;) {
          stack.emplace_back(parts[i]);
          if (i > 0) stack.emplace_back(std::string(", "));
        }
        stack.emplace_back(std::string("("));
      };
      if (auto* v = as<PatternVarNode>(p)) {
        text += variable(*v->var.get());
      } else if (auto* c = as<PatternConstructorNode>(p)) {
        text += c->constructor->name_hint;
        if (!c->patterns.empty()) list(c->patterns, false);
      } else if (auto* t = as<PatternTupleNode>(p)) {
        list(t->patterns, true);
      } else {
        text += "_";
      }
    }
    return text;
  }

  PrintOptions options_;
  std::string out_;
  ScopeTree tree_;
  std::vector<std::vector<const ExprNode*>> members_;
  std::vector<Item> work_;
  std::unordered_map<const Node*, int> uses_;
  // Values of Lets.
  std::unordered_set<const Node*> let_values_;
  std::unordered_map<const Node*, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> suffix_;
  std::unordered_map<const Node*, int> numbers_;
  std::unordered_map<const Node*, size_t> constant_index_;
  std::vector<Constant> constants_;
};

}  // namespace

std::string print_module(const Module& mod, const PrintOptions& options) {
  return Printer(options).module(mod);
}

std::string print_expr(const Expr& expr, const PrintOptions& options) {
  return Printer(options).expr(expr);
}

}  // namespace relay
