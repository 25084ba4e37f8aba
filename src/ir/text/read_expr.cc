#include "ir/text/expr_reader.h"

#include "base/codes/text.h"
#include "ir/op.h"
#include "runtime/core/strings.h"

namespace relay::text {

Expr ExprReader::read() {
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

Expr ExprReader::behind(Expr e) {
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

Expr ExprReader::give(Expr e) {
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
        return relay::function(std::move(f.params), e, f.ret, std::move(f.vars), std::move(f.attrs),
                               r_.span_from(first_));
      });
    } else if (auto* ref = top<Reference>()) {
      return reference_part(*ref, e);
    }
    if (!whole) return e;
  }
  return e;
}

// ---- Operands

Expr ExprReader::operand() {
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
    case TokenKind::string: {
      r_.take();
      std::string text = read_string(r_, first_);
      if (!runtime::is_utf8(text)) {
        r_.fail(codes::text_bad_literal, r_.span(first_), "a string is not UTF-8",
                "a tensor's strings are UTF-8, however they are written");
      }
      return constant(runtime::make_strings({}, {text}), r_.span(first_));
    }
    case TokenKind::symbol:
      return bracket();
    case TokenKind::identifier:
      return word();
    default:
      r_.unexpected("an expression");
  }
}

Expr ExprReader::bracket() {
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

Expr ExprReader::word() {
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

Expr ExprReader::operator_or_constructor() {
  auto c = r_.constructors.find(first_.text);
  if (c != r_.constructors.end()) {
    // A constructor without fields is its value, each time anew.
    if (!c->second->inputs.empty() || r_.is("(")) return c->second;
    return r_.build([&] { return call(c->second, {}, nullptr, r_.span(first_)); });
  }
  if (Op op = OpRegistry::global().find(first_.text)) return op;
  std::vector<Op> ops;  // another thread may take an operator away
  r_.unknown(codes::text_unknown_operator, first_,
             "there is no operator or constructor '" + std::string(first_.text) + "'", [&] {
               std::vector<std::string_view> known;
               for (const auto& [name, made] : r_.constructors) known.push_back(name);
               ops = OpRegistry::global().all();
               for (const Op& op : ops) known.push_back(op->name);
               return known;
             });
  return Reader::stand_in();
}

Expr ExprReader::meta_constant() {
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

Expr ExprReader::projection(Expr e) {
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
      r_.fail(codes::text_bad_literal, r_.span(t), "this is not an index of a tuple's field");
    }
    e = r_.build([&] { return tuple_get_item(e, *index, r_.span_from(first_)); });
  }
  return e;
}

// ---- Calls

bool ExprReader::attributes() {
  auto& a = std::get<Arguments>(open_.back());
  while (r_.peek().kind == TokenKind::identifier && r_.is("=", 1)) {
    Token name = r_.take();
    std::string key(name.text);
    r_.take();
    AttrValue v = read_value(r_);
    if (!a.names.insert(name.text).second) {
      r_.report(codes::text_duplicate_name, r_.span(name),
                "the attribute " + key + " is given twice");
    }
    // What the struct is called follows from the operator.
    if (key != "attrs_type_key") a.attrs.emplace_back(std::move(key), std::move(v));
    if (!r_.more(")")) return false;
  }
  return true;
}

Expr ExprReader::close_call() {
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

Expr ExprReader::reference_part(Reference& ref, Expr e) {
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

// ---- Errors

Expr ExprReader::recover() {
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

Expr read_lines(Reader& r) { return ExprReader(r).lines(); }

Function read_function(Reader& r, const Token& first) {
  Expr f = ExprReader(r).function(first);
  // A function whose parts do not fit is a stand-in.
  if (!isa<FunctionNode>(f)) throw GiveUp();
  return Function::unchecked(f);
}

}  // namespace relay::text
