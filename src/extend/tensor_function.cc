#include "extend/tensor_function.h"
#include "base/quantities.h"

#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/codes/extensions.h"
#include "extend/operator.h"
#include "runtime/core/kernel_abi.h"
#include "tir/arith/analyzer.h"
#include "tir/arith/inside.h"
#include "tir/intrinsics.h"
#include "tir/joint_tensors.h"

namespace relay::extend {

using tir::BinaryOp;
using tir::Buffer;
using tir::DType;
using tir::PrimExpr;
using tir::Stmt;

namespace {

struct Line {
  size_t indent, begin, end;
  std::string comment;
};

// A size of a parameter: a number, or a name.
using Size = std::variant<int64_t, std::string>;
struct Parameter {
  std::string name;
  DType dtype;
  std::vector<Size> shape;
};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Operators by how strongly they bind, the longer of two that begin alike first.
struct Operator {
  std::string_view text;
  BinaryOp op;
  int binds;
};
constexpr Operator kOperators[] = {
    {"or", BinaryOp::Or, 1},        {"and", BinaryOp::And, 2},      {"==", BinaryOp::Eq, 4},
    {"!=", BinaryOp::Ne, 4},        {"<=", BinaryOp::Le, 4},        {">=", BinaryOp::Ge, 4},
    {"<<", BinaryOp::Shl, 8},       {">>", BinaryOp::Shr, 8},       {"<", BinaryOp::Lt, 4},
    {">", BinaryOp::Gt, 4},         {"|", BinaryOp::BitOr, 5},      {"^", BinaryOp::BitXor, 6},
    {"&", BinaryOp::BitAnd, 7},     {"+", BinaryOp::Add, 9},        {"-", BinaryOp::Sub, 9},
    {"*", BinaryOp::Mul, 10},       {"//", BinaryOp::FloorDiv, 10}, {"/", BinaryOp::Div, 10},
    {"%%", BinaryOp::FloorMod, 10}, {"%", BinaryOp::Mod, 10},
};
constexpr int kNot = 3;
// Statements and parentheses within one another, at most: texts are read by recursion.
constexpr int kMaxDepth = 200;

}  // namespace

struct TensorFunction::Text {
  std::string what;
  std::shared_ptr<const SourceFile> file;
  std::vector<Line> lines;
  std::string name;
  std::vector<Parameter> inputs, outputs;
};

namespace {

// Places in the text, words and punctuation.
class Cursor {
 public:
  Cursor(const std::string& what, const std::shared_ptr<const SourceFile>& file)
      : what_(what), file_(file), text_(file->text()) {}

  void enter(const Line& line) {
    at_ = line.begin;
    end_ = line.end;
  }
  [[noreturn]] void fail(size_t from, const std::string& message,
                         const std::string& help = {}) const {
    size_t to = std::min(std::max(from + 1, at_), text_.size());
    throw UserError(Diagnostic(codes::tensor_text,
                               Span::range(file_, static_cast<uint32_t>(std::min(from, to)),
                                           static_cast<uint32_t>(to)),
                               what_ + ": " + message)
                        .help(help));
  }
  size_t place() {
    while (at_ < end_ && text_[at_] == ' ') ++at_;
    return at_;
  }
  bool at_end() { return place() == end_; }
  char next() { return at_end() ? '\0' : text_[at_]; }
  // Takes the text if it is next; a word only as a whole.
  bool take(std::string_view wanted) {
    if (std::string_view(text_).substr(place(), std::min(wanted.size(), end_ - at_)) != wanted)
      return false;
    size_t behind = at_ + wanted.size();
    if (is_letter(wanted.back()) && behind < end_ && is_letter(text_[behind])) return false;
    at_ = behind;
    return true;
  }
  void expect(std::string_view wanted) {
    size_t from = place();
    if (!take(wanted)) fail(from, "'" + std::string(wanted) + "' is expected here");
  }
  std::string word(const char* kind) {
    size_t from = place();
    while (at_ < end_ && is_letter(text_[at_])) ++at_;
    if (from == at_ || is_digit(text_[from])) {
      at_ = from;
      fail(from, std::string(kind) + " is expected here");
    }
    return text_.substr(from, at_ - from);
  }
  // Digits, with a point and an exponent; the text of the number.
  std::string number() {
    size_t from = place();
    auto digits = [&] {
      while (at_ < end_ && is_digit(text_[at_])) ++at_;
    };
    digits();
    if (at_ < end_ && text_[at_] == '.') ++at_, digits();
    if (at_ < end_ && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < end_ && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      digits();
    }
    return text_.substr(from, at_ - from);
  }
  void finish() {
    if (!at_end()) fail(at_, "nothing more is expected on this line");
  }

