// Types, dimensions and type parameters.
#include <algorithm>
#include <iterator>

#include "base/codes/text.h"
#include "ir/op.h"
#include "ir/text/reader.h"

namespace relay::text {
namespace {

// ---- Dimensions: an operator precedence reader

// What is written like a call.
std::optional<DimOpKind> of_two_sizes(std::string_view name) {
  if (name == "max") return DimOpKind::Max;
  if (name == "min") return DimOpKind::Min;
  if (name == "ceildiv") return DimOpKind::CeilDiv;
  if (name == "broadcast") return DimOpKind::Broadcast;
  return std::nullopt;
}

class DimReader {
 public:
  explicit DimReader(Reader& r) : r_(r) {}

  Dim read() {
    const Token first = r_.peek();
    while (true) {
      Dim d = operand();
      if (!d) continue;
      // What is complete here goes to what waits for it.
      while (true) {
        int level = r_.is("+") || r_.is("-") ? 1 : r_.is("*") || r_.is("//") || r_.is("%") ? 2 : 0;
        while (!open_.empty() && open_.back().level >= std::max(level, 1)) d = apply(d);
        if (level > 0) {
          open_.push_back({level, r_.take(), d});
          break;
        }
        if (open_.empty()) {
          if (as_const(d).value_or(0) >= 0) return d;
          r_.fail(codes::text_bad_literal, r_.span(first), "a dimension is below zero");
        }
        if (!close(d)) break;
      }
    }
  }

 private:
  // An operator with its left side, or a bracket (level 0) whose `left` is the first argument of
  // max, min or ceildiv.
  struct Open {
    int level;
    Token token;
    Dim left;
  };

  // A dimension in one token; null when a bracket was opened.
  Dim operand() {
    // A name and a negative number make a sum: (n + -4).
    const bool negative = r_.is("-") && r_.peek(1).kind == TokenKind::integer;
    if (negative) r_.take();
    const Token& t = r_.peek();
    if (t.kind == TokenKind::integer) {
      auto v = read_integer(r_.take());
      if (!v) r_.fail(codes::text_bad_literal, r_.span(t), "this number does not fit its type");
      return dim(negative ? -*v : *v);
    }
    if (r_.accept("?") || r_.accept_word("Any")) return dim_any();
    if (r_.is("(")) {
      open_.push_back({0, r_.take(), nullptr});
      return nullptr;
    }
    if (t.kind != TokenKind::identifier) r_.unexpected("a dimension: a number, ?, or a name");
    if (r_.is("(", 1) && of_two_sizes(t.text)) {
      open_.push_back({0, r_.take(), nullptr});
      r_.take();
      return nullptr;
    }
    Token name = r_.take();
    if (TypeVar v = r_.type_var_of(name, Kind::Dim, "dimension")) return dim(v);
    std::string text(name.text);
    r_.fail(codes::text_unbound_name, r_.span(name), "there is no dimension " + text,
            "declare it: [" + text + ": Dim]");
  }

  Dim apply(const Dim& right) {
    Open o = std::move(open_.back());
    open_.pop_back();
    if (o.token.text == "+") return o.left + right;
    if (o.token.text == "-") return o.left - right;
    if (o.token.text == "*") return o.left * right;
    auto divisor = as_const(right);
    if (divisor && *divisor <= 0) {
      r_.fail(codes::text_bad_literal, r_.span(o.token),
              "a dimension is divided by a number below one");
    }
    return o.token.text == "//" ? floor_div(o.left, right) : mod(o.left, right);
  }

  // Ends the innermost bracket with its last part in `d`, or notes the first of two parts.
  bool close(Dim& d) {
    Open& o = open_.back();
    bool pair = o.token.kind == TokenKind::identifier;
    if (pair && !o.left) {
      r_.expect(",");
      o.left = d;
      return false;
    }
    r_.expect(")");
    if (pair) {
      d = dim_op(*of_two_sizes(o.token.text), o.left, d);
    }
    open_.pop_back();
    return true;
  }

