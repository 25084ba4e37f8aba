// A function as a program for the interpreter's machine. The class is spread over files:
//   interpret_translator.cc   regions, pieces of code, slots
//   interpret_expressions.cc  expressions and choices
//   interpret_statements.cc   memory and statements
#pragma once

#include <initializer_list>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tir/interpret.h"
#include "tir/interpret_machine.h"
#include "tir/thread_nests.h"

namespace relay::tir::interpret_detail {

// Where the lanes of an expression are: slot, slot + step, ... `level` is the number of loops that
// change it, `scope` the innermost region in which the slots mean this expression.
struct Operand {
  int32_t slot = 0;
  int32_t step = 0;
  int level = 0;
  int scope = 0;
  int32_t lane(int l) const { return slot + l * step; }
};

// Translates a function to a flat program.
//
// Code is collected in pieces that are put in place of each other's references at the end. Regions
// nest as loops, branches, blocks and Lets do: those of loops and branches have a piece of code of
// their own, and at the end of any region the values that hold only inside it are forgotten.
// An operation goes to the piece of the innermost loop that changes an operand, so that what does
// not depend on an inner loop is computed outside of it; only Loads stay where they are. A node
// that occurs several times is computed once wherever its value still holds.
class Translator {
 public:
  Translator(const PrimFuncNode& f, const InterpretOptions& options) : f_(f), options_(options) {}

  // Leaves program and memories in `m`; `code` holds the instructions.
  void translate(Machine& m, std::vector<Instr>& code, const std::vector<int64_t>& dims);

 private:
  struct Operation {
    Handler run = nullptr;
    int32_t dst = 0, a = 0, b = 0, c = 0;
  };

  // An instruction, a reference to a piece of code, or a label.
  struct Item {
    enum Kind { kInstr, kPiece, kLabel } kind = kInstr;
    int target = 0;
    Instr instr;
  };

  using Piece = std::vector<Item>;
  struct Region {
    int piece = 0;
    bool own_code = false;
    int level = 0;
    int outer_of_level = -1;  // the region of this level that it covers
    bool masked = false;      // Loads read only in the lanes of `mask`
    int mask_lanes = 0;
    Operand mask;
    std::vector<const Node*> known;  // keys of values_
  };

  // ---- Regions and code

  Region& top() { return regions_.back(); }
  int top_index() const { return static_cast<int>(regions_.size()) - 1; }
  int level() const { return regions_.back().level; }
  void open(bool own_code, int level);
  void open() { open(false, level()); }
  // Returns the region's piece of code.
  int close();
  void emit_to(int region, const Instr& i);
  static Instr instr(const Operation& o);
  void emit(const Operation& o) { emit_to(top_index(), instr(o)); }
  void emit_numbered(const Operation& o, int64_t number);
  void emit_piece(int piece) { pieces_[top().piece].push_back({Item::kPiece, piece, {}}); }
  int new_label() { return labels_++; }
  void emit_label(int label) { pieces_[top().piece].push_back({Item::kLabel, label, {}}); }
  static bool jumps(const Instr& i);
  std::vector<Instr> flatten();

  // ---- Slots and values

  int32_t new_slots(int count);
  int32_t constant(Slot value);
  int32_t constant(int64_t value) { return constant(Slot{.i = value}); }
  Operand define(const Node* n, Operand v);
  void bind(const Var& var, Operand v);
  const Operand* find(const Node* n) const;
  const Operand& at(const PrimExpr& e) const { return values_.at(e.get()); }
  // Room for the result of an operation on these operands, where it is computed, and what holds
  // of it.
  Operand result_of(std::initializer_list<const Operand*> operands, int lanes);
  // Emits an operation whose result is `v`, where v belongs.
  void emit_for(const Operand& v, const Instr& i) { emit_to(region_of_level_[v.level], i); }
  // dst = run(operands), for all lanes at once.
  template <class Choose>
  Operand operation(std::initializer_list<const Operand*> operands, int lanes, Choose choose) {
    Operand v = result_of(operands, lanes);
    if (v.step == 0) lanes = 1;
    Instr i;
    i.run = choose(lanes);
    i.dst = v.slot;
    const Operand* const* o = operands.begin();
    size_t n = operands.size();
    i.a = o[0]->slot;
    if (n > 1) i.b = o[1]->slot;
    if (n > 2) i.c = o[2]->slot;
    auto step = [&](size_t k) { return static_cast<uint8_t>(k < n ? o[k]->step : 0); };
    i.lanes = {static_cast<uint16_t>(lanes), step(0), step(1), step(2)};
    emit_for(v, i);
    return v;
  }
  void round(const Operand& v, DType dtype, int lanes);
  bool wide() const { return options_.wide_floats; }

  // ---- Expressions

  // Which expressions read memory somewhere below.
  void note_loads();
  bool reads(const PrimExpr& e) const { return reads_.contains(e.get()); }
  struct ExprFrame {
    const PrimExprNode* node;
    // Of a Let or Select: how far it is.
    int state = 0;
    bool by_lane = false;
    int piece = 0;    // of the true side
    Operand value{};  // the condition
    Operand result{};
  };

