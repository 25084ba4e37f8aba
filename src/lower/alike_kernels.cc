#include "lower/alike_kernels.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "node/walk.h"

namespace relay {
namespace {

using tir::PrimExpr;

class Positions {
 public:
  explicit Positions(const tir::PrimFunc& f) : f_(f) {
    for (int64_t i = 0; i < f->num_inputs; ++i) {
      inputs_.insert(f->params[static_cast<size_t>(i)].get());
    }
  }

  // False where an iteration is no plain loop over a constant range, or something is done under a condition.
  bool find_iterations() {
    bool plain = true;
    post_order(
        f_->body,
        [&](const Node& n) {
          if (auto* i = as<tir::IterVarNode>(&n)) {
            auto first = tir::as_int(i->min), extent = tir::as_int(i->extent);
            plain = plain && i->kind == tir::IterKind::DataParallel && first && extent;
            if (plain) last_[i->var.get()] = *first + *extent - 1;
          }
          plain = plain && as<tir::SelectNode>(&n) == nullptr && as<tir::IfNode>(&n) == nullptr;
        },
        family::tir);
    return plain;
  }

  tir::PrimFunc rewritten() {
    NodeRef body = rewrite(
        f_->body,
        [&](const NodeRef& before, NodeRef after) -> NodeRef {
          if (auto* l = as<tir::LoadNode>(before)) {
            if (!inputs_.contains(l->buffer.get()) || l->predicate) return after;
            auto& now = static_cast<const tir::LoadNode&>(*after.get());
            auto at = moved(*l->buffer.get(), now.indices);
            if (at == now.indices) return after;
            return tir::modified(now, [&](tir::LoadNode& n) { n.indices = at; });
          }
          auto* r = as<tir::RegionNode>(before);
          if (r == nullptr || !inputs_.contains(r->buffer.get())) return after;
          auto& now = static_cast<const tir::RegionNode&>(*after.get());
          auto at = moved(*r->buffer.get(), now.mins);
          if (at == now.mins) return after;
          return tir::modified(now, [&](tir::RegionNode& n) { n.mins = at; });
        },
        family::tir);
    if (positions_.empty()) return f_;
    return tir::modified(*f_.get(), [&](tir::PrimFuncNode& n) {
      n.body = tir::Stmt::unchecked(std::move(body));
      for (const auto& [position, size] : positions_) n.dims.push_back(size);
    });
  }

  // In the order of the function's sizes.
  const std::vector<std::pair<int64_t, tir::Var>>& positions() const { return positions_; }

 private:
  std::vector<PrimExpr> moved(const tir::BufferNode& buffer, std::vector<PrimExpr> at) {
    for (size_t d = 0; d < at.size(); ++d) {
      auto size = tir::as_int(buffer.shape[d]);
      if (!size) continue;
      auto* sum = as<tir::BinaryNode>(at[d]);
      const bool is_sum = sum != nullptr && sum->op == tir::BinaryOp::Add;
      auto position = is_sum ? tir::as_int(sum->b) : tir::as_int(at[d]);
      if (!position || *position < 1) continue;
      int64_t room = *size - 1;
      if (is_sum) {
        auto last = last_.find(sum->a.get());
        if (last == last_.end()) continue;
        room -= last->second;
      }
      if (room < *position) continue;
      PrimExpr begin = tir::min(size_of(*position), tir::index(room));
      at[d] = is_sum ? sum->a + begin : begin;
    }
    return at;
  }

  tir::Var size_of(int64_t position) {
    auto known = std::ranges::find(positions_, position, &std::pair<int64_t, tir::Var>::first);
    if (known != positions_.end()) return known->second;
    positions_.emplace_back(position, tir::var("d" + std::to_string(positions_.size())));
    return positions_.back().second;
  }

  const tir::PrimFunc& f_;
  std::unordered_set<const Node*> inputs_;
  std::unordered_map<const Node*, int64_t> last_;  // the greatest value of an iteration
  std::vector<std::pair<int64_t, tir::Var>> positions_;
};

}  // namespace

std::optional<AlikeKernel> with_positions_as_sizes(const ComposedKernel& kernel,
                                                   const std::function<TypeVar(size_t)>& name) {
  if (!kernel.func->dims.empty()) return std::nullopt;
  Positions positions(kernel.func);
  if (!positions.find_iterations()) return std::nullopt;
  AlikeKernel out{kernel, {}};
  out.kernel.func = positions.rewritten();
  for (const auto& [position, size] : positions.positions()) {
    out.kernel.dims.push_back(dim(name(out.positions.size())));
    out.positions.push_back(position);
  }
  if (out.positions.empty()) return std::nullopt;
  return out;
}

}  // namespace relay
