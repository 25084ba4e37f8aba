#include "grad/tape_entry.h"

#include <algorithm>
#include <bit>
#include <map>

#include "grad/call_gradient.h"
#include "grad/dataflow.h"

namespace relay {
namespace {

// Results beyond so many share bits: their operators are computed with each other's.
constexpr size_t kBits = 64;

}  // namespace

TapeEntry::Operand TapeEntry::constant(const Expr& c) {
  return {c->type, c, {{c->type, c, nullptr}}};
}

TapeEntry::Operand TapeEntry::input(const Type& type, const Expr& lifted) {
  Operand out{type, nullptr, {}};
  std::vector<Lifting::Part> parts;
  Lifting::take_apart(type, lifted, b_, out.value, parts);
  for (const Lifting::Part& p : parts) out.slots.push_back({p.type, p.value, p.carried});
  return out;
}

TapeEntry::Operand TapeEntry::tuple_of(const std::vector<Operand>& fields) {
  Operand out;
  std::vector<Type> types;
  std::vector<Expr> values;
  for (const Operand& f : fields) {
    types.push_back(f.type);
    values.push_back(f.value);
    out.slots.insert(out.slots.end(), f.slots.begin(), f.slots.end());
  }
  out.type = tuple_type(std::move(types));
  out.value = tuple(std::move(values));
  return out;
}

TapeEntry::Operand TapeEntry::field_of(const Operand& whole, int64_t index) {
  auto* t = as<TupleTypeNode>(whole.type);
  auto at = static_cast<size_t>(index);
  size_t begin = 0;
  for (size_t i = 0; i < at; ++i) begin += flatten_tensor_types(t->fields[i])->size();
  const size_t count = flatten_tensor_types(t->fields[at])->size();
  auto* literal = as<TupleNode>(whole.value);
  Expr value = literal != nullptr ? literal->fields[at] : Expr(tuple_get_item(whole.value, index));
  auto first = whole.slots.begin() + static_cast<int64_t>(begin);
  return {t->fields[at], value, {first, first + static_cast<int64_t>(count)}};
}

TapeEntry::Operand TapeEntry::call_of(const CallNode& c, const std::string& name,
                                      const std::vector<Operand>& args) {
  Operation o;
  std::vector<Expr> values;
  for (const Operand& a : args) {
    values.push_back(a.value);
    o.args.insert(o.args.end(), a.slots.begin(), a.slots.end());
  }
  o.call = call(c.op, std::move(values), c.attrs, c.span);
  o.result = b_.bind(name, o.call);
  const int number = static_cast<int>(operations_.size());
  Operand out{o.result->type, o.result, {}};
  for (const Expr& tensor : tensors_of(o.result)) {
    out.slots.push_back({tensor->type, tensor, nullptr, number, o.slots.size()});
    o.slots.push_back(out.slots.back());
  }
  operations_.push_back(std::move(o));
  return out;
}

// The lifted value of the results - of several, a tuple - inside of all that was computed.
Expr TapeEntry::result(const std::vector<Operand>& results) {
  find_readers(results);
  for (Operation& o : operations_) make_cells(o);
  std::vector<Expr> lifted;
  for (const Operand& r : results) {
    size_t next = 0;
    lifted.push_back(with_cells(r.type, r, next));
  }
  push_entries();
  return b_.in(lifted.size() == 1 ? lifted[0] : Expr(tuple(std::move(lifted))));
}

void TapeEntry::find_readers(const std::vector<Operand>& results) {
  for (Operation& o : operations_) o.leaves.assign(o.slots.size(), false);
  size_t number = 0;
  for (const Operand& r : results) {
    for (const Slot& s : r.slots) {
      if (s.operation < 0 || !is_floating(s.type)) continue;
      Operation& o = operations_[static_cast<size_t>(s.operation)];
      o.leaves[s.result] = true;
      o.readers |= uint64_t{1} << (number++ % kBits);
    }
  }
  for (size_t i = operations_.size(); i-- > 0;) {
    if (!has_floats(operations_[i].result->type)) continue;
    for (const Slot& s : operations_[i].args) {
      if (s.operation >= 0 && is_floating(s.type))
        operations_[static_cast<size_t>(s.operation)].readers |= operations_[i].readers;
    }
  }
  for (const Operation& o : operations_) {
    for (const Slot& s : o.args) {
      if (s.operation < 0 || !is_floating(s.type)) continue;
      Operation& from = operations_[static_cast<size_t>(s.operation)];
      if (o.readers != 0 && from.readers != o.readers && has_floats(o.result->type))
        from.leaves[s.result] = true;
    }
  }
}

void TapeEntry::make_cells(Operation& o) {
  for (size_t k = 0; k < o.slots.size(); ++k) {
    if (o.leaves[k]) o.slots[k].cell = b_.bind("c", ref_create(cell_.none(o.slots[k].type)));
  }
}

const TapeEntry::Slot& TapeEntry::known(const Slot& s) const {
  return s.operation < 0 ? s : operations_[static_cast<size_t>(s.operation)].slots[s.result];
}

Expr TapeEntry::with_cells(const Type& type, const Operand& r, size_t& next) {
  if (auto* t = as<TupleTypeNode>(type)) {
    std::vector<Expr> fields;
    for (const Type& f : t->fields) fields.push_back(with_cells(f, r, next));
    return tuple(std::move(fields));
  }
  const Slot& s = known(r.slots[next++]);
  if (!is_floating(type)) return s.value;
  // A constant that is a result.
  Expr cell = s.cell ? s.cell : Expr(b_.bind("c", ref_create(cell_.none(type))));
  return tuple({s.value, cell});
}

// What fewer results depend on comes later, and so is run through first on the way back.
void TapeEntry::push_entries() {
  std::map<std::pair<int, uint64_t>, std::vector<size_t>> entries;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const uint64_t readers = operations_[i].readers;
    if (readers != 0) entries[{-std::popcount(readers), readers}].push_back(i);
  }
  for (const auto& [key, members] : entries) push_entry(members);
}

