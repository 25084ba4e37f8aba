#include <algorithm>

#include "base/codes/driver.h"
#include "base/quoted_name.h"
#include "cli/commands.h"
#include "cli/self_description.h"
#include "cli/terminal.h"
#include "driver/error_help.h"

namespace relay::cli {
namespace {

std::string indented(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += "  " + text.substr(at, end - at);
    out += '\n';
    at = end + 1;
  }
  return out;
}

std::string paragraph(const std::string& text, size_t width) {
  std::string out;
  for (const std::string& line : wrapped(text, width)) out += line + "\n";
  return out;
}

std::string text_of_help(const ErrorHelp& e, size_t width) {
  std::string out = e.code + ": " + e.title + "\n\n" + paragraph(e.fix, width);
  if (!e.when.empty()) out += "\nExample:\n\n" + indented(paragraph(e.when, width - 2));
  if (!e.command.empty()) out += "\nExample:\n\n  $ " + e.command + "\n";
  if (!e.python.empty()) out += "\nExample, in Python:\n\n" + indented(e.python);
  if (!e.program.empty())
    out += "\nExample:\n\n" + indented(e.program) + "\nIts message:\n\n" + indented(e.message);
  return out;
}

std::string list_of_codes(size_t width) {
  return "Diagnostic codes; relay help CODE says what to do, with an example.\n\n" +
         help_rows(error_codes(), width);
}

bool is_code(const std::string& name) {
  return name.size() == 5 && (name[0] == 'E' || name[0] == 'e') &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int run_help(const std::string& name) {
  const size_t width = text_width();
  std::string text;
  if (name.empty()) {
    text = overview(all_commands(), width);
  } else if (name == "codes") {
    text = list_of_codes(width);
  } else if (std::optional<ErrorHelp> e = error_help(name)) {
    text = text_of_help(*e, width);
  } else {
    std::vector<Command> commands = all_commands();
    std::vector<std::string_view> known{"codes"};
    for (const Command& c : commands) {
      known.push_back(c.name);
      if (c.name == name) text = help_text("relay " + name, c, width);
    }
    if (text.empty()) {
      throw UsageError(
          Diagnostic(codes::driver_usage, {},
                     (is_code(name) ? "Relay has no diagnostic code " : "relay has no command ") +
                         quoted_name(name))
              .help(is_code(name) ? "relay help codes lists them"
                                  : near_names(name, known, "relay --help lists the commands")));
    }
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

Command help_command() {
  auto name = std::make_shared<std::string>();
  return {"help",
          "Explain a command, or a diagnostic code: what it means, what to do, and an example",
          {argument("NAME", *name, "A command, a code such as E0203, or `codes` for the list")},
          [name](const Given&) { return run_help(*name); }};
}

}  // namespace relay::cli