 private:
  const std::string& what_;
  const std::shared_ptr<const SourceFile>& file_;
  const std::string& text_;
  size_t at_ = 0, end_ = 0;
};

// The statements of a function, on buffers for its parameters.
class Reader {
 public:
  Reader(const std::string& what, const std::shared_ptr<const SourceFile>& file,
         const std::vector<Line>& lines)
      : in_(what, file), lines_(lines) {}

  void name(const std::string& name, const PrimExpr& value) { values_[name] = value; }
  void name(const std::string& name, const Buffer& buffer, bool is_written) {
    buffers_[name] = {buffer, is_written, 0};
  }
  Stmt body() {
    line_ = 1;
    if (lines_.size() < 2 || lines_[1].indent == 0)
      in_.fail(lines_[0].begin, "the function has no statements");
    Stmt out = block(lines_[1].indent);
    if (line_ < lines_.size()) in_.fail(lines_[line_].begin, "this line is indented as no other");
    return out;
  }

 private:
  struct Known {
    Buffer buffer;
    bool is_written = true;
    int parallel = 0;  // how many parallel loops it is in
  };
  // What holds for the rest of a block.
  using Around = std::function<Stmt(Stmt)>;

  struct Deeper {
    explicit Deeper(Reader& reader, size_t from) : reader_(reader) {
      if (++reader.depth_ > kMaxDepth) reader.in_.fail(from, "this nests too deep");
    }
    ~Deeper() { --reader_.depth_; }
    Reader& reader_;
  };

  // ---- Statements

  Stmt block(size_t indent) {
    Deeper deeper(*this, lines_[line_].begin);
    auto values = values_;
    auto buffers = buffers_;
    std::vector<std::variant<Stmt, Around>> items;
    while (line_ < lines_.size() && lines_[line_].indent >= indent) {
      const Line& line = lines_[line_];
      if (line.indent > indent) in_.fail(line.begin, "this line is indented deeper than its block");
      in_.enter(line);
      std::variant<Stmt, Around> item = statement(line);
      for (Stmt& check : std::exchange(checks_, {})) items.emplace_back(std::move(check));
      items.push_back(std::move(item));
    }
    values_ = std::move(values);
    buffers_ = std::move(buffers);
    std::vector<Stmt> rest;
    for (size_t i = items.size(); i-- > 0;) {
      if (auto* stmt = std::get_if<Stmt>(&items[i])) {
        rest.insert(rest.begin(), *stmt);
      } else {
        rest = {std::get<Around>(items[i])(tir::seq(std::move(rest)))};
      }
    }
    return tir::seq(std::move(rest));
  }

  // The lines below, which are indented deeper.
  Stmt inner(const Line& line) {
    in_.expect(":");
    in_.finish();
    ++line_;
    if (line_ >= lines_.size() || lines_[line_].indent <= line.indent)
      in_.fail(line.begin, "a block is expected below this line");
    // What was checked is checked in front of the statement, not in it.
    auto outer = std::exchange(checks_, {});
    Stmt out = block(lines_[line_].indent);
    checks_ = std::move(outer);
    return out;
  }

  std::variant<Stmt, Around> statement(const Line& line) {
    size_t from = in_.place();
    if (in_.take("for")) return loop(line);
    if (in_.take("if")) return choice(line);
    std::variant<Stmt, Around> out;
    if (in_.take("pass")) {
      out = tir::seq({});
    } else if (in_.take("let")) {
      out = let();
    } else if (in_.take("allocate")) {
      out = allocation();
    } else if (in_.take("check")) {
      PrimExpr cond = condition();
      if (in_.take("else")) in_.number();
      out = tir::check(cond, RELAY_KERNEL_CHECK_FAILED,
                       line.comment.empty() ? "a check does not hold" : line.comment);
    } else {
      out = assignment(from);
    }
    in_.finish();
    ++line_;
    return out;
  }

