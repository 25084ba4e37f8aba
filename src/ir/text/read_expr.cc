// Expressions: an operator precedence reader whose open brackets, lines, branches, clauses and
// operators lie on a stack.
//
// `read` alternates between two states. Where an operand is expected, it reads one that stands
// alone (a name, a literal) or opens one that has parts. Behind an operand come calls,
// projections and operators; what is complete then is given to what is innermost open, which asks
// for its next part or is complete itself.
#include <variant>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "ir/text/reader.h"

namespace relay::text {
namespace {

// ---- What can be open

// Lines, of which one is being read.
struct Lines {
  struct Binding {
    Var var;
    Expr value;
    Span span;
  };
  enum class Line { result, graph, let };
  bool braces;
  size_t names;  // in scope before the first line
  std::vector<Binding> bindings{};
  // The line at hand.
  Line line = Line::result;
  Token first{};
  Token name{};
  Type annotation{};
  Var var{};
  size_t line_names = 0, line_types = 0;
};
// An operator with its left side.
struct Waiting {
  const BinaryOperator* op;
  Expr left;
  Token first;
};
struct Arguments {
  Token first;
  Expr callee;
  std::vector<Expr> args{};
  std::vector<std::pair<std::string, Value>> attrs{};
};
struct Parentheses {
  Token first;
  std::vector<Expr> fields{};
};
struct Braces {
  Token first;
};
struct Branches {
  Token first;
  bool chained;  // it stands behind `else`
  bool has_chained = false;
  Expr cond{};
  Expr then_branch{};
};
struct Clauses {
  Token first;
  bool complete;
  Expr data{};
  std::vector<Clause> clauses{};
  Pattern lhs{};
  bool braces = false;
  size_t names = 0;
};
struct Body {
  Token first;
  size_t names, types;
  std::vector<TypeVar> vars{};
  std::vector<Var> params{};
  Type ret{};
  Dict attrs{};
};
struct Reference {
  Token first;
  std::vector<Expr> args{};
};

class ExprReader {
 public:
  explicit ExprReader(Reader& r) : r_(r) {}

  Expr lines() {
    open_lines(false);
    return read();
  }
  Expr function(const Token& first) {
    open_function(first);
    return read();
  }

 private:
  using Open = std::variant<Lines, Waiting, Arguments, Parentheses, Braces, Branches, Clauses, Body,
                            Reference>;

  Expr read() {
    bool broken = false;
    while (true) {
      try {
        Expr e = broken ? recover() : operand();
        broken = false;
        if (e && !open_.empty()) e = behind(std::move(e));
        if (e) return e;
      } catch (const GiveUp&) {
        if (open_.empty()) throw;
        broken = true;
      } catch (const UserError& e) {
        r_.report(e);
        broken = true;
      }
    }
  }

  template <class T>
  T* top() {
    return open_.empty() ? nullptr : std::get_if<T>(&open_.back());
  }
  template <class T>
  T pop() {
    T t = std::move(std::get<T>(open_.back()));
    open_.pop_back();
    return t;
  }

  // Calls, projections and operators behind an operand. The whole expression when nothing is open
  // any more; null when an operand is expected.
  Expr behind(Expr e) {
    while (true) {
      if (r_.is("(")) {
        open_.push_back(Arguments{first_, std::move(e)});
        r_.take();
        if (!r_.accept(")") && attributes()) return nullptr;
        e = close_call();
        continue;
      }
      if (r_.is(".") &&
          (r_.peek(1).kind == TokenKind::integer || r_.peek(1).kind == TokenKind::floating)) {
        e = projection(e);
        continue;
      }
      const BinaryOperator* op = binary_operator(r_.peek());
      while (Waiting* w = top<Waiting>()) {
        if (op != nullptr && w->op->level < op->level) break;
        Waiting waiting = pop<Waiting>();
        first_ = waiting.first;
        e = r_.build([&] {
          return call(waiting.op->name, {waiting.left, e}, nullptr, r_.span_from(first_));
        });
      }
      if (op != nullptr) {
        r_.take();
        open_.push_back(Waiting{op, std::move(e), first_});
        return nullptr;
      }
      e = give(std::move(e));
      if (!e || open_.empty()) return e;
    }
  }

