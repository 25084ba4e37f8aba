// The commands of `relay`, and what they share.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/artifact_versions.h"
#include "cli/command.h"
#include "driver/compile.h"
#include "driver/model.h"

namespace relay::cli {

// Options that commands share.
struct CompileFlags {
  std::string target = "native";
  int opt_level = 3;
  int threads = 0;
  std::vector<std::string> inputs;  // NAME=SHAPE[:DTYPE]
  std::vector<std::string> disabled;
  std::vector<std::string> frozen;  // INPUT=VALUE
  std::string params;               // a file of weights
  std::vector<std::string> prepacked;
  std::vector<std::string> donated;  // INPUT=OUTPUT
  std::vector<std::string> dims;     // NAME=SIZE or NAME=LOW..HIGH, of commands that only compile
  std::vector<std::string> likely;   // NAME=SIZE,SIZE
  std::vector<std::string> special;  // INPUT=VALUE,VALUE
  std::vector<std::string> guests;   // external code generators, of commands with `guest_table`
  bool verify = false;
  bool no_cache = false;
  bool no_native = false;
  bool quiet = false;

  // The options of every command that compiles, for its table; --input is the command's own.
  std::vector<Option> table();
  // Those among them that say what kernels are compiled for: also of commands without inputs.
  std::vector<Option> target_table();
  // --hot, of the commands whose kernels may have versions; and --dim, of those without inputs.
  std::vector<Option> size_table(bool with_dims);
  // --guest, of the commands whose program is what `with_inputs` gives.
  std::vector<Option> guest_table();
  // `sizes`: ranges that another option gives.
  CompileOptions options(std::vector<SizeHint> sizes = {}) const;
  // The program with inputs of @main prepacked, and donated to outputs, and divided for the
  // guests.
  Module with_inputs(const Module& mod) const;
  // The version of a compiled file that --target names; empty: the best for this machine.
  std::string version_of_artifact() const { return target == "native" ? "" : target; }
  // UserError E0702 for the options that say how to compile, when what is run is compiled already.
  static void refuse_for_artifact(const Given& given, const std::string& path);
  // UserError E0702 for guests, which do not apply to `what`.
  void refuse_guests(const std::string& what) const;
};

Command compile_command();
Command run_command();
Command bench_command();
Command explain_command();
Command show_command();
Command check_command();
Command opt_command();
Command fmt_command();
Command quantize_command();
Command cache_command();
Command plugins_command();
Command debug_command();
Command diff_command();
Command help_command();
Command repl_command();
Command doctor_command();
Command lsp_command();

// The names of all passes, Relay's and those of plug-ins.
std::vector<std::string> pass_names();

// Every command, with `completion` and `man`, which describe the others. They are made anew for each command line: the
// values of their options are in them.
std::vector<Command> all_commands();

// --params FILE of the commands that read a model, and the weights of that file: none without the option.
Option params_option(std::string& path);
std::optional<WeightFile> read_params(const std::string& path);

// True when the file is a compiled artifact (an ELF file).
bool is_artifact(const std::string& path);

// Of a target with several versions: all, or the one for this machine.
enum class Versions { one, all };

// A model compiled, or an artifact loaded, whichever the file is.
struct Ready {
  runtime::Module module;
  Module source;               // the program as written; null for an artifact
  std::string target;          // the target's description
  double compile_seconds = 0;  // 0 for an artifact
  double load_seconds = 0;
  std::vector<Phase> phases;  // of the compilation; none for an artifact, as are the passes
  std::vector<PassTiming::Row> passes;
  std::vector<SpecialisedInput> specialised;       // of the model, for the values of this run
  std::shared_ptr<const CompiledModule> compiled;  // null for an artifact
  // Where all versions are asked for; the module is one of them.
  std::vector<VersionReport> versions = {};
};
// `function` is the one to be called: what it does not need may be left out. Its inputs have the shapes that `shapes`
// gives; dimensions that neither these nor the program fix stay open, as in `relay compile`.
// `sizes` are the ranges of open dimensions of @main; UserError E0702 for those of a file that is compiled already.
Ready prepare(const std::string& path, const CompileFlags& flags, const std::string& function,
              const ModelOptions& shapes, const std::vector<SizeHint>& sizes = {},
              Versions versions = Versions::one);
// The model as `prepare` reads it. Shapes are put into the program where `function` is @main; those of other functions
// are for check_shapes.
LoadedModel read_model(const std::string& path, const std::string& function,
                       const ModelOptions& shapes);
double seconds_since(std::chrono::steady_clock::time_point start);
// Runs a function once more: into `outputs`, results of a former run, where the function writes its results into what
// its caller gives, and otherwise into memory of its own.
void run_again(const runtime::Module& module, const std::string& function,
               std::span<const runtime::Value> inputs, std::span<const Tensor> outputs,
               const runtime::RunOptions& options = {});
// "past -> present, in place", or why it is copied.
std::string donation_line(const std::string& input, const std::string& output, bool in_place,
                          const std::string& reason);
// How operations are counted, for every line that shows a rate beside what the machine can do.
std::string counting_of(const runtime::Module& module);

// Writes `text` to `path`, whole or not at all (runtime/temporary_file.h), or to stdout when the path is "-". UserError
// E0703 when the file exists and `force` is false, E0611 when it is not a regular file or cannot be written.
void write_text(const std::string& path, const std::string& text, bool force);
// Throws what `write_text` would throw about what is there already, before anything is done.
void refuse_existing(const std::string& path, bool force);

}  // namespace relay::cli
