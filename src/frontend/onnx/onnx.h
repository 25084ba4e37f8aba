// ONNX models as Relay programs.
//
//   ImportedModel m = import_onnx_file("resnet50.onnx", {});
//   m.module->find("main");   // fn (%data: Tensor[(1, 3, 224, 224), float32]) -> ...
//
// @main takes the model's inputs in their order and gives its output (a tuple when there are
// several). A dimension that the model leaves open becomes a named dimension of @main. Every
// expression carries the model's node as its span. Types are deduced while the program is built.
//
// Models are hostile input: everything that a file says is checked before it is used, and what a
// model may cost is bounded by OnnxOptions. All errors are UserErrors with codes E05xx (or the
// E02xx of an operator that does not accept its inputs); independent ones are reported together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/evaluate_constants.h"
#include "base/diagnostic.h"
#include "ir/module.h"

namespace relay {

struct OnnxOptions {
  // Shapes of inputs by name; -1 keeps a dimension symbolic. A size given for one input is used
  // for every input that names the same dimension.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Element types of inputs that differ from the model's.
  std::map<std::string, DType> dtypes;
  // Sizes of named dimensions. One that the model does not name is called after its input and axis, as in the type of
  // @main: x_0.
  std::map<std::string, int64_t> dims;
  // Inputs whose shape holds only where the model does not say that they have rank 0.
  std::set<std::string> numbers;
  // Inputs that become constants of the program, with their values.
  std::map<std::string, Tensor> frozen;
  // Inputs that the program is specialised for by their values. They stay parameters of @main, and a run in which
  // one has another value ends in E0616.
  std::map<std::string, Tensor> specialised;
  // The shapes of the tensors in a sequence or an optional; nullopt for an optional without a value. The parameter
  // is a tuple of so many tensors.
  std::map<std::string, std::optional<std::vector<std::vector<int64_t>>>> elements;
  // The version of the default operator set that nodes are read by, in place of the model's; 0: that.
  int64_t opset = 0;
  // Weights become constants; otherwise they become further parameters of @main, in `params`.
  bool freeze_params = true;
  // Computes nodes whose inputs are small and known; without it only operators that sizes are
  // usually computed with are.
  ConstantEvaluator evaluate;

  // Bounds on what one model may cost.
  int64_t max_file_bytes = int64_t{64} << 30;
  int64_t max_nodes = 2'000'000;                    // after inlining and unrolling
  int64_t max_constant_bytes = int64_t{256} << 20;  // made by the importer, not read
  int64_t max_unrolled_steps = 4096;                // of a loop that is written out
  double max_seconds = 60;
};

struct ImportedModel {
  Module module;
  // With freeze_params = false, the weights by parameter name; empty otherwise.
  std::map<std::string, Tensor> params;
  // The model's own names, in the order of @main's parameters and results.
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  // The version of the default operator set.
  int64_t opset = 0;
  std::string producer;
  // A hash of the file's bytes, 16 hexadecimal digits.
  std::string source_hash;
};

// E0510 for a size that is given for a dimension which is none of the open ones of `where`.
Diagnostic no_such_dimension(const std::string& where, const std::string& name,
                             const std::vector<std::string_view>& open);

// An input by which a program has to be specialised, because it decides how many dimensions something has.
struct DecidingInput {
  enum By {
    Sizes,     // its shape: OnnxOptions::shapes
    Elements,  // of a sequence or an optional: OnnxOptions::elements
    Value,     // OnnxOptions::specialised
  };
  std::string name;
  By by;
};

// An input as the model declares it; no type where the model declares none.
struct ModelInput {
  std::string name;
  Type type;
};

// E0505 where inputs are known whose sizes or values decide what a run alone knows.
class RankIsOpen : public UserError {
 public:
  RankIsOpen(std::vector<Diagnostic> found, std::vector<DecidingInput> deciding,
             std::vector<ModelInput> inputs)
      : UserError(std::move(found)), deciding_(std::move(deciding)), inputs_(std::move(inputs)) {}
  const std::vector<DecidingInput>& deciding() const { return deciding_; }
  // All inputs of the model, in order.
  const std::vector<ModelInput>& inputs() const { return inputs_; }

 private:
  std::vector<DecidingInput> deciding_;
  std::vector<ModelInput> inputs_;
};

// Reads a model file. Weights stay in the file and are mapped where their alignment allows. Weights
// in other files ("external data") are read from the folder of the model and nowhere else.
ImportedModel import_onnx_file(const std::string& path, const OnnxOptions& options = {});

// Reads a model from memory, which is not kept. `source_name` appears in messages; `folder` is
// where external data may lie, empty for nowhere.
ImportedModel import_onnx_bytes(std::string_view data, const std::string& source_name,
                                const std::string& folder = {}, const OnnxOptions& options = {});

// One operator that can be imported, from that version of its domain's operator set on.
struct OnnxOperator {
  std::string_view domain;  // "" is the default domain, ai.onnx
  std::string_view name;
  int since_version;
};
// All of them, sorted by domain, name and version.
std::vector<OnnxOperator> supported_onnx_operators();

}  // namespace relay
