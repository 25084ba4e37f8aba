#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/diagnostic_codes.h"
#include "ir/op.h"
#include "ir/text/metadata.h"
#include "ir/text/text.h"
#include "ir/text/token.h"
#include "node/walk.h"

namespace relay {
namespace {

using text::Token;
using text::TokenKind;

// Brackets nested deeper than this are refused. Long programs nest through lines (`%1 = ...;`,
// `let`), which cost no depth.
constexpr int kMaxDepth = 96;

// Thrown inside the parser to give up on one definition.
struct GiveUp {};

class Parser {
 public:
  Parser(std::shared_ptr<const SourceFile> source, Diagnostics& diags)
      : source_(std::move(source)), diags_(diags), stream_(text::tokenize(source_, diags)) {
    if (stream_.metadata != std::string_view::npos) {
      uint32_t at = static_cast<uint32_t>(stream_.metadata);
      std::string_view json = std::string_view(source_->text()).substr(at);
      try {
        constants_ = text::read_metadata(json, Span::range(source_, at, at + 1));
      } catch (const UserError& e) {
        for (const Diagnostic& d : e.diagnostics()) diags_.add(d);
      }
    }
  }

  Module module() {
    version(true);
    declare_types();
    at_ = after_version_;
    while (peek().kind != TokenKind::end) {
      size_t begin = at_;
      try {
        definition();
      } catch (const GiveUp&) {
        next_definition(begin);
      } catch (const UserError& e) {
        for (const Diagnostic& d : e.diagnostics()) diags_.add(d);
        next_definition(begin);
      }
    }
    check_globals();
    diags_.throw_if_errors();
    return make_module(std::move(global_vars_), std::move(functions_), std::move(types_));
  }

  Expr expression(const std::map<std::string, Expr>& scope) {
    version(false);
    for (const auto& [name, e] : scope) bind(name, e);
    Expr e;
    try {
      while (accept_word("free_var")) {
        Token name = expect(TokenKind::local, "a variable");
        Type type;
        if (accept(":")) type = this->type();
        expect(";");
        bind(std::string(name.text), var(std::string(name.text), type, span(name)));
      }
      e = block();
      if (peek().kind != TokenKind::end) unexpected("the end of the expression");
    } catch (const GiveUp&) {
    }
    diags_.throw_if_errors();
    return e;
  }

  Type single_type() {
    Type t;
    try {
      t = type();
      if (peek().kind != TokenKind::end) unexpected("the end of the type");
    } catch (const GiveUp&) {
    }
    diags_.throw_if_errors();
    return t;
  }

  std::vector<std::pair<std::string, Value>> attribute_list() {
    std::vector<std::pair<std::string, Value>> out;
    try {
      while (peek().kind != TokenKind::end) {
        std::string name(expect(TokenKind::identifier, "an attribute's name").text);
        expect("=");
        out.emplace_back(std::move(name), value());
        if (!accept(",")) break;
      }
      if (peek().kind != TokenKind::end) unexpected("',' or the end of the attributes");
    } catch (const GiveUp&) {
    }
    diags_.throw_if_errors();
    return out;
  }

 private:
  // ---- Tokens
  // --------------------------------------------------------------------------------------

  const Token& peek(size_t ahead = 0) const {
    return stream_.tokens[std::min(at_ + ahead, stream_.tokens.size() - 1)];
  }
  Token take() {
    Token t = peek();
    if (t.kind != TokenKind::end) ++at_;
    return t;
  }
  Span span(const Token& t) const { return Span::range(source_, t.begin, t.end); }
  Span span_from(const Token& first) const {
    uint32_t end = at_ > 0 ? stream_.tokens[at_ - 1].end : first.end;
    return Span::range(source_, first.begin, std::max(end, first.end));
  }

  bool is(std::string_view symbol) const {
    return peek().kind == TokenKind::symbol && peek().text == symbol;
  }
  bool is_word(std::string_view word) const {
    return peek().kind == TokenKind::identifier && peek().text == word;
  }
  bool accept(std::string_view symbol) { return is(symbol) && (++at_, true); }
  bool accept_word(std::string_view word) { return is_word(word) && (++at_, true); }

  [[noreturn]] void unexpected(std::string expected) {
    const Token& t = peek();
    std::string found = t.kind == TokenKind::end
                            ? "the end of the text"
                            : "'" + source_->text().substr(t.begin, t.end - t.begin) + "'";
    diags_.error(codes::text_unexpected_token, span(t), "this cannot be read")
        .expected(std::move(expected))
        .found(std::move(found));
    throw GiveUp();
  }
  Token expect(std::string_view symbol) {
    if (!is(symbol)) unexpected("'" + std::string(symbol) + "'");
    return take();
  }
  Token expect(TokenKind kind, const char* what) {
    if (peek().kind != kind) unexpected(what);
    return take();
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) unexpected("'" + std::string(word) + "'");
  }
  [[noreturn]] void fail(const DiagnosticCode& code, const Span& where, std::string message,
                         std::string help = {}) {
    diags_.error(code, where, std::move(message)).help(std::move(help));
    throw GiveUp();
  }

