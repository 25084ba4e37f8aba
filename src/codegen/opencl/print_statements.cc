#include "codegen/opencl/print_statements.h"

#include <algorithm>
#include <map>

#include "base/budget.h"
#include "tir/while.h"

namespace relay::codegen {

using runtime::SizeFormula;
using tir::as_int;
using tir::BinaryNode;
using tir::BinaryOp;
using tir::BufferNode;
using tir::CallNode;
using tir::DType;
using tir::ForNode;
using tir::PrimExpr;
using tir::Stmt;
using tir::StmtNode;

namespace {

// Buffers of an item that are at most as large are the item's own memory; larger ones are working memory of the kernel.
constexpr int64_t kItemBytes = 4096;
constexpr int64_t kMostElements = int64_t{1} << 24;

}  // namespace

std::optional<std::string> StatementPrinter::formula(const PrimExpr& e) const {
  if (auto v = as_int(e)) return std::to_string(*v);
  if (auto* c = as<tir::CastNode>(e)) {
    const bool keeps = c->dtype.is_integer() && c->dtype.bits >= 32 && c->value->dtype.is_integer();
    return keeps ? formula(c->value) : std::nullopt;
  }
  if (e->kind() == tir::ExprKind::Var) {
    for (size_t i = 0; i < f_.dims.size(); ++i) {
      if (f_.dims[i].get() == e.get()) return "d" + std::to_string(i);
    }
    return std::nullopt;
  }
  auto* n = as<BinaryNode>(e);
  if (n == nullptr || !n->dtype.is_integer()) return std::nullopt;
  static const std::map<BinaryOp, std::string> words{
      {BinaryOp::Add, "+"},      {BinaryOp::Sub, "-"},      {BinaryOp::Mul, "*"},
      {BinaryOp::FloorDiv, "/"}, {BinaryOp::FloorMod, "%"}, {BinaryOp::Min, "min"},
      {BinaryOp::Max, "max"}};
  auto word = words.find(n->op);
  if (word == words.end()) return std::nullopt;
  auto a = formula(n->a), b = formula(n->b);
  if (!a || !b) return std::nullopt;
  return *a + " " + *b + " " + word->second;
}

SizeFormula StatementPrinter::bytes_of(const BufferNode& b) const {
  std::string out = std::to_string(b.dtype.element().bytes());
  for (const PrimExpr& d : b.shape) {
    auto size = formula(d);
    if (!size) unsupported("memory of a size that is no formula of the call's sizes");
    out += " " + *size + " *";
  }
  return SizeFormula(out);
}

void StatementPrinter::statement(const StmtNode& s) {
  check_budget();
  forget(0);
  switch (s.kind()) {
    case tir::StmtKind::Seq:
      for (const Stmt& inner : static_cast<const tir::SeqNode&>(s).stmts) statement(*inner.get());
      return;
    case tir::StmtKind::Store:
      return store(static_cast<const tir::StoreNode&>(s));
    case tir::StmtKind::For:
      return loop(static_cast<const ForNode&>(s));
    case tir::StmtKind::While: {
      auto& w = static_cast<const tir::WhileNode&>(s);
      line("for (;;) {");
      ++indent_;
      count_uses({w.cond});
      line("if (!" + value(w.cond) + ") break;");
      statement(*w.body.get());
      return close();
    }
    case tir::StmtKind::If: {
      auto& i = static_cast<const tir::IfNode&>(s);
      count_uses({i.cond});
      line("if (" + value(i.cond) + ") {");
      ++indent_;
      statement(*i.then_body.get());
      --indent_;
      if (i.else_body) {
        line("} else {");
        ++indent_;
        statement(*i.else_body.get());
        --indent_;
      }
      return line("}");
    }
    case tir::StmtKind::Allocate: {
      auto& a = static_cast<const tir::AllocateNode&>(s);
      allocate(*a.buffer.get());
      return statement(*a.body.get());
    }
    case tir::StmtKind::LetStmt: {
      auto& l = static_cast<const tir::LetStmtNode&>(s);
      count_uses({l.value});
      const std::string v = value(l.value);
      line("const " + type_of(l.var->dtype) + " " + bind(*l.var.get()) + " = " + v + ";");
      return statement(*l.body.get());
    }
    case tir::StmtKind::Check: {
      auto& c = static_cast<const tir::CheckNode&>(s);
      count_uses({c.cond});
      may_fail_ = true;
      line("if (!" + value(c.cond) + ") {");
      line("  " + helper("relay_fail") + "(relay_failed, relay_number, " + std::to_string(c.error) +
           ");");
      line("  return;");
      return line("}");
    }
    case tir::StmtKind::Evaluate: {
      auto* c = as<CallNode>(static_cast<const tir::EvaluateNode&>(s).value);
      if (c != nullptr && c->name == "prefetch") return;
      count_uses({static_cast<const tir::EvaluateNode&>(s).value});
      return line("(void)" + value(static_cast<const tir::EvaluateNode&>(s).value) + ";");
    }
    default:
      unsupported("the statement " + std::string(s.info().name));
  }
}

void StatementPrinter::open(const StmtNode& s) {
  forget(0);
  if (auto* l = as<tir::LetStmtNode>(&s)) {
    const std::string v = value(l->value);
    line("const " + type_of(l->var->dtype) + " " + bind(*l->var.get()) + " = " + v + ";");
  } else {
    auto& i = static_cast<const tir::IfNode&>(s);
    line("if (!" + value(i.cond) + ") return;");
  }
}

void StatementPrinter::loop(const ForNode& f) {
  open_loop(f);
  statement(*f.body.get());
  close();
}

void StatementPrinter::open_loop(const ForNode& f) {
  if (f.hints.nest != tir::LoopNest::None) unsupported("a nest for a matrix unit");
  count_uses({f.min, f.extent});
  const std::string type = type_of(f.var->dtype);
  std::string first = value(f.min), end;
  if (as_int(f.min) == 0) {
    end = value(f.extent);
  } else {
    end = first + " + " + value(f.extent);
  }
  if (!as_int(f.min)) first = temporary(type, first);
  if (!as_int(f.extent)) end = temporary(type, end);
  const std::string v = bind(*f.var.get());
  if (f.hints.order == tir::LoopOrder::Backward) {
    line("for (" + type + " " + v + " = " + end + " - 1; " + v + " >= " + first + "; --" + v +
         ") {");
  } else {
    line("for (" + type + " " + v + " = " + first + "; " + v + " < " + end + "; ++" + v + ") {");
  }
  ++indent_;
}

std::optional<int64_t> StatementPrinter::constant_elements(const BufferNode& b) {
  int64_t out = 1;
  for (const PrimExpr& d : b.shape) {
    auto size = as_int(d);
    if (!size || (out > 0 && *size > kMostElements / out)) return std::nullopt;
    out *= *size;
  }
  return std::max<int64_t>(out, 1);
}

bool StatementPrinter::is_small(const BufferNode& b) {
  auto elements = constant_elements(b);
  return elements && *elements * static_cast<int64_t>(b.dtype.element().bytes()) <= kItemBytes;
}

void StatementPrinter::allocate(const BufferNode& b) {
  const std::string name = fresh(identifier(b.name));
  if (is_small(b)) {
    line(stored_type(b.dtype.element()) + " " + name + "[" + std::to_string(*constant_elements(b)) +
         "];");
    places_[&b] = {name, ""};
    return;
  }
  // A part of working memory for each item.
  std::string elements = "1L";
  for (const PrimExpr& d : b.shape) elements = elements + " * " + value(d);
  auto [slice, fresh_slice] = slices_.try_emplace(&b, f_.params.size() + source_.workspace.size());
  if (fresh_slice) {
    source_.workspace.emplace_back(bytes_of(b).text() + " " + all_items_ + " *");
  }
  const std::string first = fresh("slice");
  line("const long " + first +
       " = ((get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + "
       "get_global_id(0)) * (" +
       elements + ");");
  places_[&b] = {name, first};
}

const StatementPrinter::Place& StatementPrinter::place(const BufferNode& b) {
  auto known = places_.find(&b);
  if (known != places_.end()) return known->second;
  RELAY_CHECK(numbers_.contains(&b), "a buffer that the kernel does not have");
  return places_[&b] = {identifier(b.name) + "_" + std::to_string(numbers_.at(&b)), ""};
}

void StatementPrinter::store(const tir::StoreNode& s) {
  std::vector<PrimExpr> all = s.indices;
  all.push_back(s.value);
  if (s.predicate) all.push_back(s.predicate);
  count_uses(all);
  if (s.predicate) {
    line("if (" + value(s.predicate) + ") {");
    ++indent_;
  }
  const std::string v = value(s.value), at = element(*s.buffer.get(), s.indices);
  const DType d = s.buffer->dtype.element();
  line(at + " = " +
       (is_half(d)    ? helper("relay_bits_" + half_name(d), v)
        : d.is_bool() ? "(uchar)" + v
                      : v) +
       ";");
  if (s.predicate) close();
}

std::string StatementPrinter::element(const BufferNode& b, const std::vector<PrimExpr>& indices) {
  RELAY_CHECK(indices.size() == 1, "an access that is not flat");
  const std::string at = value(indices[0]);
  const Place& p = place(b);
  return p.name + "[" + (p.first.empty() ? at : p.first + " + " + at) + "]";
}

}  // namespace relay::codegen
