#include "tir/text.h"

#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "tir/block_contraction.h"
#include "tir/schedule_report.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

// Binding strength, as in Python; a side that binds weaker is put in parentheses.
int precedence(const Node& n) {
  if (isa<NotNode>(&n)) return 3;
  if (isa<LetNode>(&n)) return 0;
  auto* b = as<BinaryNode>(&n);
  if (b == nullptr) return 20;
  switch (b->op) {
    case BinaryOp::Or:
      return 1;
    case BinaryOp::And:
      return 2;
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge:
      return 4;
    case BinaryOp::BitOr:
      return 5;
    case BinaryOp::BitXor:
      return 6;
    case BinaryOp::BitAnd:
      return 7;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return 8;
    case BinaryOp::Add:
    case BinaryOp::Sub:
      return 9;
    case BinaryOp::Min:
    case BinaryOp::Max:
      return 20;
    default:
      return 10;
  }
}

std::string float_text(DType dtype, double v) {
  std::string text;
  if (std::isnan(v)) {
    text = "nan";
  } else if (std::isinf(v)) {
    text = v < 0 ? "-inf" : "inf";
  } else {
    char digits[40];
    char* end = dtype.bits == 64
                    ? std::to_chars(digits, digits + sizeof digits, v).ptr
                    : std::to_chars(digits, digits + sizeof digits, static_cast<float>(v)).ptr;
    text.assign(digits, end);
  }
  return dtype.is_float(32) ? text + "f" : dtype.to_string() + "(" + text + ")";
}

std::string int_text(DType dtype, int64_t v) {
  if (dtype.is_bool()) return v ? "True" : "False";
  std::string text = dtype.is_uint() ? std::to_string(static_cast<uint64_t>(v)) : std::to_string(v);
  return dtype == kIndex ? text : dtype.to_string() + "(" + text + ")";
}

class Printer {
 public:
  std::string print(const NodeRef& node) {
    push(node);
    while (!stack_.empty()) {
      Item item = std::move(stack_.back());
      stack_.pop_back();
      if (auto* text = std::get_if<std::string>(&item.what)) {
        out_ += *text;
      } else {
        indent_ = item.indent;
        emit(std::get<NodeRef>(item.what), item.parentheses);
      }
      if (!pieces_.empty()) {
        stack_.insert(stack_.end(), std::make_move_iterator(pieces_.rbegin()),
                      std::make_move_iterator(pieces_.rend()));
        pieces_.clear();
      }
    }
    return std::move(out_);
  }

 private:
  struct Item {
    std::variant<std::string, NodeRef> what;
    int indent = 0;
    bool parentheses = false;
  };

  void push(const NodeRef& node) { stack_.push_back(Item{node, 0, false}); }