  // Gives a complete expression to what is innermost open. What that makes and what may be called
  // or projected; null when it asks for an operand. At the end nothing is open.
  Expr give(Expr e) {
    while (!open_.empty()) {
      bool whole = false;  // e goes on to the next one that is open as it is
      if (auto* l = top<Lines>()) {
        if (line_goes_on(*l, e)) return nullptr;
        e = close_lines(e);
        whole = true;
      } else if (auto* a = top<Arguments>()) {
        a->args.push_back(std::move(e));
        if (r_.more(")") && attributes()) return nullptr;
        return close_call();
      } else if (auto* p = top<Parentheses>()) {
        p->fields.push_back(std::move(e));
        bool comma = r_.is(",");
        if (r_.more(")")) return open_lines(false);
        Parentheses done = pop<Parentheses>();
        first_ = done.first;
        if (done.fields.size() == 1 && !comma) return done.fields[0];
        return r_.build([&] { return tuple(std::move(done.fields), r_.span_from(first_)); });
      } else if (top<Braces>() != nullptr) {
        r_.expect("}");
        first_ = pop<Braces>().first;
        return e;
      } else if (auto* b = top<Branches>()) {
        e = branch(*b, e);
        if (!e) return nullptr;
        whole = pop<Branches>().chained;
      } else if (auto* c = top<Clauses>()) {
        return clause_part(*c, e);
      } else if (top<Body>() != nullptr) {
        r_.expect("}");
        Body f = pop<Body>();
        r_.locals.leave(f.names);
        r_.type_vars.leave(f.types);
        first_ = f.first;
        return r_.build([&] {
          return relay::function(std::move(f.params), e, f.ret, std::move(f.vars),
                                 std::move(f.attrs), r_.span_from(first_));
        });
      } else if (auto* ref = top<Reference>()) {
        return reference_part(*ref, e);
      }
      if (!whole) return e;
    }
    return e;
  }

  // ---- Operands

  // An operand that stands alone; null when one with parts was opened.
  Expr operand() {
    first_ = r_.peek();
    switch (first_.kind) {
      case TokenKind::local:
      case TokenKind::graph: {
        r_.take();
        bool graph = first_.kind == TokenKind::graph;
        const Expr* e = r_.locals.find((graph ? "#" : "") + std::string(first_.text));
        if (e != nullptr) return *e;
        r_.unknown(codes::text_unbound_name, first_,
                   "%" + std::string(first_.text) + " is not bound here", [&] {
                     std::vector<std::string_view> known = r_.locals.known();
                     std::erase_if(known, [](std::string_view n) { return n[0] == '#'; });
                     return known;
                   });
        return Reader::stand_in();
      }
      case TokenKind::global:
        r_.take();
        return r_.global(first_);
      case TokenKind::integer:
      case TokenKind::floating:
        r_.take();
        return read_literal(r_, first_, false);
      case TokenKind::symbol:
        return bracket();
      case TokenKind::identifier:
        return word();
      default:
        r_.unexpected("an expression");
    }
  }

  Expr bracket() {
    if (r_.accept("-")) {
      const Token& number = r_.peek();
      if (number.kind != TokenKind::integer && number.kind != TokenKind::floating &&
          !is_infinity(number)) {
        r_.unexpected("a number: a minus belongs to literals (negative(%x) negates)");
      }
      return read_literal(r_, r_.take(), true);
    }
    if (r_.accept("{")) {
      open_.push_back(Braces{first_});
      return open_lines(true);
    }
    if (!r_.accept("(")) r_.unexpected("an expression");
    if (r_.accept(")")) return tuple({}, r_.span_from(first_));
    open_.push_back(Parentheses{first_});
    return open_lines(false);
  }

  Expr word() {
    r_.take();
    std::string_view text = first_.text;
    if (text == "True" || text == "False") {
      return constant(Tensor::scalar(text == "True" ? 1 : 0, DType::Bool()), r_.span(first_));
    }
    if (is_infinity(first_)) return read_literal(r_, first_, false);
    if (text == "fn") return open_function(first_);
    if (text == "if") return open_branches(false);
    if (text == "match") {
      open_.push_back(Clauses{first_, !r_.accept("?")});
      r_.expect("(");
      return open_lines(false);
    }
    if (text == "ref" || text == "ref_read" || text == "ref_write") {
      r_.expect("(");
      open_.push_back(Reference{first_});
      return nullptr;
    }
    if (text == "meta") return meta_constant();
    return operator_or_constructor();
  }