  Stmt loop(const Line& line) {
    std::string name = in_.word("the name of the loop's variable");
    in_.expect("in");
    bool parallel = in_.take("parallel");
    if (!parallel) in_.expect("range");
    in_.expect("(");
    size_t from = in_.place();
    reads_ = false;
    PrimExpr first = index(), extent = first;
    if (in_.take(",")) {
      extent = index() - first;
    } else {
      first = tir::index(0);
    }
    if (reads_)
      in_.fail(from, "a loop's range is read from memory", "give what is read a name: let n = ...");
    in_.expect(")");
    tir::Var var = tir::var(name);
    auto value = values_.find(name);
    std::optional<PrimExpr> before;
    if (value != values_.end()) before = value->second;
    values_[name] = var;
    analyzer_.bind(var, first, extent);
    parallel_ += parallel ? 1 : 0;
    Stmt body = inner(line);
    parallel_ -= parallel ? 1 : 0;
    if (before) {
      values_[name] = *before;
    } else {
      values_.erase(name);
    }
    return tir::for_(var, first, extent, body,
                     parallel ? tir::ForKind::Parallel : tir::ForKind::Serial);
  }

  Stmt choice(const Line& line) {
    reads_ = false;
    PrimExpr cond = condition();
    // What is read from memory may change below.
    bool is_fact = !reads_;
    auto under = [&](const PrimExpr& fact) {
      std::optional<tir::Analyzer::Scope> scope;
      if (is_fact) scope.emplace(analyzer_.assume(fact));
      return inner(line);
    };
    Stmt yes = under(cond), no;
    if (line_ < lines_.size() && lines_[line_].indent == line.indent) {
      in_.enter(lines_[line_]);
      if (in_.take("else")) no = under(tir::logical_not(cond));
    }
    return tir::if_(cond, yes, no);
  }

  Around let() {
    std::string name = in_.word("a name");
    in_.expect("=");
    PrimExpr value = expression();
    tir::Var var = tir::var(name, value->dtype);
    values_[name] = var;
    return [var, value](Stmt rest) { return tir::let_stmt(var, value, std::move(rest)); };
  }

  Around allocation() {
    std::string name = in_.word("a name");
    in_.expect(":");
    DType type = dtype();
    in_.expect("[");
    size_t from = in_.place();
    reads_ = false;
    std::vector<PrimExpr> shape = list("]", [&] { return index(); });
    if (reads_) in_.fail(from, "a size is read from memory; sizes come from parameters");
    Buffer made = tir::buffer(name, type, std::move(shape), tir::Scope::Local);
    buffers_[name] = {made, true, parallel_};
    return [made](Stmt rest) { return tir::allocate(made, std::move(rest)); };
  }

  Stmt assignment(size_t from) {
    std::string name = in_.word("a statement");
    const Known& to = known(name, from);
    if (!to.is_written)
      in_.fail(from, "'" + name + "' is read only: what is behind '->' is written");
    if (to.parallel != parallel_ && !is_parameter(to)) {
      in_.fail(from,
               "the iterations of a parallel loop would change '" + name + "' at the same time",
               "allocate it within the loop");
    }
    std::vector<PrimExpr> at = indices(to.buffer, from);
    check_inside(to.buffer, at);
    in_.expect("=");
    size_t right = in_.place();
    PrimExpr value = expression();
    if (value->dtype != to.buffer->dtype) {
      in_.fail(right,
               "'" + name + "' holds " + to.buffer->dtype.to_string() + ", and this is " +
                   value->dtype.to_string(),
               "convert it: " + to.buffer->dtype.to_string() + "(...)");
    }
    return tir::store(to.buffer, std::move(at), value);
  }

  // ---- Parts

  static bool is_parameter(const Known& k) { return k.buffer->scope != tir::Scope::Local; }

