// Reading programs: models of every front end, and Relay text, by one name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "ir/module.h"

namespace relay {

// An input that a program is specialised for: by its shape, or by its value.
struct SpecialisedInput {
  std::string name;
  std::vector<int64_t> shape;
  std::optional<std::vector<int64_t>> value;  // its elements

  friend bool operator==(const SpecialisedInput&, const SpecialisedInput&) = default;
  // "shape (2,)" or "value [0, 1]".
  std::string text() const;
};

struct LoadedModel {
  Module module;  // typed
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::string source_name;
  std::string source_hash;  // 16 hexadecimal digits
  std::string format;       // the name of the front end
  std::vector<SpecialisedInput> specialised;
};

struct ModelOptions {
  // Shapes and dtypes of inputs by name; -1 keeps a dimension symbolic.
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, DType> dtypes;
  // Sizes of named dimensions.
  std::map<std::string, int64_t> dims;
  // Inputs whose shape is written as one number and holds for rank 1 only: for an input of rank 0 the number is its
  // value, which the reader of the options has.
  std::set<std::string> numbers;
  // Inputs that become constants of the program.
  std::map<std::string, Tensor> frozen;
  // Values of weights, by the model's names for them; without names of its own for weights, by those of the parameters
  // of @main, which become constants.
  std::optional<WeightFile> weights;
  // Values of inputs that a run has. Where the number of dimensions of something depends on one, the program is
  // specialised for its shape, or, where that says too little, for the value.
  std::map<std::string, Tensor> values;
  // The name of the front end; empty: the one that recognises the file.
  std::string front_end;
};

// The front end that recognises a file by what it holds, else by the ending of its name. Throws UserError E0701 for a
// file that cannot be read, and those of front_end_for.
const FrontEnd& front_end_of(const std::string& path);

// "ONNX model, Relay text or compiled .so": what can be given as a model, and what `also` names.
std::string model_kinds(std::string_view also = {});

// The program of a file. Throws the errors of front_end_of and of the front end.
LoadedModel load_model(const std::string& path, const ModelOptions& options = {});

// Parses "NAME=1,3,224,224" or "NAME=1x3x224x224:float32" into the options; UserError E0702 for what is not a shape, and
// for an input that has one already.
void parse_input_option(const std::string& text, ModelOptions& options);

}  // namespace relay
