// Patterns of match.
#include "base/codes/text.h"
#include "base/codes/types.h"
#include "ir/op.h"
#include "ir/text/reader.h"

namespace relay::text {
namespace {

class PatternReader {
 public:
  explicit PatternReader(Reader& r) : r_(r) {}

  Pattern read() {
    while (true) {
      Pattern p = operand();
      while (p && !open_.empty()) {
        open_.back().parts.push_back(p);
        p = r_.more(")") ? Pattern() : close();
      }
      if (p) return p;
    }
  }

 private:
  enum class What { tuple, constructor, unknown };
  struct Open {
    What what;
    Token first;
    Constructor constructor{};
    std::vector<Pattern> parts{};
  };

  template <class T, class Fill>
  Pattern make_pattern(const Token& first, Fill&& fill) {
    return make<T>([&](T& p) {
      fill(p);
      p.span = r_.span_from(first);
    });
  }
  Pattern wildcard(const Token& first) {
    return make_pattern<PatternWildcardNode>(first, [](PatternWildcardNode&) {});
  }

  // A pattern without parts; null when one with parts was opened.
  Pattern operand() {
    Token first = r_.peek();
    if (r_.accept("(")) return parts({What::tuple, first});
    if (first.kind == TokenKind::local) {
      r_.take();
      Type annotation;
      if (r_.accept(":")) annotation = read_type(r_);
      Var v = var(std::string(first.text), annotation, r_.span(first));
      for (const Var& other : variables_) {
        if (other->name_hint != v->name_hint) continue;
        r_.report(codes::text_duplicate_name, r_.span(first),
                  "the pattern has two variables %" + v->name_hint)
            .help("give each its own name; values are compared with an operator, not a pattern")
            .note(other->span, "the other one");
      }
      variables_.push_back(v);
      r_.locals.bind(v->name_hint, v);
      return make_pattern<PatternVarNode>(first, [&](PatternVarNode& p) { p.var = v; });
    }
    r_.expect(TokenKind::identifier, "a pattern");
    if (first.text == "_") return wildcard(first);
    auto c = r_.constructors.find(first.text);
    if (c == r_.constructors.end()) {
      r_.unknown(codes::text_unbound_name, first,
                 "there is no constructor " + std::string(first.text), [&] {
                   std::vector<std::string_view> known;
                   for (const auto& [n, made] : r_.constructors) known.push_back(n);
                   return known;
                 });
      return r_.accept("(") ? parts({What::unknown, first}) : wildcard(first);
    }
    Open o{What::constructor, first, c->second};
    if (r_.accept("(")) return parts(std::move(o));
    open_.push_back(std::move(o));
    return close();
  }

  Pattern parts(Open o) {
    open_.push_back(std::move(o));
    return r_.accept(")") ? close() : Pattern();
  }

  // The innermost open pattern, with all its parts.
  Pattern close() {
    Open o = std::move(open_.back());
    open_.pop_back();
    if (o.what == What::unknown) return wildcard(o.first);
    if (o.what == What::tuple) {
      return make_pattern<PatternTupleNode>(
          o.first, [&](PatternTupleNode& p) { p.patterns = std::move(o.parts); });
    }
    if (o.parts.size() != o.constructor->inputs.size()) {
      r_.report(codes::type_arity, r_.span_from(o.first),
                "the pattern has the wrong number of parts")
          .expected(std::to_string(o.constructor->inputs.size()) + " for " +
                    o.constructor->name_hint)
          .found(std::to_string(o.parts.size()));
    }
    return make_pattern<PatternConstructorNode>(o.first, [&](PatternConstructorNode& p) {
      p.constructor = o.constructor;
      p.patterns = std::move(o.parts);
    });
  }

  Reader& r_;
  std::vector<Open> open_;
  std::vector<Var> variables_;
};

}  // namespace

Pattern read_pattern(Reader& r) { return PatternReader(r).read(); }

}  // namespace relay::text
