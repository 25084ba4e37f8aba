#include "tir/expr.h"

#include <cmath>
#include <limits>

#include "tir/intrinsics.h"
#include "tir/scalar.h"
#include "tir/stmt.h"

namespace relay::tir {

// ---- Field lists -------------------------------------------------------------------------------

const NodeInfo& VarNode::static_info() {
  static const NodeInfo info = [] {
    NodeInfo i =
        describe<VarNode>("tir.Var", kKind, family::tir_expr,
                          {attribute("dtype", &VarNode::dtype), ignored("name", &VarNode::name)});
    i.is_variable = true;
    return i;
  }();
  return info;
}
const NodeInfo& IntImmNode::static_info() {
  static const NodeInfo info = describe<IntImmNode>(
      "tir.IntImm", kKind, family::tir_expr,
      {attribute("dtype", &IntImmNode::dtype), attribute("value", &IntImmNode::value)});
  return info;
}
const NodeInfo& FloatImmNode::static_info() {
  static const NodeInfo info = describe<FloatImmNode>(
      "tir.FloatImm", kKind, family::tir_expr,
      {attribute("dtype", &FloatImmNode::dtype), attribute("value", &FloatImmNode::value)});
  return info;
}
const NodeInfo& BinaryNode::static_info() {
  static const NodeInfo info = describe<BinaryNode>(
      "tir.Binary", kKind, family::tir_expr,
      {attribute("dtype", &BinaryNode::dtype), attribute("op", &BinaryNode::op),
       child("a", &BinaryNode::a), child("b", &BinaryNode::b)});
  return info;
}
const NodeInfo& NotNode::static_info() {
  static const NodeInfo info =
      describe<NotNode>("tir.Not", kKind, family::tir_expr,
                        {attribute("dtype", &NotNode::dtype), child("a", &NotNode::a)});
  return info;
}
const NodeInfo& SelectNode::static_info() {
  static const NodeInfo info = describe<SelectNode>(
      "tir.Select", kKind, family::tir_expr,
      {attribute("dtype", &SelectNode::dtype), child("cond", &SelectNode::cond),
       child("true_value", &SelectNode::true_value),
       child("false_value", &SelectNode::false_value)});
  return info;
}
const NodeInfo& CastNode::static_info() {
  static const NodeInfo info =
      describe<CastNode>("tir.Cast", kKind, family::tir_expr,
                         {attribute("dtype", &CastNode::dtype), child("value", &CastNode::value)});
  return info;
}
const NodeInfo& CallNode::static_info() {
  static const NodeInfo info =
      describe<CallNode>("tir.Call", kKind, family::tir_expr,
                         {attribute("dtype", &CallNode::dtype), attribute("name", &CallNode::name),
                          child("args", &CallNode::args)});
  return info;
}
const NodeInfo& LoadNode::static_info() {
  static const NodeInfo info = describe<LoadNode>(
      "tir.Load", kKind, family::tir_expr,
      {attribute("dtype", &LoadNode::dtype), child("buffer", &LoadNode::buffer),
       child("indices", &LoadNode::indices), child("predicate", &LoadNode::predicate)});
  return info;
}
const NodeInfo& RampNode::static_info() {
  static const NodeInfo info =
      describe<RampNode>("tir.Ramp", kKind, family::tir_expr,
                         {attribute("dtype", &RampNode::dtype), child("base", &RampNode::base),
                          child("stride", &RampNode::stride)});
  return info;
}
const NodeInfo& BroadcastNode::static_info() {
  static const NodeInfo info = describe<BroadcastNode>(
      "tir.Broadcast", kKind, family::tir_expr,
      {attribute("dtype", &BroadcastNode::dtype), child("value", &BroadcastNode::value)});
  return info;
}
const NodeInfo& LetNode::static_info() {
  static const NodeInfo info =
      describe<LetNode>("tir.Let", kKind, family::tir_expr,
                        {attribute("dtype", &LetNode::dtype), binder("var", &LetNode::var),
                         child("value", &LetNode::value), child("body", &LetNode::body)});
  return info;
}
const NodeInfo& ReduceNode::static_info() {
  static const NodeInfo info = describe<ReduceNode>(
      "tir.Reduce", kKind, family::tir_expr,
      {attribute("dtype", &ReduceNode::dtype), attribute("combiner", &ReduceNode::combiner),
       attribute("value_index", &ReduceNode::value_index), binder("axes", &ReduceNode::axes),
       child("source", &ReduceNode::source)});
  return info;
}

// ---- Names -------------------------------------------------------------------------------------

std::string_view to_string(BinaryOp op) {
  static constexpr std::string_view names[] = {"+",   "-",  "*",  "/", "%",  "//", "%%", "min",
                                               "max", "==", "!=", "<", "<=", ">",  ">=", "and",
                                               "or",  "&",  "|",  "^", "<<", ">>"};
  return names[static_cast<size_t>(op)];
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::Eq && op <= BinaryOp::Ge; }

std::string_view to_string(Combiner c) {
  static constexpr std::string_view names[] = {"sum", "prod", "min",    "max",
                                               "all", "any",  "argmin", "argmax"};
  return names[static_cast<size_t>(c)];
}

// ---- Leaves ------------------------------------------------------------------------------------

Var var(std::string name, DType dtype) {
  return make<VarNode>([&](VarNode& n) {
    n.name = std::move(name);
    n.dtype = dtype;
  });
}

namespace {

PrimExpr int_imm(DType dtype, int64_t value) {
  PrimExpr scalar = make<IntImmNode>([&](IntImmNode& n) {
    n.dtype = dtype.element();
    n.value = wrap_to(dtype, value);
  });
  return dtype.lanes == 1 ? scalar : broadcast(scalar, dtype.lanes);
}

bool is_scalar_or(DType dtype, int lanes) { return dtype.lanes == 1 || dtype.lanes == lanes; }

// Both sides with the same lanes; scalars are broadcast.
void match_lanes(PrimExpr& a, PrimExpr& b) {
  if (a->dtype.lanes == b->dtype.lanes) return;
  RELAY_CHECK(a->dtype.lanes == 1 || b->dtype.lanes == 1, "vectors of different lengths");
  if (a->dtype.lanes == 1) {
    a = broadcast(a, b->dtype.lanes);
  } else {
    b = broadcast(b, a->dtype.lanes);
  }
}

bool is_int_value(const PrimExpr& e, int64_t value) { return as_int(e) == value; }
bool is_float_value(const PrimExpr& e, double value) {
  auto v = as_float(e);
  return v && *v == value && std::signbit(*v) == std::signbit(value);
}

// Certainly the same value: the same node, or equal constants.
bool same_value(const PrimExpr& a, const PrimExpr& b) {
  if (a == b) return true;
  auto x = as_int(a);
  return x && x == as_int(b);
}

// Identities that hold for wrapping integers and bools; null if none applies.
PrimExpr simplify_int_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  DType t = a->dtype;
  switch (op) {
    case BinaryOp::Add:
      if (is_int_value(b, 0)) return a;
      if (is_int_value(a, 0)) return b;
      if (as_int(a)) return binary(op, b, a);
      // (x + c1) + c2 keeps one constant.
      if (auto c2 = as_int(b)) {
        if (auto* inner = as<BinaryNode>(a); inner && inner->op == BinaryOp::Add) {
          if (auto c1 = as_int(inner->b)) {
            return binary(op, inner->a, imm(t, *fold_int(op, t, *c1, *c2)));
          }
        }
      }
      break;
    case BinaryOp::Sub:
      if (is_int_value(b, 0)) return a;
      if (same_value(a, b)) return imm(t, 0);
      if (auto c = as_int(b); c && t.is_int() && *c != std::numeric_limits<int64_t>::min()) {
        return binary(BinaryOp::Add, a, imm(t, -*c));
      }
      break;
    case BinaryOp::Mul:
      if (is_int_value(b, 1)) return a;
      if (is_int_value(a, 1)) return b;
      if (is_int_value(a, 0) || is_int_value(b, 0)) return imm(t, 0);
      if (as_int(a)) return binary(op, b, a);
      if (auto c2 = as_int(b)) {
        if (auto* inner = as<BinaryNode>(a); inner && inner->op == BinaryOp::Mul) {
          if (auto c1 = as_int(inner->b)) {
            return binary(op, inner->a, imm(t, *fold_int(op, t, *c1, *c2)));
          }
        }
      }
      break;
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
      if (is_int_value(b, 1)) return a;
      break;
    case BinaryOp::Mod:
    case BinaryOp::FloorMod:
      if (is_int_value(b, 1)) return imm(t, 0);
      break;
    case BinaryOp::Min:
    case BinaryOp::Max:
      if (same_value(a, b)) return a;
      if (as_int(a)) return binary(op, b, a);
      break;
    case BinaryOp::Eq:
    case BinaryOp::Le:
    case BinaryOp::Ge:
      if (same_value(a, b)) return imm(DType::Bool(t.lanes), 1);
      break;
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Gt:
      if (same_value(a, b)) return imm(DType::Bool(t.lanes), 0);
      break;
    case BinaryOp::And:
      if (same_value(a, b) || is_int_value(b, 1) || is_int_value(a, 0)) return a;
      if (is_int_value(a, 1) || is_int_value(b, 0)) return b;
      break;
    case BinaryOp::Or:
      if (same_value(a, b) || is_int_value(b, 0) || is_int_value(a, 1)) return a;
      if (is_int_value(a, 0) || is_int_value(b, 1)) return b;
      break;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor:
      if (is_int_value(b, 0)) return a;
      break;
    default:
      break;
  }
  return nullptr;
}

// Identities that hold for every IEEE value.
PrimExpr simplify_float_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  switch (op) {
    case BinaryOp::Add:
      if (is_float_value(b, -0.0)) return a;
      break;
    case BinaryOp::Sub:
      if (is_float_value(b, 0.0)) return a;
      break;
    case BinaryOp::Mul:
      if (is_float_value(b, 1.0)) return a;
      if (is_float_value(a, 1.0)) return b;
      break;
    case BinaryOp::Div:
      if (is_float_value(b, 1.0)) return a;
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace

PrimExpr imm(DType dtype, int64_t value) {
  if (dtype.is_floating()) return imm_float(dtype, static_cast<double>(value));
  return int_imm(dtype, value);
}

PrimExpr imm_float(DType dtype, double value) {
  if (!dtype.is_floating()) return int_imm(dtype, float_to_int(dtype, value));
  PrimExpr scalar = make<FloatImmNode>([&](FloatImmNode& n) {
    n.dtype = dtype.element();
    n.value = round_to(dtype, value);
  });
  return dtype.lanes == 1 ? scalar : broadcast(scalar, dtype.lanes);
}

PrimExpr index(int64_t value) { return int_imm(kIndex, value); }
PrimExpr boolean(bool value) { return int_imm(DType::Bool(), value); }

std::optional<int64_t> as_int(const PrimExpr& e) {
  const Node* n = e.get();
  if (auto* b = as<BroadcastNode>(n)) n = b->value.get();
  if (auto* i = as<IntImmNode>(n)) return i->value;
  return std::nullopt;
}

std::optional<double> as_float(const PrimExpr& e) {
  const Node* n = e.get();
  if (auto* b = as<BroadcastNode>(n)) n = b->value.get();
  if (auto* f = as<FloatImmNode>(n)) return f->value;
  return std::nullopt;
}

// ---- Arithmetic --------------------------------------------------------------------------------

PrimExpr binary(BinaryOp op, PrimExpr a, PrimExpr b) {
  RELAY_CHECK(a && b, "operand of " + std::string(to_string(op)) + " is missing");
  if (!(a->dtype == b->dtype)) {
    RELAY_CHECK(
        a->dtype.element() == b->dtype.element(),
        a->dtype.to_string() + " " + std::string(to_string(op)) + " " + b->dtype.to_string());
    match_lanes(a, b);
  }
  DType t = a->dtype;
  // Bools have no carry: a sum is whether one of them holds, a product whether all do.
  if (t.is_bool() && op == BinaryOp::Add) op = BinaryOp::Or;
  if (t.is_bool() && op == BinaryOp::Mul) op = BinaryOp::And;
  bool logical = op == BinaryOp::And || op == BinaryOp::Or;
  RELAY_CHECK(!logical || t.is_bool(), "and/or of " + t.to_string());
  RELAY_CHECK(op < BinaryOp::BitAnd || !t.is_floating(), "bit operation on " + t.to_string());
  DType result = is_comparison(op) ? DType::Bool(t.lanes) : t;
  if (t.is_floating()) {
    auto x = as_float(a);
    auto y = as_float(b);
    if (x && y && !is_denormal(t, *x) && !is_denormal(t, *y)) {
      if (auto v = fold_float_compare(op, *x, *y)) return imm(result, *v);
      auto v = fold_float(op, t, *x, *y);
      if (v && !is_denormal(t, *v)) return imm_float(t, *v);
    }
    if (PrimExpr e = simplify_float_binary(op, a, b)) return e;
  } else {
    auto x = as_int(a);
    auto y = as_int(b);
    if (x && y) {
      if (auto v = fold_int(op, t, *x, *y)) return imm(result, *v);
    }
    if (PrimExpr e = simplify_int_binary(op, a, b)) return e;
  }
  return make<BinaryNode>([&](BinaryNode& n) {
    n.dtype = result;
    n.op = op;
    n.a = std::move(a);
    n.b = std::move(b);
  });
}

PrimExpr operator+(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Add, a, b); }
PrimExpr operator-(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Sub, a, b); }
PrimExpr operator*(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Mul, a, b); }
PrimExpr operator+(PrimExpr a, int64_t b) { return binary(BinaryOp::Add, a, imm(a->dtype, b)); }
PrimExpr operator-(PrimExpr a, int64_t b) { return binary(BinaryOp::Sub, a, imm(a->dtype, b)); }
PrimExpr operator*(PrimExpr a, int64_t b) { return binary(BinaryOp::Mul, a, imm(a->dtype, b)); }
PrimExpr div(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Div, a, b); }
PrimExpr mod(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Mod, a, b); }
PrimExpr floor_div(PrimExpr a, PrimExpr b) { return binary(BinaryOp::FloorDiv, a, b); }
PrimExpr floor_mod(PrimExpr a, PrimExpr b) { return binary(BinaryOp::FloorMod, a, b); }
PrimExpr min(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Min, a, b); }
PrimExpr max(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Max, a, b); }
PrimExpr eq(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Eq, a, b); }
PrimExpr ne(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Ne, a, b); }
PrimExpr lt(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Lt, a, b); }
PrimExpr le(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Le, a, b); }
PrimExpr gt(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Gt, a, b); }
PrimExpr ge(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Ge, a, b); }
PrimExpr logical_and(PrimExpr a, PrimExpr b) { return binary(BinaryOp::And, a, b); }
PrimExpr logical_or(PrimExpr a, PrimExpr b) { return binary(BinaryOp::Or, a, b); }