  const Known& known(const std::string& name, size_t from) {
    auto it = buffers_.find(name);
    if (it == buffers_.end()) in_.fail(from, "there is no buffer '" + name + "'");
    return it->second;
  }

  DType dtype() {
    size_t from = in_.place();
    std::string word = in_.word("a dtype");
    auto type = DType::parse(word);
    if (!type || type->is_string()) in_.fail(from, "'" + word + "' is not a dtype of elements");
    return *type;
  }

  template <class F>
  std::vector<PrimExpr> list(std::string_view end, const F& item) {
    std::vector<PrimExpr> out;
    while (!in_.take(end)) {
      if (!out.empty()) in_.expect(",");
      out.push_back(item());
    }
    return out;
  }

  PrimExpr index() {
    size_t from = in_.place();
    PrimExpr e = expression();
    if (!e->dtype.is_integer())
      in_.fail(from, "an integer is expected, and this is " + e->dtype.to_string());
    return e->dtype == tir::kIndex ? e : tir::cast(tir::kIndex, e);
  }
  PrimExpr condition() {
    size_t from = in_.place();
    PrimExpr e = expression();
    if (!e->dtype.is_bool())
      in_.fail(from, "a condition is a bool, and this is " + e->dtype.to_string());
    return e;
  }

  std::vector<PrimExpr> indices(const Buffer& buffer, size_t from) {
    in_.expect("[");
    std::vector<PrimExpr> out = list("]", [&] { return index(); });
    if (out.size() != buffer->shape.size()) {
      in_.fail(from, "'" + buffer->name + "' has " + counted(buffer->shape.size(), "axis") +
                         ", not " + std::to_string(out.size()));
    }
    return out;
  }

  // A check, in front of the statement, unless the indices are known to be inside.
  void check_inside(const Buffer& buffer, const std::vector<PrimExpr>& at) {
    if (PrimExpr inside = tir::inside_condition(analyzer_, at, buffer)) {
      checks_.push_back(tir::check(inside, RELAY_KERNEL_INDEX_OUT_OF_BOUNDS,
                                   "an index is outside of " + buffer->name));
    }
  }

  // ---- Expressions

  PrimExpr expression(int weakest = 0) {
    size_t from = in_.place();
    Deeper deeper(*this, from);
    PrimExpr left = weakest <= kNot && in_.take("not") ? negated(from) : unary();
    for (;;) {
      const Operator* found = nullptr;
      size_t at = in_.place();
      for (const Operator& o : kOperators) {
        if (o.binds > weakest && in_.take(o.text)) {
          found = &o;
          break;
        }
      }
      if (found == nullptr) return left;
      // The right side is not computed where the left decides: its reads are guarded.
      bool decides = found->op == BinaryOp::And || found->op == BinaryOp::Or;
      guarded_ += decides ? 1 : 0;
      PrimExpr right = expression(found->binds);
      guarded_ -= decides ? 1 : 0;
      left = combined(*found, left, right, at);
    }
  }

  PrimExpr negated(size_t from) {
    PrimExpr a = expression(kNot);
    if (!a->dtype.is_bool()) in_.fail(from, "'not' is of bools");
    return tir::logical_not(a);
  }

  PrimExpr combined(const Operator& o, const PrimExpr& a, const PrimExpr& b, size_t at) {
    std::string text = "'" + std::string(o.text) + "'";
    if (a->dtype != b->dtype) {
      in_.fail(
          at,
          "the sides of " + text + " are " + a->dtype.to_string() + " and " + b->dtype.to_string(),
          "convert one: " + a->dtype.to_string() + "(...)");
    }
    DType d = a->dtype;
    bool logical = o.binds <= 2;
    bool of_integers = (o.binds >= 5 && o.binds <= 8) || o.op == BinaryOp::FloorDiv ||
                       o.op == BinaryOp::FloorMod || o.op == BinaryOp::Mod;
    bool equality = o.op == BinaryOp::Eq || o.op == BinaryOp::Ne;
    if (logical != d.is_bool() && !(d.is_bool() && equality))
      in_.fail(at,
               text + " is of " + (logical ? "bools" : "numbers") + ", not of " + d.to_string());
    if (of_integers && !d.is_integer())
      in_.fail(at, text + " is of integers, not of " + d.to_string());
    return tir::binary(o.op, a, b);
  }

