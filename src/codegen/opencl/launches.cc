#include "codegen/opencl/launches.h"

#include <utility>

#include "node/walk.h"
#include "tir/thread_tags.h"

namespace relay::codegen {
namespace {

using tir::ForKind;
using tir::ForNode;
using tir::Stmt;
using tir::StmtNode;

bool reads_memory(const NodeRef& e) {
  bool reads = false;
  post_order(e, [&](const Node& n) {
    reads |= n.kind() == tir::ExprKind::Load || n.kind() == tir::ExprKind::Call;
  });
  return reads;
}

// The axis of a loop that is bound; nothing for others.
std::optional<size_t> axis_of(const StmtNode& s) {
  auto* f = as<ForNode>(&s);
  if (f == nullptr) return std::nullopt;
  if (f->loop_kind == ForKind::Parallel) return 0;
  return f->loop_kind == ForKind::ThreadBound ? tir::axis_of_tag(f->thread_tag) : std::nullopt;
}

bool has_items(const Stmt& s) {
  bool found = false;
  post_order(
      s,
      [&](const Node& n) {
        found |=
            n.kind() == tir::StmtKind::For && axis_of(static_cast<const StmtNode&>(n)).has_value();
      },
      family::tir_stmt);
  return found;
}

class Splitter {
 public:
  KernelLaunches take(const Stmt& body) {
    split(body);
    return std::move(out_);
  }

 private:
  void split(const Stmt& s) {
    switch (s->kind()) {
      case tir::StmtKind::Seq:
        for (const Stmt& inner : static_cast<const tir::SeqNode*>(s.get())->stmts) split(inner);
        return;
      case tir::StmtKind::Allocate: {
        auto& a = *static_cast<const tir::AllocateNode*>(s.get());
        out_.workspace.push_back(a.buffer);
        return split(a.body);
      }
      case tir::StmtKind::LetStmt: {
        auto& l = *static_cast<const tir::LetStmtNode*>(s.get());
        if (reads_memory(l.value) || !has_items(l.body)) return one_item(s);
        return within(l, l.body);
      }
      case tir::StmtKind::If: {
        auto& i = *static_cast<const tir::IfNode*>(s.get());
        if (i.else_body || reads_memory(i.cond) || !has_items(i.then_body)) return one_item(s);
        return within(i, i.then_body);
      }
      default:
        return axis_of(*s.get()) ? items(s) : one_item(s);
    }
  }

  void within(const StmtNode& outer, const Stmt& body) {
    around_.push_back(&outer);
    split(body);
    around_.pop_back();
  }

  void items(const Stmt& s) {
    LaunchPart part{around_, {}, {}};
    Stmt body = s;
    for (auto axis = axis_of(*body.get()); axis && part.axes[*axis] == nullptr;
         axis = axis_of(*body.get())) {
      auto* f = static_cast<const ForNode*>(body.get());
      // An extent that another item decides is a loop of the item.
      if (depends_on_items(*f, part)) break;
      part.axes[*axis] = f;
      body = f->body;
    }
    part.body.push_back(body);
    out_.parts.push_back(std::move(part));
  }

  static bool depends_on_items(const ForNode& f, const LaunchPart& part) {
    bool found = reads_memory(f.extent) || reads_memory(f.min);
    for (const tir::PrimExpr& e : {f.min, f.extent}) {
      post_order(e, [&](const Node& n) {
        for (const ForNode* axis : part.axes) found |= axis != nullptr && &n == axis->var.get();
      });
    }
    return found;
  }

  // Statements of one item in a row are one launch.
  void one_item(const Stmt& s) {
    const bool joins = !out_.parts.empty() && !out_.parts.back().has_items() &&
                       out_.parts.back().around == around_;
    if (!joins) out_.parts.push_back({around_, {}, {}});
    out_.parts.back().body.push_back(s);
  }

  KernelLaunches out_;
  std::vector<const StmtNode*> around_;
};

}  // namespace

KernelLaunches launches_of(const tir::PrimFuncNode& f) { return Splitter().take(f.body); }

}  // namespace relay::codegen
