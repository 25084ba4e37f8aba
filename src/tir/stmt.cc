#include "tir/stmt.h"

#include "tir/schedule_report.h"

namespace relay::tir {

// ---- Field lists -------------------------------------------------------------------------------

const NodeInfo& BufferNode::static_info() {
  static const NodeInfo info = [] {
    NodeInfo i = describe<BufferNode>(
        "tir.Buffer", kKind, family::tir_other,
        {attribute("dtype", &BufferNode::dtype), attribute("scope", &BufferNode::scope),
         attribute("alignment", &BufferNode::alignment), child("shape", &BufferNode::shape),
         child("within", &BufferNode::within), ignored("name", &BufferNode::name)});
    i.is_variable = true;
    return i;
  }();
  return info;
}
const NodeInfo& IterVarNode::static_info() {
  static const NodeInfo info = describe<IterVarNode>(
      "tir.IterVar", kKind, family::tir_other,
      {attribute("kind", &IterVarNode::kind), binder("var", &IterVarNode::var),
       child("min", &IterVarNode::min), child("extent", &IterVarNode::extent)});
  return info;
}
const NodeInfo& RegionNode::static_info() {
  static const NodeInfo info =
      describe<RegionNode>("tir.Region", kKind, family::tir_other,
                           {child("buffer", &RegionNode::buffer), child("mins", &RegionNode::mins),
                            child("extents", &RegionNode::extents)});
  return info;
}
const NodeInfo& BlockDimensionNode::static_info() {
  static const NodeInfo info = describe<BlockDimensionNode>(
      "tir.BlockDimension", kKind, family::tir_other,
      {attribute("role", &BlockDimensionNode::role), child("iter", &BlockDimensionNode::iter),
       child("extent", &BlockDimensionNode::extent)});
  return info;
}
const NodeInfo& BlockOperandNode::static_info() {
  static const NodeInfo info = describe<BlockOperandNode>(
      "tir.BlockOperand", kKind, family::tir_other,
      {attribute("axes", &BlockOperandNode::axes), child("buffer", &BlockOperandNode::buffer)});
  return info;
}
const NodeInfo& BlockContractionNode::static_info() {
  static const NodeInfo info =
      describe<BlockContractionNode>("tir.BlockContraction", kKind, family::tir_other,
                                     {child("dims", &BlockContractionNode::dims),
                                      child("operands", &BlockContractionNode::operands),
                                      child("result", &BlockContractionNode::result)});
  return info;
}
const NodeInfo& StoreNode::static_info() {
  static const NodeInfo info = describe<StoreNode>(
      "tir.Store", kKind, family::tir_stmt,
      {child("buffer", &StoreNode::buffer), child("indices", &StoreNode::indices),
       child("value", &StoreNode::value), child("predicate", &StoreNode::predicate)});
  return info;
}
const NodeInfo& ForNode::static_info() {
  static const NodeInfo info = describe<ForNode>(
      "tir.For", kKind, family::tir_stmt,
      {attribute("kind", &ForNode::loop_kind), attribute("thread_tag", &ForNode::thread_tag),
       attribute("hints", &ForNode::hints), binder("var", &ForNode::var),
       child("min", &ForNode::min), child("extent", &ForNode::extent),
       child("body", &ForNode::body)});
  return info;
}
const NodeInfo& BlockNode::static_info() {
  static const NodeInfo info = describe<BlockNode>(
      "tir.Block", kKind, family::tir_stmt,
      {attribute("name", &BlockNode::name), attribute("role", &BlockNode::role),
       binder("iters", &BlockNode::iters), child("bindings", &BlockNode::bindings),
       child("predicate", &BlockNode::predicate), child("reads", &BlockNode::reads),
       child("writes", &BlockNode::writes), child("contraction", &BlockNode::contraction),
       child("init", &BlockNode::init), child("body", &BlockNode::body)});
  return info;
}
const NodeInfo& SeqNode::static_info() {
  static const NodeInfo info =
      describe<SeqNode>("tir.Seq", kKind, family::tir_stmt, {child("stmts", &SeqNode::stmts)});
  return info;
}
const NodeInfo& IfNode::static_info() {
  static const NodeInfo info =
      describe<IfNode>("tir.If", kKind, family::tir_stmt,
                       {child("cond", &IfNode::cond), child("then_body", &IfNode::then_body),
                        child("else_body", &IfNode::else_body)});
  return info;
}
const NodeInfo& AllocateNode::static_info() {
  static const NodeInfo info = describe<AllocateNode>(
      "tir.Allocate", kKind, family::tir_stmt,
      {binder("buffer", &AllocateNode::buffer), child("body", &AllocateNode::body)});
  return info;
}
const NodeInfo& LetStmtNode::static_info() {
  static const NodeInfo info =
      describe<LetStmtNode>("tir.LetStmt", kKind, family::tir_stmt,
                            {binder("var", &LetStmtNode::var), child("value", &LetStmtNode::value),
                             child("body", &LetStmtNode::body)});
  return info;
}
const NodeInfo& CheckNode::static_info() {
  static const NodeInfo info = describe<CheckNode>(
      "tir.Check", kKind, family::tir_stmt,
      {attribute("error", &CheckNode::error), attribute("message", &CheckNode::message),
       child("cond", &CheckNode::cond)});
  return info;
}
const NodeInfo& EvaluateNode::static_info() {
  static const NodeInfo info = describe<EvaluateNode>("tir.Evaluate", kKind, family::tir_stmt,
                                                      {child("value", &EvaluateNode::value)});
  return info;
}
const NodeInfo& PrimFuncNode::static_info() {
  static const NodeInfo info = describe<PrimFuncNode>(
      "tir.PrimFunc", kKind, family::tir_other,
      {attribute("num_inputs", &PrimFuncNode::num_inputs),
       attribute("in_place", &PrimFuncNode::in_place), attribute("order", &PrimFuncNode::order),
       attribute("features", &PrimFuncNode::features), attribute("at_most", &PrimFuncNode::at_most),
       ignored("report", &PrimFuncNode::report), ignored("name", &PrimFuncNode::name),
       binder("dims", &PrimFuncNode::dims), binder("params", &PrimFuncNode::params),
       child("body", &PrimFuncNode::body)});
  return info;
}

const NodeInfo& ScheduleReportNode::static_info() {
  static const NodeInfo info =
      describe<ScheduleReportNode>("tir.ScheduleReport", kKind, family::tir_other,
                                   {attribute("rule", &ScheduleReportNode::rule),
                                    attribute("arithmetic", &ScheduleReportNode::arithmetic),
                                    attribute("parameters", &ScheduleReportNode::parameters),
                                    attribute("sentence", &ScheduleReportNode::sentence),
                                    attribute("declined", &ScheduleReportNode::declined),
                                    attribute("version", &ScheduleReportNode::version),
                                    attribute("copies", &ScheduleReportNode::copies)});
  return info;
}

const ScheduleReportNode& report_of(const PrimFuncNode& f) {
  static const Ref<ScheduleReportNode> none = make<ScheduleReportNode>();
  return f.report ? *f.report : *none;
}

// ---- Names -------------------------------------------------------------------------------------

std::string_view to_string(Scope s) {
  static constexpr std::string_view names[] = {"global", "local", "register", "shared"};
  return names[static_cast<size_t>(s)];
}

std::string_view to_string(ForKind k) {
  static constexpr std::string_view names[] = {"serial", "parallel", "vectorized", "unrolled",
                                               "thread_bound"};
  return names[static_cast<size_t>(k)];
}

std::string_view to_string(LoopOrder order) {
  return order == LoopOrder::Backward ? "backward" : "forward";
}

std::string_view to_string(LoopNest nest) {
  static constexpr std::string_view names[] = {"none", "matrix", "transposed", "copy", "lanes"};
  return names[static_cast<size_t>(nest)];
}

std::string_view to_string(NextOperand next) {
  static constexpr std::string_view names[] = {"none", "read", "copied"};
  return names[static_cast<size_t>(next)];
}

std::string_view to_string(StreamedOperand operand) {
  static constexpr std::string_view names[] = {"neither", "a", "b"};
  return names[static_cast<size_t>(operand)];
}

// ---- Builders ----------------------------------------------------------------------------------

Buffer buffer(std::string name, DType dtype, std::vector<PrimExpr> shape, Scope scope) {
  RELAY_CHECK(dtype.is_scalar(), "a buffer's elements have one lane");
  return make<BufferNode>([&](BufferNode& n) {
    n.name = std::move(name);
    n.dtype = dtype;
    n.shape = std::move(shape);
    n.scope = scope;
  });
}

PrimExpr element_offset(const BufferNode& b, const std::vector<PrimExpr>& indices) {
  RELAY_CHECK(indices.size() == b.shape.size(), b.name);
  PrimExpr at = index(0);
  for (size_t d = 0; d < indices.size(); ++d) at = at * b.memory_shape()[d] + indices[d];
  return at;
}

std::optional<int64_t> bytes_in_memory(const BufferNode& b) {
  int64_t last = 0;
  bool empty = false;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    auto extent = as_int(b.shape[d]), pitch = as_int(b.memory_shape()[d]);
    if (!extent || !pitch) return std::nullopt;
    empty |= *extent == 0;
    last = last * *pitch + *extent - 1;
  }
  return empty ? 0 : (last + 1) * static_cast<int64_t>(b.dtype.bytes());
}

