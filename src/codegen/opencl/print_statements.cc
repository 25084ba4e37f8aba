#include "codegen/opencl/print_statements.h"

#include "base/budget.h"
#include "tir/while.h"

namespace relay::codegen {

using tir::as_int;
using tir::BufferNode;
using tir::CallNode;
using tir::DType;
using tir::ForNode;
using tir::PrimExpr;
using tir::Stmt;
using tir::StmtNode;

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

void StatementPrinter::allocate(const BufferNode& b) {
  if (DeviceKernel::is_small(b)) {
    const std::string name = fresh(identifier(b.name));
    line(stored_type(b.dtype.element()) + " " + name + "[" +
         std::to_string(*DeviceKernel::constant_elements(b)) + "];");
    places_[&b] = {name, ""};
    return;
  }
  // A part of working memory for each item.
  std::string elements = "1L";
  for (const PrimExpr& d : b.shape) elements = elements + " * " + value(d);
  const std::string first = fresh("slice");
  line("const long " + first +
       " = ((get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + "
       "get_global_id(0)) * (" +
       elements + ");");
  places_.at(&b).first = first;
}

const StatementPrinter::Place& StatementPrinter::place(const BufferNode& b) const {
  auto known = places_.find(&b);
  RELAY_CHECK(known != places_.end(), "a buffer that the kernel does not have");
  return known->second;
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