  PrimExpr unary() {
    size_t from = in_.place();
    Deeper deeper(*this, from);
    if (!in_.take("-")) return primary();
    PrimExpr a = unary();
    if (a->dtype.is_bool()) in_.fail(from, "'-' is of numbers");
    return tir::binary(BinaryOp::Sub, tir::imm(a->dtype, 0), a);
  }

  PrimExpr primary() {
    size_t from = in_.place();
    if (in_.take("(")) {
      PrimExpr e = expression();
      in_.expect(")");
      return e;
    }
    if (is_digit(in_.next())) return literal(from);
    std::string name = in_.word("a value");
    if (name == "True" || name == "False") return tir::boolean(name == "True");
    for (const auto& [word, value] :
         {std::pair<std::string, double>{"inf", std::numeric_limits<double>::infinity()},
          {"nan", std::numeric_limits<double>::quiet_NaN()}}) {
      if (name == word) return tir::imm_float(DType::Float(64), value);
      if (name == word + "f") return tir::imm_float(DType::Float(32), value);
    }
    if (in_.next() == '[') return element(name, from);
    if (in_.take("(")) return called(name, from);
    auto it = values_.find(name);
    if (it == values_.end()) in_.fail(from, "there is no value '" + name + "'");
    return it->second;
  }

  PrimExpr literal(size_t from) {
    std::string text = in_.number();
    bool is_integer = text.find_first_not_of("0123456789") == std::string::npos;
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (in_.take("f")) return tir::imm_float(DType::Float(32), value);
    if (!is_integer) return tir::imm_float(DType::Float(64), value);
    int64_t whole = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), whole).ec != std::errc())
      in_.fail(from, "this number is too large for an int64");
    return tir::index(whole);
  }

  PrimExpr element(const std::string& name, size_t from) {
    const Buffer buffer = known(name, from).buffer;
    std::vector<PrimExpr> at = indices(buffer, from);
    reads_ = true;
    if (guarded_ == 0) {
      check_inside(buffer, at);
      return tir::load(buffer, std::move(at));
    }
    PrimExpr inside = tir::inside_condition(analyzer_, at, buffer);
    PrimExpr read = tir::load(buffer, std::move(at));
    return inside ? tir::select(inside, read, tir::imm(buffer->dtype, 0)) : read;
  }

  PrimExpr called(const std::string& name, size_t from) {
    if (name == "select") {
      PrimExpr cond = condition();
      ++guarded_;
      in_.expect(",");
      PrimExpr yes = expression();
      in_.expect(",");
      PrimExpr no = expression();
      --guarded_;
      in_.expect(")");
      if (yes->dtype != no->dtype) in_.fail(from, "the values of select are of two dtypes");
      return tir::select(cond, yes, no);
    }
    std::vector<PrimExpr> args = list(")", [&] { return expression(); });
    if (name == "min" || name == "max") {
      bool fit = args.size() == 2 && args[0]->dtype == args[1]->dtype && !args[0]->dtype.is_bool();
      if (!fit) in_.fail(from, name + " is of two numbers of one dtype");
      return tir::binary(name == "min" ? BinaryOp::Min : BinaryOp::Max, args[0], args[1]);
    }
    if (auto type = DType::parse(name); type && !type->is_string()) {
      if (args.size() != 1) in_.fail(from, "one value is converted at a time");
      return args[0]->dtype == *type ? args[0] : tir::cast(*type, args[0]);
    }
    const tir::Intrinsic* row = tir::find_intrinsic(name);
    using Rule = tir::IntrinsicRule;
    constexpr std::array kOffered{Rule::Float, Rule::Number, Rule::Integer, Rule::Test};
    if (row == nullptr || std::find(kOffered.begin(), kOffered.end(), row->rule) == kOffered.end())
      in_.fail(from, "there is no function '" + name + "'");
    if (static_cast<int>(args.size()) != row->arity)
      in_.fail(from, name + " takes " + counted(row->arity, "argument"));
    DType result = row->rule == Rule::Test ? DType::Bool() : args[0]->dtype;
    if (auto defect = tir::intrinsic_defect(name, result, args))
      in_.fail(from, name + ": " + *defect);
    return tir::call(name, result, std::move(args));
  }

  Cursor in_;
  const std::vector<Line>& lines_;
  size_t line_ = 0;
  std::map<std::string, PrimExpr> values_;
  std::map<std::string, Known> buffers_;
  tir::Analyzer analyzer_;
  std::vector<Stmt> checks_;
  bool reads_ = false;
  int guarded_ = 0, parallel_ = 0, depth_ = 0;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> out;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    Line line{0, begin, end, {}};
    if (size_t comment = std::string_view(text).substr(begin, end - begin).find('#');
        comment != std::string_view::npos) {
      line.end = begin + comment;
      size_t words = text.find_first_not_of("# ", line.end);
      if (words < end) line.comment = text.substr(words, end - words);
    }
    while (line.begin < line.end && text[line.begin] == ' ') ++line.begin;
    while (line.end > line.begin && (text[line.end - 1] == ' ' || text[line.end - 1] == '\r'))
      --line.end;
    line.indent = line.begin - begin;
    if (line.begin < line.end) out.push_back(std::move(line));
    begin = end + 1;
  }
  // The first line may be indented as the text of a program around it is.
  size_t least = out.empty() ? 0 : out.front().indent;
  for (Line& line : out) line.indent -= std::min(line.indent, least);
  return out;
}

