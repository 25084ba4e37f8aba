// Statements of the tensor IR: buffers, loops, blocks, and the function that holds them.
//
// A PrimFunc is a kernel: parameters are buffers (inputs, then outputs), the body is nests of
// loops around blocks. A block computes part of a buffer for one value of each of its iteration
// variables; its `reads` and `writes` regions and the kinds of its iteration variables are what
// makes a schedule step legal or not. After `lower_blocks` no blocks are left: only loops, stores,
// allocations and conditions, which code generation takes.
#pragma once

#include <string>
#include <vector>

#include "base/contraction_role.h"
#include "tir/expr.h"
#include "tir/hints.h"

namespace relay::tir {

namespace StmtKind {
enum : int {
  Store = 0x580,
  For,
  Block,
  Seq,
  If,
  Allocate,
  LetStmt,
  Check,
  Evaluate,
};
}
namespace OtherKind {
enum : int {
  Buffer = 0x5C0,
  IterVar,
  Region,
  PrimFunc,
  ScheduleReport,
  BlockDimension,
  BlockOperand,
  BlockContraction,
};
}

// A copy of a node with some fields changed.
template <class T, class Fill>
Ref<T> modified(const T& old, Fill&& fill) {
  T* node = new T(old);
  Ref<T> out(node);
  fill(*node);
  return out;
}

// Where a buffer lives: `Global` memory (parameters and intermediates of a kernel), `Local` (a
// thread's own scratch, on the stack or in scratch memory), `Register` (small, fully unrolled
// accesses, promoted to registers). `Shared` is for GPUs.
enum class Scope : int64_t { Global, Local, Register, Shared };
std::string_view to_string(Scope s);

// A row-major array, dense or the first part of a dense array along each dimension. Identity
// counts: two buffers are the same when the node is.
struct BufferNode : Node {
  static constexpr int kKind = OtherKind::Buffer;
  std::string name;
  DType dtype = DType::Float(32);
  std::vector<PrimExpr> shape;  // constants or symbolic
  // The shape of the array that a parameter lies in, of equal rank and at least as large; empty
  // when the buffer is dense.
  std::vector<PrimExpr> within;
  Scope scope = Scope::Global;
  int64_t alignment = 64;  // of the first element, bytes
  BufferNode() : Node(static_info()) {}
  static const NodeInfo& static_info();

  // The shape by which an element's place in memory is counted.
  const std::vector<PrimExpr>& memory_shape() const { return within.empty() ? shape : within; }
};
// The place of an element, counted in elements from the first.
PrimExpr element_offset(const BufferNode& b, const std::vector<PrimExpr>& indices);
// From the first element to behind the last; nullopt for symbolic shapes.
std::optional<int64_t> bytes_in_memory(const BufferNode& b);
Buffer buffer(std::string name, DType dtype, std::vector<PrimExpr> shape,
              Scope scope = Scope::Global);

// min .. min+extent-1.
struct Range {
  PrimExpr min;
  PrimExpr extent;
};

enum class IterKind : int64_t {
  DataParallel,  // each value is independent
  Reduce,        // values are combined
  Opaque,        // order matters
};

// An iteration variable of a block or compute body, running over [min, min+extent).
struct IterVarNode : Node {
  static constexpr int kKind = OtherKind::IterVar;
  Var var;
  PrimExpr min;
  PrimExpr extent;
  IterKind kind = IterKind::DataParallel;
  IterVarNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
IterVar iter_var(Var var, PrimExpr extent, IterKind kind = IterKind::DataParallel,
                 PrimExpr min = nullptr);

// buffer[min0 : min0+extent0, ...].
struct RegionNode : Node {
  static constexpr int kKind = OtherKind::Region;
  Buffer buffer;
  std::vector<PrimExpr> mins;
  std::vector<PrimExpr> extents;
  RegionNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
using Region = Ref<RegionNode>;

// A dimension of a sum of products. An iteration of the block is one dimension, or the mixed-radix number of several: the
// channels of a grouped convolution are (group, column).
struct BlockDimensionNode : Node {
  static constexpr int kKind = OtherKind::BlockDimension;
  Var iter;  // an iteration variable of the block
  PrimExpr extent;
  ContractionRole role = ContractionRole::None;
  BlockDimensionNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
using BlockDimension = Ref<BlockDimensionNode>;

// A term of an index: factor * (n / divide % modulo), where n is the mixed-radix number of the dimensions, slowest first.
// Panels and words are terms with `divide` on one axis and `modulo` on another; the stride and the dilation of a window
// are the factors of its position and of its tap.
struct BlockIndexTerm {
  std::vector<int64_t> dims;  // indices of BlockContractionNode::dims
  int64_t divide = 1;
  int64_t modulo = 0;  // 0: none
  int64_t factor = 1;

  static constexpr auto members() {
    return std::tuple{
        member("dims", &BlockIndexTerm::dims), member("divide", &BlockIndexTerm::divide),
        member("modulo", &BlockIndexTerm::modulo), member("factor", &BlockIndexTerm::factor)};
  }
  friend bool operator==(const BlockIndexTerm&, const BlockIndexTerm&) = default;
};

// The index of an operand along one axis: the sum of its terms and `offset`. An `irregular` index has another form; its
// single term lists the dimensions on which it depends.
struct BlockAxis {
  std::vector<BlockIndexTerm> terms;
  int64_t offset = 0;
  bool irregular = false;

