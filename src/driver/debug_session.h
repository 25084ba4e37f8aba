// The engine of a debugger: a run that stops behind calls of operators or kernels, and goes on or back as commands say.
//
//   DebugSession session(mod, watch_evaluator(mod, {}, "net.relay"), "main", arguments, {});
//   session.interact(read_line, write_text);
//
// The session begins before the first call. A stop is behind a call: its operands and its result can be looked at. To go
// back, the run is repeated up to an earlier call: programs are deterministic.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/watched_run.h"

namespace relay {

struct DebugOptions {
  std::string source_name;  // as of the watched program
  // Writes tensors by their names to a file, for `save`; null: the command is refused.
  std::function<void(const std::string& path,
                     const std::vector<std::pair<std::string, Tensor>>& tensors)>
      save;
};

struct DebugCommand {
  std::string_view name;       // "step"
  std::string_view arguments;  // "[N]"
  std::string_view doc;        // a sentence without its full stop
};

class DebugSession {
 public:
  // The next command; nullopt at the end of the input, which ends the session.
  using Read = std::function<std::optional<std::string>()>;
  using Write = std::function<void(const std::string& text)>;

  // `mod` is the program as it was read: its operators, places and functions are what can be named.
  DebugSession(Module mod, std::unique_ptr<WatchedProgram> program, std::string function,
               std::vector<runtime::Value> args, DebugOptions options);
  ~DebugSession();

  // Reads and obeys commands. Errors of a command, and of the run, are written. Returns whether there were none.
  bool interact(const Read& read, const Write& write);

  // The names that begin with `word`: commands, operators, nodes, functions. At most `most`.
  std::vector<std::string> completions(std::string_view word, size_t most = 200) const;
  static const std::vector<DebugCommand>& commands();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace relay
