// One function to bytecode. The class is spread over files by what they are about:
//   function_analysis.cc    which values leave their function, and where results are written
//   function_dims.cc        parameters, results, and sizes known only at run time
//   function_pieces.cc      values that are parts of others in memory, so that nothing is copied
//   function_places.cc      where values are: buffers of the arena, registers, constants, outputs
//   function_code.cc        instructions for what Let binds, for branches and matches
//   function_calls.cc       calls: of kernels, functions and closures
//   function_loops.cc       calls of the function itself in tail position, which are jumps
//   function_sizes.cc       kernels for tensors with sizes that only a run tells
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/op.h"
#include "lower/memory_plan.h"
#include "node/walk.h"
#include "vm/program_builder.h"
#include "vm/scalar_code.h"

namespace relay::vm {

using runtime::FunctionBuilder;
using runtime::IntOp;
using runtime::Operand;
using runtime::TensorSpec;

// Throws UserError E0401.
[[noreturn]] void unsupported(const Span& span, std::string what, std::string help = {});

bool is_static_tensor(const Type& t);

// How the result's memory lies to that of the arguments, for a primitive function of one operator
// (and names for its argument's shape) and static types.
Memory memory_of(const FunctionNode& f);

// Whether a primitive function of one operator gives its first parameter with others written into
// it, of any size.
bool is_update(const FunctionNode& f);

class FunctionCompiler {
 public:
  FunctionCompiler(ProgramBuilder& program, const Function& f, std::string name,
                   std::vector<Var> captured, Var self, int32_t index, bool internal)
      : program_(program),
        f_(f),
        captured_(std::move(captured)),
        self_(std::move(self)),
        index_(index),
        is_global_(!internal),
        b_(name) {
    report_.function = std::move(name);
    if (internal) b_.internal();
  }

  runtime::Function run();
  const ArenaReport& report() const { return report_; }

 private:
  // Where a value is while the function runs. A tuple's parts are in places of their own.
  struct Place {
    enum Kind { kBuffer, kRegister, kScalar, kConstant, kOutput, kTuple } kind = kRegister;
    int64_t index = 0;  // arena buffer, register, integer register, constant or output
    std::vector<Place> fields;
  };

  // Where a part begins in a whole: at which element of which axis.
  struct Position {
    size_t axis = 0;
    int64_t begin = 0;
    friend bool operator==(const Position&, const Position&) = default;
  };

  // Where the value of a scope goes.
  struct Target {
    enum Kind { kReturn, kRegister, kScalar } kind;
    int32_t reg;  // kScalar: an integer register
  };

  // ---- Analysis

  // The last expression of a Let chain.
  static const Expr& result_of(const Expr& body);

  // Results are written in place when they are static tensors, or one tuple of such, made by this
  // function's own kernels. A function that ends in a call or a branch returns that value, and so
  // does one whose tuple has tuples inside: output buffers are a flat list. A scalar is returned as
  // a value, which takes no memory.
  void choose_return();
  void escape(const Expr& e);

  // Let nodes come in reverse order of execution, so what a value does is known before its operands
  // are asked about.
  void find_escapes();
  void escape_operands(const LetNode& l);

  // Whether the call is of this very function.
  bool calls_itself(const CallNode& c) const;
  // Whether the function calls itself in tail position.
  bool is_loop() const;

  // Kernel results that are the function's results are written straight into the output buffers.
  void claim_outputs();
  // Variables used but not bound inside, in order of first use.
  static std::vector<Var> free_variables(const FunctionNode& f);

  // ---- Parameters, results, dimensions

  void declare_params();
  void declare_results();

  // Named dimensions are read off the first parameter that has them, tensors before tuples; what no
  // parameter has, off the arguments of the kernel that needs it. `tensor` gives its register.
  void bind_dims(const Var& v);
  void bind_dims(const TensorTypeNode& t, const std::function<int32_t()>& tensor);
  void bind_field_dims(const Var& v, bool given = false);
  // For what comes out of data or a reference, which may have been made elsewhere: sizes that are
  // known are what they are called.
  void bind_given_dims(const Var& v);
  // A tensor from outside has the sizes that follow from others, such as n + 1; and those that just
  // have a name, when asked.
  void check_dims(const TensorTypeNode& t, const Var& param, const std::function<int32_t()>& tensor,
                  bool named = false);
  // Ends the run with the message unless the comparison holds.
  void require(IntOp comparison, int32_t a, int32_t b, const std::string& otherwise,
               const Span& span);
  // The dimensions that were not bound before the call.
  std::vector<const Node*> bind_argument_dims(const CallNode& c, const FunctionNode& f);
  std::string type_text(const Type& type) const;
  int32_t dim_value(const Dim& d, const Span& span);
  int32_t dim_reg(const TypeVar& v, const Span& span);
  int32_t dim_op(DimOpKind op, int32_t a, int32_t b);
  int32_t int_result(IntOp op, int32_t a, int32_t b);

  // ---- Pieces

  // Finds what is read by other means than kernels, which alone take tensors with gaps.
  void find_dense();
  // Whether all that reads the variable, or the parts of its tuple, are kernels.
  bool read_by_kernels(const Node* v) const;
  // Finds the operands of joins that can be computed where the joined value will be.
  void find_joins();
  Place emit_join(const LetNode& l, const CallNode& c);
  // The results as parts of the operand; nullopt when it has no memory that can be shared.
  std::optional<Place> emit_cut(const LetNode& l, const CallNode& c, const FunctionNode& f);
  // A buffer inside another, which holds a tensor of shape `around`.
  Place piece(int64_t whole, const std::vector<int64_t>& around, const Type& part,
              const Position& at);
  void copy(const Place& to, const Place& from, const Type& type);
  // The shapes around those operands that are pieces with gaps; empty when none is.
  std::vector<std::vector<int64_t>> within(const std::vector<Operand>& operands) const;
  // The buffer of a variable: its place in the value that it becomes part of, or a new one.
  Place buffer_for(const Var& v);
  // Offsets of all buffers in the arena.
  MemoryPlan plan_buffers();
  // Puts results where operands are that nothing reads any more.
  void reuse_operands();