PrimExpr logical_not(PrimExpr a) {
  RELAY_CHECK(a->dtype.is_bool(), "not of " + a->dtype.to_string());
  if (auto v = as_int(a)) return imm(a->dtype, *v == 0);
  if (auto* inner = as<NotNode>(a)) return inner->a;
  if (auto* b = as<BinaryNode>(a)) {
    bool total = !b->a->dtype.is_floating();  // of floats only Eq and Ne are each other's opposite
    switch (b->op) {
      case BinaryOp::Eq:
        return ne(b->a, b->b);
      case BinaryOp::Ne:
        return eq(b->a, b->b);
      case BinaryOp::Lt:
        if (total) return ge(b->a, b->b);
        break;
      case BinaryOp::Le:
        if (total) return gt(b->a, b->b);
        break;
      case BinaryOp::Gt:
        if (total) return le(b->a, b->b);
        break;
      case BinaryOp::Ge:
        if (total) return lt(b->a, b->b);
        break;
      default:
        break;
    }
  }
  return make<NotNode>([&](NotNode& n) {
    n.dtype = a->dtype;
    n.a = std::move(a);
  });
}

PrimExpr select(PrimExpr cond, PrimExpr true_value, PrimExpr false_value) {
  RELAY_CHECK(cond->dtype.is_bool(), "select on " + cond->dtype.to_string());
  RELAY_CHECK(
      true_value->dtype.element() == false_value->dtype.element(),
      "select of " + true_value->dtype.to_string() + " and " + false_value->dtype.to_string());
  match_lanes(true_value, false_value);
  match_lanes(cond, true_value);
  match_lanes(cond, false_value);
  if (auto v = as_int(cond)) return *v ? true_value : false_value;
  if (same_value(true_value, false_value)) return true_value;
  return make<SelectNode>([&](SelectNode& n) {
    n.dtype = true_value->dtype;
    n.cond = std::move(cond);
    n.true_value = std::move(true_value);
    n.false_value = std::move(false_value);
  });
}