  Expr operator_or_constructor() {
    auto c = r_.constructors.find(first_.text);
    if (c != r_.constructors.end()) {
      // A constructor without fields is its value, each time anew.
      if (!c->second->inputs.empty() || r_.is("(")) return c->second;
      return r_.build([&] { return call(c->second, {}, nullptr, r_.span(first_)); });
    }
    if (Op op = OpRegistry::global().find(first_.text)) return op;
    r_.unknown(codes::text_unknown_operator, first_,
               "there is no operator or constructor '" + std::string(first_.text) + "'", [&] {
                 std::vector<std::string_view> known;
                 for (const auto& [name, made] : r_.constructors) known.push_back(name);
                 for (const Op& op : OpRegistry::global().all()) known.push_back(op->name);
                 return known;
               });
    return Reader::stand_in();
  }

  Expr meta_constant() {
    Token t = first_;
    r_.expect("[");
    Token kind = r_.expect(TokenKind::identifier, "relay.Constant");
    r_.expect("]");
    r_.expect("[");
    auto index = read_integer(r_.expect(TokenKind::integer, "an index"));
    r_.expect("]");
    if (!index || kind.text != "relay.Constant" ||
        *index >= static_cast<int64_t>(r_.metadata.size())) {
      r_.report(codes::text_bad_metadata, r_.span_from(t), "the metadata section has no such entry")
          .help("the text must keep its #[metadata] section");
      return Reader::stand_in();
    }
    return r_.metadata[static_cast<size_t>(*index)];
  }

  Expr projection(Expr e) {
    r_.take();
    Token t = r_.take();
    // `%t.0.1` reads as `%t` `.` `0.1`.
    for (std::string_view rest = t.text; !rest.empty();) {
      size_t dot = rest.find('.');
      Token part = t;
      part.text = rest.substr(0, dot);
      rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
      auto index = read_integer(part);
      if (!index) {
        r_.fail(codes::text_bad_literal, r_.span(t), "this is no index of a tuple's field");
      }
      e = r_.build([&] { return tuple_get_item(e, *index, r_.span_from(first_)); });
    }
    return e;
  }

  // ---- Calls

  // Reads attributes up to the next argument; false at the end of the call.
  bool attributes() {
    auto& a = std::get<Arguments>(open_.back());
    while (r_.peek().kind == TokenKind::identifier && r_.is("=", 1)) {
      Token name = r_.take();
      std::string key(name.text);
      r_.take();
      Value v = read_value(r_);
      for (const auto& [known, other] : a.attrs) {
        if (known != key) continue;
        r_.report(codes::text_duplicate_name, r_.span(name),
                  "the attribute " + key + " is given twice");
      }
      // What the struct is called follows from the operator.
      if (key != "attrs_type_key") a.attrs.emplace_back(std::move(key), std::move(v));
      if (!r_.more(")")) return false;
    }
    return true;
  }

  Expr close_call() {
    Arguments a = pop<Arguments>();
    first_ = a.first;
    Span where = r_.span_from(first_);
    return r_.build([&]() -> Expr {
      Attrs attrs;
      auto* op = as<OpNode>(a.callee);
      if (op != nullptr && op->row->attrs != nullptr) {
        attrs = make_attrs(*op->row->attrs, a.attrs, op->name, where);
      } else if (op != nullptr && !a.attrs.empty()) {
        throw UserError(
            Diagnostic(codes::text_bad_attribute, where,
                       op->name + " has no attributes, but '" + a.attrs[0].first + "' is given"));
      } else if (!a.attrs.empty() && !Reader::is_stand_in(a.callee)) {
        throw UserError(
            Diagnostic(codes::text_bad_attribute, where, "only operators take attributes"));
      }
      return call(a.callee, std::move(a.args), attrs, where);
    });
  }

