#include "tir/interpret_translator.h"

#include <algorithm>
#include <bit>

#include "node/walk.h"
#include "tir/intrinsics.h"

namespace relay::tir::interpret_detail {

void Translator::note_loads() {
  post_order(f_.body, [&](const Node& n) {
    if (n.info().family != family::tir_expr) return;
    bool reads = isa<LoadNode>(&n);
    for_each_child(n, [&](const NodeRef& c) { reads |= reads_.contains(c.get()); });
    if (reads) reads_.insert(&n);
  });
}

Operand Translator::evaluate(const PrimExpr& e) {
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

bool Translator::ready(const PrimExpr& e) {
  if (find(e.get()) != nullptr) return true;
  frames_.push_back({e.get()});
  return false;
}

bool Translator::all_ready(const std::vector<PrimExpr>& list) {
  bool all = true;
  for (const PrimExpr& e : list) all &= ready(e);
  return all;
}

void Translator::finish(const PrimExprNode& n, Operand v) {
  frames_.pop_back();
  define(&n, v);
}

void Translator::step() {
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

int32_t Translator::float_constant(DType dtype, double v) {
  Slot s{};
  if (wide() || dtype.bits == 64) {
    s.d = v;
  } else {
    s.u = std::bit_cast<uint32_t>(static_cast<float>(v));
  }
  return constant(s);
}

void Translator::step_binary(const BinaryNode& n) {
  if (!all_ready(n.a, n.b)) return;
  DType dtype = n.a->dtype;
  Operand v = operation({&at(n.a), &at(n.b)}, dtype.lanes,
                        [&](int lanes) { return binary_handler(n.op, dtype, wide(), lanes); });
  if (n.op <= BinaryOp::FloorMod) round(v, dtype, dtype.lanes);
  finish(n, v);
}

Operand Translator::ramp_of(const Operand& base, const Operand& stride, DType dtype) {
  Operand v = result_of({&base, &stride}, 1);
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

void Translator::step_call(const CallNode& n) {
  if (auto defect = intrinsic_defect(n.name, n.dtype, n.args)) {
    internal_error(__FILE__, __LINE__, *defect);
  }
  const Intrinsic& f = *find_intrinsic(n.name);
  if (f.rule == IntrinsicRule::Effect) return finish(n, {constant(int64_t{0})});
  if (f.rule == IntrinsicRule::Word || f.rule == IntrinsicRule::Dot ||
      f.rule == IntrinsicRule::FloatDot) {
    PrimExpr& plain = plain_terms_[&n];
    if (!plain) plain = in_plain_terms(n);
    if (!ready(plain)) return;
    return finish(n, at(plain));
  }
  if (!all_ready(n.args)) return;
  DType from = n.args[0]->dtype;
  const Operand a = at(n.args[0]);
  if (f.rule == IntrinsicRule::Any || (n.name == "abs" && from.is_uint())) return finish(n, a);
  if (f.rule == IntrinsicRule::Lanes) return finish(n, combined(n, a));
  const Operand b = n.args.size() > 1 ? at(n.args[1]) : a;
  const Operand c = n.args.size() > 2 ? at(n.args[2]) : a;
  Operand v = result_of({&a, &b, &c}, n.dtype.lanes);
  int lanes = v.step == 0 ? 1 : n.dtype.lanes;
  for (int l = 0; l < lanes; ++l) {
    Instr i = instr({.dst = v.lane(l), .a = a.lane(l), .b = b.lane(l), .c = c.lane(l)});
    if (f.rule == IntrinsicRule::String) {
      i.run = string_handler();
      i.number = runtime::string_function(n.name);
    } else if (f.rule == IntrinsicRule::Bits) {
      i.run = to_bits_handler(from.element(), wide());
      emit_for(v, i);
      i.run = from_bits_handler(n.dtype.element(), wide());
      i.a = i.dst;
    } else if (f.rule == IntrinsicRule::Integer) {
      i.run = count_bits_handler();
      i.number = from.bits == 64 ? -1 : (int64_t{1} << from.bits) - 1;
    } else if (!from.is_floating()) {
      i.run = n.name == "pow" ? power_int_handler(from) : abs_int_handler();
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

Operand Translator::combined(const CallNode& n, const Operand& a) {
  BinaryOp op = n.name == "reduce_add"   ? BinaryOp::Add
                : n.name == "reduce_mul" ? BinaryOp::Mul
                : n.name == "reduce_min" ? BinaryOp::Min
                : n.name == "reduce_max" ? BinaryOp::Max
                : n.name == "reduce_and" ? BinaryOp::And
                                         : BinaryOp::Or;
  Operand all{a.slot, 0, a.level, a.scope};
  for (int l = 1; l < n.args[0]->dtype.lanes; ++l) {
    Operand lane{a.lane(l), 0, a.level, a.scope};
    all = operation({&all, &lane}, 1,
                    [&](int one) { return binary_handler(op, n.dtype, wide(), one); });
    round(all, n.dtype, 1);
  }
  return all;
}

void Translator::step_let(const LetNode& n) {
  ExprFrame& frame = frames_.back();
  if (frame.state == 0) {
    if (!ready(n.value)) return;
    Operand v = at(n.value);
    frame.state = 1;
    open();
    bind(n.var, v);
    ready(n.body);
    return;
  }
  Operand v = at(n.body);
  close();
  // What the body needed besides the variable is not distinguished, so it holds only here.
  v.scope = top_index();
  finish(n, v);
}

void Translator::step_select(const SelectNode& n) {
  if (!reads(n.true_value) && !reads(n.false_value)) {
    if (!all_ready(n.cond, n.true_value, n.false_value)) return;
    return finish(n, operation({&at(n.cond), &at(n.true_value), &at(n.false_value)}, n.dtype.lanes,
                               pick_handler));
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

void Translator::move(const Operand& to, const Operand& from, int lanes) {
  Instr i = instr({.run = move_handler(lanes), .dst = to.slot, .a = from.slot});
  i.lanes = {static_cast<uint16_t>(lanes), static_cast<uint8_t>(from.step), 0, 0};
  emit_to(top_index(), i);
}

void Translator::step_branch(const SelectNode& n, ExprFrame& frame) {
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

void Translator::emit_branch(const Operand& cond, int then_piece, int else_piece) {
  int otherwise = new_label(), after = new_label();
  emit_numbered({.run = &jump_unless, .a = cond.slot}, otherwise);
  emit_piece(then_piece);
  emit_numbered({.run = &jump}, after);
  emit_label(otherwise);
  if (else_piece >= 0) emit_piece(else_piece);
  emit_label(after);
}

void Translator::step_masked(const SelectNode& n, ExprFrame& frame) {
  const Operand side = at(frame.state == 1 ? n.true_value : n.false_value);
  close();
  // The slots stay what they are; only the name is forgotten.
  if (frame.state == 1) {
    frame.state = 2;
    frame.result = side;
    const Operand& cond = frame.value;
    open_masked(operation({&cond}, n.dtype.lanes, not_handler), n.dtype.lanes);
    ready(n.false_value);
    return;
  }
  Operand t = clamp_scope(frame.result), f = clamp_scope(side);
  finish(n, operation({&frame.value, &t, &f}, n.dtype.lanes, pick_handler));
}

Operand Translator::clamp_scope(Operand v) {
  v.scope = std::min(v.scope, top_index());
  return v;
}

void Translator::open_masked(const Operand& mask, int lanes) {
  Operand inside = mask;
  if (top().masked) {
    Operand outer = mask_for(lanes);
    inside = operation({&outer, &mask}, lanes, and_handler);
  }
  open();
  top().masked = true;
  top().mask_lanes = lanes;
  top().mask = inside;
}

Operand Translator::mask_for(int lanes) {
  if (top().mask_lanes == lanes) return top().mask;
  const Operand& mask = top().mask;
  Operand any{mask.slot, 0, mask.level, mask.scope};
  for (int l = 1; l < top().mask_lanes && mask.step != 0; ++l) {
    Operand lane{mask.lane(l), 0, mask.level, mask.scope};
    any = operation({&any, &lane}, 1,
                    [](int n) { return binary_handler(BinaryOp::Or, DType::Bool(), false, n); });
  }
  return any;
}

}  // namespace relay::tir::interpret_detail
