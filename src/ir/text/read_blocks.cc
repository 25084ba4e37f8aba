#include "ir/text/expr_reader.h"

#include "base/codes/text.h"

namespace relay::text {

// ---- Branches and clauses

Expr ExprReader::open_branches(bool chained) {
  open_.push_back(Branches{first_, chained});
  r_.expect("(");
  return open_lines(false);
}

Expr ExprReader::branch(Branches& b, const Expr& e) {
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

Expr ExprReader::clause_part(Clauses& c, Expr e) {
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

Expr ExprReader::open_clause() {
  auto& c = std::get<Clauses>(open_.back());
  c.names = r_.locals.mark();
  c.lhs = read_pattern(r_);
  r_.expect("=>");
  c.braces = r_.accept("{");
  return c.braces ? open_lines(true) : nullptr;
}

Expr ExprReader::close_clauses() {
  Clauses c = pop<Clauses>();
  first_ = c.first;
  return r_.build(
      [&] { return match(c.data, std::move(c.clauses), c.complete, r_.span_from(first_)); });
}

// ---- Functions

Expr ExprReader::open_function(const Token& first) {
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

void ExprReader::parameter(Body& f) {
  Token name = r_.expect(TokenKind::local, "a parameter, an attribute or ')'");
  std::string text(name.text);
  // Where it lives, of which there is one place only: {virtual_device=...}.
  if (r_.is("{")) r_.skip_brackets();
  Type annotation;
  if (r_.accept(":")) annotation = read_type(r_);
  if (!f.param_names.insert(name.text).second) {
    r_.report(codes::text_duplicate_name, r_.span(name), "two parameters are called %" + text);
  }
  f.params.push_back(var(text, annotation, r_.span(name)));
}

// ---- Lines

Expr ExprReader::open_lines(bool braces) {
  open_.push_back(Lines{braces, r_.locals.mark()});
  open_line();
  return nullptr;
}

void ExprReader::open_line() {
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

bool ExprReader::line_goes_on(Lines& l, const Expr& e) {
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

Expr ExprReader::close_lines(Expr result) {
  Lines l = pop<Lines>();
  r_.locals.leave(l.names);
  for (auto it = l.bindings.rbegin(); it != l.bindings.rend(); ++it) {
    result = let(it->var, it->value, result, it->span);
  }
  return result;
}

}  // namespace relay::text
