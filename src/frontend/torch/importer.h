// From a graph of PyTorch to expressions: values by name, rows by operator.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/common/program_builder.h"
#include "frontend/torch/aliases.h"
#include "frontend/torch/schema.h"
#include "frontend/torch/sizes.h"
#include "frontend/torch/torch.h"

namespace relay::frontend::torch {

struct Row;

// An output of a node.
struct OutputRef {
  std::string name;  // empty for one that is None
  enum Kind { tensor, size, number, truth } kind = tensor;
  const TensorMeta* meta = nullptr;  // of a tensor
};

class Importer : public ProgramBuilder {
 public:
  Importer(std::shared_ptr<const SourceFile> file, const ImportOptions& options,
           const Program& program, const std::map<std::string, Tensor>& tensors);

  TorchProgram run();
  // Imports as far as possible and lists what is not.
  std::vector<TorchGap> gaps();

  // ---- What rows use
  // The value of that name; E0507 for none.
  TensorValue& value(const std::string& name, const Span& span);
  // What it is now.
  ValuePtr read(TensorValue& v);
  // Gives it other elements, which have its shape and dtype. E0504 for a value that cannot be written.
  void write(TensorValue& v, const Expr& elements, const Span& span);
  // The dimension of a symbol; `?` for a data-dependent one.
  const Symbols& symbols() const { return symbols_; }
  // Ends a run with E0616 in which a condition does not hold, before it gives a result.
  void require(const Expr& condition, const std::string& message, const Span& span);
  // The results of a part of the program for these values of its inputs.
  Values import_part(const Graph& graph, const Values& inputs, const Span& span);

 private:
  using Frame = std::unordered_map<std::string, TensorValue>;

  void declare();
  void declare_weight(const InputSpec& spec, const std::string& name, const TensorMeta& meta);
  void bind_symbols();
  void bind_integers();
  void import_nodes(const Graph& graph);
  void import_node(const Graph& graph, const Node& node, size_t index);
  // The views or values of the node's results, under their names.
  void convert(const Graph& graph, const Node& node, const std::vector<OutputRef>& outputs,
               const Span& span);
  void convert_in_place(class NodeContext& ctx, const Row& row,
                        const std::vector<OutputRef>& outputs);
  void convert_view(class NodeContext& ctx, const Row& row, bool copies,
                    const std::vector<OutputRef>& outputs);
  // The value as its metadata says; E0507 where it is something else.
  ValuePtr checked(class NodeContext& ctx, ValuePtr v, const OutputRef& output);
  // Reports why a node cannot be imported, or notes it as a gap.
  void fail(const Node& node, size_t index, const std::vector<OutputRef>& outputs, const Span& span,
            std::vector<Diagnostic> why);
  void define_fresh(const std::string& name, ValuePtr value, const Span& span);
  void collect_outputs(TorchProgram& out, std::vector<std::pair<std::string, ValuePtr>>& results);
  // The first of the values behind what has to hold.
  void put_behind_checks(Values& values, const Span& span);
  Span place_of(const Node& node) const;
  // The type of a value by its metadata; null where Relay has none.
  Type type_of(const TensorMeta& meta, const Span& span) const;

  const Program& torch_;
  const std::map<std::string, Tensor>& tensors_;
  Symbols symbols_;
  std::map<std::string, Dim> dims_;
  std::deque<Frame> frames_;
  std::vector<TorchInput> inputs_;
  std::unordered_map<const Storage*, std::string> input_of_;  // of storages that inputs have
  size_t outer_node_ = 0;     // of the node of the program that is imported
  int depth_ = 0;             // of the graph in others
  std::vector<Expr> checks_;  // of the graph that is imported
  bool surveys_ = false;
  std::vector<TorchGap> gaps_;
};

// The outputs of a node, those of lists one after the other.
std::vector<OutputRef> outputs_of(const Graph& graph, const Node& node);

}  // namespace relay::frontend::torch
