// The commands of `relay`, and what they share.
#pragma once

#include <memory>
#include <string>
#include <vector>

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
  bool verify = false;
  bool no_cache = false;
  bool quiet = false;

  // The options of every command that compiles, for its table; --input is the command's own.
  std::vector<Option> table();
  CompileOptions options() const;
  // UserError E0702 for the options that say how to compile, when what is run is compiled already.
  static void refuse_for_artifact(const Given& given, const std::string& path);
};

Command compile_command();
Command run_command();
Command bench_command();
Command explain_command();
Command show_command();
Command check_command();
Command opt_command();
Command fmt_command();
Command cache_command();

// Every command, with `completion` and `man`, which describe the others. They are made anew for each command line: the
// values of their options are in them.
std::vector<Command> all_commands();

// True when the file is a compiled artifact (an ELF file).
bool is_artifact(const std::string& path);

// A model compiled, or an artifact loaded, whichever the file is.
struct Ready {
  runtime::Module module;
  Module source;                   // the program as written; null for an artifact
  std::string target;              // the target's description
  std::vector<std::string> bound;  // named dimensions that were set to 1
  ModelOptions inputs;             // shapes and dtypes that --input gives
  double compile_seconds = 0;      // 0 for an artifact
  double load_seconds = 0;
  std::vector<Phase> phases;  // of the compilation; none for an artifact, as are the passes
  std::vector<PassTiming::Row> passes;
};
// `function` is the one to be called: what it does not need may be left out.
Ready prepare(const std::string& path, const CompileFlags& flags, const std::string& function);
// The model as `prepare` reads it: shapes as the flags say, other named dimensions set to 1.
LoadedModel read_model(const std::string& path, const CompileFlags& flags,
                       std::vector<std::string>& bound);

// Writes `text` to `path`, whole or not at all (runtime/temporary_file.h), or to stdout when the path is "-". UserError
// E0703 when the file exists and `force` is false, E0611 when it is not a regular file or cannot be written.
void write_text(const std::string& path, const std::string& text, bool force);
// Throws what `write_text` would throw about what is there already, before anything is done.
void refuse_existing(const std::string& path, bool force);

}  // namespace relay::cli
