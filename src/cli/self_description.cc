// Shell completion and manual pages, made from the command tree.
#include <cstdio>

#include "cli/commands.h"

namespace relay::cli {
namespace {

std::string words(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& w : list) out += (out.empty() ? "" : " ") + w;
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options()) {
    for (const std::string& n : o->get_lnames()) out.push_back("--" + n);
    for (const std::string& n : o->get_snames()) out.push_back("-" + n);
  }
  return out;
}

std::string bash(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases;
  for (const CLI::App* sub : app.get_subcommands({})) {
    commands.push_back(sub->get_name());
    cases += "    " + sub->get_name() + ") words=\"" + words(option_names(*sub)) + "\" ;;\n";
  }
  return "_relay() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"" +
         words(commands) + " --help --version\"\n  else\n    case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "    esac\n  fi\n  case \"$cur\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
         "    *) if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"$words\" -- "
         "\"$cur\"))\n"
         "       else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n  esac\n}\n"
         "complete -o filenames -F _relay relay\n";
}

std::string zsh(const CLI::App& app) {
  return "#compdef relay\nautoload -U bashcompinit && bashcompinit\n" + bash(app);
}

std::string fish(const CLI::App& app) {
  std::string out;
  for (const CLI::App* sub : app.get_subcommands({})) {
    out += "complete -c relay -n __fish_use_subcommand -a " + sub->get_name() + " -d '" +
           sub->get_description() + "'\n";
    for (const CLI::Option* o : sub->get_options()) {
      for (const std::string& n : o->get_lnames()) {
        std::string text = o->get_description();
        std::string quoted;
        for (char c : text) quoted += c == '\'' ? "\\'" : std::string(1, c);
        out += "complete -c relay -n '__fish_seen_subcommand_from " + sub->get_name() + "' -l " +
               n + " -d '" + quoted + "'\n";
      }
    }
  }
  return out;
}

std::string roff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string man(const CLI::App& app) {
  std::string out = ".TH RELAY 1 \"\" \"relay " RELAY_VERSION "\" \"Relay\"\n.SH NAME\nrelay \\- " +
                    roff(app.get_description()) +
                    "\n.SH SYNOPSIS\n.B relay\nCOMMAND [OPTIONS]\n.SH COMMANDS\n";
  for (const CLI::App* sub : app.get_subcommands({})) {
    out += ".SS " + roff(sub->get_name()) + "\n" + roff(sub->get_description()) + "\n";
    for (const CLI::Option* o : sub->get_options()) {
      out += ".TP\n.B " + roff(o->get_name(true)) + "\n" + roff(o->get_description()) + "\n";
    }
  }
  return out;
}

}  // namespace

void add_self_description(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a completion script for a shell");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([shell, &app] {
    std::fputs((*shell == "bash"  ? bash(app)
                : *shell == "zsh" ? zsh(app)
                                  : fish(app))
                   .c_str(),
               stdout);
  });
  CLI::App* manual = app.add_subcommand("man", "Print the manual page (roff)");
  manual->callback([&app] { std::fputs(man(app).c_str(), stdout); });
}

}  // namespace relay::cli
