#include "codegen/opencl/print_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

#include "base/budget.h"
#include "base/codes/lowering.h"
#include "codegen/opencl/helpers.h"
#include "codegen/opencl/launches.h"
#include "node/walk.h"
#include "tir/thread_nests.h"
#include "tir/while.h"

namespace relay::codegen {
namespace {

using runtime::DeviceLaunch;
using runtime::DeviceSource;
using runtime::SizeFormula;
using tir::as_int;
using tir::BinaryNode;
using tir::BinaryOp;
using tir::BufferNode;
using tir::CallNode;
using tir::DType;
using tir::ForNode;
using tir::LoadNode;
using tir::PrimExpr;
using tir::PrimExprNode;
using tir::PrimFuncNode;
using tir::Stmt;
using tir::StmtNode;

// Buffers of an item that are at most as large are the item's own memory; larger ones are working memory of the kernel.
constexpr int64_t kItemBytes = 4096;
constexpr int64_t kMostElements = int64_t{1} << 24;
// Work items of a launch that needs working memory for each, and of one whose number of iterations is no formula of the sizes.
constexpr int64_t kFewItems = 64, kManyItems = 4096;

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

class KernelPrinter {
 public:
  explicit KernelPrinter(const PrimFuncNode& f) : f_(f) {}

  DeviceSource print() {
    const KernelLaunches launches = launches_of(f_);
    for (const tir::Buffer& b : f_.params) add_buffer(b.get());
    for (const tir::Buffer& b : launches.workspace) {
      source_.workspace.push_back(bytes_of(*b.get()));
      add_buffer(b.get());
    }
    std::string kernels;
    for (const LaunchPart& part : launches.parts) kernels += launch(part);
    // A kernel that does nothing.
    if (launches.parts.empty()) kernels += launch({});
    std::string code;
    if (uses_double_) code += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    code += "#pragma OPENCL FP_CONTRACT OFF\n";
    source_.code = code + opencl_helpers(helpers_) + kernels;
    return std::move(source_);
  }

 private:
  struct Place {
    std::string name;
    std::string first;  // what is added to an index; empty: nothing
  };

  [[noreturn]] void unsupported(const std::string& what) const {
    throw UserError(Diagnostic(codes::lower_unsupported, {},
                               "kernel " + f_.name + " has " + what + ", which OpenCL C cannot say")
                        .help("place its operators on the host"));
  }

  void add_buffer(const BufferNode* b) { numbers_.emplace(b, numbers_.size()); }

  // ---- Types

  // Of a value in an expression.
  std::string type_of(DType d) {
    if (d.lanes != 1) unsupported("vectors");
    if (d.is_bool()) return "bool";
    if (d.is_float(64)) uses_double_ = true;
    if (d.is_floating()) return d.bits == 64 ? "double" : "float";
    const DType s = d.storage();
    const std::string name = s.bits == 8    ? "char"
                             : s.bits == 16 ? "short"
                             : s.bits == 32 ? "int"
                                            : "long";
    return s.is_uint() ? "u" + name : name;
  }
  // Of an element in memory.
  std::string stored_type(DType d) {
    if (d.is_bool()) return "uchar";
    if (is_half(d)) return "ushort";
    return type_of(d);
  }
  static bool is_half(DType d) { return d.is_floating() && d.bits == 16; }
  static std::string half_name(DType d) { return d.is_bfloat16() ? "bf16" : "f16"; }
  static std::string suffix(DType d) { return d.bits == 64 ? "_d" : "_f"; }

  std::string helper(const std::string& name) {
    helpers_.insert(name);
    return name;
  }
  std::string helper(const std::string& name, const std::string& a) {
    return helper(name) + "(" + a + ")";
  }
  std::string helper(const std::string& name, const std::string& a, const std::string& b) {
    return helper(name) + "(" + a + ", " + b + ")";
  }

  // ---- Formulas of the sizes