  Operand evaluate(const PrimExpr& e);
  // Whether the operand is known; if not, it comes first.
  bool ready(const PrimExpr& e);
  template <class... E>
  bool all_ready(const E&... e) {
    return (static_cast<int>(ready(e)) & ...) != 0;
  }
  bool all_ready(const std::vector<PrimExpr>& list);
  void finish(const PrimExprNode& n, Operand v);
  // Carries the topmost expression on: it asks for its operands until they are there.
  void step();
  int32_t float_constant(DType dtype, double v);
  void step_binary(const BinaryNode& n);
  Operand ramp_of(const Operand& base, const Operand& stride, DType dtype);
  void step_call(const CallNode& n);
  std::unordered_map<const Node*, PrimExpr>
      plain_terms_;  // of calls that stand for other expressions
  // The lanes of `a`, one after the other.
  Operand combined(const CallNode& n, const Operand& a);
  void step_let(const LetNode& n);

  // ---- Choices

  // Where sides read memory, only the chosen one is evaluated: by a branch, or, lane by lane, under
  // a mask.
  void step_select(const SelectNode& n);
  // A value of its own slots that this very place gives.
  Operand here(int lanes) { return {new_slots(lanes), lanes > 1 ? 1 : 0, level(), top_index()}; }
  void move(const Operand& to, const Operand& from, int lanes);
  void step_branch(const SelectNode& n, ExprFrame& frame);
  void emit_branch(const Operand& cond, int then_piece, int else_piece);
  void step_masked(const SelectNode& n, ExprFrame& frame);
  Operand clamp_scope(Operand v);
  // A region whose Loads read only in the lanes of `mask`, within those of the mask outside.
  void open_masked(const Operand& mask, int lanes);
  // The current mask for accesses of so many lanes: its own lanes, or whether any is true.
  Operand mask_for(int lanes);

  // ---- Memory

  void add_memory(const Buffer& b, bool parameter);
  Storage storage_of(bool parameter) const { return {wide(), wide() && !parameter}; }
  int32_t memory_of(const Buffer& b) const;
  // One lane of an access; gives its index.
  int32_t add_access(const Buffer& b, const std::vector<Operand>& indices, int lane, bool is_store);
  std::vector<Operand> values_of(const std::vector<PrimExpr>& list) const;
  void step_load(const LoadNode& n);
  void store(const StoreNode& s, bool guarded);

  // ---- Statements

  // Who executes a statement: all of a kernel, a group of items, or one item.
  enum class ItemLevel { Kernel, Group, Item };

  struct StmtFrame {
    const StmtNode* node;
    size_t state = 0;
    bool guarded = false;  // a Block with a predicate; a For that has looked for empty reductions
    int piece = 0;
    int32_t extent = 0;
    Operand value{};
    Operand var{};
    bool divided = false;  // `divide` has looked at it
    std::optional<ItemLevel> outside{};
  };

  void statements(const Stmt& body);
  // The statement comes next; `frame` references are not valid afterwards.
  void enter(const Stmt& s) { stack_.push_back({s.get()}); }
  void leave() {
    if (stack_.back().outside) items_ = *stack_.back().outside;
    stack_.pop_back();
  }
  // Finds the launches, groups and items that begin with the statement.
  void divide(StmtFrame& f);
  // Notes for the search for races what the call does beside its value.
  void note_effect(const CallNode& c);
  // Around each iteration of a loop over items.
  void note_item(const ForNode& s, const Operand& var);
  void note_item_end(const ForNode& s);
  // The value of an expression at this place; what it read is not remembered.
  Operand once(const PrimExpr& e);
  void statement(StmtFrame& f);
  void step_store(const StoreNode& s);
  void step_for(const ForNode& s, StmtFrame& f);
  // The iterations of the loop: none where a loop that is all of its body has none, however many
  // it has itself.
  PrimExpr extent_of_nest(const ForNode& outer);
  // A reduction over nothing gives its initial value: where blocks reduce over extents that may be
  // zero, and `outer` is the outermost loop of the reduction, the statement that then initialises.
  // Null where there is none.
  Stmt init_of_empty(const ForNode& outer);
  void step_if(const IfNode& s, StmtFrame& f);
  // Bindings, then the predicate around the initialisation, under its own condition, and the body.
  void step_block(const BlockNode& b, StmtFrame& f);

  const PrimFuncNode& f_;
  const InterpretOptions& options_;
  ItemLevel items_ = ItemLevel::Kernel;
  int copies_ = 0;  // open loops whose stores to shared memory arrive later
  std::unordered_map<const Node*, int64_t> axes_;  // of loops over items, as enter_item counts them
  std::unordered_set<const Node*> reads_;
  std::unordered_map<const Node*, Operand> values_;
  std::vector<NodeRef> kept_;                    // made here; keys of values_ must not be reused
  std::unordered_set<const Node*> initialised_;  // blocks whose empty reductions are taken care of
  std::vector<Region> regions_;
  std::vector<int> region_of_level_;  // the innermost open region with code of its own
  std::vector<Piece> pieces_;
  int labels_ = 0;
  std::vector<ExprFrame> frames_;
  std::vector<StmtFrame> stack_;
  std::vector<Slot> slots_;
  std::unordered_map<uint64_t, int32_t> constants_;
  std::unordered_map<const Node*, int32_t> memories_;  // of buffers in scope
  std::vector<bool> parameters_;                       // whether the memory is a parameter's
  std::vector<Memory> memory_;
  std::vector<Access> accesses_;
};

}  // namespace relay::tir::interpret_detail