  Reader& r_;
  std::vector<Open> open_;
};

// Behind `Tensor`.
Type tensor(Reader& r) {
  r.expect("[");
  std::vector<Dim> shape;
  TypeVar shape_var;
  if (r.peek().kind == TokenKind::identifier) {
    Token name = r.take();
    std::string text(name.text);
    shape_var = r.type_var_of(name, Kind::Shape, "shape");
    if (!shape_var) {
      r.fail(codes::text_unbound_name, r.span(name), "there is no shape " + text,
             "declare it: [" + text + ": Shape]");
    }
  } else {
    r.expect("(");
    if (!r.accept(")")) {
      do {
        shape.push_back(DimReader(r).read());
      } while (r.more(")"));
    }
  }
  r.expect(",");
  Token name = r.expect(TokenKind::identifier, "a dtype");
  r.expect("]");
  auto dtype = DType::parse(name.text);
  TypeVar dtype_var = dtype ? nullptr : r.type_var_of(name, Kind::BaseType, "base type");
  if (!dtype && !dtype_var) {
    r.unknown(codes::text_unbound_name, name, "there is no dtype " + std::string(name.text), [] {
      return std::vector<std::string_view>{"float32", "float64", "float16", "bfloat16", "int8",
                                           "int16",   "int32",   "int64",   "uint8",    "uint16",
                                           "uint32",  "uint64",  "bool"};
    });
    return incomplete_type(Kind::Type, r.span(name));
  }
  return make<TensorTypeNode>([&](TensorTypeNode& t) {
    t.shape = std::move(shape);
    t.dtype = dtype.value_or(DType());
    t.shape_var = shape_var;
    t.dtype_var = dtype_var;
  });
}

// ---- Types

class TypeReader {
 public:
  explicit TypeReader(Reader& r) : r_(r) {}

  Type read() {
    while (true) {
      Type t = operand();
      while (t && !open_.empty()) t = give(t);
      if (t) return t;
    }
  }

 private:
  enum class What { parentheses, ref, data, arguments, result };
  struct Open {
    What what;
    std::vector<Type> parts{};
    GlobalTypeVar header{};
    std::vector<TypeVar> vars{};
    size_t scope = 0;
  };

  // Whether what comes is an argument of a data type that is a dimension and not just a name.
  bool at_dim() {
    if (open_.empty() || open_.back().what != What::data) return false;
    size_t first = 0;
    while (r_.is("(", first)) ++first;
    const Token& t = r_.peek(first);
    if (t.kind == TokenKind::integer || r_.is("?", first)) return true;
    bool call = r_.is("(", first + 1);
    if (call && of_two_sizes(t.text)) return true;
    const TypeVar* v =
        t.kind == TokenKind::identifier ? r_.type_vars.find(std::string(t.text)) : nullptr;
    return v != nullptr && (*v)->kind == Kind::Dim;
  }

  // A type without parts; null when one with parts was opened.
  Type operand() {
    if (at_dim()) {
      Dim d = DimReader(r_).read();
      auto* name = as<DimVarNode>(d);
      return name == nullptr ? Type::unchecked(d) : Type(name->var);
    }
    if (r_.accept("(")) {
      if (r_.accept(")")) return tuple_type({});
      open_.push_back({What::parentheses});
      return nullptr;
    }
    Token name = r_.expect(TokenKind::identifier, "a type");
    std::string text(name.text);
    if (text == "_") return incomplete_type(Kind::Type, r_.span(name));
    if (text == "Tensor") return tensor(r_);
    if (text == "fn") return function();
    if (text == "ref" && r_.accept("(")) {
      open_.push_back({What::ref});
      return nullptr;
    }
    if (const TypeVar* v = r_.type_vars.find(text)) {
      if ((*v)->kind != Kind::BaseType) return *v;
      return make<TensorTypeNode>([&](TensorTypeNode& t) { t.dtype_var = *v; });
    }
    auto data = r_.types.find(text);
    if (data != r_.types.end()) {
      if (!r_.accept("[") || r_.accept("]")) return type_call(data->second, {});
      open_.push_back({What::data, {}, data->second});
      return nullptr;
    }
    if (auto dtype = DType::parse(text)) return scalar_type(*dtype);
    r_.unknown(codes::text_unbound_name, name, "there is no type " + text, [&] {
      std::vector<std::string_view> known{"Tensor", "float32", "int64", "int32",
                                          "bool",   "fn",      "ref"};
      for (const auto& [n, v] : r_.types) known.push_back(n);
      return known;
    });
    if (r_.is("[")) r_.skip_brackets();
    return incomplete_type(Kind::Type, r_.span(name));
  }