  // A reference's operation has its next operand in `e`.
  Expr reference_part(Reference& ref, Expr e) {
    bool write = ref.first.text == "ref_write";
    ref.args.push_back(std::move(e));
    if (write && ref.args.size() == 1) {
      r_.expect(",");
      return nullptr;
    }
    r_.expect(")");
    Reference done = pop<Reference>();
    first_ = done.first;
    Span where = r_.span_from(first_);
    return r_.build([&]() -> Expr {
      if (write) return ref_write(done.args[0], done.args[1], where);
      if (first_.text == "ref") return ref_create(done.args[0], where);
      return ref_read(done.args[0], where);
    });
  }

  // ---- Branches and clauses

  Expr open_branches(bool chained) {
    open_.push_back(Branches{first_, chained});
    r_.expect("(");
    return open_lines(false);
  }

  // `e` is the condition or a branch. The whole, or null when the next part is expected.
  Expr branch(Branches& b, const Expr& e) {
    if (!b.cond) {
      b.cond = e;
      r_.expect(")");
      r_.expect("{");
      return open_lines(true);
    }
    if (!b.then_branch) {
      b.then_branch = e;
      r_.expect("}");
      r_.expect_word("else");
      if (r_.is_word("if")) {
        first_ = r_.take();
        b.has_chained = true;
        return open_branches(true);
      }
      r_.expect("{");
      return open_lines(true);
    }
    // A chained branch has taken its own brace.
    if (!b.has_chained) r_.expect("}");
    first_ = b.first;
    return r_.build([&] { return if_(b.cond, b.then_branch, e, r_.span_from(first_)); });
  }

  // `e` is the matched value or the right side of a clause.
  Expr clause_part(Clauses& c, Expr e) {
    if (!c.data) {
      r_.expect(")");
      r_.expect("{");
      c.data = std::move(e);
      return r_.accept("}") ? close_clauses() : open_clause();
    }
    if (c.braces) r_.expect("}");
    r_.locals.leave(c.names);
    c.clauses.push_back(clause(c.lhs, std::move(e)));
    return r_.more("}") ? open_clause() : close_clauses();
  }

  Expr open_clause() {
    auto& c = std::get<Clauses>(open_.back());
    c.names = r_.locals.mark();
    c.lhs = read_pattern(r_);
    r_.expect("=>");
    c.braces = r_.accept("{");
    return c.braces ? open_lines(true) : nullptr;
  }

  Expr close_clauses() {
    Clauses c = pop<Clauses>();
    first_ = c.first;
    return r_.build(
        [&] { return match(c.data, std::move(c.clauses), c.complete, r_.span_from(first_)); });
  }

  // ---- Functions

  // Reads the head, "[A](%x: A, Inline=1) -> A {".
  Expr open_function(const Token& first) {
    Body f{first, r_.locals.mark(), r_.type_vars.mark()};
    f.vars = read_type_params(r_);
    r_.expect("(");
    if (!r_.accept(")")) {
      do {
        if (r_.peek().kind == TokenKind::identifier) {
          std::string key(r_.take().text);
          r_.expect("=");
          f.attrs[key] = read_value(r_);
        } else {
          parameter(f);
        }
      } while (r_.more(")"));
    }
    if (r_.accept("->")) f.ret = read_type(r_);
    r_.expect("{");
    for (const Var& p : f.params) r_.locals.bind(p->name_hint, p);
    open_.push_back(std::move(f));
    return open_lines(true);
  }

  void parameter(Body& f) {
    Token name = r_.expect(TokenKind::local, "a parameter, an attribute or ')'");
    std::string text(name.text);
    // Where it lives, of which there is one place only: {virtual_device=...}.
    if (r_.is("{")) r_.skip_brackets();
    Type annotation;
    if (r_.accept(":")) annotation = read_type(r_);
    for (const Var& p : f.params) {
      if (p->name_hint != text) continue;
      r_.report(codes::text_duplicate_name, r_.span(name), "two parameters are called %" + text);
    }
    f.params.push_back(var(text, annotation, r_.span(name)));
  }

  // ---- Lines