void TapeEntry::push_entry(const std::vector<size_t>& members) {
  std::vector<const Slot*> leaving;
  bool wanted = false;
  for (size_t i : members) {
    for (const Slot& s : operations_[i].slots) {
      if (s.cell) leaving.push_back(&s);
    }
    for (const Slot& s : operations_[i].args) wanted |= static_cast<bool>(known(s).cell);
  }
  if (!wanted) return;
  Expr spread;
  bool reaches = false;
  if (leaving.size() == 1) {
    spread = cell_.choose(leaving[0]->cell, tuple({}), [&](const Expr& g) {
      return back_through(members, {{leaving[0], g}}, reaches);
    });
  } else {
    Bindings all;
    Expr any = relay::constant(0, DType::Bool());
    for (const Slot* s : leaving) {
      any = all.bind("any", cell_.choose(s->cell, any, [](const Expr&) {
        return relay::constant(1, DType::Bool());
      }));
    }
    Bindings some;
    std::vector<std::pair<const Slot*, Expr>> adjoints;
    for (const Slot* s : leaving) {
      adjoints.emplace_back(s, some.bind("g", cell_.choose(s->cell, zeros_of(s->value),
                                                           [](const Expr& g) { return g; })));
    }
    Expr body = some.in(back_through(members, adjoints, reaches));
    spread = all.in(if_(any, body, tuple({})));
  }
  if (reaches) push_(spread, b_);
}

Expr TapeEntry::back_through(const std::vector<size_t>& members,
                             const std::vector<std::pair<const Slot*, Expr>>& given,
                             bool& reaches) {
  Bindings inner;
  std::map<std::pair<int, size_t>, Expr> adjoints;  // of what members make
  std::vector<std::pair<Expr, Expr>> sums;          // for cells
  auto add = [&](Expr& sum, const Expr& more) {
    sum = sum ? inner.leaf(call("add", {sum, more})) : more;
  };
  for (const auto& [slot, g] : given) adjoints[{slot->operation, slot->result}] = g;
  const uint64_t own = operations_[members[0]].readers;
  for (size_t m = members.size(); m-- > 0;) {
    const Operation& o = operations_[members[m]];
    std::vector<Expr> of_result;
    bool some = false;
    for (const Slot& s : o.slots) {
      auto it = adjoints.find({s.operation, s.result});
      of_result.push_back(it == adjoints.end() ? nullptr : it->second);
      some |= it != adjoints.end();
    }
    if (!some) continue;
    std::vector<Expr> found = call_gradient(*o.call.get(), o.result, std::move(of_result));
    for (size_t i = 0; i < o.args.size(); ++i) {
      const Slot& to = known(o.args[i]);
      if (!found[i]) continue;
      const bool inside =
          to.operation >= 0 && operations_[static_cast<size_t>(to.operation)].readers == own;
      if (inside) {
        add(adjoints[{to.operation, to.result}], inner.leaf(found[i]));
      } else if (to.cell) {
        auto it = std::ranges::find(sums, to.cell, &std::pair<Expr, Expr>::first);
        if (it == sums.end()) it = sums.insert(sums.end(), {to.cell, nullptr});
        add(it->second, is_one_line(found[i]) ? found[i] : inner.leaf(found[i]));
      }
    }
  }
  for (auto& [place, more] : sums) inner.bind("_", cell_.accumulate(place, more));
  reaches = !sums.empty();
  return inner.in(tuple({}));
}

}  // namespace relay