  // Counts how deep brackets nest; refuses absurd depth before the stack is in danger.
  class Nest {
   public:
    explicit Nest(Parser& p) : p_(p) {
      if (++p_.depth_ > kMaxDepth) {
        --p_.depth_;
        p_.fail(codes::text_too_deep, p_.span(p_.peek()),
                "brackets nest deeper than " + std::to_string(kMaxDepth),
                "name inner expressions: %0 = ...; or let %x = ...;");
      }
    }
    ~Nest() { --p_.depth_; }

   private:
    Parser& p_;
  };

  // ---- Names
  // ---------------------------------------------------------------------------------------

  void bind(const std::string& name, Expr e) {
    std::vector<Expr>& stack = names_[name];
    stack.push_back(std::move(e));
    undo_.push_back(&stack);
  }
  size_t mark() const { return undo_.size(); }
  void leave(size_t mark) {
    while (undo_.size() > mark) {
      undo_.back()->pop_back();
      undo_.pop_back();
    }
  }
  Expr lookup(const Token& t, char sigil) {
    std::string name(t.text);
    auto it = names_.find(sigil == '#' ? "#" + name : name);
    if (it != names_.end() && !it->second.empty()) return it->second.back();
    std::vector<std::string_view> known;
    for (const auto& [n, stack] : names_) {
      if (!stack.empty() && n[0] != '#') known.push_back(n);
    }
    fail(codes::text_unbound_name, span(t), "%" + name + " is not bound here",
         suggest(name, known));
  }

  GlobalVar global(const Token& t) {
    std::string name(t.text);
    auto it = globals_.find(name);
    if (it == globals_.end()) {
      it = globals_.emplace(name, std::make_pair(global_var(name), span(t))).first;
    }
    return it->second.first;
  }

  // ---- Top level
  // -------------------------------------------------------------------------------------

  void version(bool required) {
    if (is("#")) {
      try {
        take();
        expect("[");
        expect_word("version");
        expect("=");
        Token v = expect(TokenKind::string, "a version string");
        if (v.text != "\"0.0.5\"") {
          diags_
              .error(codes::text_bad_version, span(v),
                     "this version of the text format is not known")
              .expected("\"0.0.5\"")
              .found(std::string(v.text));
        }
        expect("]");
      } catch (const GiveUp&) {
      }
    } else if (required) {
      diags_.error(codes::text_bad_version, span(peek()), "a module starts with its version")
          .expected("#[version = \"0.0.5\"]")
          .help("put that line first");
    }
    after_version_ = at_;
  }

  // Data types may be used before they are defined: their names come first, then their
  // constructors.
  void declare_types() {
    std::vector<size_t> places;
    for (size_t i = at_; i + 1 < stream_.tokens.size(); ++i) {
      const Token& t = stream_.tokens[i];
      if (t.kind != TokenKind::identifier || t.text != "type") continue;
      const Token& name = stream_.tokens[i + 1];
      if (name.kind != TokenKind::identifier) continue;
      places.push_back(i);
      std::string text(name.text);
      if (!type_names_.emplace(text, global_type_var(text)).second) {
        diags_.error(codes::text_duplicate_name, span(name),
                     "the type " + text + " is defined twice");
      }
    }
    for (size_t place : places) {
      at_ = place + 1;
      bool is_extern = place > 0 && stream_.tokens[place - 1].text == "extern";
      try {
        types_.push_back(type_data(is_extern));
      } catch (const GiveUp&) {
      }
    }
  }

  TypeData type_data(bool is_extern) {
    Token name = take();
    size_t scope = type_vars_.size();
    std::vector<TypeVar> vars = type_params();
    std::vector<Constructor> constructors;
    GlobalTypeVar header = type_names_.at(std::string(name.text));
    if (!is_extern) {
      expect("{");
      while (!accept("}")) {
        Token c = expect(TokenKind::identifier, "a constructor's name or '}'");
        std::vector<Type> inputs;
        if (accept("(")) {
          while (!accept(")")) {
            inputs.push_back(type());
            if (!is(")")) expect(",");
          }
        }
        Constructor made = constructor(c, std::move(inputs), header, vars,
                                       static_cast<int64_t>(constructors.size()));
        constructors.push_back(made);
        if (!is("}")) expect(",");
      }
    }
    type_vars_.resize(scope);
    return make<TypeDataNode>([&](TypeDataNode& t) {
      t.header = header;
      t.type_vars = std::move(vars);
      t.constructors = std::move(constructors);
      t.span = span(name);
    });
  }