  // What a node is made of; put on the stack in reverse when the node is done.
  void put(std::string text) { pieces_.push_back(Item{std::move(text), 0, false}); }
  void put(const NodeRef& node, bool parentheses = false) {
    pieces_.push_back(Item{node, indent_, parentheses});
  }
  void put_operand(const PrimExpr& e, int weakest) { put(e, precedence(*e.get()) < weakest); }
  template <class T>
  void put_list(const std::vector<T>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(", ");
      put(items[i]);
    }
  }
  void put_line(int deeper = 0) {
    put(std::string(static_cast<size_t>(2 * (indent_ + deeper)), ' '));
  }
  void put_body(const NodeRef& stmt, int deeper = 1) {
    pieces_.push_back(Item{stmt, indent_ + deeper, false});
  }

  std::string name(const Node* n, const std::string& wanted) {
    auto it = names_.find(n);
    if (it != names_.end()) return it->second;
    std::string base = wanted.empty() ? "v" : wanted;
    std::string text = base;
    for (int& count = counts_[base]; !taken_.insert(text).second;) {
      text = base + "_" + std::to_string(++count);
    }
    names_.emplace(n, text);
    return text;
  }
  std::string name(const Buffer& b) { return name(b.get(), b->name); }
  std::string name(const Var& v) { return name(v.get(), v->name); }

  void put_indices(const Buffer& b, const std::vector<PrimExpr>& indices,
                   const PrimExpr& predicate) {
    put(name(b) + "[");
    put_list(indices);
    if (predicate) {
      put(" if ");
      put(predicate);
    }
    put("]");
  }

  void put_buffer_type(const Buffer& b) {
    put(name(b) + ": " + b->dtype.to_string() + "[");
    put_list(b->shape);
    put("]");
    if (!b->within.empty()) {
      put(" within [");
      put_list(b->within);
      put("]");
    }
    if (b->scope != Scope::Global) put(" in " + std::string(to_string(b->scope)));
  }

  void emit(const NodeRef& node, bool parentheses) {
    if (!node) return put("None");
    if (parentheses) put("(");
    const Node& n = *node.get();
    if (isa<PrimExprNode>(&n)) {
      emit_expr(n);
    } else if (isa<StmtNode>(&n)) {
      emit_stmt(n);
    } else if (auto* f = as<PrimFuncNode>(&n)) {
      emit_function(*f);
    } else if (auto* r = as<RegionNode>(&n)) {
      emit_region(*r);
    } else if (auto* b = as<BufferNode>(&n)) {
      put_buffer_type(relay::ref(*b));
    } else if (auto* i = as<IterVarNode>(&n)) {
      put(name(i->var) + " in range(");
      if (as_int(i->min) != 0) {
        put(i->min);
        put(", ");
        put(i->min + i->extent);
      } else {
        put(i->extent);
      }
      put(")");
    } else {
      put("<" + std::string(n.info().name) + ">");
    }
    if (parentheses) put(")");
  }

  void emit_expr(const Node& n) {
    switch (n.kind()) {
      case ExprKind::Var:
        return put(name(&n, as<VarNode>(&n)->name));
      case ExprKind::IntImm:
        return put(int_text(as<IntImmNode>(&n)->dtype, as<IntImmNode>(&n)->value));
      case ExprKind::FloatImm:
        return put(float_text(as<FloatImmNode>(&n)->dtype, as<FloatImmNode>(&n)->value));
      case ExprKind::Binary:
        return emit_binary(*as<BinaryNode>(&n));
      case ExprKind::Not:
        put("not ");
        return put_operand(as<NotNode>(&n)->a, 4);
      case ExprKind::Select: {
        auto* s = as<SelectNode>(&n);
        put("select(");
        put_list(std::vector<PrimExpr>{s->cond, s->true_value, s->false_value});
        return put(")");
      }
      case ExprKind::Cast:
        put(as<CastNode>(&n)->dtype.to_string() + "(");
        put(as<CastNode>(&n)->value);
        return put(")");
      case ExprKind::Call: {
        auto* c = as<CallNode>(&n);
        put(c->name + "(");
        put_list(c->args);
        return put(")");
      }
      case ExprKind::Load: {
        auto* l = as<LoadNode>(&n);
        return put_indices(l->buffer, l->indices, l->predicate);
      }
      case ExprKind::Ramp: {
        auto* r = as<RampNode>(&n);
        put_operand(r->base, 9);
        put(":");
        put_operand(r->stride, 20);
        return put(":x" + std::to_string(r->dtype.lanes));
      }
      case ExprKind::Broadcast: {
        auto* b = as<BroadcastNode>(&n);
        put("x" + std::to_string(b->dtype.lanes) + "(");
        put(b->value);
        return put(")");
      }
      case ExprKind::Let: {
        auto* l = as<LetNode>(&n);
        put("let " + name(l->var) + " = ");
        put_operand(l->value, 1);
        put(" in ");
        return put(l->body);
      }
      case ExprKind::Reduce: {
        auto* r = as<ReduceNode>(&n);
        put(std::string(to_string(r->combiner)) + "(");
        put_list(r->source);
        for (const IterVar& axis : r->axes) {
          put(" for ");
          put(axis);
        }
        put(")");
        if (r->source.size() > 1) put("[" + std::to_string(r->value_index) + "]");
        return;
      }
      default:
        return put("<" + std::string(n.info().name) + ">");
    }
  }

  void emit_binary(const BinaryNode& b) {
    int own = precedence(b);
    if (own == 20) {
      put(std::string(to_string(b.op)) + "(");
      put(b.a);
      put(", ");
      put(b.b);
      return put(")");
    }
    put_operand(b.a, own == 4 ? 5 : own);
    auto c = as_int(b.b);
    if (b.op == BinaryOp::Add && c && *c < 0 && b.dtype == kIndex) {
      return put(" - " + std::to_string(0 - static_cast<uint64_t>(*c)));
    }
    put(" " + std::string(to_string(b.op)) + " ");
    put_operand(b.b, own + 1);
  }

  void emit_region(const RegionNode& r) {
    put(name(r.buffer) + "[");
    for (size_t i = 0; i < r.mins.size(); ++i) {
      if (i > 0) put(", ");
      put(r.mins[i]);
      if (as_int(r.extents[i]) == 1) continue;
      put(":");
      put(r.mins[i] + r.extents[i]);
    }
    put("]");
  }

  void emit_stmt(const Node& n) {
    switch (n.kind()) {
      case StmtKind::Seq:
        if (as<SeqNode>(&n)->stmts.empty()) {
          put_line();
          return put("pass\n");
        }
        for (const Stmt& s : as<SeqNode>(&n)->stmts) put(s);
        return;
      case StmtKind::Store: {
        auto* s = as<StoreNode>(&n);
        put_line();
        put_indices(s->buffer, s->indices, s->predicate);
        put(" = ");
        put(s->value);
        return put("\n");
      }
      case StmtKind::For:
        return emit_for(*as<ForNode>(&n));
      case StmtKind::Block:
        return emit_block(*as<BlockNode>(&n));
      case StmtKind::If: {
        auto* i = as<IfNode>(&n);
        put_line();
        put("if ");
        put(i->cond);
        put(":\n");
        put_body(i->then_body);
        if (!i->else_body) return;
        put_line();
        put("else:\n");
        return put_body(i->else_body);
      }
      case StmtKind::While:
        put_line();
        put("while ");
        put(as<WhileNode>(&n)->cond);
        put(":\n");
        return put_body(as<WhileNode>(&n)->body);
      case StmtKind::Allocate: {
        auto* a = as<AllocateNode>(&n);
        put_line();
        put("allocate ");
        put_buffer_type(a->buffer);
        put("\n");
        return put(a->body);
      }
      case StmtKind::LetStmt: {
        auto* l = as<LetStmtNode>(&n);
        put_line();
        put("let " + name(l->var) + " = ");
        put(l->value);
        put("\n");
        return put(l->body);
      }
      case StmtKind::Check: {
        auto* c = as<CheckNode>(&n);
        put_line();
        put("check ");
        put(c->cond);
        return put(" else " + std::to_string(c->error) + "  # " + c->message + "\n");
      }
      case StmtKind::Evaluate:
        put_line();
        put(as<EvaluateNode>(&n)->value);
        return put("\n");
      default:
        put_line();
        return put("<" + std::string(n.info().name) + ">\n");
    }
  }

  void emit_for(const ForNode& f) {
    put_line();
    put("for " + name(f.var) + " in ");
    put(f.loop_kind == ForKind::Serial ? "range" : std::string(to_string(f.loop_kind)));
    put("(");
    if (as_int(f.min) != 0) {
      put(f.min);
      put(", ");
      put(f.min + f.extent);
    } else {
      put(f.extent);
    }
    if (!f.thread_tag.empty()) put(", " + f.thread_tag);
    put("):");
    for (const auto& [key, value] : changed_members(f.hints)) put("  # " + key + " = " + value);
    put("\n");
    put_body(f.body);
  }

  void emit_block(const BlockNode& b) {
    put_line();
    put("block " + b.name + "(");
    for (size_t i = 0; i < b.iters.size(); ++i) {
      static constexpr std::string_view kinds[] = {"", ": reduce", ": opaque"};
      if (i > 0) put(", ");
      put(name(b.iters[i]->var) + std::string(kinds[static_cast<size_t>(b.iters[i]->kind)]));
      if (auto role = role_of(b, b.iters[i]->var); role != ContractionRole::None)
        put((b.iters[i]->kind == IterKind::DataParallel ? ": " : " ") +
            std::string(to_string(role)));
      put(" = ");
      put(b.bindings[i]);
    }
    put("):");
    if (!b.role.empty()) {
      put("  # " + b.role.algorithm + " = " +
          (b.role.part.empty() ? std::to_string(b.role.number) : b.role.part));
    }
    put("\n");
    if (b.predicate) {
      put_line(1);
      put("where ");
      put(b.predicate);
      put("\n");
    }
    for (const auto& [word, regions] :
         {std::pair<std::string, const std::vector<Region>&>{"reads ", b.reads},
          {"writes ", b.writes}}) {
      if (regions.empty()) continue;
      put_line(1);
      put(word);
      put_list(regions);
      put("\n");
    }
    if (b.contraction) {
      put_line(1);
      emit_contraction(*b.contraction);
      put("\n");
    }
    if (b.init) {
      put_line(1);
      put("init:\n");
      put_body(b.init, 2);
    }
    put_body(b.body);
  }

  // contraction A[i, k] * B[j // 8, k, j % 8] where j = (g: group 4, c: column 2)
  void emit_contraction(const BlockContractionNode& c) {
    std::vector<std::string> names;
    std::string parts;
    for (size_t d = 0; d < c.dims.size(); ++d) {
      const Var& iter = c.dims[d]->iter;
      size_t count = 0, place = 0;
      for (size_t e = 0; e < c.dims.size(); ++e) {
        if (!(c.dims[e]->iter == iter)) continue;
        if (e < d) ++place;
        ++count;
      }
      names.push_back(name(iter) + (count == 1 ? "" : "." + std::to_string(place)));
      if (count == 1) continue;
      parts += (parts.empty() ? " where " : ", ") + names.back() + ": " +
               std::string(to_string(c.dims[d]->role));
      if (auto extent = as_int(c.dims[d]->extent)) parts += " " + std::to_string(*extent);
    }
    auto term = [&](const BlockIndexTerm& t) {
      std::string out;
      for (int64_t d : t.dims) {
        out += (out.empty() ? "" : " ") + names[static_cast<size_t>(d)];
      }
      if (t.dims.size() > 1) out = "(" + out + ")";
      if (t.divide != 1) out += " // " + std::to_string(t.divide);
      if (t.modulo != 0) out += " % " + std::to_string(t.modulo);
      if (t.factor != 1) out += " * " + std::to_string(t.factor);
      return out;
    };
    put("contraction ");
    for (size_t o = 0; o < c.operands.size(); ++o) {
      std::string text;
      for (const BlockAxis& a : c.operands[o]->axes) {
        std::string index;
        for (const BlockIndexTerm& t : a.terms) index += (index.empty() ? "" : " + ") + term(t);
        if (a.irregular) index = "?(" + index + ")";
        if (a.offset != 0 || index.empty()) {
          index += (index.empty() ? "" : a.offset < 0 ? " - " : " + ");
          index +=
              std::to_string(a.offset < 0 && index.size() > 0 ? 0 - static_cast<uint64_t>(a.offset)
                                                              : static_cast<uint64_t>(a.offset));
        }
        text += (text.empty() ? "" : ", ") + index;
      }
      put((o > 0 ? " * " : "") + name(c.operands[o]->buffer) + "[" + text + "]");
    }
    put(parts);
  }

  // What is set of a function's fields beside its statements, a line each.
  void emit_notes(const PrimFuncNode& f) {
    auto note = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) put("# " + std::string(key) + " = " + value + "\n");
    };
    auto list = [&](const auto& items, auto&& text) {
      std::string out;
      for (const auto& i : items) out += (out.empty() ? "" : ",") + text(i);
      return out;
    };
    const ScheduleReportNode& report = report_of(f);
    for (const std::string& d : report.declined) note("declined", d);
    note("at_most", list(f.at_most, [](int64_t n) { return std::to_string(n); }));
    note("features", list(f.features, [](const std::string& s) { return s; }));
    note("in_place",
         list(f.in_place, [&](int64_t i) { return f.params[static_cast<size_t>(i)]->name; }));
    if (f.order != LoopOrder::Forward) note("order", std::string(to_string(f.order)));
    note("parameters", report.parameters);
    note("rule", report.rule);
    note("schedule", report.sentence);
    note("version", report.version);
  }

  void emit_function(const PrimFuncNode& f) {
    emit_notes(f);
    put("def " + (f.name.empty() ? "f" : f.name));
    if (!f.dims.empty()) {
      put("[");
      put_list(f.dims);
      put("]");
    }
    put("(");
    for (size_t i = 0; i < f.params.size(); ++i) {
      if (i == static_cast<size_t>(f.num_inputs)) {
        put(") -> (");
      } else if (i > 0) {
        put(", ");
      }
      put_buffer_type(f.params[i]);
    }
    put("):\n");
    put_body(f.body);
  }

  std::string out_;
  std::vector<Item> stack_;
  std::vector<Item> pieces_;
  int indent_ = 0;
  std::unordered_map<const Node*, std::string> names_;
  std::unordered_map<std::string, int> counts_;
  std::unordered_set<std::string> taken_;
};

}  // namespace

std::string text_of(const NodeRef& node) { return Printer().print(node); }
std::string to_string(const PrimExpr& e) { return text_of(e); }
std::string to_string(const Stmt& s) { return text_of(s); }
std::string to_string(const PrimFunc& f) { return text_of(f); }

}  // namespace relay::tir
