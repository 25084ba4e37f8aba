// The row of a front end: how the driver finds it for a file, and what it does with one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/common/import_options.h"
#include "frontend/common/model_metadata.h"

namespace relay {

// Values of weights by the names that a model has for them.
struct WeightFile {
  std::string name;  // of the file, for messages
  std::map<std::string, Tensor> tensors;
};

// A model to import: the file of that path, or bytes, for which the path is the name in messages.
struct ModelSource {
  std::string path;
  std::optional<std::string_view> bytes = {};
  // Where the further files may lie that bytes name; empty for nowhere. Those of a file lie in its own folder.
  std::string folder = {};
  // In place of the values that the model has (given_weights.h); for front ends that take weights.
  std::optional<WeightFile> weights = {};
};

// What a model file is made of, whether or not it can be imported.
struct ModelSummary {
  struct Operator {
    std::string domain;  // the set of operators that it is in
    std::string name;
    int64_t version = 0;  // the version of its set that its nodes are written in
    int64_t nodes = 0;    // in the graph, its subgraphs and the model's own functions
    bool imported = false;
  };
  struct OpenSize {
    std::string name;                                   // "" where the model gives none
    std::vector<std::pair<std::string, int64_t>> axes;  // input and axis
  };
  std::string producer;
  std::vector<std::pair<std::string, int64_t>> versions;  // of the sets of operators
  std::vector<Operator> operators;                        // sorted by domain and name
  std::vector<OpenSize> open_sizes;
  int64_t nodes = 0;
  int64_t parameters = 0;  // elements of weights
  int64_t parameter_bytes = 0;
  std::optional<ModelMetadata> metadata;
};

// An operator that a front end imports, from that version of its set on.
struct SupportedOperator {
  std::string domain;
  std::string name;
  int64_t since = 0;
};

// An option that only one front end has (ImportOptions::own). A value of another type than `standard` is refused.
struct FrontEndOption {
  std::string name;
  AttrValue standard;  // what holds where the option is not given
  std::string doc;     // one sentence
};

struct FrontEnd {
  std::string name;   // "onnx"
  std::string title;  // "ONNX model", in messages and help
  std::vector<std::string>
      endings;  // of file names, for files whose content no front end knows: ".onnx"
  // Whether the first bytes of a file, at most kSniffedBytes, are those of a model of this front end. It must not
  // claim what another front end may read, so it looks for what only its own format has.
  std::function<bool(std::string_view head)> sniff;
  // A report on a file without its import, for `relay check`; null where programs are reported on as Relay text is.
  std::function<ModelSummary(const std::string& path)> check = {};
  // The program of a model, typed. Errors are UserErrors; files are hostile input.
  std::function<ImportedModel(const ModelSource&, const ImportOptions&)> import;
  std::vector<FrontEndOption> options = {};
  // Whether `import` takes ModelSource::weights. Without it, weights are values of parameters of @main.
  bool takes_weights = false;
  // What is imported, sorted; null where there is no such list.
  std::function<std::vector<SupportedOperator>()> operators = {};
};

inline constexpr size_t kSniffedBytes = 4096;

}  // namespace relay