  // Nothing for an expression that is none.
  std::optional<std::string> formula(const PrimExpr& e) const {
    if (auto v = as_int(e)) return std::to_string(*v);
    if (auto* c = as<tir::CastNode>(e)) {
      const bool keeps =
          c->dtype.is_integer() && c->dtype.bits >= 32 && c->value->dtype.is_integer();
      return keeps ? formula(c->value) : std::nullopt;
    }
    if (e->kind() == tir::ExprKind::Var) {
      for (size_t i = 0; i < f_.dims.size(); ++i) {
        if (f_.dims[i].get() == e.get()) return "d" + std::to_string(i);
      }
      return std::nullopt;
    }
    auto* n = as<BinaryNode>(e);
    if (n == nullptr || !n->dtype.is_integer()) return std::nullopt;
    static const std::map<BinaryOp, std::string> words{
        {BinaryOp::Add, "+"},      {BinaryOp::Sub, "-"},      {BinaryOp::Mul, "*"},
        {BinaryOp::FloorDiv, "/"}, {BinaryOp::FloorMod, "%"}, {BinaryOp::Min, "min"},
        {BinaryOp::Max, "max"}};
    auto word = words.find(n->op);
    if (word == words.end()) return std::nullopt;
    auto a = formula(n->a), b = formula(n->b);
    if (!a || !b) return std::nullopt;
    return *a + " " + *b + " " + word->second;
  }

  SizeFormula bytes_of(const BufferNode& b) const {
    std::string out = std::to_string(b.dtype.element().bytes());
    for (const PrimExpr& d : b.shape) {
      auto size = formula(d);
      if (!size) unsupported("memory of a size that is no formula of the call's sizes");
      out += " " + *size + " *";
    }
    return SizeFormula(out);
  }

  // ---- Launches

  std::string launch(const LaunchPart& part) {
    DeviceLaunch out;
    out.name = f_.name +
               (source_.launches.empty() ? "" : "_part" + std::to_string(source_.launches.size()));
    places_.clear();
    slices_.clear();
    vars_.clear();
    may_fail_ = false;
    count_items(part, out);
    // The body says which buffers the function takes.
    code_.str("");
    indent_ = 1;
    group_ = part.group;
    shared_.clear();
    // A group goes on: all of its items reach its barriers, and it has no index that a failure makes wrong.
    if (!part.has_groups()) line("if (relay_failed[0] != 0) return;");
    for (const StmtNode* s : part.around) open(*s);
    size_t loops = 0;
    for (size_t i = part.axes.size(); i-- > 0;) {
      if (part.axes[i] == nullptr) continue;
      loops += open_axis(*part.axes[i], i);
    }
    for (const Stmt& s : part.body) part.has_groups() ? group_statement(s) : statement(*s.get());
    for (; loops > 0; --loops) close();
    const std::string body = code_.str();
    code_.str("");
    indent_ = 0;
    std::string parameters;
    for (const auto& [buffer, number] : used_buffers()) {
      const std::string name = places_.at(buffer).name;
      parameters += "__global char* " + name + "_memory, long " + name + "_first, ";
      out.buffers.push_back(number);
    }
    for (const tir::Var& d : f_.dims) parameters += "long " + dim_name(*d.get()) + ", ";
    line("__kernel void " + out.name + "(" + parameters +
         "volatile __global int* relay_failed, int relay_number) {");
    indent_ = 1;
    for (const auto& [buffer, number] : used_buffers()) {
      const Place& p = places_.at(buffer);
      const std::string type = "__global " + stored_type(buffer->dtype.element()) + "*";
      line(type + " " + p.name + " = (" + type + ")(" + p.name + "_memory + " + p.name +
           "_first);");
    }
    // An item that ends leaves the others of its group waiting at a barrier.
    if (part.has_groups() && may_fail_) unsupported("a check in a group of work items");
    for (const std::string& s : shared_) line(s);
    out.group = part.group;
    out.may_fail = may_fail_;
    source_.launches.push_back(std::move(out));
    return code_.str() + body + "}\n";
  }

