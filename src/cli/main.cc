// The `relay` command: a tree of subcommands, and the one place where errors become exit codes.
//
// Exit codes: 0 done, 1 the program, model or option is wrong or a run failed, 2 wrong usage, 3 a
// defect of Relay.
#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "cli/terminal.h"

namespace relay::cli {
namespace {

int report(const Error& e) {
  std::fflush(stdout);
  if (e.diagnostics().empty()) {
    std::fprintf(stderr, "%s\n", e.what());
  } else {
    for (const Diagnostic& d : e.diagnostics()) {
      std::fputs(d.render(stderr_is_terminal()).c_str(), stderr);
    }
  }
  return dynamic_cast<const InternalError*>(&e) != nullptr ? 3 : 1;
}

int run(int argc, char** argv) {
  CLI::App app("A compiler for machine-learning programs", "relay");
  app.set_version_flag("--version", std::string("relay ") + RELAY_VERSION);
  app.set_help_all_flag("--help-all", "Print the help of every command");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  add_compile(app);
  add_run(app);
  add_bench(app);
  add_explain(app);
  add_show(app);
  add_check(app);
  add_opt(app);
  add_fmt(app);
  add_cache(app);
  add_self_description(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace
}  // namespace relay::cli

int main(int argc, char** argv) {
  try {
    return relay::cli::run(argc, argv);
  } catch (const relay::Error& e) {
    return relay::cli::report(e);
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal error: %s\n  This is a defect of Relay; please report it.\n",
                 e.what());
    return 3;
  }
}
