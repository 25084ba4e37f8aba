#include <csignal>
#include <cstdio>

#include "base/budget.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/limits.h"
#include "cli/line_reader.h"
#include "cli/terminal.h"
#include "driver/prompt_session.h"

namespace relay::cli {
namespace {

struct ReplArgs {
  std::vector<std::string> files;
  CompileFlags flags;
  LimitFlags limits;
};

volatile std::sig_atomic_t interrupted = 0;

bool is_interrupted() { return interrupted != 0; }

// Ctrl-C ends the entry that is computed, not the session.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_);
  }
  ~Interrupts() { sigaction(SIGINT, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  struct sigaction before_ {};
};

PromptOptions options_of(const ReplArgs& o) {
  PromptOptions out;
  out.compile = o.flags.options();
  out.fuel = o.limits.fuel;
  out.limits.cancelled = is_interrupted;
  if (!o.limits.time.empty()) {
    out.limits.seconds = out.time_limit = parse_seconds(o.limits.time, "--time-limit");
  }
  if (!o.limits.memory.empty()) {
    out.limits.memory_bytes = out.memory_limit = parse_bytes(o.limits.memory, "--memory-limit");
  }
  return out;
}

// False when the entry was refused.
bool answer(PromptSession& session, const std::string& entry) {
  interrupted = 0;
  try {
    std::string text = session.enter(entry);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return true;
  } catch (const Error& e) {
    std::fflush(stdout);
    report_error(e);
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
  }
  return false;
}

int run_repl(const ReplArgs& o) {
  PromptSession session(options_of(o));
  Interrupts interrupts;
  bool good = true;
  for (const std::string& file : o.files) {
    std::string text = session.enter(":load " + file);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  LineReader reader(history_file("history"),
                    [&](std::string_view word) { return session.completions(word); });
  if (reader.is_terminal()) {
    std::printf(
        "Relay " RELAY_VERSION "; :help lists the commands, :quit or Ctrl-D ends the session.\n%s",
        reader.edits() ? "" : "Install libedit2 to edit lines, for a history and completion.\n");
  }
  std::string entry;
  while (!session.is_over()) {
    std::string prompt = entry.empty() ? "relay> " : "  ...> ";
    std::optional<std::string> line = reader.read(prompt);
    if (!line && interrupted != 0) {
      interrupted = 0;
      entry.clear();
      std::printf("\n");
      continue;
    }
    if (!line) {
      if (!entry.empty()) good = answer(session, entry) && good;
      if (reader.is_terminal()) std::printf("\n");
      break;
    }
    // An empty line ends an entry whatever is open in it.
    bool ends = line->find_first_not_of(" \t") == line->npos;
    if (entry.empty() && ends) continue;
    if (!ends) entry += (entry.empty() ? "" : "\n") + *line;
    if (!ends && PromptSession::is_open(entry)) continue;
    reader.remember(entry);
    good = answer(session, entry) && good;
    entry.clear();
  }
  return good || reader.is_terminal() ? 0 : 1;
}

}  // namespace

Command repl_command() {
  auto o = std::make_shared<ReplArgs>();
  Command out{"repl",
              "Read definitions, expressions and commands from a prompt or a pipe, and answer each",
              {argument("FILE", o->files, "Relay text or models to load first")},
              [o](const Given&) { return run_repl(*o); }};
  return std::move(out.add(o->flags.target_table()).add(o->limits.table_of_run()));
}

}  // namespace relay::cli