PrimExpr cast(DType dtype, PrimExpr value) {
  if (dtype.lanes == 1) dtype = dtype.with_lanes(value->dtype.lanes);
  RELAY_CHECK(dtype.lanes == value->dtype.lanes, "cast changes the number of lanes");
  if (dtype == value->dtype) return value;
  if (auto v = as_int(value)) {
    if (!dtype.is_floating()) return imm(dtype, *v);
    bool large = value->dtype.is_uint() && *v < 0;
    return imm_float(
        dtype, large ? static_cast<double>(static_cast<uint64_t>(*v)) : static_cast<double>(*v));
  }
  auto v = as_float(value);
  const bool folds = v && !is_denormal(value->dtype, *v) &&
                     (!dtype.is_floating() || !is_denormal(dtype, round_to(dtype, *v)));
  if (folds) return imm_float(dtype, *v);
  return make<CastNode>([&](CastNode& n) {
    n.dtype = dtype;
    n.value = std::move(value);
  });
}

PrimExpr call(std::string name, DType dtype, std::vector<PrimExpr> args) {
  int lanes = dtype.lanes;
  for (const PrimExpr& a : args) lanes = std::max<int>(lanes, a->dtype.lanes);
  for (PrimExpr& a : args) {
    RELAY_CHECK(is_scalar_or(a->dtype, lanes), name + " of vectors of different lengths");
    if (a->dtype.lanes != lanes) a = broadcast(a, lanes);
  }
  if (auto defect = intrinsic_defect(name, dtype, args)) {
    internal_error(__FILE__, __LINE__, *defect);
  }
  return make<CallNode>([&](CallNode& n) {
    n.dtype = dtype.with_lanes(lanes);
    n.name = std::move(name);
    n.args = std::move(args);
  });
}

