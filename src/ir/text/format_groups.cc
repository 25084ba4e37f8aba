#include "ir/text/format_groups.h"

#include <algorithm>

namespace relay::text {

Groups::Groups(const Items& items)
    : items_(items), line_(items.size()), bracket_(items.size()), chain_(items.size()) {
  add(Group::Kind::bracket, 0);
  open_.push_back({.group = 0, .chains = 0});
  for (size_t i = 0; i < items.size(); ++i) {
    if (items.closes(i) && open_.size() > 1) {
      if (i > 0 && open_.back().part < i) end_part(i - 1);
      size_t g = open_.back().group;
      groups_[g].end = i;
      line_[i] = g;
      open_.pop_back();
    } else if (items.opens(i)) {
      open(i);
    } else if (items.precedence(i) > 0) {
      operation(i);
    } else if (items.is(i, "=>") || (items.is(i, "=") && !items.is_attribute(i))) {
      value(i);
    } else if (items.is(i, ";") ||
               (items.is(i, ",") &&
                items.bracket(groups_[open_.back().group].begin) != Bracket::lines)) {
      if (i > 0 && open_.back().part < i) end_part(i - 1);
      begin_part(i + 1);
    }
  }
}

size_t Groups::add(Group::Kind kind, size_t begin) {
  groups_.push_back({.kind = kind, .begin = begin});
  return groups_.size() - 1;
}

void Groups::open(size_t i) {
  size_t g = add(Group::Kind::bracket, i);
  bracket_[i] = g;
  Group& group = groups_[g];
  group.leader = g;
  group.end = group.branches_end = items_[i].partner;
  if (i >= 2 && items_.is(i, "{")) {
    // Behind `} else` or `} else if (...)`.
    size_t head = i - 1;
    if (items_.is(head, ")") && items_[head].partner >= 2 &&
        items_.is_word(items_[head].partner - 1, "if")) {
      head = items_[head].partner - 2;
    }
    if (items_.is_word(head, "else") && items_.is(head - 1, "}")) {
      group.leader = groups_[bracket_[items_[head - 1].partner]].leader;
      groups_[group.leader].branches_end = group.end;
    }
  }
  open_.push_back({.group = g, .chains = chains_.size()});
  begin_part(i + 1);
}

void Groups::begin_part(size_t token) {
  Open& o = open_.back();
  o.part = o.operand = token;
  o.value = 0;
  if (o.group == 0 || token >= items_.size()) return;
  line_[token] = o.group;
  Group& g = groups_[o.group];
  if (token >= g.end) return;
  g.last = token;
  ++g.parts;
}

void Groups::end_part(size_t token) {
  Open& o = open_.back();
  for (; chains_.size() > o.chains; chains_.pop_back()) groups_[chains_.back()].end = token;
  if (o.value != 0) groups_[o.value].end = token;
  if (o.group != 0) count(groups_[o.group], o.part, token);
}

void Groups::count(Group& g, size_t begin, size_t end) {
  g.widest = std::max(g.widest, g.last_width);
  g.last_width = items_.width(begin, end);
  g.numbers = g.numbers && items_.is_number(end) &&
              (begin == end || (begin + 1 == end && items_.is_sign(begin)));
  bool block = items_.is(end, "}") && (items_.is_word(begin, "fn") || items_.is_word(begin, "if") ||
                                       items_.is_word(begin, "match"));
  if (!block) return;
  ++g.blocks;
  g.block = begin;
  g.block_end = end;
}

// Tighter operators before the one at `i` are its left side.
void Groups::operation(size_t i) {
  Open& o = open_.back();
  int precedence = items_.precedence(i);
  size_t begin = o.operand;
  while (chains_.size() > o.chains && groups_[chains_.back()].precedence > precedence) {
    Group& tighter = groups_[chains_.back()];
    tighter.end = i - 1;
    begin = tighter.begin;
    chains_.pop_back();
  }
  if (chains_.size() == o.chains || groups_[chains_.back()].precedence < precedence) {
    size_t g = add(Group::Kind::operators, begin);
    groups_[g].precedence = precedence;
    groups_[g].inner = chain_[begin];
    groups_[g].first = i;
    chain_[begin] = g;
    chains_.push_back(g);
  }
  line_[i] = chains_.back();
  groups_[chains_.back()].last = i;
  o.operand = i + 1;
}

void Groups::value(size_t i) {
  Open& o = open_.back();
  if (i + 1 >= items_.size() || o.value != 0) return;
  o.value = add(Group::Kind::value, i + 1);
  groups_[o.value].end = i + 1;
  line_[i + 1] = o.value;
  o.operand = i + 1;
}

}  // namespace relay::text
