// The program that a front end builds: the signature of @main, what is known of its values, errors and budgets.
//
//   ProgramBuilder program(SourceFile::make("net.toy"), options);
//   program.declare_inputs(inputs);                  // parameters of @main, in main_scope()
//   for each operator of the model:
//     program.check_budget(span);
//     Operands op(program, "add", inputs, span);     // operands.h: builders, and errors with their place
//     program.define(program.main_scope(), name, value_of(op.add(op.in(0), op.in(1))), span);
//   ImportedModel m = program.finish({{"y", program.main_scope().find("y")}});
//
// A front end derives from it what its format has beside: versions, functions, attributes.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/known_values.h"
#include "frontend/common/import_options.h"
#include "frontend/common/model_value.h"
#include "frontend/common/open_rank.h"
#include "frontend/common/unique_names.h"

namespace relay::frontend {

// Subgraphs and calls of a model's functions inside each other; each level costs C++ stack.
inline constexpr int kMaxNesting = 20;

// An input as a model declares it.
struct DeclaredInput {
  // A dimension: a size, or open. An open one may have a name, which stands for the same size everywhere.
  struct Size {
    std::optional<int64_t> size = {};
    std::string name = {};
  };
  // An input that is not a tensor. Its type is null where the model leaves something out: `missing` says what, and the
  // shapes of what it holds (ImportOptions::elements) decide it where its tensors have the dtype `element`.
  struct Structure {
    Type type = {};
    std::string missing = {};
    std::optional<DType> element = {};
    bool is_list = false;
  };
  std::string name = {};
  std::optional<DType> dtype = {};              // nullopt for an element type that Relay lacks
  std::string dtype_name = {};                  // what the format calls it, in messages
  std::optional<std::vector<Size>> shape = {};  // nullopt where the model does not say
  std::optional<Structure> structure = {};      // of an input that is not a tensor
  std::string unusable = {};  // what an input is that can be no parameter: "a sparse tensor"
};

class ProgramBuilder {
 public:
  ProgramBuilder(std::shared_ptr<const SourceFile> file, const ImportOptions& options);
  virtual ~ProgramBuilder();
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;

  const ImportOptions& options() const { return options_; }
  // A place in the model by its name: "node conv1 (Conv)".
  Span place(std::string label) const { return Span::place(file_, std::move(label)); }

  // ---- Errors and budgets
  void report(Diagnostic diagnostic) { diagnostics_.add(std::move(diagnostic)); }
  void report(const UserError& error);
  const Diagnostics& diagnostics() const { return diagnostics_; }
  // Counts an operator; E0506 when there are too many, or when the import takes too long.
  void check_budget(const Span& span);
  // Counts constants that the front end makes; E0506 when they exceed their bound.
  void charge_bytes(int64_t bytes, const Span& span);
  // Leaves what this import has not used, for another import of the same file.
  void spend(ImportOptions& budget) const;
  // Whether something can be imported: what it reports or throws is forgotten when it cannot, but
  // not that a limit was reached.
  bool attempt(const std::function<void()>& import);
  // Whether a limit was reached, which ends the import.
  bool exceeded() const { return exceeded_; }
  // Runs a part of the model one level deeper; E0506 below kMaxNesting levels. The part may throw.
  void nested(const Span& span, const std::function<void()>& part);
  // The same, and what the part reports apart from what was reported before.
  std::vector<Diagnostic> apart(const std::function<void()>& part);

  // ---- Names and values
  Scope& main_scope() { return main_scope_; }
  // Gives a name its value; reports E0507 for a name that has one.
  void define(Scope& scope, const std::string& name, ValuePtr value, const Span& span);
  // The expression of a value. A weight that is a parameter becomes one here.
  Expr expr_of(const ValuePtr& v);
  // What is known of the elements of an expression; null for nothing.
  const KnownValue* known_of(const Expr& e) { return known_values_.of(e); }
  // The value itself, or, where all its elements are known, these alone.
  ValuePtr with_known(ValuePtr v);
  // Whether a variable is a weight that is a parameter of @main.
  bool is_weight(const VarNode& v) const { return result_.params.contains(v.name_hint); }
  // A parameter and an axis that have a named dimension as their size; null for no such name.
  const std::pair<Var, int64_t>* source_of(const TypeVar& size) const;
  // From here on the program has the functions of lists.h.
  void use_list_library() { uses_lists_ = true; }

