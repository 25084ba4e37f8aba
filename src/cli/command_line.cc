#include "cli/command_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/limits.h"
#include "cli/plugins.h"
#include "cli/python.h"
#include "cli/self_description.h"
#include "cli/terminal.h"

namespace relay::cli {
namespace {

int print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  return {
      "completion",
      "Print a completion script for a shell",
      {argument("SHELL", *shell, "bash, zsh or fish").required().choices({"bash", "zsh", "fish"})},
      [shell](const Given&) { return print(completion_script(all_commands(), *shell)); }};
}

Command man_command() {
  return {"man", "Print the manual page (roff)", {}, [](const Given&) {
            return print(manual_page(all_commands()));
          }};
}

UsageError usage_error(std::string message, std::string help) {
  return UsageError(Diagnostic(codes::driver_usage, {}, std::move(message)).help(std::move(help)));
}

bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& w : words) {
    if (w == "--") return false;
    if (w == "--help" || w == "-h") return true;
  }
  return false;
}

std::string help_of_all(const std::vector<Command>& commands) {
  std::string out = overview(commands, text_width());
  for (const Command& c : commands) out += "\n" + help_text("relay " + c.name, c, text_width());
  return out;
}

int dispatch(std::span<const std::string> words, Python python) {
  std::vector<Command> commands = all_commands();
  if (words.empty()) throw usage_error("no command is given", "relay --help lists the commands");
  const std::string& name = words[0];
  std::span<const std::string> rest = words.subspan(1);
  if (name == "--help" || name == "-h") return print(overview(commands, text_width()));
  if (name == "--help-all") return print(help_of_all(commands));
  if (name == "--version") return print(std::string("relay ") + RELAY_VERSION + "\n");
  std::vector<std::string_view> known{"--help", "--help-all", "--version"};
  for (const Command& c : commands) {
    known.push_back(c.name);
    if (c.name != name) continue;
    std::string program = "relay " + name;
    if (asks_for_help(rest)) return print(help_text(program, c, text_width()));
    const Given given = parse_words(program, c, rest);
    if (python == Python::absent && given.has("--guest")) {
      exec_python("relay._guests", "external code generators are written in Python",
                  {words.begin(), words.end()});
    }
    return c.run(given);
  }
  std::string shown = "'" + escape_for_terminal(name, 100) + "'";
  if (name.size() > 1 && name[0] == '-') {
    throw usage_error("option " + shown + " stands before the command",
                      near_names(name, known, "the command comes first: relay COMMAND [OPTIONS]"));
  }
  throw usage_error("relay has no command " + shown,
                    near_names(name, known, "relay --help lists the commands"));
}

// What explains the codes of the errors; a message about the words of the command line explains itself.
std::string hint(std::span<const Diagnostic> problems) {
  std::vector<std::string_view> found;
  for (const Diagnostic& d : problems) {
    if (d.severity != Severity::error || d.code.empty() || d.code == codes::driver_usage.id)
      continue;
    if (std::ranges::find(found, d.code) == found.end()) found.push_back(d.code);
  }
  if (found.empty()) return "";
  std::string out = "Explained by: relay help " + std::string(found[0]);
  for (size_t i = 1; i < std::min<size_t>(found.size(), 3); ++i)
    out += ", relay help " + std::string(found[i]);
  return out + "\n";
}

bool asks_for_json(std::span<const std::string> words) {
  for (const std::string& w : words) {
    if (w == "--") return false;
    if (w == "--json") return true;
  }
  return false;
}

// The messages as JSON, for whoever reads the result of a command with --json.
std::string json_of(const Error& e) {
  nlohmann::ordered_json errors = nlohmann::ordered_json::array();
  for (const Diagnostic& d : e.diagnostics()) {
    nlohmann::ordered_json row{{"code", d.code}, {"message", d.message}};
    for (const auto& [name, text] :
         {std::pair("place", d.span.describe()), std::pair("expected", d.expected_text),
          std::pair("found", d.found_text), std::pair("help", d.help_text)})
      if (!text.empty()) row[name] = text;
    for (const auto& [span, text] : d.notes)
      row["notes"].push_back({{"place", span.describe()}, {"note", text}});
    errors.push_back(std::move(row));
  }
  if (errors.empty()) errors.push_back({{"message", e.what()}});
  return nlohmann::ordered_json{{"errors", errors}}.dump(
             2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

// An exit code of success is valid only if the output has been written.
void flush_output() {
  errno = 0;
  bool failed = std::fflush(stdout) != 0;
  int error = errno;
  failed |= std::ferror(stdout) != 0;
  if (!failed) return;
  std::clearerr(stdout);
  throw UserError(
      Diagnostic(codes::driver_output, {},
                 "standard output cannot be written" +
                     (error == 0 ? std::string() : std::string(": ") + std::strerror(error))));
}

// A closed standard stream would give its number to the next file that is opened, which would then
// receive the output. The replacement is open for reading only, so that printing still fails.
void hold_standard_streams() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY);
  if (fd > STDERR_FILENO) close(fd);
}

}  // namespace

int exit_code_of(const Error& e) {
  if (dynamic_cast<const InternalError*>(&e) != nullptr) return 3;
  return dynamic_cast<const UsageError*>(&e) != nullptr ? 2 : 1;
}

int report_error(const Error& e) {
  std::fflush(stdout);
  if (e.diagnostics().empty()) {
    std::fprintf(stderr, "%s\n", e.what());
  } else {
    for (const Diagnostic& d : e.diagnostics())
      std::fputs(d.render(stderr_is_terminal()).c_str(), stderr);
    std::fputs(hint(e.diagnostics()).c_str(), stderr);
  }
  return exit_code_of(e);
}

std::vector<Command> all_commands() {
  return {with_plugins(with_limits(compile_command())),
          with_plugins(run_command()),
          with_plugins(with_limits(bench_command())),
          with_plugins(with_limits(explain_command())),
          with_plugins(with_limits(show_command())),
          with_plugins(with_limits(check_command())),
          with_plugins(with_limits(opt_command())),
          with_plugins(with_limits(fmt_command())),
          with_plugins(repl_command()),
          with_plugins(debug_command()),
          with_plugins(with_limits(diff_command())),
          with_plugins(with_limits(quantize_command())),
          cache_command(),
          help_command(),
          doctor_command(),
          lsp_command(),
          plugins_command(),
          completion_command(),
          man_command()};
}

int run_command_line(std::span<const std::string> words, Python python) noexcept {
  hold_standard_streams();
  end_cleanly_without_memory();
  try {
    try {
      // The limits that the command began with end with it.
      struct EndLimits {
        ~EndLimits() { LimitFlags::end_compilation(); }
      } end_limits;
      int code = dispatch(words, python);
      flush_output();
      return code;
    } catch (const Error& e) {
      if (!asks_for_json(words)) return report_error(e);
      print(json_of(e));
      if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code_of(e);
      std::clearerr(stdout);
      return report_error(e);
    }
  } catch (const std::bad_alloc&) {
    report_out_of_memory();
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal error: %s\n  This is a defect of Relay; please report it.\n",
                 e.what());
    return 3;
  }
}

}  // namespace relay::cli
