#include "codegen/device/launches.h"

#include <utility>

#include "tir/thread_nests.h"

namespace relay::codegen {
namespace {

using tir::Stmt;
using tir::StmtNode;
using tir::ThreadLevel;

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
        return tir::is_around_launches(s) ? within(l, l.body) : one_item(s);
      }
      case tir::StmtKind::If: {
        auto& i = *static_cast<const tir::IfNode*>(s.get());
        return tir::is_around_launches(s) ? within(i, i.then_body) : one_item(s);
      }
      default: {
        const auto nest = tir::thread_nest(s);
        return nest && nest->level != ThreadLevel::Item ? items(*nest) : one_item(s);
      }
    }
  }

  void within(const StmtNode& outer, const Stmt& body) {
    around_.push_back(&outer);
    split(body);
    around_.pop_back();
  }

  void items(const tir::ThreadNest& nest) {
    LaunchPart part{around_, nest.axes, {nest.body}};
    if (nest.level == ThreadLevel::Group) {
      const auto group = tir::group_size(nest.body);
      RELAY_CHECK(group.has_value(), "a group of an unknown number of items");
      part.group = *group;
    }
    out_.parts.push_back(std::move(part));
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