IterVar iter_var(Var var, PrimExpr extent, IterKind kind, PrimExpr min) {
  return make<IterVarNode>([&](IterVarNode& n) {
    n.min = min ? std::move(min) : imm(var->dtype, 0);
    n.var = std::move(var);
    n.extent = std::move(extent);
    n.kind = kind;
  });
}

Stmt store(Buffer buffer, std::vector<PrimExpr> indices, PrimExpr value, PrimExpr predicate) {
  RELAY_CHECK(buffer && value, "store without a buffer or value");
  RELAY_CHECK(value->dtype.element() == buffer->dtype, "store of " + value->dtype.to_string() +
                                                           " to " + buffer->name + " of " +
                                                           buffer->dtype.to_string());
  int lanes = 1;
  for (PrimExpr& i : indices) {
    i = cast(kIndex.with_lanes(i->dtype.lanes), i);
    lanes = std::max<int>(lanes, i->dtype.lanes);
  }
  value = broadcast(std::move(value), lanes);
  RELAY_CHECK(value->dtype.lanes == lanes, "store of a vector at a scalar index");
  if (predicate && predicate->dtype.lanes != lanes) predicate = broadcast(predicate, lanes);
  if (predicate && as_int(predicate) == 1) predicate = nullptr;
  return make<StoreNode>([&](StoreNode& n) {
    n.buffer = std::move(buffer);
    n.indices = std::move(indices);
    n.value = std::move(value);
    n.predicate = std::move(predicate);
  });
}

