// The steps of one function. The class is spread over files by what they are about:
//   function_dims.cc        parameters, results, and sizes known only at run time
//   function_joins.cc       values that are parts of others in memory, so that nothing is copied
//   function_values.cc      what variables are bound to, as objects, scalars and operands
//   function_steps.cc       what Let binds, branches and matches
//   function_calls.cc       calls: of kernels, functions and closures
//   function_loops.cc       calls of the function itself in tail position, which are loops
//   function_sizes.cc       kernels for tensors with sizes that only a run tells
//   function_devices.cc     values on devices, and copies between these
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/donations.h"
#include "plan/joins.h"
#include "plan/outputs.h"
#include "plan/program_planner.h"
#include "plan/scalar_code.h"

namespace relay::plan {

using runtime::DType;
using runtime::IntOp;

// Throws UserError E0401.
[[noreturn]] void unsupported(const Span& span, std::string what, std::string help = {});

class FunctionPlanner {
 public:
  FunctionPlanner(ProgramPlanner& program, const Function& f, std::string name,
                  std::vector<Var> captured, Var self, int32_t index, bool internal);

  PlanFunction run();

 private:
  // What a variable is bound to: a value, or a tuple whose parts are in places of their own.
  struct Bound {
    ValueId value = -1;  // -1: a tuple
    std::vector<Bound> fields{};

    bool is_tuple() const { return value < 0; }
  };

  // Where the value of a scope goes, and on which devices it is there.
  struct Target {
    enum Kind { kReturn, kObject, kScalar, kNowhere } kind;
    ValueId value = -1;
    Domain* where = nullptr;
  };

  void find_updated();
  void find_escaping_parts();
  // Whether the result of that number escapes, of what is bound to the variable.
  bool escapes(const Node* v, size_t result) const;
  // Whether the call is of this very function.
  bool calls_itself(const CallNode& c) const;
  // Whether the function calls itself in tail position.
  bool is_loop() const;

  // ---- Parameters, results, dimensions ----

  void declare_params();
  void declare_results();

  // Named dimensions are read off the first parameter that has them, tensors before tuples; what no
  // parameter has, off the arguments of the kernel that needs it. `tensor` gives the tensor.
  void bind_dims(const Var& v);
  void bind_dims(const TensorTypeNode& t, const std::function<ValueId()>& tensor);
  void bind_field_dims(const Var& v, bool given = false);
  // Of n + 3, where nothing has n itself.
  void bind_shifted_dims(const Var& v);
  // For what comes out of data or a reference, which may have been made elsewhere: sizes that are
  // known are what they are called.
  void bind_given_dims(const Var& v);
  // A tensor from outside has the sizes that follow from others, such as n + 1; and those that just
  // have a name, when asked.
  void check_dims(const TensorTypeNode& t, const Var& param, const std::function<ValueId()>& tensor,
                  bool named = false);
  // Sizes from outside are in the ranges that the function's hints give.
  void check_ranges();
  // Ends the run with the message, which shows the numbers, unless the comparison holds.
  void require(IntOp comparison, ValueId a, ValueId b, const std::string& otherwise,
               const Span& span, const std::vector<ValueId>& shown);
  // The dimensions that were not bound before the call.
  std::vector<const Node*> bind_argument_dims(const CallNode& c, const FunctionNode& f);
  PlanSlot slot(std::string name, const Type& type) const;
  ValueId dim_value(const Dim& d, const Span& span);
  ValueId dim_variable(const TypeVar& v, const Span& span);
  ValueId dim_op(DimOpKind op, ValueId a, ValueId b);

  // ---- Joins and cuts ----

  Bound join(const LetNode& l, const CallNode& c);
  // The results as parts of the operand; nullopt when it has no memory that can be shared.
  std::optional<Bound> cut(const LetNode& l, const CallNode& c, const FunctionNode& f);
  // A buffer inside another, which holds a tensor of shape `around`.
  int32_t sub_buffer(int32_t whole, const std::vector<int64_t>& around, const Type& part,
                     const Position& at);
  void copy(ValueId to, ValueId from, const Type& type);
  // The shapes around those values that have gaps; empty when none has.
  Within within(std::span<const ValueId> inputs, std::span<const ValueId> outputs) const;
  // The buffer of a value that is computed inside the one that it becomes part of.
  int32_t buffer_inside(const Var& v);

