#include "codegen/opencl/print_expressions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "node/walk.h"

namespace relay::codegen {

using tir::as_int;
using tir::BinaryNode;
using tir::BinaryOp;
using tir::CallNode;
using tir::DType;
using tir::LoadNode;
using tir::PrimExpr;
using tir::PrimExprNode;

namespace {

// Intrinsics that OpenCL C has under a name of its own, for float and double alike.
const std::map<std::string, std::string, std::less<>>& functions() {
  static const std::map<std::string, std::string, std::less<>> all{
      {"abs", "fabs"},    {"acos", "acos"},    {"acosh", "acosh"},  {"asin", "asin"},
      {"asinh", "asinh"}, {"atan", "atan"},    {"atan2", "atan2"},  {"atanh", "atanh"},
      {"ceil", "ceil"},   {"cos", "cos"},      {"cosh", "cosh"},    {"erf", "erf"},
      {"exp", "exp"},     {"fast_erf", "erf"}, {"fast_exp", "exp"}, {"fast_tanh", "tanh"},
      {"floor", "floor"}, {"fma", "fma"},      {"fmod", "fmod"},    {"log", "log"},
      {"log10", "log10"}, {"log2", "log2"},    {"pow", "pow"},      {"round", "rint"},
      {"sin", "sin"},     {"sinh", "sinh"},    {"sqrt", "sqrt"},    {"tan", "tan"},
      {"tanh", "tanh"},   {"trunc", "trunc"},
  };
  return all;
}

// And those that the printer writes itself.
constexpr std::string_view kOwnForms[] = {
    "barrier",  "bfloat16_dot", "bitcast", "byte_dot", "fixed_point_product", "index_in",
    "isfinite", "isinf",        "isnan",   "likely",   "load_word",           "popcount",
    "prefetch", "print_mark",   "rsqrt",   "sigmoid"};

}  // namespace

void ExpressionPrinter::count_uses(const std::vector<PrimExpr>& roots) {
  uses_.clear();
  for (const PrimExpr& root : roots) {
    post_order(
        root,
        [&](const Node& n) {
          for_each_child(n, [&](const NodeRef& child) { ++uses_[child.get()]; });
        },
        family::tir_expr);
  }
}

void ExpressionPrinter::forget(size_t mark) {
  for (; cached_.size() > mark; cached_.pop_back()) cache_.erase(cached_.back());
}

std::string ExpressionPrinter::temporary(const std::string& type, const std::string& text) {
  const std::string name = fresh("t");
  line("const " + type + " " + name + " = " + text + ";");
  return name;
}

bool ExpressionPrinter::is_name(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string ExpressionPrinter::named(const PrimExpr& e) {
  const std::string text = value(e);
  return is_name(text) ? text : temporary(type_of(e->dtype), text);
}

std::string ExpressionPrinter::value(const PrimExpr& e) {
  if (auto it = cache_.find(e.get()); it != cache_.end()) return it->second;
  const std::string text = compute(*e.get());
  const bool leaf = e->kind() == tir::ExprKind::Var || e->kind() == tir::ExprKind::IntImm ||
                    e->kind() == tir::ExprKind::FloatImm;
  auto uses = uses_.find(e.get());
  if (leaf || uses == uses_.end() || uses->second < 2 || is_name(text)) return text;
  const std::string name = temporary(type_of(e->dtype), text);
  if (cache_.emplace(e.get(), name).second) cached_.push_back(e.get());
  return name;
}

std::string ExpressionPrinter::compute(const PrimExprNode& e) {
  switch (e.kind()) {
    case tir::ExprKind::Var: {
      auto& v = static_cast<const tir::VarNode&>(e);
      auto known = vars_.find(&v);
      if (known != vars_.end()) return known->second;
      const std::string dim = dim_name(v);
      RELAY_CHECK(!dim.empty(), "variable " + v.name + " is not bound");
      return dim;
    }
    case tir::ExprKind::IntImm:
      return integer(e.dtype, static_cast<const tir::IntImmNode&>(e).value);
    case tir::ExprKind::FloatImm:
      return floating(e.dtype, static_cast<const tir::FloatImmNode&>(e).value);
    case tir::ExprKind::Binary:
      return binary(static_cast<const BinaryNode&>(e));
    case tir::ExprKind::Not:
      return "(!" + value(static_cast<const tir::NotNode&>(e).a) + ")";
    case tir::ExprKind::Select:
      return select(static_cast<const tir::SelectNode&>(e));
    case tir::ExprKind::Cast:
      return cast(static_cast<const tir::CastNode&>(e));
    case tir::ExprKind::Call:
      return call(static_cast<const CallNode&>(e));
    case tir::ExprKind::Load:
      return load(static_cast<const LoadNode&>(e));
    case tir::ExprKind::Let: {
      auto& l = static_cast<const tir::LetNode&>(e);
      const std::string v = value(l.value);
      line("const " + type_of(l.var->dtype) + " " + bind(*l.var.get()) + " = " + v + ";");
      return value(l.body);
    }
    default:
      unsupported("the expression " + std::string(e.info().name));
  }
}

std::string ExpressionPrinter::integer(DType d, int64_t v) {
  if (d.is_bool()) return v != 0 ? "true" : "false";
  const std::string type = type_of(d);
  const DType s = d.storage();
  if (s.bits == 64 && s.is_int()) {
    return v == std::numeric_limits<int64_t>::min() ? "LONG_MIN"
           : v < 0                                  ? "(" + std::to_string(v) + "L)"
                                                    : std::to_string(v) + "L";
  }
  if (s.bits == 64) return std::to_string(static_cast<uint64_t>(v)) + "UL";
  return "((" + type + ")" + std::to_string(v) + "L)";
}

std::string ExpressionPrinter::floating(DType d, double v) {
  const std::string type = type_of(d);
  if (std::isnan(v)) return "((" + type + ")NAN)";
  if (std::isinf(v)) return v > 0 ? "((" + type + ")INFINITY)" : "((" + type + ")-INFINITY)";
  char text[64];
  // In 24 bits where it is a float.
  const double rounded = d.bits == 64 ? v : static_cast<double>(static_cast<float>(v));
  if (std::isinf(rounded)) return v > 0 ? "((float)INFINITY)" : "((float)-INFINITY)";
  std::snprintf(text, sizeof(text), "%a", rounded);
  const std::string number = std::string(text) + (d.bits == 64 ? "" : "f");
  return v < 0 || std::signbit(v) ? "(" + number + ")" : number;
}

std::string ExpressionPrinter::rounded(DType d, const std::string& text) {
  return is_half(d) ? helper("relay_round_" + half_name(d), text) : text;
}

std::string ExpressionPrinter::wrapping(DType d, const std::string& a, const char* op,
                                        const std::string& b) {
  const DType s = d.storage();
  if (s.bits == 64) return "(" + a + " " + op + " " + b + ")";
  return "((" + type_of(d) + ")((uint)" + a + " " + op + " (uint)" + b + "))";
}

std::string ExpressionPrinter::binary(const BinaryNode& n) {
  const DType d = n.a->dtype;
  const bool is_float = d.is_floating(), is_signed = d.is_int();
  auto plain = [&](const char* op) {
    const std::string a = value(n.a), b = value(n.b);
    return is_float ? rounded(d, "(" + a + " " + op + " " + b + ")") : wrapping(d, a, op, b);
  };
  auto compare = [&](const char* op) {
    const std::string a = value(n.a), b = value(n.b);
    return "(" + a + " " + op + " " + b + ")";
  };
  switch (n.op) {
    case BinaryOp::Add:
      if (auto* product = as<BinaryNode>(n.b);
          d == DType::Float(32) && product != nullptr && product->op == BinaryOp::Mul) {
        const std::string sum = value(n.a), a = value(product->a), b = value(product->b);
        return helper("relay_add_product") + "(" + sum + ", " + a + ", " + b + ")";
      }
      return plain("+");
    case BinaryOp::Sub:
      return plain("-");
    case BinaryOp::Mul:
      return plain("*");
    case BinaryOp::Div:
      return is_float ? plain("/") : divided(n, is_signed ? "relay_div" : "relay_divu");
    case BinaryOp::Mod:
      if (is_float) return rounded(d, "fmod(" + value(n.a) + ", " + value(n.b) + ")");
      return divided(n, is_signed ? "relay_rem" : "relay_remu");
    case BinaryOp::FloorDiv:
      if (is_float) {
        const std::string a = value(n.a), b = value(n.b);
        return rounded(d, "floor(" + a + " / " + b + ")");
      }
      return divided(n, is_signed ? "relay_floordiv" : "relay_divu");
    case BinaryOp::FloorMod:
      if (is_float) {
        const std::string a = value(n.a), b = value(n.b);
        return rounded(d, helper("relay_floormod" + suffix(d), a, b));
      }
      return divided(n, is_signed ? "relay_floormod" : "relay_remu");
    case BinaryOp::Min:
    case BinaryOp::Max: {
      const std::string word = n.op == BinaryOp::Min ? "min" : "max";
      const std::string a = value(n.a), b = value(n.b);
      if (is_float) return helper("relay_" + word + suffix(d), a, b);
      if (d.is_bool()) return "(" + a + (word == "min" ? " && " : " || ") + b + ")";
      return word + "(" + a + ", " + b + ")";
    }
    case BinaryOp::Eq:
      return compare("==");
    case BinaryOp::Ne:
      return compare("!=");
    case BinaryOp::Lt:
      return compare("<");
    case BinaryOp::Le:
      return compare("<=");
    case BinaryOp::Gt:
      return compare(">");
    case BinaryOp::Ge:
      return compare(">=");
    case BinaryOp::And:
      return compare("&&");
    case BinaryOp::Or:
      return compare("||");
    case BinaryOp::BitAnd:
      return bits(n, "&");
    case BinaryOp::BitOr:
      return bits(n, "|");
    case BinaryOp::BitXor:
      return bits(n, "^");
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      return shift(n);
  }
  unsupported("the operator " + std::string(to_string(n.op)));
}

std::string ExpressionPrinter::bits(const BinaryNode& n, const char* op) {
  const std::string a = value(n.a), b = value(n.b);
  const std::string text = a + " " + op + " " + b;
  return n.a->dtype.is_bool() ? "((" + text + ") != 0)"
                              : "((" + type_of(n.a->dtype) + ")(" + text + "))";
}

std::string ExpressionPrinter::divided(const BinaryNode& n, const std::string& name) {
  const DType d = n.a->dtype;
  const std::string a = value(n.a), b = value(n.b);
  auto divisor = as_int(n.b);
  if (divisor && *divisor > 0) {
    const bool power = (*divisor & (*divisor - 1)) == 0;
    const std::string type = "(" + type_of(d) + ")";
    if (n.op == BinaryOp::FloorDiv && power) {
      return "(" + type + "(" + a + " >> " +
             std::to_string(std::countr_zero(static_cast<uint64_t>(*divisor))) + "))";
    }
    if (n.op == BinaryOp::FloorMod && power)
      return "(" + type + "(" + a + " & " + integer(d, *divisor - 1) + "))";
    if (d.is_uint() || n.op == BinaryOp::Div || n.op == BinaryOp::Mod) {
      const bool rest = n.op == BinaryOp::Mod || n.op == BinaryOp::FloorMod;
      return "(" + type + "(" + a + (rest ? " % " : " / ") + b + "))";
    }
  }
  const char* width = d.bits <= 32 && d.is_int() ? "_i" : "_l";
  return "((" + type_of(d) + ")" + helper(name + width, a, b) + ")";
}

std::string ExpressionPrinter::shift(const BinaryNode& n) {
  const DType d = n.a->dtype;
  const std::string type = type_of(d), bits = std::to_string(d.storage().bits);
  const std::string wide = d.bits == 64 ? "ulong" : "uint";
  const std::string a = named(n.a), b = named(n.b);
  // Of a negative number of bits as well.
  const std::string in_range = "(" + wide + ")" + b + " < " + bits;
  if (n.op == BinaryOp::Shl) {
    return "(" + in_range + " ? (" + type + ")((" + wide + ")" + a + " << " + b + ") : (" + type +
           ")0)";
  }
  if (d.is_int()) {
    return "((" + type + ")(" + a + " >> (" + in_range + " ? (" + wide + ")" + b + " : " +
           std::to_string(d.storage().bits - 1) + ")))";
  }
  return "(" + in_range + " ? (" + type + ")(" + a + " >> " + b + ") : (" + type + ")0)";
}

std::string ExpressionPrinter::select(const tir::SelectNode& n) {
  bool plain = true;
  for (const PrimExpr& side : {n.true_value, n.false_value}) {
    post_order(side, [&](const Node& x) {
      const int kind = x.kind();
      plain &= kind == tir::ExprKind::Var || kind == tir::ExprKind::IntImm ||
               kind == tir::ExprKind::FloatImm;
    });
  }
  const std::string cond = value(n.cond), type = type_of(n.dtype);
  if (plain) {
    const std::string a = value(n.true_value), b = value(n.false_value);
    return "(" + cond + " ? " + a + " : " + b + ")";
  }
  const std::string out = fresh("t");
  line(type + " " + out + ";");
  line("if (" + cond + ") {");
  side(out, n.true_value);
  line("} else {");
  side(out, n.false_value);
  line("}");
  return out;
}

void ExpressionPrinter::side(const std::string& out, const PrimExpr& e) {
  ++indent_;
  const size_t mark = cached_.size();
  line(out + " = " + value(e) + ";");
  forget(mark);
  --indent_;
}

std::string ExpressionPrinter::cast(const tir::CastNode& n) {
  const DType from = n.value->dtype, to = n.dtype;
  const std::string v = value(n.value), type = type_of(to);
  if (from == to) return v;
  if (to.is_bool()) return "(" + v + " != 0)";
  if (from.is_floating() && to.is_floating()) {
    if (to == DType::Float(16) && from.bits == 64) return helper("relay_round_f16_d", v);
    return rounded(to, "((" + type + ")" + v + ")");
  }
  if (from.is_floating()) {
    const std::string x = is_name(v) ? v : temporary(type_of(from), v);
    return "(" + x + " != " + x + " ? (" + type + ")0 : convert_" + type + "_sat(" + x + "))";
  }
  return rounded(to, "((" + type + ")" + v + ")");
}

std::string ExpressionPrinter::load(const LoadNode& n) {
  const DType d = n.buffer->dtype.element();
  if (n.dtype.lanes != 1) unsupported("vectors");
  std::string out = element(*n.buffer.get(), n.indices);
  if (is_half(d)) out = helper("relay_of_" + half_name(d), out);
  if (d.is_bool()) out = "(" + out + " != 0)";
  return n.predicate ? "(" + value(n.predicate) + " ? " + out + " : (" + type_of(d) + ")0)" : out;
}

std::string ExpressionPrinter::call(const CallNode& n) {
  const DType d = n.dtype;
  if (d.lanes != 1) unsupported("vectors");
  const std::string& name = n.name;
  if (name == "likely") return value(n.args[0]);
  if (name == "load_word" || name == "byte_dot" || name == "bfloat16_dot" ||
      name == "fixed_point_product") {
    kept_.push_back(tir::in_plain_terms(n));
    return value(kept_.back());
  }
  if (name == "index_in") {
    const std::string at = value(n.args[0]), size = value(n.args[1]);
    return helper("relay_index_in") + "(" + at + ", " + size + ", relay_failed, relay_number)";
  }
  if (name == "bitcast") return bitcast(n.args[0]->dtype, d, value(n.args[0]));
  if (name == "isnan" || name == "isinf" || name == "isfinite") {
    return "(" + name + "(" + value(n.args[0]) + ") != 0)";
  }
  if (name == "popcount") return "popcount(" + value(n.args[0]) + ")";
  if (name == "sigmoid") return rounded(d, helper("relay_sigmoid" + suffix(d), value(n.args[0])));
  if (name == "rsqrt") {
    const std::string v = value(n.args[0]);
    return rounded(d, "((" + type_of(d) + ")1 / sqrt(" + v + "))");
  }
  if (!d.is_floating()) return integer_call(n);
  auto known = functions().find(name);
  if (known == functions().end()) unsupported("the intrinsic " + name);
  std::string args;
  for (const PrimExpr& a : n.args) args += (args.empty() ? "" : ", ") + value(a);
  return rounded(d, known->second + "(" + args + ")");
}

std::string ExpressionPrinter::integer_call(const CallNode& n) {
  const DType d = n.dtype;
  const std::string type = type_of(d);
  if (n.name == "abs") {
    const std::string v = value(n.args[0]);
    return d.is_uint() ? v : "((" + type + ")abs(" + v + "))";
  }
  if (n.name != "pow") unsupported("the intrinsic " + n.name + " of " + d.to_string());
  const std::string a = value(n.args[0]), b = value(n.args[1]);
  return "((" + type + ")" + helper(d.is_uint() ? "relay_powu_l" : "relay_pow_l", a, b) + ")";
}

std::string ExpressionPrinter::bitcast(DType from, DType to, std::string v) {
  if (is_half(from)) v = helper("relay_bits_" + half_name(from), v);
  if (from.is_bool()) v = "((uchar)" + v + ")";
  if (to.is_bool()) return "(" + v + " != 0)";
  if (is_half(to)) return helper("relay_of_" + half_name(to), "as_ushort(" + v + ")");
  return "as_" + type_of(to) + "(" + v + ")";
}

bool has_opencl_form(const tir::Intrinsic& intrinsic) {
  return functions().contains(intrinsic.name) ||
         std::ranges::find(kOwnForms, intrinsic.name) != std::end(kOwnForms);
}

}  // namespace relay::codegen
