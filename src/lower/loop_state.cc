#include "lower/loop_state.h"

#include <algorithm>
#include <unordered_map>

#include "lower/loop_writes.h"
#include "node/structural.h"

namespace relay {
namespace {

// So many elements are copied as fast as a register says where others are.
constexpr int64_t kMostCopied = 64;

}  // namespace

using tir::Buffer;
using tir::PrimExpr;
using tir::Stmt;
using Value = LoopValue;

bool LoopState::is_local(const Buffer& b) const {
  return std::ranges::find(locals_, b) != locals_.end();
}

bool LoopState::is_long(const std::vector<PrimExpr>& shape) {
  int64_t count = 1;
  for (const PrimExpr& d : shape) {
    auto size = tir::as_int(d);
    if (!size || (count *= std::max<int64_t>(*size, 1)) > kMostCopied) return true;
  }
  return false;
}

bool LoopState::may_exchange(const Buffer& place, const Value& v, const std::vector<Value>& all,
                             int depth) const {
  if (!v.buffer || v.owner < depth || !is_local(v.buffer) || !is_local(place)) return false;
  auto same = [](const PrimExpr& a, const PrimExpr& b) { return structural_equal(a, b); };
  return v.dtype == place->dtype && is_long(v.shape) &&
         std::ranges::equal(v.shape, place->shape, same) &&
         std::ranges::count(all, v.buffer, &Value::buffer) == 1;
}

void LoopState::next_state(const std::vector<Value>& values, const std::vector<Value>& places,
                           int depth) {
  std::vector<Value> from, to;
  for (const Value& v : values) flatten(v, from);
  for (const Value& p : places) flatten(p, to);
  struct Change {
    Buffer place;
    Value value;
    bool exchanged;
  };
  std::vector<Change> changes;
  for (size_t k = 0; k < to.size(); ++k) {
    if (!to[k].scalar && from[k].buffer != to[k].buffer)
      changes.push_back({to[k].buffer, from[k], may_exchange(to[k].buffer, from[k], from, depth)});
  }
  if (std::ranges::none_of(changes, &Change::exchanged)) return assign(values, places);
  // What reads memory that changes places is computed before, into memory of its own.
  for (Change& c : changes) {
    const bool late = !c.exchanged && std::ranges::none_of(changes, [&](const Change& other) {
      return reads(c.value, other.place.get()) ||
             (other.exchanged && reads(c.value, other.value.buffer.get()));
    });
    if (c.exchanged || late) continue;
    c.value = materialised(c.value);
    c.exchanged = true;
  }
  // The buffer whose elements a buffer has, and the other way round.
  std::unordered_map<const Node*, Buffer> has, is_in;
  auto at = [](auto& map, const Buffer& b) -> Buffer& {
    return map.try_emplace(b.get(), b).first->second;
  };
  for (const Change& c : changes) {
    if (!c.exchanged) continue;
    const Buffer other = at(is_in, c.value.buffer);
    if (other == c.place) continue;
    const auto& [a, b] = exchanges_.join(c.place, other, [&] { return slot(tir::kIndex); });
    const tir::Var was = named(a);
    set(a, b);
    set(b, was);
    std::swap(at(has, c.place), at(has, other));
    at(is_in, at(has, c.place)) = c.place;
    at(is_in, at(has, other)) = other;
  }
  for (const Change& c : changes) {
    if (!c.exchanged) fill(c.place, c.value);
  }
  move(from, to);
}

void LoopState::assign(const std::vector<Value>& values, const std::vector<Value>& places) {
  std::vector<Value> from, to;
  for (const Value& v : values) flatten(v, from);
  for (const Value& p : places) flatten(p, to);
  struct Fill {
    Buffer place;
    Value value;
    Stmt over_itself = nullptr;
  };
  std::vector<Fill> fills;
  for (size_t k = 0; k < to.size(); ++k) {
    if (!to[k].scalar && from[k].buffer != to[k].buffer) fills.push_back({to[k].buffer, from[k]});
  }
  // What reads a place is put aside before any place is written, but for elements that are written one after the other.
  for (Fill& f : fills) {
    const bool reads_others = std::ranges::any_of(fills, [&](const Fill& other) {
      return other.place != f.place && reads(f.value, other.place.get());
    });
    if (!reads_others && !reads(f.value, f.place.get())) continue;
    if (!reads_others) f.over_itself = filling_itself(f.place, f.value);
    if (!f.over_itself) f.value = materialised(f.value);
  }
  for (const Fill& f : fills) {
    if (f.over_itself) {
      emit(f.over_itself);
    } else {
      fill(f.place, f.value);
    }
  }
  move(from, to);
}

Stmt LoopState::filling_itself(const Buffer& place, const Value& v) {
  if (Stmt own = with_own_elements(filling(place, v), place, analyzer_)) return shared(own);
  const Stmt apart = filling(place, with_lines_apart(place, v));
  if (Stmt own = with_own_elements(apart, place, analyzer_)) return shared(own);
  return over_itself(apart, place, place->dtype);
}

void LoopState::move(const std::vector<Value>& from, const std::vector<Value>& to) {
  std::vector<std::pair<PrimExpr, PrimExpr>> moves;
  for (size_t k = 0; k < to.size(); ++k) {
    if (!to[k].scalar || from[k].scalar == to[k].scalar) continue;
    const bool is_state = std::ranges::any_of(
        to, [&](const Value& place) { return place.scalar && place.scalar == from[k].scalar; });
    moves.emplace_back(to[k].scalar, is_state ? keep(from[k].scalar) : from[k].scalar);
  }
  for (const auto& [place, v] : moves) set(place, v);
}

}  // namespace relay