Stmt for_(Var var, PrimExpr min, PrimExpr extent, Stmt body, ForKind kind) {
  RELAY_CHECK(var->dtype == min->dtype && var->dtype == extent->dtype, "loop of unlike dtypes");
  return make<ForNode>([&](ForNode& n) {
    n.var = std::move(var);
    n.min = std::move(min);
    n.extent = std::move(extent);
    n.loop_kind = kind;
    n.body = std::move(body);
  });
}

Stmt seq(std::vector<Stmt> stmts) {
  // A Seq never holds a Seq, so that one level of flattening is enough.
  std::vector<Stmt> flat;
  flat.reserve(stmts.size());
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (auto* inner = as<SeqNode>(s)) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  if (flat.size() == 1) return flat[0];
  return make<SeqNode>([&](SeqNode& n) { n.stmts = std::move(flat); });
}

Stmt if_(PrimExpr cond, Stmt then_body, Stmt else_body) {
  RELAY_CHECK(cond->dtype == DType::Bool(), "if on " + cond->dtype.to_string());
  return make<IfNode>([&](IfNode& n) {
    n.cond = std::move(cond);
    n.then_body = std::move(then_body);
    n.else_body = std::move(else_body);
  });
}

Stmt allocate(Buffer buffer, Stmt body) {
  return make<AllocateNode>([&](AllocateNode& n) {
    n.buffer = std::move(buffer);
    n.body = std::move(body);
  });
}

Stmt let_stmt(Var var, PrimExpr value, Stmt body) {
  RELAY_CHECK(var->dtype == value->dtype, "let of another dtype");
  return make<LetStmtNode>([&](LetStmtNode& n) {
    n.var = std::move(var);
    n.value = std::move(value);
    n.body = std::move(body);
  });
}

Stmt check(PrimExpr cond, int64_t error, std::string message) {
  RELAY_CHECK(cond->dtype == DType::Bool(), "check on " + cond->dtype.to_string());
  return make<CheckNode>([&](CheckNode& n) {
    n.cond = std::move(cond);
    n.error = error;
    n.message = std::move(message);
  });
}

Stmt evaluate(PrimExpr value) {
  return make<EvaluateNode>([&](EvaluateNode& n) { n.value = std::move(value); });
}

Region region(Buffer buffer, std::vector<PrimExpr> mins, std::vector<PrimExpr> extents) {
  return make<RegionNode>([&](RegionNode& n) {
    n.buffer = std::move(buffer);
    n.mins = std::move(mins);
    n.extents = std::move(extents);
  });
}

Region element_region(Buffer buffer, const std::vector<PrimExpr>& indices) {
  return region(std::move(buffer), indices, std::vector<PrimExpr>(indices.size(), index(1)));
}

}  // namespace relay::tir
