#include "lower/loop_exchanges.h"

#include <map>
#include <string>

#include "node/walk.h"

namespace relay {

LoopExchanges::Member& LoopExchanges::member(const tir::Buffer& b,
                                             const std::function<tir::PrimExpr()>& new_register) {
  auto [it, fresh] = members_.try_emplace(b.get());
  if (fresh) {
    it->second = {b, new_register(), order_.size()};
    order_.push_back(b.get());
  }
  return it->second;
}

std::pair<tir::PrimExpr, tir::PrimExpr> LoopExchanges::join(
    const tir::Buffer& a, const tir::Buffer& b,
    const std::function<tir::PrimExpr()>& new_register) {
  const size_t to = member(a, new_register).group, from = member(b, new_register).group;
  for (auto& [node, m] : members_) {
    if (m.group == from) m.group = to;
  }
  return {members_.at(a.get()).place, members_.at(b.get()).place};
}

tir::Stmt LoopExchanges::placed(const tir::Stmt& body, std::vector<tir::Buffer>& memory) const {
  if (members_.empty()) return body;
  std::map<size_t, std::vector<const Member*>> groups;
  for (const Node* node : order_) groups[members_.at(node).group].push_back(&members_.at(node));
  std::unordered_map<const Node*, tir::Buffer> together;
  std::vector<tir::Stmt> all;
  for (const auto& [number, group] : groups) {
    const tir::BufferNode& first = *group[0]->buffer.get();
    std::vector<tir::PrimExpr> shape{tir::index(static_cast<int64_t>(group.size()))};
    shape.insert(shape.end(), first.shape.begin(), first.shape.end());
    tir::Buffer b = tir::buffer("s" + std::to_string(number), first.dtype, std::move(shape));
    memory.push_back(b);
    for (size_t i = 0; i < group.size(); ++i) {
      together.emplace(group[i]->buffer.get(), b);
      auto& place = *as<tir::LoadNode>(group[i]->place);
      all.push_back(tir::store(place.buffer, place.indices, tir::index(static_cast<int64_t>(i))));
    }
  }
  auto at = [&](const tir::Buffer& b, const std::vector<tir::PrimExpr>& indices) {
    std::vector<tir::PrimExpr> out{members_.at(b.get()).place};
    out.insert(out.end(), indices.begin(), indices.end());
    return out;
  };
  all.push_back(tir::Stmt::unchecked(rewrite(
      body,
      [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        if (auto* l = as<tir::LoadNode>(rebuilt); l != nullptr && contains(l->buffer.get()))
          return tir::load(together.at(l->buffer.get()), at(l->buffer, l->indices), l->predicate);
        if (auto* s = as<tir::StoreNode>(rebuilt); s != nullptr && contains(s->buffer.get()))
          return tir::store(together.at(s->buffer.get()), at(s->buffer, s->indices), s->value,
                            s->predicate);
        return rebuilt;
      },
      family::tir_expr | family::tir_stmt)));
  return tir::seq(std::move(all));
}

}  // namespace relay