  Constructor constructor(const Token& name, std::vector<Type> inputs, const GlobalTypeVar& header,
                          const std::vector<TypeVar>& vars, int64_t tag) {
    std::string text(name.text);
    std::vector<Type> args(vars.begin(), vars.end());
    Type result = type_call(header, std::move(args));
    Constructor c = make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = text;
      n.inputs = inputs;
      n.belong_to = header;
      n.tag = tag;
      n.span = span(name);
      n.type = func_type(inputs, result, vars);
    });
    if (!constructors_.emplace(text, c).second) {
      diags_.error(codes::text_duplicate_name, span(name),
                   "the constructor " + text + " is defined twice");
    }
    return c;
  }

  void definition() {
    if (accept_word("extern")) {
      expect_word("type");
      take();
      if (is("[")) skip_brackets("[", "]");
      return;
    }
    if (accept_word("type")) {
      take();
      if (is("[")) skip_brackets("[", "]");
      if (is("{")) skip_brackets("{", "}");
      return;
    }
    if (!is_word("def")) unexpected("'def' or 'type'");
    take();
    Token name = expect(TokenKind::global, "a function's name, such as @main");
    GlobalVar g = global(name);
    if (!defined_.insert(std::string(name.text)).second) {
      diags_.error(codes::text_duplicate_name, span(name),
                   "the function @" + std::string(name.text) + " is defined twice");
    }
    Function f = function_rest(name);
    global_vars_.push_back(g);
    functions_.push_back(f);
  }

  void skip_brackets(std::string_view open, std::string_view close) {
    int depth = 0;
    while (peek().kind != TokenKind::end) {
      depth += is(open) ? 1 : is(close) ? -1 : 0;
      take();
      if (depth == 0) return;
    }
  }

  // Goes on behind a definition that could not be read.
  void next_definition(size_t begin) {
    leave(0);
    type_vars_.clear();
    depth_ = 0;
    at_ = std::max(at_, begin + 1);
    while (peek().kind != TokenKind::end) {
      bool starts = is_word("def") && peek(1).kind == TokenKind::global;
      if (starts || is_word("extern") ||
          (is_word("type") && peek(1).kind == TokenKind::identifier)) {
        return;
      }
      take();
    }
  }

  void check_globals() {
    for (const auto& [name, entry] : globals_) {
      if (defined_.contains(name)) continue;
      std::vector<std::string_view> known(defined_.begin(), defined_.end());
      diags_.error(codes::text_unbound_name, entry.second, "there is no function @" + name)
          .help(suggest(name, known));
    }
  }

  // ---- Types
  // -----------------------------------------------------------------------------------------

  std::vector<TypeVar> type_params() {
    std::vector<TypeVar> out;
    if (!accept("[")) return out;
    while (!accept("]")) {
      Token name = expect(TokenKind::identifier, "a type parameter's name");
      Kind kind = Kind::Type;
      if (accept(":")) {
        Token k = expect(TokenKind::identifier, "a kind");
        if (k.text == "Dim") {
          kind = Kind::Dim;
        } else if (k.text == "Shape") {
          kind = Kind::Shape;
        } else if (k.text == "BaseType") {
          kind = Kind::BaseType;
        } else if (k.text != "Type") {
          diags_.error(codes::text_unexpected_token, span(k), "there is no such kind")
              .expected("Type, BaseType, Shape or Dim")
              .found(std::string(k.text));
        }
      }
      out.push_back(type_var(std::string(name.text), kind));
      type_vars_.emplace_back(std::string(name.text), out.back());
      if (!is("]")) expect(",");
    }
    return out;
  }

  TypeVar find_type_var(std::string_view name) const {
    for (auto it = type_vars_.rbegin(); it != type_vars_.rend(); ++it) {
      if (it->first == name) return it->second;
    }
    return nullptr;
  }

  Type type() {
    Nest nest(*this);
    Token first = peek();
    if (accept("(")) {
      std::vector<Type> fields;
      bool comma = false;
      while (!accept(")")) {
        fields.push_back(type());
        comma = false;
        if (!is(")")) {
          expect(",");
          comma = true;
        }
      }
      // Parentheses around one type are just that.
      if (fields.size() == 1 && !comma) return fields[0];
      return tuple_type(std::move(fields));
    }
    Token name = expect(TokenKind::identifier, "a type");
    if (name.text == "_") return incomplete_type(Kind::Type, span(name));
    if (name.text == "Tensor") return tensor();
    if (name.text == "fn") {
      size_t scope = type_vars_.size();
      std::vector<TypeVar> vars = type_params();
      std::vector<Type> args;
      expect("(");
      while (!accept(")")) {
        args.push_back(type());
        if (!is(")")) expect(",");
      }
      expect("->");
      Type ret = type();
      type_vars_.resize(scope);
      return func_type(std::move(args), ret, std::move(vars));
    }
    if (name.text == "ref" && accept("(")) {
      Type inner = type();
      expect(")");
      return ref_type(inner);
    }
    if (TypeVar v = find_type_var(name.text)) {
      if (v->kind == Kind::BaseType) {
        return make<TensorTypeNode>([&](TensorTypeNode& t) { t.dtype_var = v; });
      }
      return v;
    }
    auto adt = type_names_.find(std::string(name.text));
    if (adt != type_names_.end()) {
      std::vector<Type> args;
      if (accept("[")) {
        while (!accept("]")) {
          args.push_back(type());
          if (!is("]")) expect(",");
        }
      }
      return type_call(adt->second, std::move(args));
    }
    if (auto dtype = DType::parse(name.text)) return scalar_type(*dtype);
    std::vector<std::string_view> known{"Tensor", "float32", "int64", "int32", "bool", "fn", "ref"};
    for (const auto& [n, v] : type_names_) known.push_back(n);
    fail(codes::text_unbound_name, span(first), "there is no type " + std::string(name.text),
         suggest(name.text, known));
  }

  Type tensor() {
    expect("[");
    std::vector<Dim> shape;
    TypeVar shape_var;
    if (peek().kind == TokenKind::identifier) {
      Token name = take();
      shape_var = find_type_var(name.text);
      if (!shape_var || shape_var->kind != Kind::Shape) {
        fail(codes::text_unbound_name, span(name), "there is no shape " + std::string(name.text),
             "declare it: [" + std::string(name.text) + ": Shape]");
      }
    } else {
      expect("(");
      while (!accept(")")) {
        shape.push_back(dimension());
        if (!is(")")) expect(",");
      }
    }
    expect(",");
    Token name = expect(TokenKind::identifier, "a dtype");
    expect("]");
    TypeVar dtype_var = find_type_var(name.text);
    auto dtype = DType::parse(name.text);
    if (!dtype && !(dtype_var && dtype_var->kind == Kind::BaseType)) {
      fail(codes::text_unbound_name, span(name), "there is no dtype " + std::string(name.text),
           suggest(name.text, {"float32", "float64", "float16", "bfloat16", "int8", "int16",
                               "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}));
    }
    return make<TensorTypeNode>([&](TensorTypeNode& t) {
      t.shape = std::move(shape);
      t.dtype = dtype.value_or(DType());
      t.shape_var = shape_var;
      t.dtype_var = dtype ? nullptr : dtype_var;
    });
  }

  Dim dimension() {
    Nest nest(*this);
    Dim left = dimension_term();
    while (is("+") || is("-")) {
      bool plus = take().text == "+";
      Dim right = dimension_term();
      left = plus ? left + right : left - right;
    }
    return left;
  }

  Dim dimension_term() {
    Dim left = dimension_atom();
    while (is("*") || is("//") || is("%")) {
      Token op = take();
      Dim right = dimension_atom();
      if (op.text != "*") {
        auto divisor = as_const(right);
        if (divisor && *divisor <= 0) {
          fail(codes::text_bad_literal, span(op), "a dimension is divided by a number below one");
        }
      }
      left = op.text == "*"    ? left * right
             : op.text == "//" ? floor_div(left, right)
                               : mod(left, right);
    }
    return left;
  }

  Dim dimension_atom() {
    Token t = take();
    if (t.kind == TokenKind::integer) {
      int64_t v = 0;
      if (!integer(t.text, v)) bad_number(t);
      return dim(v);
    }
    if (t.text == "?" && t.kind == TokenKind::symbol) return dim_any();
    if (t.text == "(" && t.kind == TokenKind::symbol) {
      Dim d = dimension();
      expect(")");
      return d;
    }
    if (t.kind == TokenKind::identifier) {
      if (t.text == "Any") return dim_any();
      if ((t.text == "max" || t.text == "min" || t.text == "ceildiv") && accept("(")) {
        Dim a = dimension();
        expect(",");
        Dim b = dimension();
        expect(")");
        return t.text == "max" ? max(a, b) : t.text == "min" ? min(a, b) : ceil_div(a, b);
      }
      TypeVar v = find_type_var(t.text);
      if (v && v->kind == Kind::Dim) return dim(v);
      fail(codes::text_unbound_name, span(t), "there is no dimension " + std::string(t.text),
           "declare it: [" + std::string(t.text) + ": Dim]");
    }
    if (at_ > 0) --at_;
    unexpected("a dimension: a number, ?, or a name");
  }

  // ---- Values
  // ----------------------------------------------------------------------------------------

  static bool integer(std::string_view text, int64_t& out) {
    std::string digits(text.substr(0, text.find('i')));
    errno = 0;
    char* end = nullptr;
    long long v = std::strtoll(digits.c_str(), &end, 10);
    out = v;
    return errno == 0 && end == digits.c_str() + digits.size();
  }
  [[noreturn]] void bad_number(const Token& t) {
    fail(codes::text_bad_literal, span(t), "this number does not fit its type");
  }
  static double floating(std::string_view text) {
    return std::strtod(std::string(text.substr(0, text.find('f'))).c_str(), nullptr);
  }

  // An attribute's value.
  Value value() {
    Nest nest(*this);
    bool negative = accept("-");
    Token t = take();
    switch (t.kind) {
      case TokenKind::integer: {
        int64_t v = 0;
        if (negative && t.text.starts_with("9223372036854775808")) return Value(INT64_MIN);
        if (!integer(t.text, v)) bad_number(t);
        return Value(negative ? -v : v);
      }
      case TokenKind::floating:
        return Value(negative ? -floating(t.text) : floating(t.text));
      case TokenKind::string: {
        std::string s;
        if (!text::unescape(t.text, s)) {
          fail(codes::text_bad_literal, span(t), "a string has an unknown escape",
               "known are \\n \\t \\r \\\" \\\\ \\xNN");
        }
        return Value(std::move(s));
      }
      case TokenKind::identifier:
        if (t.text == "True") return Value(true);
        if (t.text == "False") return Value(false);
        if (t.text == "None" || t.text == "nullptr") return Value();
        if (t.text == "inff" || t.text == "inf") return Value(negative ? -HUGE_VAL : HUGE_VAL);
        if (t.text == "nanf" || t.text == "nan") return Value(std::nan(""));
        break;
      case TokenKind::symbol:
        if (t.text == "[" || t.text == "(") {
          std::string_view close = t.text == "[" ? "]" : ")";
          ValueList list;
          while (!accept(close)) {
            list.push_back(value());
            if (!is(close)) expect(",");
          }
          return Value(std::move(list));
        }
        break;
      default:
        break;
    }
    if (t.kind != TokenKind::end) --at_;
    unexpected("an attribute's value: a number, a string, True, False, None or a list");
  }

  // ---- Expressions
  // -------------------------------------------------------------------------------------

  Function function_rest(const Token& first) {
    size_t scope = mark(), types = type_vars_.size();
    std::vector<TypeVar> vars = type_params();
    std::vector<Var> params;
    Dict attrs;
    expect("(");
    while (!accept(")")) {
      if (peek().kind == TokenKind::identifier) {
        std::string key(take().text);
        expect("=");
        attrs[key] = value();
      } else {
        Token name = expect(TokenKind::local, "a parameter, an attribute or ')'");
        Type annotation;
        if (accept(":")) annotation = type();
        for (const Var& p : params) {
          if (p->name_hint == name.text) {
            diags_.error(codes::text_duplicate_name, span(name),
                         "two parameters are called %" + std::string(name.text));
          }
        }
        Var p = var(std::string(name.text), annotation, span(name));
        params.push_back(p);
      }
      if (!is(")")) expect(",");
    }
    Type ret;
    if (accept("->")) ret = type();
    for (const Var& p : params) bind(p->name_hint, p);
    expect("{");
    Expr body = block();
    expect("}");
    leave(scope);
    type_vars_.resize(types);
    return function(std::move(params), body, ret, std::move(vars), std::move(attrs),
                    span_from(first));
  }

  // Lines up to a closing bracket: graph bindings, lets, statements, and the result.
  Expr block() {
    Nest nest(*this);
    size_t scope = mark();
    struct Line {
      Var var;
      Expr value;
      Span span;
    };
    std::vector<Line> lets;
    Expr result;
    while (true) {
      Token first = peek();
      if (first.kind == TokenKind::graph && peek(1).text == "=" &&
          peek(1).kind == TokenKind::symbol) {
        take();
        take();
        Expr e = expression();
        expect(";");
        bind("#" + std::string(first.text), e);
        continue;
      }
      if (accept_word("let")) {
        Token name = peek();
        if (name.kind == TokenKind::identifier && name.text == "_") {
          take();
        } else {
          expect(TokenKind::local, "a variable, such as %x");
        }
        Type annotation;
        if (accept(":")) annotation = type();
        expect("=");
        // A function's own name is known inside it; any other value does not see it.
        size_t before = mark();
        Var v = var(std::string(name.text), annotation, span(name));
        bool is_function = is_word("fn");
        if (is_function) bind(v->name_hint, v);
        Expr e = expression();
        expect(";");
        leave(before);
        if (!annotation && e->type && !is_function) v = var(v->name_hint, e->type, v->span);
        bind(std::string(name.text), v);
        lets.push_back({v, e, span_from(first)});
        continue;
      }
      result = expression();
      if (!accept(";")) break;
      // A statement: its value is not used.
      lets.push_back({var("_", result->type, span(first)), result, span_from(first)});
    }
    leave(scope);
    for (auto it = lets.rbegin(); it != lets.rend(); ++it) {
      result = let(it->var, it->value, result, it->span);
    }
    return result;
  }

  static int precedence(std::string_view op) {
    if (op == "*" || op == "/") return 12;
    if (op == "+" || op == "-") return 10;
    if (op == "<" || op == "<=" || op == ">" || op == ">=") return 8;
    if (op == "==" || op == "!=") return 7;
    return 0;
  }
  static std::string_view operator_of(std::string_view op) {
    if (op == "*") return "multiply";
    if (op == "/") return "divide";
    if (op == "+") return "add";
    if (op == "-") return "subtract";
    if (op == "<") return "less";
    if (op == "<=") return "less_equal";
    if (op == ">") return "greater";
    if (op == ">=") return "greater_equal";
    return op == "==" ? "equal" : "not_equal";
  }

  // Binary operators by precedence, all left associative, with a stack of what waits for its right
  // side.
  Expr expression() {
    struct Waiting {
      Expr left;
      std::string_view op;
      Token first;
    };
    std::vector<Waiting> stack;
    while (true) {
      Token first = peek();
      Expr operand = postfix();
      int p = peek().kind == TokenKind::symbol ? precedence(peek().text) : 0;
      while (!stack.empty() && precedence(stack.back().op) >= p) {
        Waiting w = std::move(stack.back());
        stack.pop_back();
        operand = call(operator_of(w.op), {w.left, operand}, nullptr, span_from(w.first));
        first = w.first;
      }
      if (p == 0) return operand;
      stack.push_back({operand, take().text, first});
    }
  }

  // Calls and projections behind an expression.
  Expr postfix() {
    Token first = peek();
    Expr e = primary();
    while (true) {
      if (is("(")) {
        e = call_rest(e, first);
      } else if (is(".") && peek(1).kind == TokenKind::integer) {
        take();
        Token t = take();
        int64_t index = 0;
        if (!integer(t.text, index)) bad_number(t);
        e = tuple_get_item(e, index, span_from(first));
      } else if (is(".") && peek(1).kind == TokenKind::floating) {
        // `%t.0.1` reads as `%t` `.` `0.1`.
        take();
        Token t = take();
        size_t dot = t.text.find('.');
        int64_t a = 0, b = 0;
        if (dot == std::string_view::npos || !integer(t.text.substr(0, dot), a) ||
            !integer(t.text.substr(dot + 1), b)) {
          bad_number(t);
        }
        e = tuple_get_item(tuple_get_item(e, a, span_from(first)), b, span_from(first));
      } else {
        return e;
      }
    }
  }

  Expr call_rest(const Expr& callee, const Token& first) {
    Nest nest(*this);
    expect("(");
    std::vector<Expr> args;
    std::vector<std::pair<std::string, Value>> attrs;
    while (!accept(")")) {
      if (peek().kind == TokenKind::identifier && peek(1).kind == TokenKind::symbol &&
          peek(1).text == "=") {
        std::string key(take().text);
        take();
        Value v = value();
        if (key != "attrs_type_key") attrs.emplace_back(std::move(key), std::move(v));
      } else {
        args.push_back(expression());
      }
      if (!is(")")) expect(",");
    }
    Span where = span_from(first);
    if (auto* op = as<OpNode>(callee)) {
      Attrs made;
      static const NodeInfo none{};
      if (op->row->attrs != nullptr) {
        made = make_attrs(*op->row->attrs, attrs, op->name, where);
      } else if (!attrs.empty()) {
        make_attrs(none, attrs, op->name, where);
      }
      return call(callee, std::move(args), made, where);
    }
    if (!attrs.empty()) {
      fail(codes::text_bad_attribute, where, "only operators take attributes");
    }
    return call(callee, std::move(args), nullptr, where);
  }

  Expr literal(const Token& t, bool negative) {
    if (t.kind == TokenKind::integer) {
      int64_t v = 0;
      if (!(negative && t.text.starts_with("9223372036854775808")) && !integer(t.text, v)) {
        bad_number(t);
      }
      if (v == 0 && t.text.starts_with("9223372036854775808")) v = INT64_MIN;
      if (negative && v != INT64_MIN) v = -v;
      size_t suffix = t.text.find('i');
      DType dtype = v >= INT32_MIN && v <= INT32_MAX ? DType::Int(32) : DType::Int(64);
      if (suffix != std::string_view::npos) {
        auto parsed = DType::parse("int" + std::string(t.text.substr(suffix + 1)));
        if (!parsed || !parsed->is_scalar()) bad_number(t);
        int64_t limit = parsed->bits >= 64 ? INT64_MAX : (int64_t{1} << (parsed->bits - 1)) - 1;
        if (v > limit || v < -limit - 1) bad_number(t);
        dtype = *parsed;
      }
      return constant(Tensor::scalar(v, dtype), span(t));
    }
    double v = floating(t.text);
    size_t suffix = t.text.find('f');
    DType dtype = DType::Float(32);
    if (suffix != std::string_view::npos && suffix + 1 < t.text.size()) {
      auto parsed = DType::parse("float" + std::string(t.text.substr(suffix + 1)));
      if (!parsed || !parsed->is_scalar()) bad_number(t);
      dtype = *parsed;
    }
    return constant(Tensor::scalar(negative ? -v : v, dtype), span(t));
  }

  Expr primary() {
    Nest nest(*this);
    Token t = peek();
    switch (t.kind) {
      case TokenKind::local:
        take();
        return lookup(t, '%');
      case TokenKind::graph:
        take();
        return lookup(t, '#');
      case TokenKind::global:
        take();
        return global(t);
      case TokenKind::integer:
      case TokenKind::floating:
        take();
        return literal(t, false);
      case TokenKind::symbol:
        return bracketed(t);
      case TokenKind::identifier:
        return word(t);
      default:
        unexpected("an expression");
    }
  }

  Expr bracketed(const Token& t) {
    if (accept("-")) {
      Token number = take();
      if (number.kind == TokenKind::integer || number.kind == TokenKind::floating) {
        return literal(number, true);
      }
      if (number.text.starts_with("inf")) return infinity(number, true);
      --at_;
      unexpected("a number: a minus belongs to literals (negative(%x) negates)");
    }
    if (accept("{")) {
      Expr e = block();
      expect("}");
      return e;
    }
    if (!accept("(")) unexpected("an expression");
    std::vector<Expr> fields;
    bool comma = false;
    while (!accept(")")) {
      fields.push_back(block());
      comma = false;
      if (!is(")")) {
        expect(",");
        comma = true;
      }
    }
    if (fields.size() == 1 && !comma) return fields[0];
    return tuple(std::move(fields), span_from(t));
  }

  Expr infinity(const Token& t, bool negative) {
    std::string_view bits = t.text.substr(t.text.find('f', 1) + 1);
    auto parsed = DType::parse("float" + std::string(bits.empty() || bits == "f" ? "32"
                                                     : bits[0] == 'f'            ? bits.substr(1)
                                                                                 : bits));
    if (!parsed) bad_number(t);
    return constant(Tensor::scalar(negative ? -HUGE_VAL : HUGE_VAL, *parsed), span(t));
  }

  Expr word(const Token& t) {
    take();
    if (t.text == "True" || t.text == "False") {
      return constant(Tensor::scalar(t.text == "True" ? 1 : 0, DType::Bool()), span(t));
    }
    if (t.text.starts_with("inff")) return infinity(t, false);
    if (t.text == "fn") return function_rest(t);
    if (t.text == "if") {
      expect("(");
      Expr cond = block();
      expect(")");
      expect("{");
      Expr then_branch = block();
      expect("}");
      expect_word("else");
      Expr else_branch;
      if (is_word("if")) {
        else_branch = primary();
      } else {
        expect("{");
        else_branch = block();
        expect("}");
      }
      return if_(cond, then_branch, else_branch, span_from(t));
    }
    if (t.text == "match") return match_rest(t);
    if (t.text == "ref" || t.text == "ref_read") {
      expect("(");
      Expr e = expression();
      expect(")");
      if (t.text == "ref") return ref_create(e, span_from(t));
      return ref_read(e, span_from(t));
    }
    if (t.text == "ref_write") {
      expect("(");
      Expr r = expression();
      expect(",");
      Expr v = expression();
      expect(")");
      return ref_write(r, v, span_from(t));
    }
    if (t.text == "meta") return meta_constant(t);
    auto c = constructors_.find(std::string(t.text));
    if (c != constructors_.end()) {
      // A constructor without fields is its value, each time anew.
      if (c->second->inputs.empty() && !is("(")) return call(c->second, {}, nullptr, span(t));
      return c->second;
    }
    std::vector<std::string_view> known;
    for (const auto& [name, made] : constructors_) known.push_back(name);
    if (Op op = OpRegistry::global().find(t.text)) return op;
    std::vector<Op> all = OpRegistry::global().all();
    for (const Op& op : all) known.push_back(op->name);
    fail(codes::text_unknown_operator, span(t),
         "there is no operator or constructor '" + std::string(t.text) + "'",
         suggest(t.text, known));
  }

  Expr meta_constant(const Token& t) {
    expect("[");
    Token kind = expect(TokenKind::identifier, "relay.Constant");
    expect("]");
    expect("[");
    Token number = expect(TokenKind::integer, "an index");
    expect("]");
    int64_t index = 0;
    if (!integer(number.text, index) || kind.text != "relay.Constant" ||
        index >= static_cast<int64_t>(constants_.size())) {
      fail(codes::text_bad_metadata, span_from(t), "the metadata section has no such entry",
           "the text must keep its #[metadata] section");
    }
    return constants_[static_cast<size_t>(index)];
  }

  Expr match_rest(const Token& t) {
    bool complete = !accept("?");
    expect("(");
    Expr data = block();
    expect(")");
    expect("{");
    std::vector<Clause> clauses;
    while (!accept("}")) {
      size_t scope = mark();
      Pattern lhs = pattern();
      expect("=>");
      Expr rhs;
      if (accept("{")) {
        rhs = block();
        expect("}");
      } else {
        rhs = expression();
      }
      leave(scope);
      clauses.push_back(clause(lhs, rhs));
      if (!is("}")) expect(",");
    }
    return match(data, std::move(clauses), complete, span_from(t));
  }

  template <class T, class Fill>
  Pattern make_pattern(const Token& first, Fill&& fill) {
    return make<T>([&](T& p) {
      fill(p);
      p.span = span_from(first);
    });
  }

  Pattern pattern() {
    Nest nest(*this);
    Token t = peek();
    if (t.kind == TokenKind::local) {
      take();
      Type annotation;
      if (accept(":")) annotation = type();
      Var v = var(std::string(t.text), annotation, span(t));
      bind(v->name_hint, v);
      return make_pattern<PatternVarNode>(t, [&](PatternVarNode& p) { p.var = v; });
    }
    auto parts = [&] {
      std::vector<Pattern> out;
      while (!accept(")")) {
        out.push_back(pattern());
        if (!is(")")) expect(",");
      }
      return out;
    };
    if (accept("(")) {
      std::vector<Pattern> patterns = parts();
      return make_pattern<PatternTupleNode>(
          t, [&](PatternTupleNode& p) { p.patterns = std::move(patterns); });
    }
    Token name = expect(TokenKind::identifier, "a pattern");
    if (name.text == "_") return make_pattern<PatternWildcardNode>(t, [](PatternWildcardNode&) {});
    auto c = constructors_.find(std::string(name.text));
    if (c == constructors_.end()) {
      std::vector<std::string_view> known;
      for (const auto& [n, made] : constructors_) known.push_back(n);
      fail(codes::text_unbound_name, span(name),
           "there is no constructor " + std::string(name.text), suggest(name.text, known));
    }
    std::vector<Pattern> patterns;
    if (accept("(")) patterns = parts();
    if (patterns.size() != c->second->inputs.size()) {
      diags_.error(codes::type_arity, span_from(t), "the pattern has the wrong number of parts")
          .expected(std::to_string(c->second->inputs.size()) + " for " + c->second->name_hint)
          .found(std::to_string(patterns.size()));
    }
    return make_pattern<PatternConstructorNode>(t, [&](PatternConstructorNode& p) {
      p.constructor = c->second;
      p.patterns = std::move(patterns);
    });
  }

  std::shared_ptr<const SourceFile> source_;
  Diagnostics& diags_;
  text::TokenStream stream_;
  size_t at_ = 0;
  size_t after_version_ = 0;
  int depth_ = 0;
  std::vector<Constant> constants_;
  std::unordered_map<std::string, std::vector<Expr>> names_;
  std::vector<std::vector<Expr>*> undo_;
  std::vector<std::pair<std::string, TypeVar>> type_vars_;
  std::map<std::string, GlobalTypeVar> type_names_;
  std::map<std::string, Constructor> constructors_;
  std::map<std::string, std::pair<GlobalVar, Span>> globals_;
  std::set<std::string> defined_;
  std::vector<TypeData> types_;
  std::vector<GlobalVar> global_vars_;
  std::vector<Function> functions_;
};

}  // namespace

Module parse_module(std::shared_ptr<const SourceFile> source) {
  Diagnostics diags;
  return Parser(std::move(source), diags).module();
}

Module parse_module(std::string name, std::string text) {
  return parse_module(SourceFile::make(std::move(name), std::move(text)));
}

Expr parse_expr(std::string name, std::string text, const std::map<std::string, Expr>& scope) {
  Diagnostics diags;
  return Parser(SourceFile::make(std::move(name), std::move(text)), diags).expression(scope);
}

Type parse_type(std::string text) {
  Diagnostics diags;
  return Parser(SourceFile::make("<type>", std::move(text)), diags).single_type();
}

Attrs parse_attrs(const NodeInfo& info, std::string text, std::string_view op_name) {
  Diagnostics diags;
  auto source = SourceFile::make("<attributes>", std::move(text));
  auto values = Parser(source, diags).attribute_list();
  return make_attrs(info, values, op_name, Span::range(source, 0, 1));
}

}  // namespace relay