  // Global buffers of the launch, with their numbers in the kernel, by these.
  std::vector<std::pair<const BufferNode*, size_t>> used_buffers() const {
    std::vector<std::pair<const BufferNode*, size_t>> out;
    for (const auto& [node, place] : places_) {
      auto known = numbers_.find(node);
      if (known != numbers_.end()) out.emplace_back(node, known->second);
    }
    for (const auto& [node, number] : slices_) out.emplace_back(node, number);
    std::ranges::sort(out, {}, &std::pair<const BufferNode*, size_t>::second);
    return out;
  }

  // Items along each axis. Where the launch has fewer of them than iterations, an item loops.
  void count_items(const LaunchPart& part, DeviceLaunch& out) {
    needs_slices_ = false;
    const auto registers = tir::registers_of_groups(f_.body);
    for (const Stmt& s : part.body) {
      post_order(
          s,
          [&](const Node& n) {
            auto* a = as<tir::AllocateNode>(&n);
            needs_slices_ |= a != nullptr && !is_small(*a->buffer.get()) &&
                             a->buffer->scope != tir::Scope::Shared &&
                             !registers.contains(a->buffer.get());
          },
          family::tir_stmt);
    }
    looped_.fill(false);
    if (part.has_groups()) return count_groups(part, out);
    for (size_t i = 0; i < part.axes.size(); ++i) {
      if (part.axes[i] == nullptr) continue;
      auto extent = formula(part.axes[i]->extent);
      looped_[i] = !extent || needs_slices_;
      const int64_t most = needs_slices_ ? kFewItems : kManyItems;
      if (!extent) {
        out.items[i] = SizeFormula(most);
      } else if (needs_slices_) {
        out.items[i] = SizeFormula(*extent + " " + std::to_string(most) + " min");
      } else {
        out.items[i] = SizeFormula(*extent);
      }
    }
    all_items_ =
        out.items[0].text() + " " + out.items[1].text() + " * " + out.items[2].text() + " *";
  }

  void count_groups(const LaunchPart& part, DeviceLaunch& out) {
    if (needs_slices_) unsupported("large memory of an item in a group");
    for (size_t i = 0; i < part.axes.size(); ++i) {
      auto extent = part.axes[i] == nullptr ? std::string("1") : formula(part.axes[i]->extent);
      if (!extent) unsupported("groups whose number is no formula of the call's sizes");
      out.items[i] = SizeFormula(*extent + " " + std::to_string(part.group[i]) + " *");
    }
  }

  // Returns the number of blocks that it opens.
  size_t open_axis(const ForNode& f, size_t axis) {
    const std::string id =
        (group_[0] > 0 ? "get_group_id(" : "get_global_id(") + std::to_string(axis) + ")";
    const std::string type = type_of(f.var->dtype), name = bind(*f.var.get());
    forget(0);
    const std::string min = value(f.min);
    if (!looped_[axis]) {
      line("const " + type + " " + name + " = (" + type + ")" + id +
           (as_int(f.min) == 0 ? "" : " + " + min) + ";");
      return 0;
    }
    const std::string first = fresh("first"), end = fresh("end");
    line("const " + type + " " + first + " = " + min + ", " + end + " = " + first + " + " +
         value(f.extent) + ";");
    line("for (" + type + " " + name + " = " + first + " + (" + type + ")" + id + "; " + name +
         " < " + end + "; " + name + " += (" + type + ")get_global_size(" + std::to_string(axis) +
         ")) {");
    ++indent_;
    return 1;
  }

  // What is around a launch holds for all its items.
  void open(const StmtNode& s) {
    forget(0);
    if (auto* l = as<tir::LetStmtNode>(&s)) {
      const std::string v = value(l->value);
      line("const " + type_of(l->var->dtype) + " " + bind(*l->var.get()) + " = " + v + ";");
    } else {
      auto& i = static_cast<const tir::IfNode&>(s);
      line("if (!" + value(i.cond) + ") return;");
    }
  }

  // ---- Lines

  void line(const std::string& text) {
    code_ << std::string(static_cast<size_t>(indent_) * 2, ' ') << text << "\n";
  }
  void close() {
    --indent_;
    line("}");
  }

