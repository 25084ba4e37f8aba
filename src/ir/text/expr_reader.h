// The reader of expressions: an operator precedence reader whose open brackets, lines, branches,
// clauses and operators lie on a stack.
//
// `read` alternates between two states. Where an operand is expected, it reads one that stands
// alone (a name, a literal) or opens one that has parts. Behind an operand come calls,
// projections and operators; what is complete then is given to what is innermost open, which asks
// for its next part or is complete itself.
//
//   read_expr.cc    the two states, operands and calls, and going on behind errors
//   read_blocks.cc  what has parts in braces: branches, clauses, functions, lines
#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "ir/text/reader.h"

namespace relay::text {

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
    // The current line.
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
    std::vector<std::pair<std::string, AttrValue>> attrs{};
    std::unordered_set<std::string_view> names{};  // of the attributes
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
    std::unordered_set<std::string_view> param_names{};
    Type ret{};
    Dict attrs{};
  };
  struct Reference {
    Token first;
    std::vector<Expr> args{};
  };
  using Open = std::variant<Lines, Waiting, Arguments, Parentheses, Braces, Branches, Clauses, Body,
                            Reference>;

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

  Expr read();
  // Calls, projections and operators behind an operand. The whole expression when nothing is open
  // any more; null when an operand is expected.
  Expr behind(Expr e);
  // Gives a complete expression to what is innermost open. What that makes and what may be called
  // or projected; null when it asks for an operand. At the end nothing is open.
  Expr give(Expr e);

  // ---- Operands

  // An operand that stands alone; null when one with parts was opened.
  Expr operand();
  Expr bracket();
  Expr word();
  Expr operator_or_constructor();
  Expr meta_constant();
  Expr projection(Expr e);

  // ---- Calls

  // Reads attributes up to the next argument; false at the end of the call.
  bool attributes();
  Expr close_call();
  // A reference's operation has its next operand in `e`.
  Expr reference_part(Reference& ref, Expr e);

  // ---- Branches and clauses

  Expr open_branches(bool chained);
  // `e` is the condition or a branch. The whole, or null when the next part is expected.
  Expr branch(Branches& b, const Expr& e);
  // `e` is the matched value or the right side of a clause.
  Expr clause_part(Clauses& c, Expr e);
  Expr open_clause();
  Expr close_clauses();

  // ---- Functions

  // Reads the head, "[A](%x: A, Inline=1) -> A {".
  Expr open_function(const Token& first);
  void parameter(Body& f);

  // ---- Lines

  // Lines are opened where an operand is expected: the null says so.
  Expr open_lines(bool braces);
  // Reads what stands before the value of a line.
  void open_line();
  // `e` is the value of the line. True when another line follows; it is opened.
  bool line_goes_on(Lines& l, const Expr& e);
  Expr close_lines(Expr result);

  // ---- Errors

  // Goes on at the next line of the innermost braces, with a stand-in for what could not be read.
  // An operand, or null when one is expected; gives up when the braces are not closed before the
  // next definition.
  Expr recover();

  Reader& r_;
  std::vector<Open> open_;
  Token first_;  // where the current operand starts
};

}  // namespace relay::text
