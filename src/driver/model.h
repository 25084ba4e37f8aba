// Reading programs: ONNX models and `.relay` text by one name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  std::string format;       // "onnx" or "relay"
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
  // Inputs of an ONNX model that become constants of the program.
  std::map<std::string, Tensor> frozen;
  // Values of inputs that a run has. Where the number of dimensions of something depends on one, the program of an
  // ONNX model is specialised for its shape, or, where that says too little, for the value.
  std::map<std::string, Tensor> values;
};

// By what the file holds, not by its name: text that starts like a Relay program, else ONNX. Throws
// UserError E0701 for a file that cannot be read, and the front end's errors.
LoadedModel load_model(const std::string& path, const ModelOptions& options = {});

// Whether load_model would read the file as Relay text.
bool is_relay_text(const std::string& path);

// The text of a file. UserError E0701 for a file that cannot be read.
std::shared_ptr<const SourceFile> read_source(const std::string& path);
// A module from its text, typed. One UserError reports the mistakes of the text, and the type
// errors of the definitions that do not depend on these.
Module read_module(const std::shared_ptr<const SourceFile>& source);

// Parses "NAME=1,3,224,224" or "NAME=1x3x224x224:float32" into the options; UserError E0702 for what is not a shape, and
// for an input that has one already.
void parse_input_option(const std::string& text, ModelOptions& options);

}  // namespace relay