  // ---- Values ----

  Bound bound(const Expr& e);
  void bind(const Var& v, Bound to);

  // The value as an object.
  ValueId object(const Expr& e);
  ValueId object(const Bound& b, const Type& type);

  // The value of a scalar in a register.
  ValueId scalar(const Expr& e);
  ValueId scalar(const Bound& b, const Type& type);
  // Scalars that were loaded after `mark` are not known any more: control leaves a branch.
  void forget_scalars(size_t mark);

  // The values of all tensors of an argument, for a kernel of the device.
  void tensors_of(const Expr& arg, std::vector<ValueId>& out, Device device = {});
  void tensors_of(const Bound& b, const Type& type, std::vector<ValueId>& out);
  Bound field(const Bound& tuple, const Type& type, size_t index, Domain* where = nullptr);

  // A new tensor of an open size.
  ValueId open_object(const TensorTypeNode& t, const Span& span, Device device);
  std::vector<ValueId> dim_values(const TensorTypeNode& t, const Span& span);
  // Whether all sizes follow from those that the function begins with.
  bool sizes_are_parameters(const TensorTypeNode& t) const;
  // A new value for a kernel's result of that type.
  Bound fresh(const Type& type, bool as_object, const Span& span, Device device);
  // The same for what is bound to the variable, of which results may be the function's.
  Bound results_of(const Node* v, const Type& type, bool as_object, const Span& span,
                   Device device);

  // ---- Devices ----

  // The dtype of a tensor of the type that is in an integer register, as scalars of the host are.
  static std::optional<DType> register_dtype(const Type& type, Device device) {
    return device == Device::cpu() ? scalar_dtype(type) : std::nullopt;
  }
  // Says of the objects that a variable is bound to where they are.
  void set_devices(const Var& v, const Bound& to);
  // The tensors of a kernel's operand on its device: constants are there, and so is what has been taken out of tuples.
  Bound on_device(const Bound& b, const Type& type, Device device);
  // The value with its constants where they are used; null: as it is.
  Bound constants_at(const Bound& b, const Type& type, Domain* where);
  // An operand of an expression other than a kernel's call, counted as Placement::wanted does.
  Bound operand(const Node& user, size_t index, const Expr& e);
  // The same as an object.
  ValueId object_operand(const Node& user, size_t index, const Expr& e);
  // The type with names for the sizes that only a run tells, which are read off the tensor.
  Type sizes_of(ValueId tensor, const Type& type);
  // The value of a call of device_copy.
  Bound device_copy(const LetNode& l, const CallNode& c, const FunctionNode& f);

  // ---- Steps ----

  void plan(const Expr& body, Target target);
  void finish(const Expr& result, Target target);
  void plan_if(const IfNode& i, Target target);
  void plan_match(const MatchNode& m, Target target);

  // Goes on to the next clause unless the object matches; binds the pattern's variables.
  void plan_pattern(const Pattern& pattern, ValueId object);
  bool tail_call(const LetNode& l);
  Bound value_of(const LetNode& l);
  Bound call(const LetNode& l, const CallNode& c);
  // Of a call of a function that only makes a closure: the function of that closure.
  std::optional<int32_t> closure_made_by(const CallNode& c);

