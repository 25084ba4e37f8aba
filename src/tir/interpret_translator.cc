#include "tir/interpret_translator.h"

#include <algorithm>
#include <bit>

namespace relay::tir::interpret_detail {

void Translator::translate(Machine& m, std::vector<Instr>& code, const std::vector<int64_t>& dims) {
  note_loads();
  open(/*own_code=*/true, 0);
  RELAY_CHECK(dims.size() == f_.dims.size(), "values for the dimensions of " + f_.name);
  for (size_t i = 0; i < dims.size(); ++i) bind(f_.dims[i], {constant(dims[i]), 0, 0, 0});
  for (size_t i = 0; i < f_.params.size(); ++i) {
    add_memory(f_.params[i], /*parameter=*/true);
    memory_.back().tracked = options_.find_undefined && i >= static_cast<size_t>(f_.num_inputs);
    memory_.back().contended = options_.find_races;
    emit({.run = &bind_parameter, .a = memories_.at(f_.params[i].get())});
  }
  statements(f_.body);
  emit({.run = &end});
  code = flatten();
  m.slots = std::move(slots_);
  m.memories = std::move(memory_);
  m.accesses = std::move(accesses_);
  m.poison = options_.poison;
}

void Translator::open(bool own_code, int level) {
  Region r;
  if (!regions_.empty()) {
    r.masked = top().masked;
    r.mask_lanes = top().mask_lanes;
    r.mask = top().mask;
    r.piece = top().piece;
  }
  r.level = level;
  r.own_code = own_code;
  if (own_code) {
    r.piece = static_cast<int>(pieces_.size());
    pieces_.emplace_back();
    if (level >= static_cast<int>(region_of_level_.size())) region_of_level_.resize(level + 1, -1);
    r.outer_of_level = region_of_level_[level];
    region_of_level_[level] = static_cast<int>(regions_.size());
  }
  regions_.push_back(std::move(r));
}

int Translator::close() {
  Region r = std::move(top());
  regions_.pop_back();
  for (const Node* n : r.known) values_.erase(n);
  if (r.own_code) region_of_level_[r.level] = r.outer_of_level;
  return r.piece;
}

void Translator::emit_to(int region, const Instr& i) {
  pieces_[regions_[static_cast<size_t>(region)].piece].push_back({Item::kInstr, 0, i});
}

Instr Translator::instr(const Operation& o) {
  Instr i;
  i.run = o.run;
  i.dst = o.dst;
  i.a = o.a;
  i.b = o.b;
  i.c = o.c;
  return i;
}

void Translator::emit_numbered(const Operation& o, int64_t number) {
  Instr i = instr(o);
  i.number = number;
  emit_to(top_index(), i);
}

bool Translator::jumps(const Instr& i) {
  return i.run == &jump || i.run == &jump_back || i.run == &jump_unless || i.run == &loop_begin ||
         i.run == &loop_next;
}

std::vector<Instr> Translator::flatten() {
  std::vector<Instr> code;
  std::vector<int64_t> position(static_cast<size_t>(labels_));
  std::vector<std::pair<int, size_t>> stack{{0, 0}};
  while (!stack.empty()) {
    auto& [piece, next] = stack.back();
    if (next == pieces_[piece].size()) {
      pieces_[piece] = {};
      stack.pop_back();
      continue;
    }
    const Item& item = pieces_[piece][next++];
    if (item.kind == Item::kInstr) {
      code.push_back(item.instr);
    } else if (item.kind == Item::kLabel) {
      position[static_cast<size_t>(item.target)] = static_cast<int64_t>(code.size());
    } else {
      stack.emplace_back(item.target, 0);
    }
  }
  for (size_t i = 0; i < code.size(); ++i) {
    if (!jumps(code[i])) continue;
    code[i].number = position[static_cast<size_t>(code[i].number)] - static_cast<int64_t>(i);
  }
  return code;
}

int32_t Translator::new_slots(int count) {
  auto first = static_cast<int32_t>(slots_.size());
  slots_.resize(slots_.size() + static_cast<size_t>(count));
  return first;
}

int32_t Translator::constant(Slot value) {
  auto [it, added] = constants_.try_emplace(value.u, 0);
  if (added) {
    it->second = new_slots(1);
    slots_[static_cast<size_t>(it->second)] = value;
  }
  return it->second;
}

Operand Translator::define(const Node* n, Operand v) {
  RELAY_CHECK(values_.emplace(n, v).second, "bound twice");
  regions_[static_cast<size_t>(v.scope)].known.push_back(n);
  return v;
}

void Translator::bind(const Var& var, Operand v) {
  RELAY_CHECK(!values_.contains(var.get()), "variable " + var->name + " is bound twice");
  v.scope = top_index();
  define(var.get(), v);
}

const Operand* Translator::find(const Node* n) const {
  auto it = values_.find(n);
  return it == values_.end() ? nullptr : &it->second;
}

Operand Translator::result_of(std::initializer_list<const Operand*> operands, int lanes) {
  Operand v;
  for (const Operand* o : operands) {
    v.level = std::max(v.level, o->level);
    v.scope = std::max(v.scope, o->scope);
    v.step |= lanes > 1 ? o->step : 0;
  }
  v.scope = std::max(v.scope, region_of_level_[v.level]);
  v.slot = new_slots(v.step != 0 ? lanes : 1);
  return v;
}

void Translator::round(const Operand& v, DType dtype, int lanes) {
  if (v.step == 0) lanes = 1;
  Instr i;
  i.run = round_handler(dtype, wide(), lanes);
  if (i.run == nullptr) return;
  i.dst = i.a = v.slot;
  i.lanes.count = static_cast<uint16_t>(lanes);
  emit_for(v, i);
}

}  // namespace relay::tir::interpret_detail