  static constexpr auto members() {
    return std::tuple{member("terms", &BlockAxis::terms), member("offset", &BlockAxis::offset),
                      member("irregular", &BlockAxis::irregular)};
  }
  friend bool operator==(const BlockAxis&, const BlockAxis&) = default;
};

// A tensor in a sum of products: the buffer and the index along each of its axes.
struct BlockOperandNode : Node {
  static constexpr int kKind = OtherKind::BlockOperand;
  Buffer buffer;
  std::vector<BlockAxis> axes;
  BlockOperandNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
using BlockOperand = Ref<BlockOperandNode>;

// The sum of products that a block computes (tir/block_contraction.h).
struct BlockContractionNode : Node {
  static constexpr int kKind = OtherKind::BlockContraction;
  std::vector<BlockDimension> dims;    // in the order of the block's iterations
  std::vector<BlockOperand> operands;  // one for each load of the body, in post-order
  BlockOperand result;
  BlockContractionNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
using BlockContraction = Ref<BlockContractionNode>;

struct StmtNode : Node {
  static bool classof(const Node& n) { return n.info().family == family::tir_stmt; }

 protected:
  using Node::Node;
};
using Stmt = Ref<StmtNode>;

// buffer[indices] = value; value's lanes are the index's.
struct StoreNode : StmtNode {
  static constexpr int kKind = StmtKind::Store;
  Buffer buffer;
  std::vector<PrimExpr> indices;
  PrimExpr value;
  PrimExpr predicate;  // null, or a bool (vector): lanes that are false are not written
  StoreNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};

enum class ForKind : int64_t { Serial, Parallel, Vectorized, Unrolled, ThreadBound };
std::string_view to_string(ForKind k);

struct ForNode : StmtNode {
  static constexpr int kKind = StmtKind::For;
  Var var;
  PrimExpr min;
  PrimExpr extent;
  ForKind loop_kind = ForKind::Serial;
  std::string thread_tag;  // for ThreadBound: "blockIdx.x", ...
  Stmt body;
  LoopHints hints;
  ForNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};

// A unit of computation. `bindings[i]` is the value of `iters[i]` in terms of the enclosing loops'
// variables. `init` (may be null) runs before the first value of the reduction iterations for each
// value of the others. `predicate` (null: true) guards both.
struct BlockNode : StmtNode {
  static constexpr int kKind = StmtKind::Block;
  std::string name;
  std::vector<IterVar> iters;
  std::vector<PrimExpr> bindings;
  PrimExpr predicate;
  std::vector<Region> reads;
  std::vector<Region> writes;
  Stmt init;
  Stmt body;
  BlockRole role;
  BlockContraction contraction;  // null: the block states none
  BlockNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};
using Block = Ref<BlockNode>;

struct SeqNode : StmtNode {
  static constexpr int kKind = StmtKind::Seq;
  std::vector<Stmt> stmts;
  SeqNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct IfNode : StmtNode {
  static constexpr int kKind = StmtKind::If;
  PrimExpr cond;
  Stmt then_body;
  Stmt else_body;  // may be null
  IfNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};
// The buffer exists inside `body`; contents are undefined at entry.
struct AllocateNode : StmtNode {
  static constexpr int kKind = StmtKind::Allocate;
  Buffer buffer;
  Stmt body;
  AllocateNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct LetStmtNode : StmtNode {
  static constexpr int kKind = StmtKind::LetStmt;
  Var var;
  PrimExpr value;
  Stmt body;
  LetStmtNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};
// The kernel returns `error` (runtime/core/kernel_abi.h) when cond is false.
struct CheckNode : StmtNode {
  static constexpr int kKind = StmtKind::Check;
  PrimExpr cond;
  int64_t error = 1;
  std::string message;
  CheckNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};
// Evaluates an expression for its effect on the machine (prefetch).
struct EvaluateNode : StmtNode {
  static constexpr int kKind = StmtKind::Evaluate;
  PrimExpr value;
  EvaluateNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};

struct ScheduleReportNode;  // tir/schedule_report.h

// A kernel. `dims` are the symbolic dimensions, passed as int64 values in that order.
struct PrimFuncNode : Node {
  static constexpr int kKind = OtherKind::PrimFunc;
  std::string name;
  std::vector<Buffer> params;
  int64_t num_inputs = 0;  // params[0 .. num_inputs) are read, the others written
  std::vector<Var> dims;
  // The greatest value that each of `dims` may have; empty where none is known.
  std::vector<int64_t> at_most;
  Stmt body;
  // Inputs, by their place in `params`, whose memory the last output may share: each element is read just before the output's
  // at the same place is written.
  std::vector<int64_t> in_place;
  // The order in which the outermost loop of the last block runs once it is scheduled.
  LoopOrder order = LoopOrder::Forward;
  // What code for it uses beside the features of all code for its target: "amx-tile".
  std::vector<std::string> features;
  Ref<ScheduleReportNode> report;  // null: nothing was decided
  PrimFuncNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};
using PrimFunc = Ref<PrimFuncNode>;

Stmt store(Buffer buffer, std::vector<PrimExpr> indices, PrimExpr value,
           PrimExpr predicate = nullptr);
Stmt for_(Var var, PrimExpr min, PrimExpr extent, Stmt body, ForKind kind = ForKind::Serial);
Stmt seq(std::vector<Stmt> stmts);  // flattens nested sequences; one statement stays itself
Stmt if_(PrimExpr cond, Stmt then_body, Stmt else_body = nullptr);
Stmt allocate(Buffer buffer, Stmt body);
Stmt let_stmt(Var var, PrimExpr value, Stmt body);
Stmt check(PrimExpr cond, int64_t error, std::string message);
Stmt evaluate(PrimExpr value);
Region region(Buffer buffer, std::vector<PrimExpr> mins, std::vector<PrimExpr> extents);
// The region buffer[indices] of one element.
Region element_region(Buffer buffer, const std::vector<PrimExpr>& indices);

// The function in text form, as tir/text.h prints it.
std::string to_string(const PrimFunc& f);
std::string to_string(const Stmt& s);

}  // namespace relay::tir