  // Lines are opened where an operand is expected: the null says so.
  Expr open_lines(bool braces) {
    open_.push_back(Lines{braces, r_.locals.mark()});
    open_line();
    return nullptr;
  }

  // Reads what stands before the value of a line.
  void open_line() {
    auto& l = std::get<Lines>(open_.back());
    l.first = r_.peek();
    l.line = Lines::Line::result;
    l.line_names = r_.locals.mark();
    l.line_types = r_.type_vars.mark();
    if (l.first.kind == TokenKind::graph && r_.is("=", 1)) {
      l.line = Lines::Line::graph;
      l.name = r_.take();
      r_.take();
      return;
    }
    if (!r_.accept_word("let")) return;
    l.line = Lines::Line::let;
    l.name = r_.peek();
    l.annotation = nullptr;
    l.var = nullptr;
    if (!r_.accept_word("_")) r_.expect(TokenKind::local, "a variable, such as %x");
    if (r_.accept(":")) l.annotation = read_type(r_);
    r_.expect("=");
    // A function's own name is known inside it; any other value does not see it.
    if (r_.is_word("fn")) {
      l.var = var(std::string(l.name.text), l.annotation, r_.span(l.name));
      r_.locals.bind(l.var->name_hint, l.var);
    }
  }

  // `e` is the value of the line. True when another line follows; it is opened.
  bool line_goes_on(Lines& l, const Expr& e) {
    switch (l.line) {
      case Lines::Line::graph:
        r_.expect(";");
        r_.locals.bind("#" + std::string(l.name.text), e);
        break;
      case Lines::Line::let: {
        r_.expect(";");
        r_.locals.leave(l.line_names);
        Var v = l.var;
        if (!v) {
          Type type = l.annotation || !e->type ? l.annotation : e->type;
          v = var(std::string(l.name.text), type, r_.span(l.name));
        }
        r_.locals.bind(v->name_hint, v);
        l.bindings.push_back({v, e, r_.span_from(l.first)});
        break;
      }
      case Lines::Line::result:
        if (!r_.accept(";")) {
          if (l.braces && !r_.is("}")) r_.unexpected("an operator, ';' or '}'");
          return false;
        }
        // A statement: its value is not used.
        l.bindings.push_back({var("_", e->type, r_.span(l.first)), e, r_.span_from(l.first)});
        break;
    }
    open_line();
    return true;
  }

  Expr close_lines(Expr result) {
    Lines l = pop<Lines>();
    r_.locals.leave(l.names);
    for (auto it = l.bindings.rbegin(); it != l.bindings.rend(); ++it) {
      result = let(it->var, it->value, result, it->span);
    }
    return result;
  }

  // ---- Errors

  // Goes on at the next line of the innermost braces, with a stand-in for what could not be read.
  // An operand, or null when one is expected; gives up when the braces are not closed before the
  // next definition.
  Expr recover() {
    int braces = 0;
    Lines* l = nullptr;
    while (!open_.empty()) {
      l = top<Lines>();
      if (l != nullptr && l->braces) break;
      if (auto* c = top<Clauses>()) braces += c->data ? 1 : 0;
      open_.pop_back();
    }
    if (open_.empty()) throw GiveUp();
    r_.locals.leave(l->line_names);
    r_.type_vars.leave(l->line_types);
    bool graph = l->line == Lines::Line::graph;
    if (graph || l->line == Lines::Line::let) {
      r_.locals.bind((graph ? "#" : "") + std::string(l->name.text), Reader::stand_in());
    }
    if (r_.skip_line(braces)) {
      open_line();
      return nullptr;
    }
    if (!r_.is("}")) {
      open_.clear();
      throw GiveUp();
    }
    l->line = Lines::Line::result;
    return give(Reader::stand_in());
  }

  Reader& r_;
  std::vector<Open> open_;
  Token first_;  // where the operand at hand starts
};

}  // namespace

Expr read_lines(Reader& r) { return ExprReader(r).lines(); }

Function read_function(Reader& r, const Token& first) {
  Expr f = ExprReader(r).function(first);
  // A function whose parts do not fit is a stand-in.
  if (!isa<FunctionNode>(f)) throw GiveUp();
  return Function::unchecked(f);
}

}  // namespace relay::text