std::vector<Parameter> parameters(Cursor& in) {
  std::vector<Parameter> out;
  in.expect("(");
  while (!in.take(")")) {
    if (!out.empty()) in.expect(",");
    Parameter p;
    size_t from = in.place();
    p.name = in.word("the name of a parameter");
    in.expect(":");
    from = in.place();
    std::string word = in.word("a dtype");
    auto type = DType::parse(word);
    if (!type || type->is_string()) in.fail(from, "'" + word + "' is not a dtype of elements");
    p.dtype = *type;
    in.expect("[");
    while (!in.take("]")) {
      if (!p.shape.empty()) in.expect(",");
      if (is_digit(in.next())) {
        from = in.place();
        std::string digits = in.number();
        int64_t size = 0;
        auto read = std::from_chars(digits.data(), digits.data() + digits.size(), size);
        if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
          in.fail(from, "'" + digits + "' is not a size");
        p.shape.emplace_back(size);
      } else {
        p.shape.emplace_back(in.word("a size"));
      }
    }
    out.push_back(std::move(p));
  }
  return out;
}

std::string text_of(const Parameter& p) {
  std::string out = p.dtype.to_string() + "[";
  for (size_t i = 0; i < p.shape.size(); ++i) {
    if (i > 0) out += ", ";
    auto* number = std::get_if<int64_t>(&p.shape[i]);
    out += number != nullptr ? std::to_string(*number) : std::get<std::string>(p.shape[i]);
  }
  return out + "]";
}

using SizeValues = std::map<std::string, PrimExpr>;

std::vector<PrimExpr> shape_of(const Parameter& p, const SizeValues& sizes) {
  std::vector<PrimExpr> out;
  for (const Size& s : p.shape) {
    auto* number = std::get_if<int64_t>(&s);
    out.push_back(number != nullptr ? tir::index(*number) : sizes.at(std::get<std::string>(s)));
  }
  return out;
}

}  // namespace