PrimExpr reduce_lanes(BinaryOp op, PrimExpr vector) {
  const char* name = op == BinaryOp::Add   ? "reduce_add"
                     : op == BinaryOp::Mul ? "reduce_mul"
                     : op == BinaryOp::Min ? "reduce_min"
                     : op == BinaryOp::Max ? "reduce_max"
                     : op == BinaryOp::And ? "reduce_and"
                                           : "reduce_or";
  return make<CallNode>([&](CallNode& n) {
    n.dtype = vector->dtype.element();
    n.name = name;
    n.args = {std::move(vector)};
  });
}

PrimExpr load(Buffer buffer, std::vector<PrimExpr> indices, PrimExpr predicate) {
  RELAY_CHECK(buffer, "load without a buffer");
  int lanes = 1;
  for (PrimExpr& i : indices) {
    RELAY_CHECK(i->dtype.is_integer(), "index of dtype " + i->dtype.to_string());
    i = cast(kIndex.with_lanes(i->dtype.lanes), i);
    RELAY_CHECK(lanes == 1 || is_scalar_or(i->dtype, lanes), "indices of different lengths");
    lanes = std::max<int>(lanes, i->dtype.lanes);
  }
  if (predicate && predicate->dtype.lanes != lanes) predicate = broadcast(predicate, lanes);
  if (predicate && as_int(predicate) == 1) predicate = nullptr;
  return make<LoadNode>([&](LoadNode& n) {
    n.dtype = buffer->dtype.with_lanes(lanes);
    n.buffer = std::move(buffer);
    n.indices = std::move(indices);
    n.predicate = std::move(predicate);
  });
}