  std::string fresh(const std::string& base) { return base + "_" + std::to_string(++names_); }
  static std::string identifier(const std::string& name) {
    std::string out = "r_";
    for (char c : name) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      out += plain ? c : '_';
    }
    return out;
  }
  std::string bind(const tir::VarNode& v) { return vars_[&v] = fresh(identifier(v.name)); }
  std::string dim_name(const tir::VarNode& v) const {
    for (size_t i = 0; i < f_.dims.size(); ++i) {
      if (f_.dims[i].get() == &v) return "relay_d" + std::to_string(i);
    }
    return "";
  }

  // ---- Statements

  void statement(const StmtNode& s) {
    check_budget();
    forget(0);
    switch (s.kind()) {
      case tir::StmtKind::Seq:
        for (const Stmt& inner : static_cast<const tir::SeqNode&>(s).stmts) statement(*inner.get());
        return;
      case tir::StmtKind::Store:
        return store(static_cast<const tir::StoreNode&>(s));
      case tir::StmtKind::For:
        return loop(static_cast<const ForNode&>(s));
      case tir::StmtKind::While: {
        auto& w = static_cast<const tir::WhileNode&>(s);
        line("for (;;) {");
        ++indent_;
        count_uses({w.cond});
        line("if (!" + value(w.cond) + ") break;");
        statement(*w.body.get());
        return close();
      }
      case tir::StmtKind::If: {
        auto& i = static_cast<const tir::IfNode&>(s);
        count_uses({i.cond});
        line("if (" + value(i.cond) + ") {");
        ++indent_;
        statement(*i.then_body.get());
        --indent_;
        if (i.else_body) {
          line("} else {");
          ++indent_;
          statement(*i.else_body.get());
          --indent_;
        }
        return line("}");
      }
      case tir::StmtKind::Allocate: {
        auto& a = static_cast<const tir::AllocateNode&>(s);
        allocate(*a.buffer.get());
        return statement(*a.body.get());
      }
      case tir::StmtKind::LetStmt: {
        auto& l = static_cast<const tir::LetStmtNode&>(s);
        count_uses({l.value});
        const std::string v = value(l.value);
        line("const " + type_of(l.var->dtype) + " " + bind(*l.var.get()) + " = " + v + ";");
        return statement(*l.body.get());
      }
      case tir::StmtKind::Check: {
        auto& c = static_cast<const tir::CheckNode&>(s);
        count_uses({c.cond});
        may_fail_ = true;
        line("if (!" + value(c.cond) + ") {");
        line("  " + helper("relay_fail") + "(relay_failed, relay_number, " +
             std::to_string(c.error) + ");");
        line("  return;");
        return line("}");
      }
      case tir::StmtKind::Evaluate: {
        auto* c = as<CallNode>(static_cast<const tir::EvaluateNode&>(s).value);
        if (c != nullptr && c->name == "prefetch") return;
        count_uses({static_cast<const tir::EvaluateNode&>(s).value});
        return line("(void)" + value(static_cast<const tir::EvaluateNode&>(s).value) + ";");
      }
      default:
        unsupported("the statement " + std::string(s.info().name));
    }
  }

  // What a group does: its phases are its items', and a barrier is everyone's.
  void group_statement(const Stmt& s) {
    forget(0);
    if (auto nest = tir::thread_nest(s); nest && nest->level == tir::ThreadLevel::Item) {
      return phase(nest->axes, {nest->body});
    }
    if (auto* e = as<tir::EvaluateNode>(s)) {
      auto* c = as<CallNode>(e->value);
      if (c != nullptr && c->name == "barrier") {
        return line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
      }
    }
    if (auto* all = as<tir::SeqNode>(s)) {
      for (const Stmt& inner : all->stmts) group_statement(inner);
      return;
    }
    if (auto* a = as<tir::AllocateNode>(s)) {
      allocate_in_group(*a->buffer.get());
      return group_statement(a->body);
    }
    if (!tir::has_phases(s)) return phase({}, {s});
    if (auto* f = as<ForNode>(s)) {
      open_loop(*f);
      group_statement(f->body);
      return close();
    }
    if (auto* l = as<tir::LetStmtNode>(s)) {
      open(*l);
      return group_statement(l->body);
    }
    auto* i = as<tir::IfNode>(s);
    if (i == nullptr || i->else_body || tir::reads_memory(i->cond)) {
      unsupported("a group of work items in the statement " + std::string(s->info().name));
    }
    line("if (" + value(i->cond) + ") {");
    ++indent_;
    group_statement(i->then_body);
    close();
  }

