#include <cstdio>

#include "base/codes/driver.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "frontend/read_source.h"
#include "ir/text/format.h"
#include "ir/text/text.h"

namespace relay::cli {
namespace {

struct FmtArgs {
  std::vector<std::string> files;
  bool check = false;
  bool in_place = false;
};

int run_fmt(const FmtArgs& o) {
  std::vector<Diagnostic> problems;
  initialize();
  bool differs = false;
  for (const std::string& file : o.files) {
    try {
      if (o.in_place && file == "/dev/stdin") {
        throw UserError(
            Diagnostic(codes::driver_option, {}, "standard input is not a file that can be written")
                .help("leave out --in-place: the text goes to standard output"));
      }
      std::shared_ptr<const SourceFile> source = read_source(file);
      if (source->text().find('\0') != std::string::npos) {
        throw UserError(Diagnostic(codes::driver_file, Span::place(source, "file"),
                                   "the file is not Relay text")
                            .found("binary data")
                            .help("relay show writes a model as Relay text"));
      }
      parse_module(source);
      std::string text = format_text(source);
      bool same = text == source->text();
      if (o.check && !same) {
        std::printf("%s is not in canonical layout\n", escape_for_terminal(file).c_str());
        differs = true;
      }
      if (o.check || (o.in_place && same)) continue;
      write_text(o.in_place ? file : "-", text, true);
    } catch (const UserError& e) {
      problems.insert(problems.end(), e.diagnostics().begin(), e.diagnostics().end());
    }
  }
  if (!problems.empty()) throw UserError(std::move(problems));
  return differs ? 1 : 0;
}

}  // namespace

Command fmt_command() {
  auto o = std::make_shared<FmtArgs>();
  return {"fmt",
          "Write Relay text in its canonical layout",
          {argument("FILE", o->files, "Relay text").or_input().required(),
           flag("--check", o->check, "Only tell which files differ, by exit code 1"),
           flag("-i,--in-place", o->in_place, "Write the files themselves").excludes("--check")},
          [o](const Given&) { return run_fmt(*o); }};
}

}  // namespace relay::cli