PrimExpr ramp(PrimExpr base, PrimExpr stride, int lanes) {
  RELAY_CHECK(base->dtype == stride->dtype && base->dtype.is_scalar(), "ramp of unlike parts");
  if (lanes == 1) return base;
  if (is_int_value(stride, 0)) return broadcast(base, lanes);
  return make<RampNode>([&](RampNode& n) {
    n.dtype = base->dtype.with_lanes(lanes);
    n.base = std::move(base);
    n.stride = std::move(stride);
  });
}

PrimExpr broadcast(PrimExpr value, int lanes) {
  if (lanes == 1 || value->dtype.lanes == lanes) return value;
  RELAY_CHECK(value->dtype.is_scalar(), "broadcast of a vector");
  return make<BroadcastNode>([&](BroadcastNode& n) {
    n.dtype = value->dtype.with_lanes(lanes);
    n.value = std::move(value);
  });
}

PrimExpr let(Var var, PrimExpr value, PrimExpr body) {
  RELAY_CHECK(var->dtype == value->dtype, "let of another dtype");
  return make<LetNode>([&](LetNode& n) {
    n.dtype = body->dtype;
    n.var = std::move(var);
    n.value = std::move(value);
    n.body = std::move(body);
  });
}

// ---- Special values ----------------------------------------------------------------------------