  Type function() {
    size_t scope = r_.type_vars.mark();
    open_.push_back({What::arguments, {}, {}, read_type_params(r_), scope});
    r_.expect("(");
    if (r_.accept(")")) behind_arguments();
    return nullptr;
  }
  void behind_arguments() {
    r_.expect("->");
    open_.back().what = What::result;
  }

  // Gives a complete type to the innermost open one; what that makes, or null when it goes on.
  Type give(const Type& part) {
    Open& o = open_.back();
    Type made;
    switch (o.what) {
      case What::parentheses: {
        o.parts.push_back(part);
        bool comma = r_.is(",");
        if (r_.more(")")) return nullptr;
        // Parentheses around one type are just that.
        made = o.parts.size() == 1 && !comma ? part : tuple_type(std::move(o.parts));
        break;
      }
      case What::ref:
        r_.expect(")");
        made = ref_type(part);
        break;
      case What::data:
        o.parts.push_back(part);
        if (r_.more("]")) return nullptr;
        made = type_call(o.header, std::move(o.parts));
        break;
      case What::arguments:
        o.parts.push_back(part);
        if (!r_.more(")")) behind_arguments();
        return nullptr;
      case What::result:
        r_.type_vars.leave(o.scope);
        made = func_type(std::move(o.parts), part, std::move(o.vars));
        break;
    }
    open_.pop_back();
    return made;
  }

  Reader& r_;
  std::vector<Open> open_;
};

}  // namespace

Type read_type(Reader& r) { return TypeReader(r).read(); }

Dim read_dim(Reader& r) { return DimReader(r).read(); }

bool at_symbolic_dim(const Reader& r, bool in_list) {
  auto is_operator = [&](size_t ahead) {
    return r.is("+", ahead) || r.is("-", ahead) || r.is("*", ahead) || r.is("//", ahead) ||
           r.is("%", ahead);
  };
  if (r.is("(")) {
    // Of one thing: an expression where something is done with it, or in it, else a list.
    size_t depth = 0, ahead = 0;
    bool computes = false;
    do {
      if (r.peek(ahead).kind == TokenKind::end || (depth == 1 && r.is(",", ahead))) return false;
      computes |= is_operator(ahead) && !r.is("(", ahead - 1);
      if (r.is("(", ahead)) ++depth;
      if (r.is(")", ahead)) --depth;
      ++ahead;
    } while (depth > 0);
    return computes || is_operator(ahead);
  }
  size_t first = r.is("-") ? 1 : 0;
  const Token& t = r.peek(first);
  if (t.kind == TokenKind::integer) return is_operator(first + 1);
  if (t.kind != TokenKind::identifier || first > 0) return false;
  if (r.type_vars.find(std::string(t.text)) != nullptr) return true;
  if (of_two_sizes(t.text) && r.is("(", 1)) return true;
  static constexpr std::string_view kWords[] = {"True", "False", "None", "nullptr",
                                                "inf",  "inff",  "nan",  "nanf"};
  return in_list && std::ranges::find(kWords, t.text) == std::end(kWords);
}

std::vector<TypeVar> read_type_params(Reader& r) {
  std::vector<TypeVar> out;
  if (!r.accept("[") || r.accept("]")) return out;
  do {
    Token name = r.expect(TokenKind::identifier, "a type parameter's name");
    Kind kind = Kind::Type;
    if (r.accept(":")) {
      Token k = r.expect(TokenKind::identifier, "a kind");
      bool known = false;
      for (Kind candidate : {Kind::Type, Kind::BaseType, Kind::Shape, Kind::Dim}) {
        if (k.text != to_string(candidate)) continue;
        kind = candidate;
        known = true;
      }
      if (!known) {
        r.report(codes::text_unexpected_token, r.span(k), "there is no such kind")
            .expected("Type, BaseType, Shape or Dim")
            .found(std::string(k.text));
        throw GiveUp();
      }
    }
    std::string text(name.text);
    for (const TypeVar& v : out) {
      if (v->name_hint != text) continue;
      r.report(codes::text_duplicate_name, r.span(name), "two type parameters are called " + text);
    }
    out.push_back(type_var(text, kind));
    r.type_vars.bind(text, out.back());
  } while (r.more("]"));
  return out;
}

}  // namespace relay::text
