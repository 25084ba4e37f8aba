// What every front end takes and gives: options, bounds, the imported program, and the inputs that decide its ranks.
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

struct ImportOptions {
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
  // The shapes of the tensors in a list or an optional; nullopt for an optional without a value. The parameter
  // is a tuple of so many tensors.
  std::map<std::string, std::optional<std::vector<std::vector<int64_t>>>> elements;
  // Options of the front end's own, by the names in its row (frontend/frontend.h).
  Dict own;
  // Weights become constants; otherwise they become further parameters of @main, in `params`.
  bool freeze_params = true;
  // Computes operators whose inputs are small and known; without it only operators that sizes are
  // usually computed with are.
  ConstantEvaluator evaluate;

  // Bounds on what one model may cost.
  int64_t max_file_bytes = int64_t{64} << 30;
  int64_t max_nodes = 2'000'000;                    // after inlining and unrolling
  int64_t max_constant_bytes = int64_t{256} << 20;  // made by the front end, not read
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
  // The version of the format's operators that the model is written in; 0 where it has none.
  int64_t version = 0;
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
    Sizes,     // its shape: ImportOptions::shapes
    Elements,  // of a list or an optional: ImportOptions::elements
    Value,     // ImportOptions::specialised
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

}  // namespace relay