TensorFunction TensorFunction::read(const std::string& what, const std::string& text) {
  auto out = std::make_shared<Text>();
  out->what = what;
  out->file = SourceFile::make("<" + what + ">", text);
  out->lines = lines_of(text);
  Cursor in(out->what, out->file);
  if (out->lines.empty()) in.fail(0, "the text is empty");
  in.enter(out->lines[0]);
  size_t from = in.place();
  in.expect("def");
  out->name = in.word("the name of the function");
  out->inputs = parameters(in);
  in.expect("->");
  size_t behind = in.place();
  out->outputs = parameters(in);
  if (out->outputs.empty()) in.fail(behind, "a tensor function writes one tensor at least");
  in.expect(":");
  in.finish();
  // It is read once with any sizes, so that what is wrong is said now.
  SizeValues sizes;
  std::map<std::string, int> names;
  for (const Parameter& p : out->inputs) {
    for (const Size& s : p.shape) {
      if (auto* name = std::get_if<std::string>(&s)) sizes.try_emplace(*name, tir::var(*name));
    }
  }
  for (const auto* list : {&out->inputs, &out->outputs}) {
    for (const Parameter& p : *list) {
      if (++names[p.name] > 1 || sizes.contains(p.name))
        in.fail(from, "two things are called '" + p.name + "'");
    }
  }
  for (const Parameter& p : out->outputs) {
    for (const Size& s : p.shape) {
      auto* name = std::get_if<std::string>(&s);
      if (name != nullptr && !sizes.contains(*name))
        in.fail(behind, "the size " + *name + " of '" + p.name + "' is that of no input");
    }
  }
  Reader reader(out->what, out->file, out->lines);
  for (const auto& [name, size] : sizes) reader.name(name, size);
  for (const Parameter& p : out->inputs)
    reader.name(p.name, tir::buffer(p.name, p.dtype, shape_of(p, sizes)), false);
  for (const Parameter& p : out->outputs)
    reader.name(p.name, tir::buffer(p.name, p.dtype, shape_of(p, sizes)), true);
  reader.body();
  return TensorFunction(std::move(out));
}

size_t TensorFunction::num_inputs() const { return text_->inputs.size(); }

Type TensorFunction::relation(const std::vector<Type>& args, const Span& call) const {
  std::map<std::string, Dim> sizes;
  for (size_t i = 0; i < args.size(); ++i) {
    const Parameter& p = text_->inputs[i];
    auto refuse = [&] {
      refuse_result(text_->what, "the argument " + p.name, call, text_of(p), to_string(args[i]));
    };
    auto* type = as<TensorTypeNode>(args[i]);
    if (type == nullptr || type->dtype != p.dtype || type->shape.size() != p.shape.size()) refuse();
    for (size_t d = 0; d < p.shape.size(); ++d) {
      auto* number = std::get_if<int64_t>(&p.shape[d]);
      const Dim& known =
          number != nullptr
              ? dim(*number)
              : sizes.try_emplace(std::get<std::string>(p.shape[d]), type->shape[d]).first->second;
      if (dim_differs(known, type->shape[d])) refuse();
    }
  }
  std::vector<Type> out;
  for (const Parameter& p : text_->outputs) {
    std::vector<Dim> shape;
    for (const Size& s : p.shape) {
      auto* number = std::get_if<int64_t>(&s);
      shape.push_back(number != nullptr ? dim(*number) : sizes.at(std::get<std::string>(s)));
    }
    out.push_back(tensor_type(std::move(shape), p.dtype));
  }
  return out.size() == 1 ? out[0] : Type(tuple_type(out));
}

std::vector<tir::Tensor> TensorFunction::compute(const std::vector<tir::Tensor>& inputs) const {
  SizeValues sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i]->shape().size(); ++d) {
      if (auto* name = std::get_if<std::string>(&text_->inputs[i].shape[d]))
        sizes.try_emplace(*name, inputs[i]->shape()[d]);
    }
  }
  std::vector<tir::JointOutput> outputs;
  for (const Parameter& p : text_->outputs)
    outputs.push_back({p.name, p.dtype, shape_of(p, sizes)});
  auto write = [text = text_, sizes](const std::vector<Buffer>& in,
                                     const std::vector<Buffer>& out) {
    Reader reader(text->what, text->file, text->lines);
    for (const auto& [name, size] : sizes) reader.name(name, size);
    for (size_t i = 0; i < in.size(); ++i) reader.name(text->inputs[i].name, in[i], false);
    for (size_t i = 0; i < out.size(); ++i) reader.name(text->outputs[i].name, out[i], true);
    return reader.body();
  };
  return tir::joint_tensors(outputs, inputs, write);
}

}  // namespace relay::extend