  // ---- The signature
  // Declares the parameters of @main in main_scope(), with the shapes, sizes and values of the options. An input whose
  // name is defined already - a weight with a default - is left out. Errors are reported.
  void declare_inputs(std::vector<DeclaredInput> inputs);
  // Notes the inputs that values, or that an expression, are computed from, if more can be said of them.
  void note_deciding(const Values& values);
  void note_deciding(const Expr& e);
  // Reports why an operator is not imported, with the types of its inputs as far as they are known, behind their names
  // where `name_of` gives them; notes what decides.
  void report_operator(const UserError& e, const Span& span, const Values& inputs,
                       const std::function<std::string(size_t)>& name_of = nullptr);
  // E0505 for branches of different ranks; notes what decides.
  Diagnostic open_branches(const BranchesDiffer& branches, const Span& span);
  // Throws what was reported, if anything: as RankIsOpen where specialising may help.
  void throw_if_errors() const;
  // The module, with what `result` was given in the meantime. The outputs are the results of @main, by name; null for
  // what nothing computes, which is reported. Throws what was reported.
  ImportedModel finish(const std::vector<std::pair<std::string, ValuePtr>>& outputs);
  ImportedModel& result() { return result_; }

 private:
  [[noreturn]] void exceed(const Span& span, std::string message, std::string expected);
  // The elements as an expression: sizes are computed from the shapes of @main's parameters.
  Expr known_expr(const KnownValue& known, const Span& span);
  Expr dim_expr(const Dim& d, const Span& span);

  // An identifier that no parameter and no named dimension has.
  std::string unique_name(const std::string& name);
  void check_named_inputs();
  void use_sizes_by_name();
  void declare(const DeclaredInput& input, const Span& span);
  Dim dim_of(const DeclaredInput& input, size_t axis, const Span& span);
  std::vector<Dim> shape_of(const DeclaredInput& input, const Span& span);
  // The value in the input's type; E0510 when it does not fit. Names of its sizes hold for other inputs.
  Tensor value_for(const DeclaredInput& input, const Tensor& given, const Span& span);
  void specialise(const DeclaredInput& input, const Tensor& given, const Span& span);
  // Declares a list or an optional of which the options say what it holds; false where they do not.
  bool declare_elements(const DeclaredInput& input, const Span& span);
  void declare_structure(const DeclaredInput& input, const Span& span);
  void add_param(const DeclaredInput& input, const Var& v, ValuePtr value, const Span& span);
  // The body behind tests of the inputs that the program is specialised for.
  Expr with_checks(Expr body);
  // Weights that only decided sizes and axes are no parameters.
  void drop_unused_weights(const Expr& body);

  std::shared_ptr<const SourceFile> file_;
  ImportOptions options_;
  Diagnostics diagnostics_;
  int nesting_ = 0;
  bool exceeded_ = false;
  bool uses_lists_ = false;
  std::vector<DeclaredInput> declared_;
  std::vector<DecidingInput> deciding_;
  // Parameters that the program is specialised for, with their values.
  std::vector<std::pair<Var, Tensor>> specialised_;
  int64_t nodes_ = 0;
  int64_t constant_bytes_ = 0;
  std::chrono::steady_clock::time_point deadline_;

  // The signature of @main.
  Scope main_scope_;
  std::vector<Var> params_;
  std::vector<TypeVar> type_params_;
  std::map<std::string, Dim> dims_by_name_;
  // Where the size of a named dimension is found at run time: a parameter and an axis.
  std::unordered_map<const Node*, std::pair<Var, int64_t>> dim_sources_;
  UniqueNames names_;
  KnownValues known_values_;
  ImportedModel result_;
};

}  // namespace relay::frontend
