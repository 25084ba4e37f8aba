// One function to bytecode. The class is spread over files by what they are about:
//   function_analysis.cc    which values leave their function, and where results are written
//   function_dims.cc        parameters, results, and sizes known only at run time
//   function_places.cc      where values are: buffers of the arena, registers, constants, outputs
//   function_code.cc        instructions for what Let binds, for branches and matches
//   function_calls.cc       calls: of kernels, functions and closures
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/op.h"
#include "lower/memory_plan.h"
#include "node/walk.h"
#include "vm/program_builder.h"

namespace relay::vm {

using runtime::FunctionBuilder;
using runtime::IntOp;
using runtime::Operand;
using runtime::TensorSpec;

// Throws UserError E0401.
[[noreturn]] void unsupported(const Span& span, std::string what, std::string help = {});

bool is_static_tensor(const Type& t);

// The primitive function that is called, or null.
const FunctionNode* primitive_of(const CallNode& c);

// A primitive function that only renames the shape of its first parameter.
bool is_view(const FunctionNode& f);

class FunctionCompiler {
 public:
  FunctionCompiler(ProgramBuilder& program, const Function& f, std::string name,
                   std::vector<Var> captured, Var self, int32_t index, bool internal)
      : program_(program),
        f_(f),
        captured_(std::move(captured)),
        self_(std::move(self)),
        index_(index),
        b_(name) {
    report_.function = std::move(name);
    if (internal) b_.internal();
  }

  runtime::Function run();
  const ArenaReport& report() const { return report_; }

 private:
  // Where a value is while the function runs. A tuple's parts are in places of their own.
  struct Place {
    enum Kind { kBuffer, kRegister, kConstant, kOutput, kTuple } kind = kRegister;
    int64_t index = 0;  // arena buffer, register, constant or output
    std::vector<Place> fields;
  };

  // Where the value of a scope goes.
  struct Target {
    enum Kind { kReturn, kRegister } kind;
    int32_t reg;
  };

  // ---- Analysis

  // The last expression of a Let chain.
  static const Expr& result_of(const Expr& body);

  // Results are written in place when they are static tensors, or one tuple of such, made by this
  // function's own kernels. A function that ends in a call or a branch returns that value, and so
  // does one whose tuple has tuples inside: output buffers are a flat list.
  void choose_return();
  void escape(const Expr& e);

  // Let nodes come in reverse order of execution, so what a value does is known before its operands
  // are asked about.
  void find_escapes();
  void escape_operands(const LetNode& l);

  // Kernel results that are the function's results are written straight into the output buffers.
  void claim_outputs();
  // Variables used but not bound inside, in order of first use.
  static std::vector<Var> free_variables(const FunctionNode& f);

  // ---- Parameters, results, dimensions

  void declare_params();
  void declare_results();

  // Named dimensions are read off the first parameter that has them.
  void bind_dims(const Var& v);
  int32_t dim_value(const Dim& d, const Span& span);
  int32_t dim_reg(const TypeVar& v, const Span& span);
  int32_t dim_op(DimOpKind op, int32_t a, int32_t b);

  // ---- Places

  Place place_of(const Expr& e);

  // Marks the arena buffers of a place as needed at this step.
  void use(const Place& p);

  // The value as an object in a register.
  int32_t object(const Expr& e);
  int32_t object(const Place& p, const Type& type, const Span& span);
  Operand operand(const Place& p, const Type& type);

  // Operands for all tensors of a value.
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

  // What the kernel's operators assume about sizes is checked before it runs.
  void emit_assumptions(const FunctionNode& f);
  Place emit_kernel(const LetNode& l, const CallNode& c, const FunctionNode& f);

  ProgramBuilder& program_;
  Function f_;
  std::vector<Var> captured_;
  Var self_;
  int32_t index_;
  FunctionBuilder b_;
  ArenaReport report_;
  bool writes_outputs_ = false;
  const LetNode* now_ = nullptr;  // what is being compiled
  int64_t step_ = 0;
  std::unordered_set<const Node*> escapes_;
  std::unordered_map<const Node*, Place> places_;
  std::unordered_map<const Node*, int64_t> claimed_;
  std::unordered_map<const Node*, int32_t> dim_regs_;
  std::vector<BufferLifetime> buffers_;
  // What is still to be written, last first; keeps nested branches off the C stack.
  std::vector<std::function<void()>> tasks_;
};

}  // namespace relay::vm
