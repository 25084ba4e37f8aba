// The subcommands of `relay`. Each adds itself to the command tree and returns what runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

  void add_to(CLI::App& app);
  CompileOptions options() const;
};

// Adds the subcommand to the tree; its work is the callback of the subcommand. Errors are thrown.
void add_compile(CLI::App& app);
void add_run(CLI::App& app);
void add_bench(CLI::App& app);
void add_explain(CLI::App& app);
void add_show(CLI::App& app);
void add_check(CLI::App& app);
void add_opt(CLI::App& app);
void add_fmt(CLI::App& app);
void add_cache(CLI::App& app);
// `completion` and `man`, made from the tree itself.
void add_self_description(CLI::App& app);

// True when the file is a compiled artifact (an ELF file).
bool is_artifact(const std::string& path);

// A model compiled, or an artifact loaded, whichever the file is.
struct Ready {
  runtime::Module module;
  Module source;                   // the program as written; null for an artifact
  std::string target;              // the target's description
  std::vector<std::string> bound;  // named dimensions that were set to 1
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

// Writes `text` to `path`, or to stdout when the path is empty or "-". UserError E0703 when the
// file exists and `force` is false.
void write_text(const std::string& path, const std::string& text, bool force);
void refuse_existing(const std::string& path, bool force);

}  // namespace relay::cli