  // By the items that the axes count, of those of the group.
  void phase(const std::array<const ForNode*, 3>& axes, const Stmt& body) {
    line("{");
    ++indent_;
    phase_ = axes;
    std::string only;
    for (size_t i = axes.size(); i-- > 0;) {
      const std::string id = "get_local_id(" + std::to_string(i) + ")";
      int64_t items = 1;
      if (axes[i] != nullptr) {
        const std::string type = type_of(axes[i]->var->dtype);
        line("const " + type + " " + bind(*axes[i]->var.get()) + " = (" + type + ")" + id + ";");
        items = *as_int(axes[i]->extent);
      }
      if (items == group_[i]) continue;
      only += (only.empty() ? "" : " && ") + id + " < " + std::to_string(items);
    }
    if (!only.empty()) {
      line("if (" + only + ") {");
      ++indent_;
    }
    statement(*body.get());
    if (!only.empty()) close();
    close();
  }

  void allocate_in_group(const BufferNode& b) {
    const std::string name = fresh(identifier(b.name)), type = stored_type(b.dtype.element());
    const bool is_shared = b.scope == tir::Scope::Shared;
    if (!is_shared && b.scope != tir::Scope::Register) {
      unsupported("memory of a group that is neither shared nor in registers");
    }
    auto elements = constant_elements(b);
    if (!elements) unsupported("memory of a group whose size is large or not a constant");
    places_[&b] = {name, ""};
    if (is_shared) {
      shared_.push_back("__local " + type + " " + name + "[" + std::to_string(*elements) + "];");
      return;
    }
    // Axes in front count items.
    const size_t axes = item_axes();
    if (b.shape.size() < axes) unsupported("registers of a group that no item has");
    for (size_t i = 0; i < axes; ++i) *elements /= *as_int(b.shape[i]);
    items_of_[&b] = axes;
    line(type + " " + name + "[" + std::to_string(*elements) + "];");
  }
  // Axes along which the group has several items.
  size_t item_axes() const {
    return static_cast<size_t>(std::ranges::count_if(group_, [](int64_t n) { return n > 1; }));
  }

  void loop(const ForNode& f) {
    open_loop(f);
    statement(*f.body.get());
    close();
  }

  void open_loop(const ForNode& f) {
    if (f.hints.nest != tir::LoopNest::None) unsupported("a nest for a matrix unit");
    count_uses({f.min, f.extent});
    const std::string type = type_of(f.var->dtype);
    std::string first = value(f.min), end;
    if (as_int(f.min) == 0) {
      end = value(f.extent);
    } else {
      end = first + " + " + value(f.extent);
    }
    if (!as_int(f.min)) first = temporary(type, first);
    if (!as_int(f.extent)) end = temporary(type, end);
    const std::string v = bind(*f.var.get());
    if (f.hints.order == tir::LoopOrder::Backward) {
      line("for (" + type + " " + v + " = " + end + " - 1; " + v + " >= " + first + "; --" + v +
           ") {");
    } else {
      line("for (" + type + " " + v + " = " + first + "; " + v + " < " + end + "; ++" + v + ") {");
    }
    ++indent_;
  }

  // Nothing for more than kMostElements, or a number that is not a constant.
  static std::optional<int64_t> constant_elements(const BufferNode& b) {
    int64_t out = 1;
    for (const PrimExpr& d : b.shape) {
      auto size = as_int(d);
      if (!size || (out > 0 && *size > kMostElements / out)) return std::nullopt;
      out *= *size;
    }
    return std::max<int64_t>(out, 1);
  }
  static bool is_small(const BufferNode& b) {
    auto elements = constant_elements(b);
    return elements && *elements * static_cast<int64_t>(b.dtype.element().bytes()) <= kItemBytes;
  }

