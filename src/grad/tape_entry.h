// Operators between lifted operands and lifted results, as entries of reverse mode's tape.
//
//   TapeEntry entry(cell, push);
//   auto x = entry.input(type, lifted);           (%x, ref(cell)) taken apart
//   auto y = entry.call_of(*sin, "y", {x});       let %y = sin(%x)
//   Expr out = entry.result({y});                 (%y, ref(cell)), and what it does to %x on the tape
//
// Operators on which the same results depend are one entry: it runs when an adjoint of what leaves it
// has arrived, and adds to each operand once. So a result whose adjoint never arrives has nothing
// computed for it alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "grad/grad_cell.h"
#include "grad/lift.h"

namespace relay {

class TapeEntry {
 public:
  // A tensor: its value, and where its adjoint goes.
  struct Slot {
    Type type;
    Expr value;
    Expr cell = nullptr;  // null: nowhere, or to the operator that makes it
    int operation = -1;   // that makes it; -1: an operand
    size_t result = 0;    // which of its tensors
  };
  struct Operand {
    Type type;
    Expr value;
    std::vector<Slot> slots;  // tuples flattened
  };
  // Puts on the tape what runs on the way back.
  using Push = std::function<void(const Expr& spread, Bindings& b)>;

  TapeEntry(const GradCell& cell, Push push) : cell_(cell), push_(std::move(push)) {}

  Operand constant(const Expr& c);
  // A lifted value whose type was `type`: tensors and tuples of them.
  Operand input(const Type& type, const Expr& lifted);
  Operand tuple_of(const std::vector<Operand>& fields);
  Operand field_of(const Operand& whole, int64_t index);
  // A call of an operator, on other operands.
  Operand call_of(const CallNode& c, const std::string& name, const std::vector<Operand>& args);

  // The lifted value of the results - of several, a tuple - inside of all that was computed. Throws
  // what `call_gradient` does. Last.
  Expr result(const std::vector<Operand>& results);

 private:
  struct Operation {
    Call call = nullptr;
    Var result = nullptr;
    std::vector<Slot> args = {}, slots = {};
    uint64_t readers = 0;           // the results of all that depend on it
    std::vector<bool> leaves = {};  // which of its tensors others than its own entry use
  };

  void find_readers(const std::vector<Operand>& results);
  void make_cells(Operation& o);
  const Slot& known(const Slot& s) const;
  Expr with_cells(const Type& type, const Operand& r, size_t& next);
  void push_entries();
  void push_entry(const std::vector<size_t>& members);
  Expr back_through(const std::vector<size_t>& members,
                    const std::vector<std::pair<const Slot*, Expr>>& given, bool& reaches);

  const GradCell& cell_;
  Push push_;
  Bindings b_;
  std::vector<Operation> operations_;
};

}  // namespace relay