  // ---- Places

  Place place_of(const Expr& e);

  // Marks the arena buffers of a place as needed at this step.
  void use(const Place& p);

  // The value as an object in a register.
  int32_t object(const Expr& e);
  int32_t object(const Place& p, const Type& type, const Span& span);

  // The value of a scalar in an integer register.
  int32_t scalar(const Expr& e);
  // Scalars that were loaded after `mark` are not known any more: control leaves a branch.
  void forget_scalars(size_t mark);
  Operand operand(const Place& p);

  // Operands for all tensors of an argument.
  void operands_of(const Expr& arg, std::vector<Operand>& out);
  void operands_of(const Place& p, const Type& type, std::vector<Operand>& out);
  Place field(const Place& tuple, int64_t index);

  // A new place for a kernel's result of that type.
  Place fresh(const Type& type, bool as_object, const Span& span);

  // ---- Code

  void emit(const Expr& body, Target target);
  void finish(const Expr& result, Target target);
  void emit_if(const IfNode& i, Target target);
  void emit_match(const MatchNode& m, Target target);

  // Jumps to `fail` unless the object matches; binds the pattern's variables.
  void emit_pattern(const Pattern& pattern, int32_t object_reg, FunctionBuilder::Label fail);
  bool emit_tail_call(const LetNode& l);
  Place emit_value(const LetNode& l);
  Place emit_call(const LetNode& l, const CallNode& c);

  // What the kernel's operators assume about sizes is checked before it runs. Where sizes may be
  // broadcast, an integer register that says whether all of them are equal, so that none is.
  std::optional<int32_t> emit_assumptions(const FunctionNode& f);
  Place emit_kernel(const LetNode& l, const CallNode& c, const LoweredCall& lowered);
  // An update of a value that has memory of its own; nullopt when it has none.
  std::optional<Place> emit_update(const CallNode& c, const FunctionNode& f);
  Place emit_view(const LetNode& l, const CallNode& c, const FunctionNode& f);
  void invoke(int32_t kernel, std::vector<Operand> operands, const Span& span);

  // ---- Sizes that only a run tells

  // Reads off the arguments what the sizes are that are `?` in the parameters of the function.
  void read_sizes(const CallNode& c, const FunctionNode& f);
  // Reads the next size that has a name, that of a register's tensor.
  Dim read_size(int32_t reg, size_t axis);
  // Calls a kernel whose result is as large as its data says.
  Place emit_sized_by_data(const CallNode& c, const LoweredCall& lowered);

  // ---- Loops

  // Moves parameters that are scalars into integer registers and starts the loop.
  void begin_loop();
  // Gives the parameters their next values and jumps to the start.
  void emit_next_iteration(const CallNode& c);

  ProgramBuilder& program_;
  Function f_;
  std::vector<Var> captured_;
  Var self_;
  int32_t index_;
  bool is_global_;
  FunctionBuilder b_;
  ArenaReport report_;
  bool writes_outputs_ = false;
  const LetNode* now_ = nullptr;  // what is being compiled
  int64_t step_ = 0;
  std::unordered_set<const Node*> escapes_;
  std::unordered_map<const Node*, Place> places_;
  std::unordered_map<const Node*, int64_t> claimed_;
  std::unordered_map<const Node*, int32_t> dim_regs_;
  size_t sizes_read_ = 0;  // for the kernel that is being called
  // Integer registers of scalars that were loaded on the way here, and the order they came in.
  std::unordered_map<const Node*, int32_t> scalars_;
  std::vector<const Node*> scalar_trail_;
  // The start of the loop, and the registers of tensors made in it: their memory is used in turns.
  std::optional<FunctionBuilder::Label> loop_;
  std::unordered_set<int32_t> loop_tensors_;
  std::vector<BufferLifetime> buffers_;
  // Buffers that are parts of others, those of lower index, by their own index. With gaps: `within`
  // is the shape of the tensor around (attr::kWithin), else empty.
  struct Piece {
    int64_t whole;
    int64_t offset;  // bytes
    std::vector<int64_t> within;
  };
  std::unordered_map<int64_t, Piece> pieces_;
  // Kernels' results that may take an operand's memory, in the order of the steps.
  struct Reuse {
    int64_t operand;
    int64_t result;
    int64_t step;
  };
  std::vector<Reuse> reuses_;
  // Values that are computed inside the value that they become part of, and the joined values.
  struct Home {
    Var whole;
    Position at;
  };
  std::unordered_map<const Node*, Home> homes_;
  struct Joined {
    bool may_have_gaps;    // nobody but kernels reads it or what is computed in it
    size_t continued = 0;  // operands at the front that lie in another joined value
    int64_t buffer = -1;   // -1: none yet
  };
  std::unordered_map<const Node*, Joined> joined_;
  // Variables that something other than a kernel reads, and the variables of parts of tuples.
  std::unordered_set<const Node*> dense_;
  std::unordered_map<const Node*, std::vector<const Node*>> projections_;
  // What is still to be written, last first; keeps nested branches off the C stack.
  std::vector<std::function<void()>> tasks_;
};

}  // namespace relay::vm