PrimExpr min_value(DType dtype) {
  if (dtype.is_floating()) return imm_float(dtype, -std::numeric_limits<double>::infinity());
  if (!dtype.is_int()) return imm(dtype, 0);
  return imm(dtype, std::numeric_limits<int64_t>::min() >> (64 - dtype.bits));
}

PrimExpr max_value(DType dtype) {
  if (dtype.is_floating()) return imm_float(dtype, std::numeric_limits<double>::infinity());
  if (dtype.is_bool()) return imm(dtype, 1);
  if (dtype.is_uint()) return imm(dtype, -1);
  return imm(dtype, std::numeric_limits<int64_t>::max() >> (64 - dtype.bits));
}

PrimExpr identity_of(Combiner combiner, DType dtype) {
  switch (combiner) {
    case Combiner::Sum:
    case Combiner::Or:
      return imm(dtype, 0);
    case Combiner::Prod:
    case Combiner::And:
      return imm(dtype, 1);
    case Combiner::Min:
    case Combiner::ArgMin:
      return max_value(dtype);
    case Combiner::Max:
    case Combiner::ArgMax:
      return min_value(dtype);
  }
  internal_error(__FILE__, __LINE__, "combiner");
}

PrimExpr combine(Combiner combiner, PrimExpr a, PrimExpr b) {
  switch (combiner) {
    case Combiner::Sum:
      return a + b;
    case Combiner::Prod:
      return a * b;
    case Combiner::Min:
      return min(a, b);
    case Combiner::Max:
      return max(a, b);
    case Combiner::And:
      return logical_and(a, b);
    case Combiner::Or:
      return logical_or(a, b);
    case Combiner::ArgMin:
    case Combiner::ArgMax:
      break;
  }
  internal_error(__FILE__, __LINE__, "argmin and argmax combine pairs");
}

}  // namespace relay::tir
