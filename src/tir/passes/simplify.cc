#include "tir/passes/simplify.h"

#include <deque>
#include <optional>

#include "tir/access.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/conditions.h"
#include "tir/passes/register_bounds.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

class Simplification {
 public:
  explicit Simplification(Analyzer& analyzer) : analyzer_(analyzer) {}

  Stmt run(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        PrimExpr min = expr(f->min), extent = expr(f->extent);
        auto n = as_int(extent);
        if (n && *n <= 0) return seq({});
        const bool once = n && *n == 1 && !is_over_groups(*f);
        if (once && f->loop_kind != ForKind::Parallel)
          return run(replace(f->body, {{f->var.get(), min}}));
        Stmt body;
        {
          std::optional<Analyzer::Scope> inside;
          if (holds_throughout(min, f->body) && holds_throughout(extent, f->body))
            inside.emplace(analyzer_.inside(f->var, min, extent));
          // What stands inside a parallel loop has no threads of its own, so that one of a single iteration stays.
          body = run(once ? replace(f->body, {{f->var.get(), min}}) : f->body);
        }
        if (is_empty(body)) return body;
        if (body == f->body && min == f->min && extent == f->extent) return s;
        return make<ForNode>([&](ForNode& out) {
          out.var = f->var;
          out.min = min;
          out.extent = extent;
          out.loop_kind = f->loop_kind;
          out.thread_tag = f->thread_tag;
          out.hints = f->hints;
          out.body = body;
        });
      }
      case StmtKind::If: {
        auto* i = as<IfNode>(s);
        PrimExpr cond = expr(i->cond);
        if (as_int(cond) == 1) return run(i->then_body);
        if (as_int(cond) == 0) return i->else_body ? run(i->else_body) : seq({});
        Stmt then_body;
        {
          std::optional<Analyzer::Scope> scope;
          if (holds_throughout(cond, i->then_body)) scope.emplace(analyzer_.assume(cond));
          then_body = run(i->then_body);
        }
        Stmt else_body = i->else_body ? run(i->else_body) : nullptr;
        if (is_empty(then_body) && (!else_body || is_empty(else_body))) return seq({});
        return if_(cond, then_body, else_body);
      }
      case StmtKind::Seq: {
        std::vector<Stmt> out;
        std::deque<Analyzer::Scope> passed;  // checks, which hold for what follows
        for (const Stmt& inner : as<SeqNode>(s)->stmts) {
          out.push_back(run(inner));
          auto* c = as<CheckNode>(out.back());
          if (c != nullptr && !has_loads(c->cond)) passed.push_back(analyzer_.assume(c->cond));
        }
        while (!passed.empty()) passed.pop_back();
        return seq(std::move(out));
      }
      // The condition does not hold throughout the body.
      case StmtKind::While: {
        auto* w = as<WhileNode>(s);
        PrimExpr cond = expr(w->cond);
        return as_int(cond) == 0 ? seq({}) : while_(cond, run(w->body));
      }
      case StmtKind::LetStmt: {
        auto* l = as<LetStmtNode>(s);
        return let_stmt(l->var, expr(l->value), run(l->body));
      }
      case StmtKind::Store: {
        auto* n = as<StoreNode>(s);
        std::vector<PrimExpr> at;
        for (const PrimExpr& i : n->indices) at.push_back(expr(i));
        return store(n->buffer, std::move(at), expr(n->value),
                     n->predicate ? expr(n->predicate) : nullptr);
      }
      case StmtKind::Check: {
        auto* c = as<CheckNode>(s);
        PrimExpr cond = expr(c->cond);
        if (as_int(cond) == 1) return seq({});
        return cond == c->cond ? s : check(cond, c->error, c->message);
      }
      default:
        return map_inner(s, [&](const Stmt& inner) { return run(inner); });
    }
  }

 private:
  PrimExpr expr(const PrimExpr& e) { return analyzer_.simplify(e); }
  Analyzer& analyzer_;
};

}  // namespace

Stmt simplify(const Stmt& s, Analyzer& analyzer) { return Simplification(analyzer).run(s); }

PrimFunc simplify(const PrimFunc& f) {
  Analyzer analyzer;
  analyzer.bind_function(f);
  bind_registers(analyzer, f);
  return with_body(f, simplify(f->body, analyzer));
}

}  // namespace relay::tir
