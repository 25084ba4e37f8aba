// The inputs of a run: what --input says, and invented values.
//
//   --input x=FILE.npy      the array; x=FILE.npz: the array of that name, or the only one
//   --input FILE.npz        every array, by its name
//   --input x=photo.jpg     an image, with options behind it (image_input.h)
//   --input n=5  x=-2.5     a scalar;  x=[1,2,3]  x=[[1,2],[3,4]]  a list, as a tensor
//   --input x=1,3,224,224   a shape, or x=1x3x224x224, with :DTYPE behind it where a model leaves that open
//
// One whole number is the value of an input of rank 0, and the size of an input of rank 1.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/size_hints.h"
#include "cli/command.h"
#include "cli/image_input.h"
#include "driver/model.h"
#include "runtime/module.h"

namespace relay::cli {

// The --input and --dim options of a command line, by what they give.
struct Inputs {
  ModelOptions shapes;  // shapes and dtypes; single whole numbers are among them
  std::map<std::string, std::string>
      literals;  // scalars and lists, as written; single whole numbers again
  std::map<std::string, runtime::Tensor> arrays;  // from files
  std::map<std::string, ImageInput> images;
  std::optional<ModelMetadata> metadata;  // of the model, where images are prepared by it
  std::map<std::string, int64_t> dims;    // sizes of named dimensions in invented values
  std::vector<SizeHint> ranges;           // of the same
  // Dimensions of which several sizes are asked for.
  std::map<std::string, std::vector<int64_t>> lists;

  // One for each combination of sizes, with one size for each dimension.
  std::vector<Inputs> single() const;
  // UserError E0702 where several sizes of a dimension are asked for.
  void refuse_lists() const;
};

// What a model file says about its use; nullopt where it says nothing, and for a file that is compiled.
std::optional<ModelMetadata> metadata_of_file(const std::string& path);

// The options of a command that runs programs, for its table.
struct InputFlags {
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  uint64_t seed = 0;

  std::vector<Option> table();
  // For a run of this model, whose metadata says how images are prepared. UserError E0702 for an option that cannot be
  // read, or that speaks of an input that another spoke of; E0701 for files.
  Inputs read(const std::string& model) const;
};

// The --dim options NAME=SIZE of a command line, into `options`; those that are ranges are returned. UserError E0702 for
// one that is neither, and for a second size of a dimension.
std::vector<std::string> read_dim_options(const std::vector<std::string>& texts,
                                          ModelOptions& options);

// The --freeze options of a command line, into `options`. UserError E0702 for one that cannot be read, or that names an
// input again.
void read_freeze_options(const std::vector<std::string>& texts, ModelOptions& options);

// The --specialise options of a command line: the values by the name of their input. UserError E0702 for one that cannot
// be read, or that names an input again.
std::map<std::string, std::vector<runtime::Tensor>> read_specialise_options(
    const std::vector<std::string>& texts);
// The same for commands that make one program, into the values of `options`: E0702 for several values of an input.
void read_one_specialisation(const std::vector<std::string>& texts, ModelOptions& options);

// The values that are given, for a model whose ranks may depend on them: numbers as int64 or float64.
std::map<std::string, runtime::Tensor> given_values(const Inputs& inputs);

// Checks what --input says of shapes and dtypes against the parameters of a compiled function. UserError E0510 for a
// name that does not exist, and for a rank, size or dtype that the parameter does not have.
void check_shapes(const runtime::Function& function, const ModelOptions& given);

// What a run gets, and what of it was invented.
struct Arguments {
  std::vector<runtime::Value> values;
  size_t invented = 0;
  // Open dimensions whose sizes no given value or shape says, by their names or as "dimension 0 of x".
  std::vector<std::pair<std::string, int64_t>> sizes;

  // Lines that say what was invented, each behind `margin`; none when nothing was.
  std::string notes(uint64_t seed, const std::string& margin) const;
};

// One value for each parameter: what is given for it, else random numbers from `seed`, the same on every machine: floats
// normal with deviation one, integers and bools 0 or 1: these are inside of every table that they may choose from. Scalars and lists take the parameter's dtype,
// which must hold what is written; arrays are converted where the parameter's dtype holds every value of theirs, and are
// otherwise left for the run to refuse. An open dimension of an invented value has the size that given values and
// shapes say, else that of --dim, else 1.
// UserError E0510 for a name that is not a parameter, E0702 for a literal that the parameter's dtype does not hold, for a
// --dim that names no open dimension, and for parameters that no value can be invented for.
Arguments make_arguments(const runtime::Function& function, const Inputs& inputs, uint64_t seed);

// The same for a function of a compiled program. Where some of its inputs are prepacked (ir/prepack.h), what is given for
// those goes through the function for that, which is run here, and the results are values of the others.
Arguments make_arguments(const runtime::Module& module, const std::string& function,
                         const Inputs& inputs, uint64_t seed);

// A short hash of dtype, shape and bytes, 16 hexadecimal digits.
std::string digest(const runtime::Tensor& tensor);

// "min -1.2, max 3.4, mean 0.1" of a numeric tensor, with the count of NaNs if there are any.
std::string summary(const runtime::Tensor& tensor);

}  // namespace relay::cli