  // What the kernel's operators assume about sizes is checked before it runs. Where sizes may be
  // broadcast, a scalar that says whether all of them are equal, so that none is.
  std::optional<ValueId> check_assumptions(const FunctionNode& f);
  // A scalar that says whether the run has these sizes; nullopt where one of them cannot be read here.
  std::optional<ValueId> has_sizes(const VariantSizes& sizes);
  // `type`: that of the result in sizes of this function.
  Bound call_kernel(const LetNode& l, const CallNode& c, const LoweredCall& lowered,
                    const Type& type);
  // The result of a kernel or update in the memory of a donated parameter.
  Bound write_over(const Donation& donation, const CallNode& c, const LoweredCall& lowered);
  // The results of a kernel that begins with copies of inputs, in the memory of those that are objects
  // without another reference, or in places of this function that the call reads as the last: a result
  // takes the place. nullopt where no result takes memory. A function that writes its results into outputs
  // takes no objects: those are its caller's. `inputs`: the call's.
  std::optional<Bound> write_over_inputs(const LetNode& l, const CallNode& c,
                                         const LoweredCall& lowered, std::vector<ValueId> inputs);
  // `args` are those of the operator.
  void add_update(ValueId result, const std::vector<Expr>& args, const Span& span);
  // An update of a value that is an object; nullopt when it is not.
  std::optional<Bound> update(const CallNode& c, const FunctionNode& f);
  Bound view(const LetNode& l, const CallNode& c, const FunctionNode& f);
  void invoke(ProgramPlanner::KernelCall kernel, std::vector<ValueId> inputs,
              std::vector<ValueId> outputs, const Span& span);

  // ---- Sizes that only a run tells ----

  // Reads off the arguments what the sizes are that are `?` in the parameters of the function.
  void read_sizes(const CallNode& c, const FunctionNode& f);
  // Reads the next size that has a name.
  Dim read_size(ValueId tensor, size_t axis);
  // The next name, for a size that is in a register.
  Dim named_size(ValueId size);
  // Calls a kernel whose result has data-dependent sizes.
  Bound call_sized_by_data(const CallNode& c, const LoweredCall& lowered);
  // The same where only the sizes are computed.
  Bound view_sized_by_data(const CallNode& c, const LoweredCall& lowered);

  // ---- Loops ----

  // Moves parameters that are scalars into registers and starts the loop. Tuples that the loop only
  // takes apart and makes anew are not made: their fields are in registers, too.
  void begin_loop();
  void find_whole();
  // Whether the parameter's fields are in registers of the loop.
  bool taken_apart(const Var& param) const;
  // Gives the parameters their next values and goes to the start.
  void next_iteration(const CallNode& c);

  ProgramPlanner& program_;
  Function f_;
  std::vector<Var> captured_;
  Var self_;
  int32_t index_;
  StepWriter w_;

  bool writes_outputs_;
  VarSet escapes_;
  // The numbers of the results of kernels that escape by themselves.
  std::unordered_map<const Node*, std::unordered_set<size_t>> escaping_parts_;
  Joins joins_;
  Donations donations_;
  Claims claimed_;

  const LetNode* now_ = nullptr;  // what is being planned
  std::unordered_map<const Node*, Bound> bound_;
  std::vector<ValueId> outputs_;
  std::unordered_map<const Node*, ValueId> dims_;
  // Those that are known when the function begins.
  std::unordered_set<const Node*> entry_dims_;
  // Values of open sizes may be in places of the function (plan/places.h).
  bool has_places_ = false;
  // What updates read: tensors of their very size.
  VarSet updated_;
  // How often variables are read: a branch whose value is unused does not compute it.
  std::unordered_map<const Node*, int> reads_;
  // Variables whose values alone are in their places.
  VarSet owns_place_;
  // Variables of which more is done than to take fields, to return them, and to give them to the next
  // iteration.
  VarSet whole_;
  size_t sizes_read_ = 0;  // for the kernel that is being called
  // Scalars that were loaded on the way here, and the order they came in.
  std::unordered_map<const Node*, ValueId> scalars_;
  std::vector<const Node*> scalar_trail_;
  bool in_loop_ = false;
  // Tensors made in the loop: their memory is used in turns.
  std::unordered_set<ValueId> loop_tensors_;
  // The buffers of joined values, by their variables.
  std::unordered_map<const Node*, int32_t> joined_buffers_;
  // What is still to be planned, last first; keeps nested branches off the C stack.
  std::vector<std::function<void()>> tasks_;
};

}  // namespace relay::plan
