#include "tir/interpret.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "node/walk.h"
#include "tir/interpret_machine.h"
#include "tir/intrinsics.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

using namespace interpret_detail;  // NOLINT: the other half of this file

// Where the lanes of an expression are: slot, slot + step, ... `level` is the number of loops that
// change it, `scope` the innermost region in which the slots mean this expression.
struct Value {
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
  void translate(Machine& m, std::vector<Instr>& code, const std::vector<int64_t>& dims) {
    note_loads();
    open(/*own_code=*/true, 0);
    RELAY_CHECK(dims.size() == f_.dims.size(), "values for the dimensions of " + f_.name);
    for (size_t i = 0; i < dims.size(); ++i) bind(f_.dims[i], {constant(dims[i]), 0, 0, 0});
    for (size_t i = 0; i < f_.params.size(); ++i) {
      add_memory(f_.params[i], /*parameter=*/true);
      emit({.run = &bind_parameter, .a = memories_.at(f_.params[i].get())});
    }
    statements(f_.body);
    emit({.run = &end});
    code = flatten();
    m.slots = std::move(slots_);
    m.memories = std::move(memory_);
    m.accesses = std::move(accesses_);
  }

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
    Value mask;
    std::vector<const Node*> known;  // keys of values_
  };

  // ---- Regions and code

  Region& top() { return regions_.back(); }
  int top_index() const { return static_cast<int>(regions_.size()) - 1; }
  int level() const { return regions_.back().level; }

  void open(bool own_code, int level) {
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
      if (level >= static_cast<int>(region_of_level_.size()))
        region_of_level_.resize(level + 1, -1);
      r.outer_of_level = region_of_level_[level];
      region_of_level_[level] = static_cast<int>(regions_.size());
    }
    regions_.push_back(std::move(r));
  }
  void open() { open(false, level()); }

  // Returns the region's piece of code.
  int close() {
    Region r = std::move(top());
    regions_.pop_back();
    for (const Node* n : r.known) values_.erase(n);
    if (r.own_code) region_of_level_[r.level] = r.outer_of_level;
    return r.piece;
  }

  void emit_to(int region, const Instr& i) {
    pieces_[regions_[static_cast<size_t>(region)].piece].push_back({Item::kInstr, 0, i});
  }
  static Instr instr(const Operation& o) {
    Instr i;
    i.run = o.run;
    i.dst = o.dst;
    i.a = o.a;
    i.b = o.b;
    i.c = o.c;
    return i;
  }
  void emit(const Operation& o) { emit_to(top_index(), instr(o)); }
  void emit_numbered(const Operation& o, int64_t number) {
    Instr i = instr(o);
    i.number = number;
    emit_to(top_index(), i);
  }
  void emit_piece(int piece) { pieces_[top().piece].push_back({Item::kPiece, piece, {}}); }
  int new_label() { return labels_++; }
  void emit_label(int label) { pieces_[top().piece].push_back({Item::kLabel, label, {}}); }

  static bool jumps(const Instr& i) {
    return i.run == &jump || i.run == &jump_unless || i.run == &loop_begin || i.run == &loop_next;
  }

  std::vector<Instr> flatten() {
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

  // ---- Slots and values

  int32_t new_slots(int count) {
    auto first = static_cast<int32_t>(slots_.size());
    slots_.resize(slots_.size() + static_cast<size_t>(count));
    return first;
  }
  int32_t constant(Slot value) {
    auto [it, added] = constants_.try_emplace(value.u, 0);
    if (added) {
      it->second = new_slots(1);
      slots_[static_cast<size_t>(it->second)] = value;
    }
    return it->second;
  }
  int32_t constant(int64_t value) { return constant(Slot{.i = value}); }

  Value define(const Node* n, Value v) {
    RELAY_CHECK(values_.emplace(n, v).second, "bound twice");
    regions_[static_cast<size_t>(v.scope)].known.push_back(n);
    return v;
  }
  void bind(const Var& var, Value v) {
    RELAY_CHECK(!values_.contains(var.get()), "variable " + var->name + " is bound twice");
    v.scope = top_index();
    define(var.get(), v);
  }
  const Value* find(const Node* n) const {
    auto it = values_.find(n);
    return it == values_.end() ? nullptr : &it->second;
  }
  const Value& at(const PrimExpr& e) const { return values_.at(e.get()); }

  // Room for the result of an operation on these operands, where it is computed, and what holds
  // of it.
  Value result_of(std::initializer_list<const Value*> operands, int lanes) {
    Value v;
    for (const Value* o : operands) {
      v.level = std::max(v.level, o->level);
      v.scope = std::max(v.scope, o->scope);
      v.step |= lanes > 1 ? o->step : 0;
    }
    v.scope = std::max(v.scope, region_of_level_[v.level]);
    v.slot = new_slots(v.step != 0 ? lanes : 1);
    return v;
  }
  // Emits an operation whose result is `v`, where v belongs.
  void emit_for(const Value& v, const Instr& i) { emit_to(region_of_level_[v.level], i); }

  // dst = run(operands), for all lanes at once.
  template <class Choose>
  Value operation(std::initializer_list<const Value*> operands, int lanes, Choose choose) {
    Value v = result_of(operands, lanes);
    if (v.step == 0) lanes = 1;
    Instr i;
    i.run = choose(lanes);
    i.dst = v.slot;
    const Value* const* o = operands.begin();
    size_t n = operands.size();
    i.a = o[0]->slot;
    if (n > 1) i.b = o[1]->slot;
    if (n > 2) i.c = o[2]->slot;
    auto step = [&](size_t k) { return static_cast<uint8_t>(k < n ? o[k]->step : 0); };
    i.lanes = {static_cast<uint16_t>(lanes), step(0), step(1), step(2)};
    emit_for(v, i);
    return v;
  }
  void round(const Value& v, DType dtype, int lanes) {
    if (v.step == 0) lanes = 1;
    Instr i;
    i.run = round_handler(dtype, wide(), lanes);
    if (i.run == nullptr) return;
    i.dst = i.a = v.slot;
    i.lanes.count = static_cast<uint16_t>(lanes);
    emit_for(v, i);
  }

  bool wide() const { return options_.wide_floats; }

  // ---- Expressions

  // Which expressions read memory somewhere below.
  void note_loads() {
    post_order(f_.body, [&](const Node& n) {
      if (n.info().family != family::tir_expr) return;
      bool reads = isa<LoadNode>(&n);
      for_each_child(n, [&](const NodeRef& c) { reads |= reads_.contains(c.get()); });
      if (reads) reads_.insert(&n);
    });
  }
  bool reads(const PrimExpr& e) const { return reads_.contains(e.get()); }

  struct ExprFrame {
    const PrimExprNode* node;
    // Of a Let or Select: how far it is.
    int state = 0;
    bool by_lane = false;
    int piece = 0;  // of the true side
    Value value{};  // the condition
    Value result{};
  };

  Value evaluate(const PrimExpr& e) {
    size_t bottom = frames_.size();
    frames_.push_back({e.get()});
    while (frames_.size() > bottom) {
      if (frames_.back().state == 0 && find(frames_.back().node) != nullptr) {
        frames_.pop_back();
        continue;
      }
      step();
    }
    return at(e);
  }

  // Whether the operand is known; if not, it comes first.
  bool ready(const PrimExpr& e) {
    if (find(e.get()) != nullptr) return true;
    frames_.push_back({e.get()});
    return false;
  }
  template <class... E>
  bool all_ready(const E&... e) {
    return (static_cast<int>(ready(e)) & ...) != 0;
  }
  bool all_ready(const std::vector<PrimExpr>& list) {
    bool all = true;
    for (const PrimExpr& e : list) all &= ready(e);
    return all;
  }

  void finish(const PrimExprNode& n, Value v) {
    frames_.pop_back();
    define(&n, v);
  }

  // Carries the topmost expression on: it asks for its operands until they are there.
  void step() {
    const PrimExprNode& e = *frames_.back().node;
    switch (e.kind()) {
      case ExprKind::Var:
        internal_error(__FILE__, __LINE__,
                       "variable " + static_cast<const VarNode&>(e).name + " is not bound");
      case ExprKind::IntImm:
        return finish(e, {constant(static_cast<const IntImmNode&>(e).value), 0, 0, 0});
      case ExprKind::FloatImm:
        return finish(e, {float_constant(e.dtype, static_cast<const FloatImmNode&>(e).value)});
      case ExprKind::Binary:
        return step_binary(static_cast<const BinaryNode&>(e));
      case ExprKind::Not: {
        auto& n = static_cast<const NotNode&>(e);
        if (!ready(n.a)) return;
        return finish(e, operation({&at(n.a)}, e.dtype.lanes, not_handler));
      }
      case ExprKind::Select:
        return step_select(static_cast<const SelectNode&>(e));
      case ExprKind::Cast: {
        auto& n = static_cast<const CastNode&>(e);
        if (!ready(n.value)) return;
        return finish(e, operation({&at(n.value)}, e.dtype.lanes, [&](int lanes) {
                        return cast_handler(n.value->dtype, e.dtype, wide(), lanes);
                      }));
      }
      case ExprKind::Call:
        return step_call(static_cast<const CallNode&>(e));
      case ExprKind::Load:
        return step_load(static_cast<const LoadNode&>(e));
      case ExprKind::Ramp: {
        auto& n = static_cast<const RampNode&>(e);
        if (!all_ready(n.base, n.stride)) return;
        return finish(e, ramp_of(at(n.base), at(n.stride), e.dtype));
      }
      case ExprKind::Broadcast: {
        auto& n = static_cast<const BroadcastNode&>(e);
        if (!ready(n.value)) return;
        return finish(e, at(n.value));
      }
      case ExprKind::Let:
        return step_let(static_cast<const LetNode&>(e));
      default:
        internal_error(__FILE__, __LINE__,
                       "a " + std::string(e.info().name) + " in the kernel " + f_.name);
    }
  }

  int32_t float_constant(DType dtype, double v) {
    Slot s{};
    if (wide() || dtype.bits == 64) {
      s.d = v;
    } else {
      s.u = std::bit_cast<uint32_t>(static_cast<float>(v));
    }
    return constant(s);
  }

  void step_binary(const BinaryNode& n) {
    if (!all_ready(n.a, n.b)) return;
    DType dtype = n.a->dtype;
    Value v = operation({&at(n.a), &at(n.b)}, dtype.lanes,
                        [&](int lanes) { return binary_handler(n.op, dtype, wide(), lanes); });
    if (n.op <= BinaryOp::FloorMod) round(v, dtype, dtype.lanes);
    finish(n, v);
  }

  Value ramp_of(const Value& base, const Value& stride, DType dtype) {
    Value v = result_of({&base, &stride}, 1);
    v.slot = new_slots(dtype.lanes);
    v.step = 1;
    for (int l = 0; l < dtype.lanes; ++l) {
      Instr i = instr({.run = ramp_handler(), .dst = v.lane(l), .a = base.slot, .b = stride.slot});
      i.number = l;
      emit_for(v, i);
    }
    round(v, dtype, dtype.lanes);
    return v;
  }

  void step_call(const CallNode& n) {
    if (auto defect = intrinsic_defect(n.name, n.dtype, n.args)) {
      internal_error(__FILE__, __LINE__, *defect);
    }
    const Intrinsic& f = *find_intrinsic(n.name);
    if (f.rule == IntrinsicRule::Effect) return finish(n, {constant(int64_t{0})});
    if (!all_ready(n.args)) return;
    DType from = n.args[0]->dtype;
    const Value a = at(n.args[0]);
    if (f.rule == IntrinsicRule::Any || (n.name == "abs" && from.is_uint())) return finish(n, a);
    if (f.rule == IntrinsicRule::Lanes) return finish(n, combined(n, a));
    const Value b = n.args.size() > 1 ? at(n.args[1]) : a;
    const Value c = n.args.size() > 2 ? at(n.args[2]) : a;
    Value v = result_of({&a, &b, &c}, n.dtype.lanes);
    int lanes = v.step == 0 ? 1 : n.dtype.lanes;
    for (int l = 0; l < lanes; ++l) {
      Instr i = instr({.dst = v.lane(l), .a = a.lane(l), .b = b.lane(l), .c = c.lane(l)});
      if (f.rule == IntrinsicRule::Bits) {
        i.run = to_bits_handler(from.element(), wide());
        emit_for(v, i);
        i.run = from_bits_handler(n.dtype.element(), wide());
        i.a = i.dst;
      } else if (f.rule == IntrinsicRule::Integer) {
        i.run = count_bits_handler();
        i.number = from.bits == 64 ? -1 : (int64_t{1} << from.bits) - 1;
      } else if (!from.is_floating()) {
        i.run = abs_int_handler();
      } else {
        i.run = function_handler(from, wide(), f.rule == IntrinsicRule::Test);
        if (wide() || from.bits == 64) {
          i.wide = f.wide;
        } else {
          i.narrow = f.narrow;
        }
      }
      emit_for(v, i);
    }
    if (f.rule == IntrinsicRule::Float || f.rule == IntrinsicRule::Number) {
      round(v, from, n.dtype.lanes);
    }
    finish(n, v);
  }

  // The lanes of `a`, one after the other.
  Value combined(const CallNode& n, const Value& a) {
    BinaryOp op = n.name == "reduce_add"   ? BinaryOp::Add
                  : n.name == "reduce_mul" ? BinaryOp::Mul
                  : n.name == "reduce_min" ? BinaryOp::Min
                  : n.name == "reduce_max" ? BinaryOp::Max
                  : n.name == "reduce_and" ? BinaryOp::And
                                           : BinaryOp::Or;
    Value all{a.slot, 0, a.level, a.scope};
    for (int l = 1; l < n.args[0]->dtype.lanes; ++l) {
      Value lane{a.lane(l), 0, a.level, a.scope};
      all = operation({&all, &lane}, 1,
                      [&](int one) { return binary_handler(op, n.dtype, wide(), one); });
      round(all, n.dtype, 1);
    }
    return all;
  }

  void step_let(const LetNode& n) {
    ExprFrame& frame = frames_.back();
    if (frame.state == 0) {
      if (!ready(n.value)) return;
      Value v = at(n.value);
      frame.state = 1;
      open();
      bind(n.var, v);
      ready(n.body);
      return;
    }
    Value v = at(n.body);
    close();
    // What the body needed besides the variable is not told apart, so it holds only here.
    v.scope = top_index();
    finish(n, v);
  }

  // ---- Choices

  // Where sides read memory, only the chosen one is evaluated: by a branch, or, lane by lane, under
  // a mask.
  void step_select(const SelectNode& n) {
    if (!reads(n.true_value) && !reads(n.false_value)) {
      if (!all_ready(n.cond, n.true_value, n.false_value)) return;
      return finish(n, operation({&at(n.cond), &at(n.true_value), &at(n.false_value)},
                                 n.dtype.lanes, pick_handler));
    }
    ExprFrame& frame = frames_.back();
    if (frame.state == 0) {
      if (!ready(n.cond)) return;
      frame.state = 1;
      frame.by_lane = at(n.cond).step != 0;
      frame.value = at(n.cond);
      if (frame.by_lane) {
        open_masked(frame.value, n.dtype.lanes);
      } else {
        frame.result = here(n.dtype.lanes);
        open(/*own_code=*/true, level());
      }
      ready(n.true_value);
    } else if (frame.by_lane) {
      step_masked(n, frame);
    } else {
      step_branch(n, frame);
    }
  }

  // A value of its own slots that this very place gives.
  Value here(int lanes) { return {new_slots(lanes), lanes > 1 ? 1 : 0, level(), top_index()}; }
  void move(const Value& to, const Value& from, int lanes) {
    Instr i = instr({.run = move_handler(lanes), .dst = to.slot, .a = from.slot});
    i.lanes = {static_cast<uint16_t>(lanes), static_cast<uint8_t>(from.step), 0, 0};
    emit_to(top_index(), i);
  }

  void step_branch(const SelectNode& n, ExprFrame& frame) {
    bool first = frame.state == 1;
    move(frame.result, at(first ? n.true_value : n.false_value), n.dtype.lanes);
    int piece = close();
    if (first) {
      frame.state = 2;
      frame.piece = piece;
      open(/*own_code=*/true, level());
      ready(n.false_value);
      return;
    }
    emit_branch(frame.value, frame.piece, piece);
    finish(n, frame.result);
  }
  void emit_branch(const Value& cond, int then_piece, int else_piece) {
    int otherwise = new_label(), after = new_label();
    emit_numbered({.run = &jump_unless, .a = cond.slot}, otherwise);
    emit_piece(then_piece);
    emit_numbered({.run = &jump}, after);
    emit_label(otherwise);
    if (else_piece >= 0) emit_piece(else_piece);
    emit_label(after);
  }

  void step_masked(const SelectNode& n, ExprFrame& frame) {
    const Value side = at(frame.state == 1 ? n.true_value : n.false_value);
    close();
    // The slots stay what they are; only the name is forgotten.
    if (frame.state == 1) {
      frame.state = 2;
      frame.result = side;
      const Value& cond = frame.value;
      open_masked(operation({&cond}, n.dtype.lanes, not_handler), n.dtype.lanes);
      ready(n.false_value);
      return;
    }
    Value t = clamp_scope(frame.result), f = clamp_scope(side);
    finish(n, operation({&frame.value, &t, &f}, n.dtype.lanes, pick_handler));
  }
  Value clamp_scope(Value v) {
    v.scope = std::min(v.scope, top_index());
    return v;
  }
  // A region whose Loads read only in the lanes of `mask`, within those of the mask outside.
  void open_masked(const Value& mask, int lanes) {
    Value inside = mask;
    if (top().masked) {
      Value outer = mask_for(lanes);
      inside = operation({&outer, &mask}, lanes, and_handler);
    }
    open();
    top().masked = true;
    top().mask_lanes = lanes;
    top().mask = inside;
  }
  // The current mask for accesses of so many lanes: its own lanes, or whether any is true.
  Value mask_for(int lanes) {
    if (top().mask_lanes == lanes) return top().mask;
    const Value& mask = top().mask;
    Value any{mask.slot, 0, mask.level, mask.scope};
    for (int l = 1; l < top().mask_lanes && mask.step != 0; ++l) {
      Value lane{mask.lane(l), 0, mask.level, mask.scope};
      any = operation({&any, &lane}, 1,
                      [](int n) { return binary_handler(BinaryOp::Or, DType::Bool(), false, n); });
    }
    return any;
  }

  // ---- Memory

  void add_memory(const Buffer& b, bool parameter) {
    Memory memory;
    memory.buffer = b;
    memory.element_bytes = interpret_detail::element_bytes(b->dtype, storage_of(parameter));
    for (const PrimExpr& e : b->shape) memory.shape_slots.push_back(evaluate(e).slot);
    for (const PrimExpr& e : b->memory_shape()) memory.memory_slots.push_back(evaluate(e).slot);
    memories_[b.get()] = static_cast<int32_t>(memory_.size());
    parameters_.push_back(parameter);
    memory_.push_back(std::move(memory));
  }
  Storage storage_of(bool parameter) const { return {wide(), wide() && !parameter}; }
  int32_t memory_of(const Buffer& b) const {
    auto it = memories_.find(b.get());
    RELAY_CHECK(it != memories_.end(), "buffer " + b->name + " is used where it has no memory");
    return it->second;
  }
  // One lane of an access; gives its index.
  int32_t add_access(const Buffer& b, const std::vector<Value>& indices, int lane, bool is_store) {
    RELAY_CHECK(indices.size() == b->shape.size() || indices.size() == 1,
                std::to_string(indices.size()) + " indices for buffer " + b->name);
    Access access;
    access.memory = memory_of(b);
    access.is_store = is_store;
    for (const Value& v : indices) access.indices.push_back(v.lane(lane));
    accesses_.push_back(std::move(access));
    return static_cast<int32_t>(accesses_.size()) - 1;
  }
  std::vector<Value> values_of(const std::vector<PrimExpr>& list) const {
    std::vector<Value> out;
    for (const PrimExpr& e : list) out.push_back(at(e));
    return out;
  }

  void step_load(const LoadNode& n) {
    const Storage storage = storage_of(parameters_[static_cast<size_t>(memory_of(n.buffer))]);
    DType dtype = n.buffer->dtype;
    int lanes = n.dtype.lanes;
    bool guarded = n.predicate || top().masked;
    // Consecutive elements are one instruction.
    auto* run = n.indices.size() == 1 ? as<RampNode>(n.indices[0]) : nullptr;
    if (run != nullptr && as_int(run->stride) == 1 && !guarded) {
      if (!ready(run->base)) return;
      Value v = here(lanes);
      Instr i = instr({.run = load_run_handler(dtype, storage), .dst = v.slot});
      i.a = add_access(n.buffer, {at(run->base)}, 0, /*is_store=*/false);
      i.lanes.count = static_cast<uint16_t>(lanes);
      emit_to(top_index(), i);
      return finish(n, v);
    }
    if (!all_ready(n.indices)) return;
    if (n.predicate && !ready(n.predicate)) return;
    std::vector<Value> indices = values_of(n.indices);
    Value mask;
    if (n.predicate) mask = at(n.predicate);
    if (top().masked) {
      Value outer = mask_for(lanes);
      mask = n.predicate ? operation({&outer, &mask}, lanes, and_handler) : outer;
    }
    Handler handler = load_handler(dtype, storage, indices.size(), guarded);
    Value v = here(lanes);
    for (int l = 0; l < lanes; ++l) {
      emit({.run = handler,
            .dst = v.lane(l),
            .a = add_access(n.buffer, indices, l, /*is_store=*/false),
            .c = guarded ? mask.lane(l) : 0});
    }
    finish(n, v);
  }

  void store(const StoreNode& s, bool guarded) {
    std::vector<Value> indices;
    for (const PrimExpr& e : s.indices) indices.push_back(evaluate(e));
    Value value = evaluate(s.value);
    Value mask = guarded ? evaluate(s.predicate) : Value{};
    if (options_.max_steps > 0) emit({.run = &count_step});
    int32_t memory = memory_of(s.buffer);
    const Storage storage = storage_of(parameters_[static_cast<size_t>(memory)]);
    Handler handler = store_handler(s.buffer->dtype, storage, indices.size(), guarded);
    for (int l = 0; l < s.value->dtype.lanes; ++l) {
      emit({.run = handler,
            .a = add_access(s.buffer, indices, l, /*is_store=*/true),
            .b = value.lane(l),
            .c = guarded ? mask.lane(l) : 0});
    }
  }

  // ---- Statements

  struct StmtFrame {
    const StmtNode* node;
    size_t state = 0;
    bool guarded = false;  // a Block with a predicate; a For that has looked for empty reductions
    int piece = 0;
    int32_t extent = 0;
    Value value{};
    Value var{};
  };

  void statements(const Stmt& body) {
    stack_.push_back({body.get()});
    while (!stack_.empty()) statement(stack_.back());
  }
  // The statement comes next; `frame` references are not valid afterwards.
  void enter(const Stmt& s) { stack_.push_back({s.get()}); }
  void leave() { stack_.pop_back(); }

  // The value of an expression at this place; what it read is not remembered.
  Value once(const PrimExpr& e) {
    open();
    Value v = evaluate(e);
    close();
    return clamp_scope(v);
  }

  void statement(StmtFrame& f) {
    switch (f.node->kind()) {
      case StmtKind::Seq: {
        auto& s = static_cast<const SeqNode&>(*f.node);
        if (f.state == s.stmts.size()) return leave();
        return enter(s.stmts[f.state++]);
      }
      case StmtKind::Store:
        step_store(static_cast<const StoreNode&>(*f.node));
        return leave();
      case StmtKind::For:
        return step_for(static_cast<const ForNode&>(*f.node), f);
      case StmtKind::Block:
        return step_block(static_cast<const BlockNode&>(*f.node), f);
      case StmtKind::If:
        return step_if(static_cast<const IfNode&>(*f.node), f);
      case StmtKind::Allocate: {
        auto& s = static_cast<const AllocateNode&>(*f.node);
        if (f.state++ > 0) {
          memories_.erase(s.buffer.get());
          return leave();
        }
        open();
        add_memory(s.buffer, /*parameter=*/false);
        close();
        emit({.run = &allocate, .a = memories_.at(s.buffer.get())});
        return enter(s.body);
      }
      case StmtKind::LetStmt: {
        auto& s = static_cast<const LetStmtNode&>(*f.node);
        if (f.state++ > 0) {
          close();
          return leave();
        }
        Value v = once(s.value);
        open();
        bind(s.var, v);
        return enter(s.body);
      }
      case StmtKind::Check: {
        auto& s = static_cast<const CheckNode&>(*f.node);
        emit_numbered({.run = &check, .a = once(s.cond).slot}, s.error);
        return leave();
      }
      case StmtKind::Evaluate:
        once(static_cast<const EvaluateNode&>(*f.node).value);
        return leave();
      default:
        internal_error(__FILE__, __LINE__,
                       "a " + std::string(f.node->info().name) + " in the kernel " + f_.name);
    }
  }

  void step_store(const StoreNode& s) {
    open();
    if (s.predicate && s.value->dtype.is_scalar()) {
      Value cond = evaluate(s.predicate);
      open(/*own_code=*/true, level());
      store(s, /*guarded=*/false);
      emit_branch(cond, close(), -1);
    } else {
      store(s, s.predicate != nullptr);
    }
    close();
  }

  void step_for(const ForNode& s, StmtFrame& f) {
    if (f.state == 0 && !f.guarded) {
      f.guarded = true;
      if (Stmt init = init_of_empty(s)) {
        kept_.push_back(init);
        return enter(init);
      }
    }
    if (f.state++ == 0) {
      f.value = once(s.min);
      f.extent = once(s.extent).slot;
      f.var = {new_slots(1), 0, level() + 1, 0};
      Value var = f.var;
      open(/*own_code=*/true, level() + 1);
      bind(s.var, var);
      return enter(s.body);
    }
    int piece = close();
    int32_t stop = new_slots(1);
    int body = new_label(), after = new_label();
    emit_numbered(
        {.run = &loop_begin, .dst = f.var.slot, .a = f.value.slot, .b = f.extent, .c = stop},
        after);
    emit_label(body);
    emit_piece(piece);
    emit_numbered({.run = &loop_next, .dst = f.var.slot, .c = stop}, body);
    emit_label(after);
    leave();
  }

  // A reduction over nothing gives its initial value: where the block directly inside a nest of
  // loops reduces over extents that may be zero, and `outer` is the outermost loop of the
  // reduction, the statement that then initialises. Null where there is none.
  Stmt init_of_empty(const ForNode& outer) {
    std::vector<const ForNode*> loops{&outer};
    while (auto* inner = as<ForNode>(loops.back()->body)) loops.push_back(inner);
    auto* b = as<BlockNode>(loops.back()->body);
    if (b == nullptr || !b->init || initialised_.contains(b)) return nullptr;
    PrimExpr empty = boolean(false);
    std::unordered_map<const Node*, NodeRef> replaced;
    for (size_t i = 0; i < b->iters.size(); ++i) {
      const IterVar& iter = b->iters[i];
      replaced[iter->var.get()] = b->bindings[i];
      if (iter->kind == IterKind::Reduce) empty = logical_or(empty, le(iter->extent, index(0)));
    }
    auto reduces = [&](const ForNode& loop) {
      for (size_t i = 0; i < b->iters.size(); ++i) {
        if (b->iters[i]->kind == IterKind::Reduce && uses(b->bindings[i], loop.var.get()))
          return true;
      }
      return false;
    };
    if (as_int(empty) == 0 || !reduces(outer)) return nullptr;
    initialised_.insert(b);
    // Conditions on the reduction's own loops say nothing about the others.
    Stmt init = replace(b->init, replaced);
    std::vector<PrimExpr> conditions;
    if (b->predicate) conditions.push_back(replace(b->predicate, replaced));
    while (!conditions.empty()) {
      PrimExpr c = conditions.back();
      conditions.pop_back();
      if (auto* both = as<BinaryNode>(c); both != nullptr && both->op == BinaryOp::And) {
        conditions.push_back(both->a);
        conditions.push_back(both->b);
        continue;
      }
      bool about_reduction = false, about_others = false;
      for (const ForNode* l : loops) {
        if (uses(c, l->var.get())) (reduces(*l) ? about_reduction : about_others) = true;
      }
      if (about_reduction && about_others) return nullptr;
      if (!about_reduction) init = if_(c, init);
    }
    for (size_t i = loops.size(); i-- > 0;) {
      const ForNode& l = *loops[i];
      if (!reduces(l)) init = for_(l.var, l.min, l.extent, init);
    }
    return if_(empty, init);
  }

  void step_if(const IfNode& s, StmtFrame& f) {
    if (f.state++ == 0) {
      f.value = once(s.cond);
      open(/*own_code=*/true, level());
      return enter(s.then_body);
    }
    int piece = close();
    if (f.state == 2 && s.else_body) {
      f.piece = piece;
      open(/*own_code=*/true, level());
      return enter(s.else_body);
    }
    if (f.state == 3) {
      emit_branch(f.value, f.piece, piece);
    } else {
      emit_branch(f.value, piece, -1);
    }
    leave();
  }

  // Bindings, then the predicate around the initialisation, under its own condition, and the body.
  void step_block(const BlockNode& b, StmtFrame& f) {
    enum { kStart, kAfterInit, kAfterBody };
    if (f.state == kStart) {
      RELAY_CHECK(b.iters.size() == b.bindings.size(), "bindings of the block " + b.name);
      std::vector<Value> values;
      for (const PrimExpr& e : b.bindings) values.push_back(once(e));
      open();
      for (size_t i = 0; i < values.size(); ++i) bind(b.iters[i]->var, values[i]);
      f.guarded = b.predicate && as_int(b.predicate) != 1;
      if (f.guarded) {
        f.value = once(b.predicate);
        open(/*own_code=*/true, level());
      }
      f.state = b.init ? kAfterInit : kAfterBody;
      if (!b.init) return enter(b.body);
      PrimExpr first = boolean(true);
      for (const IterVar& i : b.iters) {
        if (i->kind == IterKind::Reduce) first = logical_and(first, eq(i->var, i->min));
      }
      kept_.push_back(first);
      f.var = once(first);
      open(/*own_code=*/true, level());
      return enter(b.init);
    }
    if (f.state == kAfterInit) {
      emit_branch(f.var, close(), -1);
      f.state = kAfterBody;
      return enter(b.body);
    }
    if (f.guarded) emit_branch(f.value, close(), -1);
    close();
    leave();
  }

  const PrimFuncNode& f_;
  const InterpretOptions& options_;
  std::unordered_set<const Node*> reads_;
  std::unordered_map<const Node*, Value> values_;
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

}  // namespace