  void allocate(const BufferNode& b) {
    const std::string name = fresh(identifier(b.name));
    if (is_small(b)) {
      line(stored_type(b.dtype.element()) + " " + name + "[" +
           std::to_string(*constant_elements(b)) + "];");
      places_[&b] = {name, ""};
      return;
    }
    // A part of working memory for each item.
    std::string elements = "1L";
    for (const PrimExpr& d : b.shape) elements = elements + " * " + value(d);
    auto [slice, fresh_slice] =
        slices_.try_emplace(&b, f_.params.size() + source_.workspace.size());
    if (fresh_slice) {
      source_.workspace.emplace_back(bytes_of(b).text() + " " + all_items_ + " *");
    }
    const std::string first = fresh("slice");
    line("const long " + first +
         " = ((get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + "
         "get_global_id(0)) * (" +
         elements + ");");
    places_[&b] = {name, first};
  }

  const Place& place(const BufferNode& b) {
    auto known = places_.find(&b);
    if (known != places_.end()) return known->second;
    RELAY_CHECK(numbers_.contains(&b), "a buffer that the kernel does not have");
    return places_[&b] = {identifier(b.name) + "_" + std::to_string(numbers_.at(&b)), ""};
  }

  void store(const tir::StoreNode& s) {
    std::vector<PrimExpr> all = s.indices;
    all.push_back(s.value);
    if (s.predicate) all.push_back(s.predicate);
    count_uses(all);
    if (s.predicate) {
      line("if (" + value(s.predicate) + ") {");
      ++indent_;
    }
    const std::string v = value(s.value), at = element(*s.buffer.get(), s.indices);
    const DType d = s.buffer->dtype.element();
    line(at + " = " +
         (is_half(d)    ? helper("relay_bits_" + half_name(d), v)
          : d.is_bool() ? "(uchar)" + v
                        : v) +
         ";");
    if (s.predicate) close();
  }

  std::string element(const BufferNode& b, const std::vector<PrimExpr>& indices) {
    if (auto own = items_of_.find(&b); own != items_of_.end())
      return own_element(b, own->second, indices);
    RELAY_CHECK(indices.size() == 1, "an access that is not flat");
    const std::string at = value(indices[0]);
    const Place& p = place(b);
    return p.name + "[" + (p.first.empty() ? at : p.first + " + " + at) + "]";
  }

  // Of a register of a group: the item is the one that asks.
  std::string own_element(const BufferNode& b, size_t axes, const std::vector<PrimExpr>& indices) {
    size_t d = 0;
    for (size_t i = group_.size(); i-- > 0;) {
      if (group_[i] == 1) continue;
      const PrimExpr& item = indices[d++];
      const bool mine =
          phase_[i] == nullptr ? as_int(item) == 0 : item.get() == phase_[i]->var.get();
      if (!mine) unsupported("registers of another item");
    }
    std::string at;
    for (d = axes; d < indices.size(); ++d) {
      const std::string i = value(indices[d]);
      at = at.empty() ? i : "(" + at + ") * " + std::to_string(*as_int(b.shape[d])) + " + " + i;
    }
    return place(b).name + "[" + (at.empty() ? "0" : at) + "]";
  }

  // ---- Expressions

