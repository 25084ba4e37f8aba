#include "cli/self_description.h"

namespace relay::cli {
namespace {

std::string words(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& w : list) out += (out.empty() ? "" : " ") + w;
  return out;
}

std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> out;
  for (const Option& o : command.options) out.insert(out.end(), o.names.begin(), o.names.end());
  out.insert(out.end(), {"-h", "--help"});
  return out;
}

std::string bash(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  std::string cases, values;
  for (const Command& c : commands) {
    names.push_back(c.name);
    cases += "    " + c.name + ") words=\"" + words(option_names(c)) + "\" ;;\n";
    for (const Option& o : c.options) {
      if (o.offered.empty()) continue;
      // A positional argument is completed unless an option's name precedes it.
      std::string pattern = o.names.empty() ? c.name + ":*" : c.name + ":" + o.name();
      values += "    " + pattern + ") values=\"" + words(o.offered) + "\"" +
                (o.is_comma_separated() ? " list=1" : "") + " ;;\n";
    }
  }
  return "_relay() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\" values=\"\" list=\"\" "
         "head=\"\"\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"" +
         words(names) +
         " --help --help-all --version\"\n  else\n    case \"${COMP_WORDS[1]}\" in\n" + cases +
         "    esac\n    case \"${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}\" in\n" + values +
         "    esac\n  fi\n  case \"$cur\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
         "    *) if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"$words\" -- "
         "\"$cur\"))\n"
         "       elif [ -n \"$values\" ]; then\n"
         "         if [ -n \"$list\" ] && [[ $cur == *,* ]]; then head=\"${cur%,*},\"; fi\n"
         "         COMPREPLY=($(compgen -P \"$head\" -W \"$values\" -- \"${cur#\"$head\"}\"))\n"
         "       else COMPREPLY=($(compgen -f -- \"$cur\")); fi ;;\n  esac\n}\n"
         "complete -o filenames -F _relay relay\n";
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out + "'";
}

std::string fish(const std::vector<Command>& commands) {
  std::string out;
  for (const Command& c : commands) {
    out += "complete -c relay -n __fish_use_subcommand -a " + c.name + " -d " + fish_quoted(c.doc) +
           "\n";
    for (const Option& o : c.options) {
      std::string line = "complete -c relay -n '__fish_seen_subcommand_from " + c.name + "'";
      for (const std::string& n : o.names)
        line += n.starts_with("--") ? " -l " + n.substr(2) : " -s " + n.substr(1);
      if (o.is_comma_separated() && !o.offered.empty()) {
        line += " -a " + fish_quoted("(__fish_append , " + words(o.offered) + ")");
      } else if (!o.offered.empty()) {
        line += " -a " + fish_quoted(words(o.offered));
      }
      if (o.names.empty() && o.offered.empty()) continue;
      if (!o.is_flag() && !o.names.empty()) line += " -r";
      out += line + " -d " + fish_quoted(o.doc) + "\n";
    }
  }
  return out;
}

// Text with roff's special characters escaped.
std::string roff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  // A line that starts with a dot or a quotation mark would be a request.
  return !out.empty() && (out[0] == '.' || out[0] == '\'') ? "\\&" + out : out;
}

// "\fB-o\fR, \fB--output\fR \fIFILE\fR".
std::string roff_title(const Option& o) {
  std::string out;
  for (const std::string& n : o.names) out += (out.empty() ? "\\fB" : ", \\fB") + roff(n) + "\\fR";
  std::string value = o.names.empty() ? title_of(o) : o.value;
  if (!value.empty()) out += (out.empty() ? "\\fI" : " \\fI") + roff(value) + "\\fR";
  return out;
}

}  // namespace

std::string overview(const std::vector<Command>& commands, size_t width) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& c : commands) rows.emplace_back(c.name, c.doc);
  return "A compiler for machine-learning programs\nUsage: relay COMMAND [OPTIONS]\n\nCommands:\n" +
         help_rows(rows, width) + "\nOptions:\n" +
         help_rows({{"-h, --help", "Print this help; behind a command, that command's"},
                    {"--help-all", "Print the help of every command"},
                    {"--version", "Print the version"}},
                   width);
}

std::string manual_page(const std::vector<Command>& commands) {
  std::string out =
      ".TH RELAY 1 \"\" \"relay " RELAY_VERSION
      "\" \"Relay\"\n.SH NAME\nrelay \\- a compiler for machine\\-learning programs\n.SH SYNOPSIS\n"
      ".B relay\nCOMMAND [OPTIONS]\n.SH COMMANDS\n";
  for (const Command& c : commands) {
    out += ".SS " + roff(c.name) + "\n" + roff(c.doc) + ".\n.PP\n.B " +
           roff(usage_of("relay " + c.name, c)) + "\n";
    for (const Option& o : c.options)
      out += ".TP\n" + roff_title(o) + "\n" + roff(doc_of(o)) + ".\n";
  }
  return out +
         ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nThe program, model, option or artifact is wrong, "
         "a run failed, or the "
         "output cannot be written.\n.TP\n2\nThe words of the command line make no sense "
         "together.\n.TP\n3\n"
         "A defect of Relay.\n";
}

std::string completion_script(const std::vector<Command>& commands, const std::string& shell) {
  if (shell == "fish") return fish(commands);
  return (shell == "zsh" ? "#compdef relay\nautoload -U bashcompinit && bashcompinit\n" : "") +
         bash(commands);
}

}  // namespace relay::cli