struct Interpreter::Impl {
  PrimFunc func;
  InterpretOptions options;
  Machine machine;
  std::vector<Instr> code;
};

Interpreter::Interpreter(const PrimFunc& f, const std::vector<int64_t>& dims,
                         InterpretOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->func = f;
  impl_->options = std::move(options);
  Translator(*f, impl_->options).translate(impl_->machine, impl_->code, dims);
  impl_->machine.cancelled = &impl_->options.cancelled;
}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

int64_t Interpreter::run(const std::vector<runtime::Tensor>& buffers) {
  const PrimFuncNode& f = *impl_->func;
  Machine& m = impl_->machine;
  RELAY_CHECK(buffers.size() == f.params.size(), "tensors for the parameters of " + f.name);
  struct LetGo {
    Machine& m;
    ~LetGo() {
      for (Memory& memory : m.memories) {
        memory.tensor = {};
        memory.own = {};
      }
    }
  } let_go{m};
  for (size_t i = 0; i < buffers.size(); ++i) {
    RELAY_CHECK(buffers[i] && buffers[i].dtype() == f.params[i]->dtype,
                "parameter " + f.params[i]->name + " is given another dtype");
    m.memories[i].tensor = buffers[i];
  }
  m.result = 0;
  m.steps_left = impl_->options.max_steps > 0 ? impl_->options.max_steps : INT64_MAX;
  for (const Instr* pc = impl_->code.data(); pc != nullptr;) pc = pc->run(pc, m);
  return m.result;
}

int64_t interpret(const PrimFunc& f, const std::vector<runtime::Tensor>& buffers,
                  const std::vector<int64_t>& dims, const InterpretOptions& options) {
  return Interpreter(f, dims, options).run(buffers);
}

}  // namespace relay::tir