  // What is used several times in the expressions of a statement is computed once.
  void count_uses(const std::vector<PrimExpr>& roots) {
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
  void forget(size_t mark) {
    for (; cached_.size() > mark; cached_.pop_back()) cache_.erase(cached_.back());
  }

  std::string temporary(const std::string& type, const std::string& text) {
    const std::string name = fresh("t");
    line("const " + type + " " + name + " = " + text + ";");
    return name;
  }
  static bool is_name(const std::string& text) {
    return std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
  }
  std::string named(const PrimExpr& e) {
    const std::string text = value(e);
    return is_name(text) ? text : temporary(type_of(e->dtype), text);
  }

  std::string value(const PrimExpr& e) {
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

  std::string compute(const PrimExprNode& e) {
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

  std::string integer(DType d, int64_t v) {
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

  std::string floating(DType d, double v) {
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

  std::string rounded(DType d, const std::string& text) {
    return is_half(d) ? helper("relay_round_" + half_name(d), text) : text;
  }

  // Integers of less than 64 bits wrap.
  std::string wrapping(DType d, const std::string& a, const char* op, const std::string& b) {
    const DType s = d.storage();
    if (s.bits == 64) return "(" + a + " " + op + " " + b + ")";
    return "((" + type_of(d) + ")((uint)" + a + " " + op + " (uint)" + b + "))";
  }

  std::string binary(const BinaryNode& n) {
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

  std::string bits(const BinaryNode& n, const char* op) {
    const std::string a = value(n.a), b = value(n.b);
    const std::string text = a + " " + op + " " + b;
    return n.a->dtype.is_bool() ? "((" + text + ") != 0)"
                                : "((" + type_of(n.a->dtype) + ")(" + text + "))";
  }

  std::string divided(const BinaryNode& n, const std::string& name) {
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

  std::string shift(const BinaryNode& n) {
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

  // Only the chosen side may read, and what a side computes for itself is not known outside of it.
  std::string select(const tir::SelectNode& n) {
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
  void side(const std::string& out, const PrimExpr& e) {
    ++indent_;
    const size_t mark = cached_.size();
    line(out + " = " + value(e) + ";");
    forget(mark);
    --indent_;
  }

  std::string cast(const tir::CastNode& n) {
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

  std::string load(const LoadNode& n) {
    const DType d = n.buffer->dtype.element();
    if (n.dtype.lanes != 1) unsupported("vectors");
    std::string out = element(*n.buffer.get(), n.indices);
    if (is_half(d)) out = helper("relay_of_" + half_name(d), out);
    if (d.is_bool()) out = "(" + out + " != 0)";
    return n.predicate ? "(" + value(n.predicate) + " ? " + out + " : (" + type_of(d) + ")0)" : out;
  }

  std::string call(const CallNode& n) {
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
      may_fail_ = true;
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

  std::string integer_call(const CallNode& n) {
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

  std::string bitcast(DType from, DType to, std::string v) {
    if (is_half(from)) v = helper("relay_bits_" + half_name(from), v);
    if (from.is_bool()) v = "((uchar)" + v + ")";
    if (to.is_bool()) return "(" + v + " != 0)";
    if (is_half(to)) return helper("relay_of_" + half_name(to), "as_ushort(" + v + ")");
    return "as_" + type_of(to) + "(" + v + ")";
  }

  const PrimFuncNode& f_;
  DeviceSource source_;
  std::unordered_map<const BufferNode*, size_t> numbers_;
  // Of the launch that is printed.
  std::unordered_map<const BufferNode*, Place> places_;
  std::unordered_map<const BufferNode*, size_t> slices_;
  std::unordered_map<const tir::VarNode*, std::string> vars_;
  std::array<bool, 3> looped_{};
  std::array<int64_t, 3> group_{};
  std::array<const ForNode*, 3> phase_{};  // the loops over items around what is printed
  std::vector<std::string> shared_;        // memory of a group, as it is declared
  std::unordered_map<const BufferNode*, size_t>
      items_of_;  // registers of a group: axes that count items
  std::string all_items_;
  bool needs_slices_ = false;
  bool may_fail_ = false;
  // Of the statement that is printed.
  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, std::string> cache_;
  std::vector<const Node*> cached_;
  std::vector<PrimExpr> kept_;

  std::ostringstream code_;
  int indent_ = 0;
  int names_ = 0;
  std::set<std::string> helpers_;
  bool uses_double_ = false;
};

}  // namespace

DeviceSource opencl_source(const PrimFuncNode& f) { return KernelPrinter(f).print(); }

bool has_opencl_form(const tir::Intrinsic& intrinsic) {
  return functions().contains(intrinsic.name) ||
         std::ranges::find(kOwnForms, intrinsic.name) != std::end(kOwnForms);
}

}  // namespace relay::codegen
